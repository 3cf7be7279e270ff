"""Runs draws on copies of a database: tries them, captures what they do, and checks what was found for them."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psycopg

from bench.recovery.model import Draw, Grammar, Optimizer, Outcome
from bench.recovery.world import TIMEZONE, World
from emit.size import minify, size
from encoder.effect import Effect, effect_of
from encoder.frame import State
from scratch.catalog import read_catalog
from scratch.changes import complete
from scratch.database import cloned
from scratch.session import Session, connect
from stream.capture import CaptureError, capture_script
from stream.model import RowChange, StreamError, Transaction
from stream.statements import statements

MOST_ROWS = 1500
# One row that a statement selects is named by its key; what selected it cannot be told.
LEAST_ROWS = 3
ATTEMPTS = 200
# A draw that runs longer than this is not one that anybody would write.
_TIMEOUT = "3s"


class Workbench:
    """Copies of the database `template` on the server of `admin_dsn`; use it as a context manager.

    One copy is looked at and tried on (its sequences wander), one belongs to the optimizer, and each
    captured statement gets a fresh one.
    """

    def __init__(self, admin_dsn: str, template: str, name: str, look_dsn: str, stack: ExitStack) -> None:
        self._admin_dsn = admin_dsn
        self._template = template
        self._name = name
        self._stack = stack
        self._states = 0
        self._state_dsn = self._fresh_state()
        self._session = connect(look_dsn)
        self.catalog = read_catalog(self._session)
        self.world = World(self.catalog, State(self._session, self.catalog))

    @classmethod
    @contextmanager
    def open(cls, admin_dsn: str, template: str, name: str) -> Iterator[Workbench]:
        """`name` starts the names of the databases, and is unique to a worker."""
        with cloned(admin_dsn, template, f"{name}_look") as look, ExitStack() as stack:
            bench = cls(admin_dsn, template, name, look, stack)
            try:
                yield bench
            finally:
                bench._session.close()

    def draw(self, grammar: Grammar, seed: str) -> tuple[Draw, Transaction] | None:
        """The first good draw of `grammar`, minified, and what it did; None where none of many is good.

        Good is what runs, has an effect, changes at most MOST_ROWS rows, and of a table that it selects from
        at least LEAST_ROWS and not all.
        """
        rng = random.Random(seed)
        for _ in range(ATTEMPTS):
            found = grammar(rng, self.world)
            if found is None or not self._runs(found):
                continue
            draw = Draw(
                tuple(minify(sql) for sql in found.statements), found.family, found.shape, found.depth, found.table
            )
            changes = self.capture(draw.sql)
            if isinstance(changes, str) or not 0 < len(changes) <= MOST_ROWS:
                continue
            if effect_of(self.catalog, self._complete(changes).changes):
                return draw, Transaction(1, tuple(changes))
        return None

    def judge(self, workload: str, number: int, draw: Draw, done: Transaction, optimizer: Optimizer) -> Outcome:
        """Let the optimizer find a script, run it on a fresh copy, and compare."""
        started = time.perf_counter()
        script, error, exact = "", "", False
        try:
            script = _body(optimizer(self._state_dsn, done.changes))
        except Exception as failure:  # whatever it is, the report shall have it
            error = f"{type(failure).__name__}: {failure}".splitlines()[0]
            # Who knows in what state it left its database.
            self._state_dsn = self._fresh_state()
        seconds = time.perf_counter() - started
        if not error:
            replayed = self.capture(script)
            error = replayed if isinstance(replayed, str) else ""
            exact = not isinstance(replayed, str) and self._effect(replayed) == self._effect(list(done.changes))
        return Outcome(
            workload, number, draw, len(done.changes), size(draw.sql), size(script), script, exact, seconds, error
        )

    def capture(self, sql: str) -> list[RowChange] | str:
        """The row changes of `sql`, run as one transaction on a fresh copy, or the error."""
        with cloned(self._admin_dsn, self._template, f"{self._name}_run") as dsn:
            try:
                found = list(capture_script(dsn, f"BEGIN;{sql};COMMIT"))
            except (CaptureError, StreamError) as error:
                return str(error)
        return [change for transaction in found for change in transaction.changes]

    @contextmanager
    def trial(self) -> Iterator[Session]:
        """A session whose changes are rolled back at the end; slow statements are cancelled."""
        with self._session.transaction(force_rollback=True):
            self._session.execute(f"SET LOCAL statement_timeout='{_TIMEOUT}'".encode())
            self._session.execute(f"SET LOCAL timezone='{TIMEZONE}'".encode())
            yield self._session

    def _fresh_state(self) -> str:
        self._states += 1
        return self._stack.enter_context(cloned(self._admin_dsn, self._template, f"{self._name}_state{self._states}"))

    def _runs(self, draw: Draw) -> bool:
        """Whether the draw runs, does something to few rows, and not to all rows of its table."""
        most = MOST_ROWS
        if draw.table is not None:
            most = min(most, self.world.frame(draw.table).size - 1)
        try:
            with self.trial() as session:
                counts = [session.execute(sql.encode()).rowcount for sql in draw.statements]
                session.execute(b"SET CONSTRAINTS ALL IMMEDIATE")
        except psycopg.Error:
            return False
        least = 1 if draw.table is None else LEAST_ROWS
        return all(counts) and least <= sum(counts) <= most

    def _complete(self, changes: list[RowChange]) -> Transaction:
        return complete(self._session, self.catalog, Transaction(1, tuple(changes)))

    def _effect(self, changes: list[RowChange]) -> Effect:
        return effect_of(self.catalog, self._complete(changes).changes)


def _body(script: str) -> str:
    """The statements of a script without BEGIN and COMMIT."""
    return ";".join(sql for sql in statements(script) if sql.upper() not in ("BEGIN", "COMMIT"))

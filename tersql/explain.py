"""What a script does, statement by statement: which rows, at what cost, and what the next best would have been.

The script runs on a scratch copy, in the states in which its statements stand; capture triggers see every row
that a statement changes, those of triggers and foreign-key actions too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

import psycopg

from emit.lexer import Kind, tokenize
from emit.rules import check_script, split_script
from emit.size import minify
from encoder.block import block_candidates, cheapest_exact
from encoder.budget import Meter
from encoder.candidate import Candidate, bytes_of
from encoder.context import Context, Effort
from encoder.effect import Effect, Origins, TableEffect, effect_of, table_effects
from encoder.floor import floor_candidates
from encoder.frame import State
from encoder.partitioning import origins_in
from encoder.transaction import FRAME_BYTES
from encoder.trial import Laboratory, install_capture
from encoder.yardstick import baseline, starter
from replay.sessions import odd_sessions
from scratch.catalog import Table, read_catalog
from scratch.changes import apply_changes, complete
from scratch.database import cloned
from scratch.session import Session, connect
from stream.model import Op, TableName, Transaction, Value
from stream.open import open_stream
from tersql.errors import InputError, one_line, server_errors
from tersql.rounds import effort
from tersql.workspace import Origin, workspace


@dataclass(frozen=True, slots=True)
class RowStory:
    """One row that a statement changed: `key` names it as it was before (its whole self without a key);
    `cells` are (column, before, after): what an update changed, all that an insert or delete has beside the key."""

    table: TableName
    op: Op
    key: tuple[tuple[str, Value], ...]
    cells: tuple[tuple[str, Value, Value], ...]


@dataclass(frozen=True, slots=True)
class Alternative:
    """Other statements with exactly the same effect; bytes with their semicolons."""

    statements: tuple[str, ...]
    size: int
    kind: str


@dataclass(frozen=True, slots=True)
class StatementStory:
    """`size` is in bytes with the semicolon; `error` is what the server says where it refuses the statement.

    `literal` is the cheapest other way that names every row and value, `rival` the cheapest other one that the
    search finds (None where it was not asked, or nothing else was found).
    """

    text: str
    size: int
    kind: str
    rows: tuple[RowStory, ...]
    literal: Alternative | None = None
    rival: Alternative | None = None
    error: str | None = None

    @property
    def next_best(self) -> Alternative | None:
        found = [one for one in (self.rival, self.literal) if one is not None]
        return min(found, key=lambda one: one.size, default=None)

    @property
    def counts(self) -> list[tuple[TableName, Op, int]]:
        """How many rows of which table came, went or changed; the most first."""
        counted = Counter((row.table, row.op) for row in self.rows)
        return [(table, op, n) for (table, op), n in sorted(counted.items(), key=lambda item: (-item[1], item[0]))]


@dataclass(frozen=True, slots=True)
class TransactionStory:
    """Sizes are in bytes with BEGIN and COMMIT; `trouble` says in a line why the stream's rows did not come out."""

    index: int
    changes: int
    statements: tuple[StatementStory, ...]
    starter: int
    baseline: int
    trouble: str | None = None

    @property
    def exact(self) -> bool:
        return self.trouble is None

    @property
    def size(self) -> int:
        return FRAME_BYTES + sum(statement.size for statement in self.statements)


@dataclass(frozen=True, slots=True)
class Explanation:
    transactions: tuple[TransactionStory, ...]

    @property
    def size(self) -> int:
        return sum(one.size for one in self.transactions)

    @property
    def starter(self) -> int:
        return sum(one.starter for one in self.transactions)

    @property
    def baseline(self) -> int:
        return sum(one.baseline for one in self.transactions)

    @property
    def kinds(self) -> list[tuple[str, int, int]]:
        """(kind of statement, how many, bytes); the most bytes first, BEGIN and COMMIT as one kind."""
        statements = [statement for one in self.transactions for statement in one.statements]
        count = Counter(statement.kind for statement in statements)
        size: Counter[str] = Counter()
        for statement in statements:
            size[statement.kind] += statement.size
        frames = len(self.transactions)
        found = [(kind, count[kind], size[kind]) for kind in count]
        found += [("BEGIN, COMMIT", frames, frames * FRAME_BYTES)] if frames else []
        return sorted(found, key=lambda kind: (-kind[2], kind[0]))


def explain(
    script: str,
    stream: Path | str,
    *,
    dump: Path | str | None = None,
    database: str | None = None,
    scratch: str | None = None,
    timezone: str | None = None,
    search: str | None = None,
    told: Callable[[TransactionStory], None] | None = None,
) -> Explanation:
    """What each statement of `script` does, beside the `stream` that it replays.

    With `search`, an effort as in `Options`, rivals of every statement are searched for, which takes about as long
    as `optimize`.  After a transaction that does not give the stream's rows, the next one begins from the stream's.
    `told` is called as each transaction is done.
    Raises InputError (a script that breaks the rules or has another number of transactions), StreamError,
    ScratchError.
    """
    for violation in check_script(script):
        raise InputError(str(violation))
    bodies = [part.statements for part in split_script(script)]
    count = sum(1 for _ in open_stream(stream))
    if len(bodies) != count:
        raise InputError(f"the script has {len(bodies)} transactions, the stream {count}")
    origin = Origin(Path(dump) if dump is not None else None, database)
    stories = []
    with (
        server_errors(),
        workspace(origin, scratch) as place,
        cloned(place.admin_dsn, place.template, f"tersql_explain_{token_hex(6)}") as dsn,
        connect(dsn) as session,
    ):
        narrator = _Narrator(session, place.role, timezone, None if search is None else effort(search, count))
        for transaction, body in zip(open_stream(stream), bodies, strict=True):
            stories.append(narrator.tell(transaction, body))
            if told is not None:
                told(stories[-1])
    return Explanation(tuple(stories))


class _Narrator:
    def __init__(self, session: Session, role: str, timezone: str | None, search: Effort | None) -> None:
        self._session = session
        self._catalog = read_catalog(session)
        install_capture(session, self._catalog)
        self._lab = Laboratory(session, self._catalog, sessions=odd_sessions(timezone), role=role)
        self._state = State(session, self._catalog)
        self._timezone = timezone
        self._search = search

    def tell(self, transaction: Transaction, body: Sequence[str]) -> TransactionStory:
        """The story of one transaction; the database follows the stream."""
        transaction = complete(self._session, self._catalog, transaction)
        owed = effect_of(self._catalog, transaction.changes)
        rowwise = starter(self._catalog, transaction.changes, self._timezone)
        parts = table_effects(self._catalog, owed, origins_in(self._state, transaction.changes))
        grouped = baseline(self._state, parts, self._timezone)
        work = self._search or Effort()
        context = Context(self._state, self._lab, self._timezone, work, Meter(work.allowance))
        stories: list[StatementStory] = []
        trouble = None
        try:
            with self._session.transaction() as running:
                self._lab.refresh()
                left = owed
                for text in body:
                    done, story = self._statement(context, text)
                    stories.append(story)
                    left = left.minus(done)
                if left:
                    names = ", ".join(map(str, sorted(left.tables)))
                    trouble = f"the rows of {names} are not those of the stream"
                    raise psycopg.Rollback(running)
                self._session.execute(b"SET CONSTRAINTS ALL IMMEDIATE")
        except psycopg.DatabaseError as error:
            trouble = f"COMMIT fails: {one_line(error)}"
        if trouble is not None:
            apply_changes(self._session, self._catalog, transaction.changes)
        self._state.forget()
        return TransactionStory(
            transaction.index,
            len(transaction.changes),
            tuple(stories),
            FRAME_BYTES + bytes_of(rowwise),
            FRAME_BYTES + bytes_of(grouped),
            trouble,
        )

    def _statement(self, context: Context, text: str) -> tuple[Effect, StatementStory]:
        size, kind = bytes_of([text]), kind_of(text)
        seen = self._lab.observe([text])
        if not isinstance(seen, Effect):
            return Effect(), StatementStory(text, size, kind, (), error=seen)
        parts = table_effects(self._catalog, seen)
        literal, rival = self._alternatives(context, text, seen, parts)
        done = self._lab.perform(text)
        self._state.forget(sorted(seen.tables))
        rows = tuple(row for part in parts for row in _rows(part))
        assert isinstance(done, Effect)  # it ran a moment ago
        return done, StatementStory(text, size, kind, rows, literal, rival)

    def _alternatives(
        self, context: Context, text: str, effect: Effect, parts: Sequence[TableEffect]
    ) -> tuple[Alternative | None, Alternative | None]:
        own = (minify(text),)

        def cheapest(pool: Sequence[Candidate]) -> Alternative | None:
            others = [one for one in pool if tuple(map(minify, one.statements)) != own]
            plan = cheapest_exact(context, effect, parts, others) if others else None
            if plan is None:
                return None
            kinds = ", ".join(sorted({candidate.kind for candidate in plan.candidates}))
            return Alternative(plan.statements, plan.size, kinds)

        literals = [one for part in parts for one in floor_candidates(context, parts, part)]
        literal = cheapest(literals)
        if self._search is None or not effect:
            return literal, None
        rival = cheapest(block_candidates(context, effect, Origins())[1])
        return literal, rival if rival is not None and (literal is None or rival.size < literal.size) else None


def _rows(effect: TableEffect) -> Iterator[RowStory]:
    table = effect.table
    for row in effect.inserts:
        yield RowStory(table.name, Op.INSERT, *_whole(table, row, coming=True))
    for before, after in effect.updates:
        cells = tuple(
            (column.name, old, new) for column, old, new in zip(table.stored, before, after, strict=True) if old != new
        )
        yield RowStory(table.name, Op.UPDATE, _key(table, before), cells)
    for row in effect.deletes:
        yield RowStory(table.name, Op.DELETE, *_whole(table, row, coming=False))


def _key(table: Table, row: Sequence[Value]) -> tuple[tuple[str, Value], ...]:
    pairs = zip(table.stored, row, strict=True)
    return tuple((c.name, value) for c, value in pairs if not table.row_key or c.name in table.row_key)


def _whole(
    table: Table, row: Sequence[Value], *, coming: bool
) -> tuple[tuple[tuple[str, Value], ...], tuple[tuple[str, Value, Value], ...]]:
    key = _key(table, row)
    named = {name for name, _ in key}
    rest = [
        (c.name, value) for c, value in zip(table.stored, row, strict=True) if c.name not in named and value is not None
    ]
    return key, tuple((name, None, value) if coming else (name, value, None) for name, value in rest)


def kind_of(statement: str) -> str:
    """What kind of statement it is, in a word or two: INSERTs of literals apart from those of queries."""
    words = [token.text.upper() for token in tokenize(statement) if token.kind is Kind.WORD]
    first = words[0] if words else ""
    if first != "INSERT":
        return first
    return "INSERT … VALUES" if "VALUES" in words and "SELECT" not in words else "INSERT … SELECT"

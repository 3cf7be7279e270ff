"""Replays a script transaction by transaction beside the stream, and lets the caller try again.

Two copies of the restored database: one follows the stream by its row changes, one runs the script
as the restricted role, in a session whose settings are as odd as the contract allows.  They are
compared before the COMMIT, with the deferred constraints brought forward, so that what differs can
be rolled back.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

import psycopg
from psycopg import sql

from replay.difference import Difference, Kind, RowDifference
from replay.role import restricted_role
from replay.sequences import Sequences
from replay.snapshot import Digest, difference_from, digests, first_difference, touched
from scratch.catalog import read_catalog
from scratch.changes import apply_changes, complete
from scratch.database import cloned
from scratch.session import Session, connect
from stream.canonical import CANONICAL
from stream.model import TableName, Transaction

# A script owes the same rows under any of these, so it is run under the least usual ones.
ODD_SETTINGS = {"DateStyle": "SQL, DMY", "IntervalStyle": "sql_standard"}
ODD_TIMEZONE = "Pacific/Chatham"


class Replayer:
    """For each transaction: `expect` the stream's, `run` statements until one try is exact, `accept`.

    `admin_dsn` is a superuser's on the scratch server (of a database other than `template`, which
    has to be free of connections), `timezone` the one promised of the replaying session.  A context
    manager: the copies and the role are gone at its end.
    """

    def __init__(self, admin_dsn: str, template: str, *, timezone: str | None = None) -> None:
        self._stack = ExitStack()
        try:
            self._open(admin_dsn, template, timezone or ODD_TIMEZONE)
        except BaseException:
            self._stack.close()
            raise
        self._digests: dict[TableName, Digest] = {}
        self._transaction = Transaction(0, ())
        self._touched: set[TableName] = set()
        self._running = False

    def _open(self, admin_dsn: str, template: str, timezone: str) -> None:
        enter = self._stack.enter_context
        token = secrets.token_hex(6)
        expected_dsn = enter(cloned(admin_dsn, template, f"tersql_expected_{token}"))
        actual_dsn = enter(cloned(admin_dsn, template, f"tersql_actual_{token}"))
        self._expected = enter(connect(expected_dsn))
        self._observer = enter(connect(actual_dsn))
        self.catalog = read_catalog(self._expected)
        role = enter(restricted_role(self._observer))
        self._script = enter(connect(role.dsn(actual_dsn), timezone=timezone, settings=ODD_SETTINGS))
        self._sequences = Sequences(self._observer)
        self._positions = self._sequences.positions()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._stack.close()

    def expect(self, transaction: Transaction) -> Transaction:
        """Bring the expected side past the stream's next transaction; returns it completed.

        Raises ScratchError where the stream does not fit the database.
        """
        completed = complete(self._expected, self.catalog, transaction)
        apply_changes(self._expected, self.catalog, completed.changes)
        self._transaction = completed
        self._touched = {change.table for change in completed.changes}
        for name in self._touched:
            self._digests.pop(name, None)
        return completed

    def run(self, statements: Iterable[str]) -> Difference | None:
        """Try `statements` as the body of the transaction that was expected last.

        None: exact, and open until `accept` (or the next `run`, which takes it back).  Otherwise all
        of it is undone, sequences included, and the first difference returned.
        """
        self._undo()
        self._running = True
        difference = self._try(list(statements))
        if difference is not None:
            self._undo()
        return difference

    def next_values(self) -> dict[TableName, int]:
        """What nextval gives for each sequence of increment 1, as committed."""
        return {
            name: int(position.last_value) + (position.is_called == "t")
            for name, position in zip(self._sequences.names, self._positions, strict=True)
        }

    def accept(self) -> Difference | None:
        """Commit what `run` found exact.  A difference only where COMMIT itself fails."""
        if not self._running:
            raise RuntimeError("no exact run is open")
        difference = self._execute(0, "COMMIT")
        self._running = difference is not None
        if difference is None:
            self._positions = self._sequences.positions()
        self._undo()
        return difference

    def compare_all(self) -> RowDifference | None:
        """Compare all tables, as committed; the first row that differs."""
        return first_difference(self._expected, self._observer, self.catalog, self.catalog)

    def _try(self, statements: Sequence[str]) -> Difference | None:
        for number, text in enumerate(["BEGIN", *statements, "SET CONSTRAINTS ALL IMMEDIATE"]):
            difference = self._execute(number, text, last=number > len(statements))
            if difference is not None:
                return difference
        _be_canonical(self._script)
        row = self._compare({*self._touched, *touched(self._script, self.catalog)})
        return None if row is None else Difference.of_row(self._transaction.index, row)

    def _execute(self, number: int, text: str, *, last: bool = False) -> Difference | None:
        try:
            self._script.execute(text.encode())
        except psycopg.Error as error:
            what = "COMMIT" if last or text == "COMMIT" else f"statement {number}"
            reason = (error.diag.message_primary or str(error)).replace("\n", " ")
            message = f"{what} fails: {reason}"
            return Difference(Kind.ERROR, self._transaction.index, message, statement=number)
        return None

    def _compare(self, names: set[TableName]) -> RowDifference | None:
        missing = names - self._digests.keys()
        self._digests.update(digests(self._expected, self.catalog, missing))
        wanted = {name: self._digests[name] for name in names}
        return difference_from(wanted, self._expected, self._script, self.catalog)

    def _undo(self) -> None:
        """Back to the state before the try, if one is open."""
        if not self._running:
            return
        self._script.execute("ROLLBACK")
        # A session may hold values of a sequence in advance, as of the position that is taken back.
        self._script.execute("DISCARD SEQUENCES")
        self._sequences.restore(self._positions)
        self._running = False


def _be_canonical(session: Session) -> None:
    """Give the rest of the session's transaction the settings that digests need."""
    for name, value in CANONICAL.items():
        session.execute(sql.SQL("SET LOCAL {} TO {}").format(sql.Identifier(name), sql.Literal(value)))

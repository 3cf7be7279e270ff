"""Replays a script transaction by transaction beside the stream, and lets the caller try again.

Copies of the restored database: one follows the stream by its row changes, the others run the script as the restricted
role, each in a session whose settings are as odd as the contract allows in another way.  They are compared before the
COMMIT, with the deferred constraints brought forward, so that what differs can be rolled back.  The first copy is left
to itself, the others are vacuumed after each transaction: a server does so when it likes, and a script that numbers
rows as they lie has to stand both.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from replay.difference import Difference, Kind, RowDifference
from replay.sessions import odd_sessions
from replay.side import Side, side
from replay.snapshot import Digest, difference_from, digests, first_difference, touched
from scratch.catalog import read_catalog
from scratch.changes import apply_changes, complete
from scratch.database import cloned
from scratch.session import connect
from stream.model import TableName, Transaction


class Replayer:
    """For each transaction: `expect` the stream's, `run` statements until one try is exact, `accept`.

    `admin_dsn` is a superuser's on the scratch server (of a database other than `template`, which
    has to be free of connections), `timezone` the one promised of the replaying session.  A context
    manager: the copies and the role are gone at its end.
    """

    def __init__(self, admin_dsn: str, template: str, *, timezone: str | None = None) -> None:
        self._stack = ExitStack()
        try:
            self._open(admin_dsn, template, timezone)
        except BaseException:
            self._stack.close()
            raise
        self._digests: dict[TableName, Digest] = {}
        self._transaction = Transaction(0, ())
        self._touched: set[TableName] = set()
        self._written: set[TableName] = set()

    def _open(self, admin_dsn: str, template: str, timezone: str | None) -> None:
        enter = self._stack.enter_context
        token = secrets.token_hex(6)
        self._expected = enter(connect(enter(cloned(admin_dsn, template, f"tersql_expected_{token}"))))
        self.catalog = read_catalog(self._expected)
        self._sides: list[Side] = []
        for place, settings in enumerate(odd_sessions(timezone)):
            dsn = enter(cloned(admin_dsn, template, f"tersql_actual_{token}_{place}"))
            self._sides.append(enter(side(dsn, settings)))

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
        tried = list(statements)
        for one in self._sides:
            difference = self._try(one, tried)
            if difference is not None:
                for each in self._sides:
                    each.undo()
                return difference
        return None

    def next_values(self) -> dict[TableName, int]:
        """What nextval gives for each sequence of increment 1, as committed."""
        return self._sides[0].next_values()

    def accept(self) -> Difference | None:
        """Commit what `run` found exact.  A difference only where COMMIT itself fails."""
        if not all(one.is_open for one in self._sides):
            raise RuntimeError("no exact run is open")
        for one in self._sides:
            reason = one.commit()
            if reason is not None:
                return self._failed(None, reason)
        for one in self._sides[1:]:
            one.vacuum(self._written)
        return None

    def compare_all(self) -> RowDifference | None:
        """Compare all tables, as committed; the first row that differs."""
        found = (first_difference(self._expected, one.observer, self.catalog, self.catalog) for one in self._sides)
        return next((row for row in found if row is not None), None)

    def _try(self, one: Side, statements: Sequence[str]) -> Difference | None:
        failure = one.attempt(statements)
        if failure is not None:
            number, reason = failure
            return self._failed(number, reason, last=number > len(statements))
        self._written = {*self._touched, *touched(one.script, self.catalog)}
        row = self._compare(one, self._written)
        return None if row is None else Difference.of_row(self._transaction.index, row)

    def _failed(self, number: int | None, reason: str, *, last: bool = False) -> Difference:
        what = "COMMIT" if last or number is None else f"statement {number}"
        return Difference(Kind.ERROR, self._transaction.index, f"{what} fails: {reason}", statement=number or 0)

    def _compare(self, one: Side, names: set[TableName]) -> RowDifference | None:
        missing = names - self._digests.keys()
        self._digests.update(digests(self._expected, self.catalog, missing))
        wanted = {name: self._digests[name] for name in names}
        return difference_from(wanted, self._expected, one.script, self.catalog)

"""Assembles row changes into transactions, and refuses what cannot be one.

Every decoder sees the same grammar (BEGIN, row changes, COMMIT), so its rules live here once.
"""

from __future__ import annotations

from collections.abc import Mapping

from stream.model import Op, Row, RowChange, StreamError, TableName, Transaction, Value


class Assembler:
    """Holds the transaction that is open; never more than one, so memory is bounded by the largest."""

    def __init__(self) -> None:
        self._index = 0
        self._open = False
        self._start = 0
        self._xid: int | None = None
        self._changes: list[RowChange] = []
        self._size = 0

    def begin(self, line: int, xid: int | None, size: int) -> None:
        if self._open:
            raise StreamError(line, f"BEGIN inside {self._name()}, which has no COMMIT yet")
        self._index += 1
        self._open, self._start, self._xid, self._changes, self._size = True, line, xid, [], size

    def change(self, change: RowChange, xid: int | None, size: int) -> None:
        if not self._open:
            raise StreamError(
                change.line,
                f"{change.op.name} of {change.table} outside a transaction: the stream must hold BEGIN and "
                "COMMIT (wal2json option include-transaction)",
            )
        self._require_same(change.line, change.op.name, xid)
        self._changes.append(change)
        self._size += size

    def commit(self, line: int, xid: int | None, size: int) -> Transaction:
        if not self._open:
            raise StreamError(line, "COMMIT without a BEGIN")
        self._require_same(line, "COMMIT", xid)
        self._open = False
        changes = tuple(self._changes)
        self._changes = []
        return Transaction(self._index, changes, self._xid, self._start, line, self._size + size)

    def end(self, line: int) -> None:
        """The stream ends after `line`."""
        if self._open:
            raise StreamError(line, f"the stream is cut off inside {self._name()}, before its COMMIT")

    def _require_same(self, line: int, what: str, xid: int | None) -> None:
        if xid is not None and self._xid is not None and xid != self._xid:
            raise StreamError(line, f"{what} of xid {xid} inside {self._name()}")

    def _name(self) -> str:
        xid = "" if self._xid is None else f", xid {self._xid}"
        return f"transaction {self._index} (BEGIN at line {self._start}{xid})"


def update(table: TableName, old: Row, new: Mapping[str, Value], line: int) -> RowChange:
    """An update; what `new` lacks is an unchanged TOAST value, taken from `old` where that holds it."""
    if not old.keys() <= new.keys():
        new = {**old, **new}
    return RowChange(Op.UPDATE, table, old, new, line)


def refuse_truncate(line: int, tables: str) -> StreamError:
    return StreamError(line, f"TRUNCATE of {tables} is not replayable (the rules allow only INSERT, UPDATE, DELETE)")

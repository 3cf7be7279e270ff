"""Where a replay and its stream part: the first difference, as one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from stream.model import TableName, Value


class Kind(StrEnum):
    ERROR = "error"  # a statement or the COMMIT failed
    MISSING = "missing row"
    UNEXPECTED = "unexpected row"
    VALUE = "wrong value"
    COUNT = "number of transactions"


@dataclass(frozen=True, slots=True)
class RowDifference:
    """One row of `table`: `key` names it (all its columns where the table has no key), `column` is the
    first that differs where both sides have the row."""

    kind: Kind
    table: TableName
    key: Mapping[str, Value]
    column: str | None = None
    expected: Value = None
    found: Value = None

    def __str__(self) -> str:
        cells = ", ".join(f"{name}={_show(value)}" for name, value in self.key.items())
        row = f"{self.table} row ({cells[:300]})"
        if self.kind is Kind.VALUE:
            return f"{row}: column {self.column} is {_show(self.found)}, expected {_show(self.expected)}"
        return f"{row} is {'missing' if self.kind is Kind.MISSING else 'not in the stream'}"


@dataclass(frozen=True, slots=True)
class Difference:
    """A transaction (numbered from 1; 0 where none is to blame) that does not replay, and why.

    `statement` counts from 1 within the transaction; one past its statements is the COMMIT.
    """

    kind: Kind
    transaction: int
    message: str
    statement: int | None = None
    row: RowDifference | None = None

    def __str__(self) -> str:
        where = f"transaction {self.transaction}: " if self.transaction else ""
        return f"{where}{self.message}"

    @classmethod
    def of_row(cls, transaction: int, row: RowDifference) -> Difference:
        return cls(row.kind, transaction, str(row), row=row)


def _show(value: Value) -> str:
    if value is None:
        return "NULL"
    return f"'{value}'" if len(value) <= 80 else f"'{value[:80]}'… ({len(value)} characters)"

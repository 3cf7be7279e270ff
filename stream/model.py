"""The one model that every stream format is read into.

A value is its exact PostgreSQL text, or None for NULL: the text that a server prints under
`stream.canonical.CANONICAL` settings (ISO dates, UTC, hex bytea, shortest floats).  Text is what the
stream holds, what survives every type, and what a literal is made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeAlias

Value: TypeAlias = str | None
Row: TypeAlias = Mapping[str, Value]


class TableName(NamedTuple):
    """A table by schema and name, both unquoted."""

    schema: str
    name: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


class Op(StrEnum):
    INSERT = "I"
    UPDATE = "U"
    DELETE = "D"


@dataclass(frozen=True, slots=True)
class RowChange:
    """One row before and after.

    `old` holds the columns of the replica identity (all columns under REPLICA IDENTITY FULL, the key
    alone otherwise, None for an insert); `new` holds every column that the stream carried (a column
    whose TOAST value did not change may be missing), None for a delete.  `line` is the 1-based line
    of the stream.
    """

    op: Op
    table: TableName
    old: Row | None
    new: Row | None
    line: int = 0


@dataclass(frozen=True, slots=True)
class Transaction:
    """The row changes between one BEGIN and its COMMIT, in the order of the stream.

    `index` counts from 1; `line` and `last_line` delimit it in the stream.
    """

    index: int
    changes: tuple[RowChange, ...]
    xid: int | None = None
    line: int = 0
    last_line: int = 0
    size: int = field(default=0, compare=False)


class StreamError(Exception):
    """The stream cannot be read; `str()` is one line that names the line of the stream."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line

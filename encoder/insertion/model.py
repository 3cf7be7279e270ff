"""What a search for an INSERT is given, and what it gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emit.term import Insert
from encoder.selection.model import Selection
from stream.model import Row, TableName

Indexes = NDArray[np.int64]

UNORDERED = "unordered"
"""Stands in the note of a proposal whose ids rest on the order in which the server happens to scan."""


@dataclass(frozen=True, slots=True)
class Sequences:
    """`next`: the value that nextval would give, by sequence."""

    next: Mapping[TableName, int]


@dataclass(frozen=True, slots=True)
class InsertGoal:
    """`rows` of `table` in the order of the stream; all stored columns, canonical text."""

    table: TableName
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class DriverRows:
    """Rows that a statement of the same transaction returns, in the order in which it does, as indexes into the
    frame of `table`.  With `cte` they can be read under that name, whose WITH the caller
    writes; `selection` tells them from the other rows, where that is known."""

    table: TableName
    rows: Indexes
    selection: Selection | None = None
    cte: str | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """An INSERT that should give the rows, once run on the state.  `uses_sequences` are the sequences
    whose next values it takes; `note` says how it was found, in a few words (UNORDERED may be among them)."""

    statement: Insert
    uses_sequences: frozenset[TableName]
    note: str

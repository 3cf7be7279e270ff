"""What a grammar draws, what optimizes it, and what came of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from stream.model import RowChange, TableName

if TYPE_CHECKING:
    from bench.recovery.world import World

# From the DSN of a database in its state before, which must be left as it is, and the row changes of one
# transaction to a script that replays them.
Optimizer: TypeAlias = Callable[[str, Sequence[RowChange]], str]


@dataclass(frozen=True, slots=True)
class Draw:
    """A drawn transaction: its statements in a short spelling.

    `shape` names what was drawn within the family; `depth` counts the foreign keys, nested queries or
    statements beyond the first that it needs.  It is no good where it changes every row of `table`.
    """

    statements: tuple[str, ...]
    family: str
    shape: str
    depth: int = 0
    table: TableName | None = None

    @property
    def sql(self) -> str:
        return ";".join(self.statements)


# A grammar draws from a world; None where this draw came to nothing (the caller draws again).
Grammar: TypeAlias = Callable[[random.Random, "World"], Draw | None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One draw and the script found for it; sizes in bytes without BEGIN and COMMIT."""

    workload: str
    number: int
    draw: Draw
    changes: int
    original: int
    found: int
    script: str
    exact: bool
    seconds: float
    error: str = ""

    @property
    def recovered(self) -> bool:
        return self.exact and self.found <= self.original

    @property
    def ratio(self) -> float:
        return self.found / self.original

"""What a condition may look at: columns of the row and of the rows it refers to, as arrays of codes.

A feature is a term with its value in every row of the frame.  Those of the row itself and of its parents up
foreign keys are gathered here, nearest first; `encoder.selection.derive` adds what can be computed of one value
(length, date parts, jsonb keys, …).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emit.term import Term, ref
from encoder.budget import Budget
from encoder.frame import Coded, Codes, Frame, State
from encoder.selection.booleans import measure
from encoder.selection.grams import GramIndex, gram_index
from encoder.selection.model import Path
from encoder.selection.paths import join_cost
from encoder.selection.scales import INTEGERS, MICROSECONDS, TEXTS, Scale, scale_of
from scratch.catalog import Column, ForeignKey
from stream.model import TableName

MAX_DEPTH = 3
# Cells gathered at most for one table's features; nearer paths come first.
MAX_CELLS = 40_000_000
# Texts longer than this on average are documents: no search looks at their distinct values.
_DOCUMENT = 2_000

_NO_EQUALITY = frozenset({"json", "xml", "point", "polygon", MICROSECONDS})


@dataclass(frozen=True, eq=False)
class Feature:
    """A term with its value in every row.

    `base` is the type of the term, `path` the row that it is about; `coded` holds the codes of all rows of the
    frame, and only values that occur.  `column` is the name of the column that the term is, None for a derived
    term.
    """

    term: Term
    path: Path
    base: str
    coded: Coded
    column: str | None = None
    not_null: bool = False

    @cached_property
    def scale(self) -> Scale | None:
        """Where literals between the values can be found; None for types without such."""
        return scale_of(self.base, self.coded.values)

    @cached_property
    def integers(self) -> NDArray[np.int64] | None:
        """The values as numbers; None for other types and for numbers that are too large."""
        if self.base not in INTEGERS:
            return None
        try:
            return np.array([int(value) for value in self.coded.values], dtype=np.int64)
        except OverflowError:
            return None

    @cached_property
    def grams(self) -> GramIndex | None:
        """The parts of the values; None where they are too long, or not texts."""
        return gram_index(self.coded.values) if self.base in TEXTS else None

    @cached_property
    def nullable(self) -> bool:
        """Whether it is NULL for some row."""
        return bool((self.coded.codes < 0).any())

    @cached_property
    def least(self) -> int:
        """The bytes of the term with its joins."""
        return join_cost(self.paths) + measure(self.term)

    @property
    def paths(self) -> frozenset[Path]:
        return frozenset([self.path]) if self.path else frozenset()

    @property
    def comparable(self) -> bool:
        return self.base not in _NO_EQUALITY


@dataclass(frozen=True, eq=False)
class Reach:
    """The rows that `path` leads to: `place[i]` is the row of the target's frame for row i, -1 for none."""

    path: Path
    frame: Frame
    place: Codes | None  # None: the row itself

    def gather(self, codes: Codes) -> Codes:
        if self.place is None:
            return codes
        return np.where(self.place < 0, np.int32(-1), codes[self.place]) if len(codes) else self.place


@dataclass
class Known:
    """What was gathered of a table, as long as the `frames` that it was read from are current.  `made` is what others
    made of it."""

    frames: list[Frame]
    reaches: list[Reach]
    features: list[Feature]
    made: dict[Hashable, Any] = field(default_factory=dict)


def look(state: State, table: TableName, budget: Budget) -> Known:
    """The columns of the row and of its parents up to depth three, nearest and smallest first, with the ways to them,
    breadth first, each set of rows once."""
    frame = state.frame(table)
    known: Known | None = frame.made.get(Known)
    if known is None or any(state.frame(f.table.name) is not f for f in known.frames):
        found = list(_reaches(state, frame))
        known = Known([reach.frame for reach in found], found, list(_gather(found, frame.size)))
        frame.made[Known] = known
        budget.spend(len(known.features) * (1 + frame.size // 1000))
    return known


def _reaches(state: State, frame: Frame) -> Iterator[Reach]:
    own = Reach((), frame, None)
    level = [own]
    yield own
    seen: set[tuple[TableName, bytes]] = set()
    cells = frame.size * len(frame.table.columns)
    for _ in range(MAX_DEPTH):
        above: list[Reach] = []
        for reach in level:
            for key in reach.frame.table.foreign_keys:
                if key.target not in state.catalog or _circles(reach.path, key):
                    continue
                target = state.frame(key.target)
                cells += (frame.size + target.size) * len(target.table.columns)
                if cells > MAX_CELLS:
                    return
                place = reach.gather(reach.frame.parent(key))
                mark = (key.target, place.tobytes())
                if mark in seen or not (place >= 0).any():
                    continue
                seen.add(mark)
                above.append(Reach((*reach.path, key), target, place))
        yield from above
        level = above


def _circles(path: Path, key: ForeignKey) -> bool:
    """Whether `key` would lead to a table for the third time."""
    return sum(step.table == key.target for step in path) > 1 or (key in path and path[-1] != key)


def _gather(found: list[Reach], size: int) -> Iterator[Feature]:
    for reach in found:
        skipped = reach.path[-1].target_columns if reach.path else ()
        for column in reach.frame.table.columns:
            if len(skipped) == 1 and column.name in skipped:
                continue  # the child's own column says the same
            if (feature := _feature(reach, column)) is not None:
                yield feature


def _feature(reach: Reach, column: Column) -> Feature | None:
    texts = reach.frame.texts(column.name)
    if sum(map(len, filter(None, texts[:1000]))) > _DOCUMENT * min(len(texts), 1000):
        return None
    coded = compact(Coded(reach.gather(reach.frame.coded(column.name).codes), reach.frame.coded(column.name).values))
    nulls = bool((coded.codes < 0).any())
    if len(coded.values) + nulls < 2 and reach.path:
        return None
    return Feature(
        ref(reach.path, column.name), reach.path, column.base, coded, column.name, not nulls and not reach.path
    )


def compact(coded: Coded) -> Coded:
    """The same with only those values that occur."""
    used = np.zeros(len(coded.values) + 1, dtype=np.bool_)
    used[coded.codes] = True  # -1 marks the place at the end
    if used[:-1].all():
        return coded
    new = np.cumsum(used[:-1], dtype=np.int32) - 1
    codes = np.append(new, np.int32(-1))[coded.codes].astype(np.int32)
    return Coded(codes, tuple(value for value, there in zip(coded.values, used[:-1].tolist(), strict=True) if there))

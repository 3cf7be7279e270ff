"""Which of a group's rows an aggregate counted: conditions under which counts and sums are what was inserted.

The aggregates of whole groups are known too large; a range of a column, or some values of a column with few, that
gives just the wanted numbers in all groups is hardly there by chance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from encoder.frame import Frame
from encoder.insertion.model import Indexes
from encoder.insertion.slots import Slot
from encoder.insertion.spell import INT, NUMBER, class_of
from encoder.selection.model import Mask

_FEW_VALUES = 14
_MAX_SUBSET = 3
_MAX_CUTS = 40
_TOLERANCE = 1e-6
_DIGITS = re.compile(r"\d+")
_TIMES = frozenset({"date", "timestamp without time zone", "timestamp with time zone"})

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Puzzle:
    """Rows of a frame with their groups (-1: of none that is wanted), what each weighs, and the wanted sums."""

    frame: Frame
    rows: Indexes
    groups: Indexes
    weights: _Floats
    wanted: _Floats

    def solved(self, mask: Mask) -> bool:
        return _close(self.sums(mask), self.wanted)

    def sums(self, mask: Mask) -> _Floats:
        kept = mask & (self.groups >= 0)
        return np.bincount(self.groups[kept], self.weights[kept], minlength=len(self.wanted)).astype(np.float64)


def filters(frame: Frame, rows: Indexes, groups: Indexes, folded: Sequence[Slot]) -> Iterator[Mask]:
    """Masks over `rows` under which a count or a sum over the groups is one of the numbers that `folded` hold."""
    seen: set[bytes] = set()
    for puzzle in _puzzles(frame, rows, groups, folded):
        for mask in (*_ranges(puzzle), *_subsets(puzzle)):
            if mask.tobytes() not in seen:
                seen.add(mask.tobytes())
                yield mask


def _puzzles(frame: Frame, rows: Indexes, groups: Indexes, folded: Sequence[Slot]) -> Iterator[_Puzzle]:
    numeric = [column for column in frame.table.columns if class_of(column) in (INT, NUMBER)]
    targets = [target for slot in folded for target in _targets(slot)]
    weights = [np.ones(len(rows)), *(np.nan_to_num(frame.numbers(column.name)[rows]) for column in numeric)]
    for wanted in targets:
        for weight in weights:
            puzzle = _Puzzle(frame, rows, groups, weight, wanted)
            full = puzzle.sums(np.ones(len(rows), dtype=bool))
            if (full >= wanted - _TOLERANCE).all() and not _close(full, wanted) and (weight >= 0).all():
                yield puzzle


def _targets(slot: Slot) -> Iterator[_Floats]:
    """The numbers that a column holds, as they are or inside texts of one shape."""
    if None in slot.values:
        return
    texts = [value or "" for value in slot.values]
    if class_of(slot.column) in (INT, NUMBER):
        yield np.array([float(text) for text in texts])
    elif slot.column.kind == "S" and len({_DIGITS.sub("0", text) for text in texts}) == 1:
        for numbers in zip(*(_DIGITS.findall(text) for text in texts), strict=True):
            if all(len(number) < 16 for number in numbers):
                yield np.array([float(number) for number in numbers])


def _close(sums: _Floats, wanted: _Floats) -> bool:
    return bool(np.allclose(sums, wanted, rtol=_TOLERANCE, atol=_TOLERANCE))


def _ranges(puzzle: _Puzzle) -> Iterator[Mask]:
    """Lower and upper bounds of times and numbers."""
    full = puzzle.sums(np.ones(len(puzzle.rows), dtype=bool))
    sizes = np.bincount(puzzle.groups[puzzle.groups >= 0], minlength=len(full))
    differing = np.flatnonzero(~np.isclose(full, puzzle.wanted, rtol=_TOLERANCE, atol=_TOLERANCE))
    group = int(differing[np.argmin(sizes[differing])])
    members = np.flatnonzero(puzzle.groups == group)
    for column in puzzle.frame.table.columns:
        if column.base not in _TIMES and class_of(column) not in (INT, NUMBER):
            continue
        codes = puzzle.frame.coded(column.name).codes[puzzle.rows].astype(np.int64)
        for upward in (True, False):
            ordered = members[np.argsort(-codes[members] if upward else codes[members], kind="stable")]
            running = np.cumsum(puzzle.weights[ordered])
            ends = np.flatnonzero(np.isclose(running, puzzle.wanted[group], rtol=_TOLERANCE, atol=_TOLERANCE))
            for end in ends[:_MAX_CUTS].tolist():
                edge = codes[ordered[end]]
                mask = codes >= max(edge, 0) if upward else (codes <= edge) & (codes >= 0)
                if puzzle.solved(mask):
                    yield mask
                    break


def _subsets(puzzle: _Puzzle) -> Iterator[Mask]:
    """A few values of a column that holds few, or all but a few."""
    count = len(puzzle.wanted)
    inside = puzzle.groups >= 0
    for column in puzzle.frame.table.columns:
        codes = puzzle.frame.coded(column.name).codes[puzzle.rows].astype(np.int64) + 1
        size = len(puzzle.frame.coded(column.name).values) + 1
        if size > _FEW_VALUES:
            continue
        cells = np.bincount(puzzle.groups[inside] * size + codes[inside], puzzle.weights[inside], count * size)
        table = cells.reshape(count, size)
        fits = [value for value in range(size) if (table[:, value] <= puzzle.wanted + _TOLERANCE).all()]
        used = [value for value in fits if table[:, value].any()]
        for length in range(1, _MAX_SUBSET + 1):
            for chosen in combinations(used, length):
                if _close(table[:, list(chosen)].sum(axis=1), puzzle.wanted):
                    yield np.isin(codes, chosen)
        if len(used) > _MAX_SUBSET and _close(table[:, used].sum(axis=1), puzzle.wanted):
            yield np.isin(codes, used)

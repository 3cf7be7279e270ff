"""The rows of each value of some columns, found without reading the columns again."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from encoder.frame import Frame, Key
from scratch.catalog import ForeignKey

_Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Keyed:
    """`numbers` counts the values that occur, those with a NULL in them left out; `codes` has the number of every
    row's value, -1 for none; the rows of value number n are `order[starts[n]:starts[n + 1]]`, ascending."""

    numbers: dict[Key, int]
    codes: _Places
    order: _Places
    starts: _Places

    def rows(self, value: Key) -> list[int]:
        number = self.numbers.get(value)
        if number is None:
            return []
        found: list[int] = self.order[self.starts[number] : self.starts[number + 1]].tolist()
        return found

    def __contains__(self, value: Key) -> bool:
        return value in self.numbers


def keyed(frame: Frame, columns: tuple[str, ...], via: ForeignKey | None = None) -> Keyed:
    """The rows of `frame` by their values of `columns`; with `via` by those of the rows that they refer to by it."""
    middle = frame if via is None else frame.state.frame(via.target)
    key: Hashable = ("keyed", columns, via)
    known: tuple[Frame, Keyed] | None = frame.made.get(key)
    if known is None or known[0] is not middle:  # the other table may have changed since
        known = middle, _keyed(frame, columns) if via is None else _through(frame, keyed(middle, columns), via)
        frame.made[key] = known
    return known[1]


def _keyed(frame: Frame, columns: tuple[str, ...]) -> Keyed:
    numbers: dict[Key, int] = {}
    values = zip(*(frame.texts(name) for name in columns), strict=True)
    codes = (-1 if None in value else numbers.setdefault(value, len(numbers)) for value in values)
    return _sorted(numbers, np.fromiter(codes, dtype=np.int64, count=frame.size))


def _through(frame: Frame, middle: Keyed, via: ForeignKey) -> Keyed:
    parents = frame.parent(via)
    return _sorted(middle.numbers, np.where(parents >= 0, np.append(middle.codes, -1)[parents], -1))


def _sorted(numbers: dict[Key, int], codes: _Places) -> Keyed:
    order = np.argsort(codes, kind="stable").astype(np.int64)
    return Keyed(numbers, codes, order, np.searchsorted(codes[order], np.arange(len(numbers) + 1)))

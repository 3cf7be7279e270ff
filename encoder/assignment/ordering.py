"""Sort keys that put rows before others as wanted: lists of keys, learned one key after another.

A pair (a, b) says that row a comes before row b.  The first key must never put b before a; whatever pairs it leaves
tied are the next key's work, and so on, as decision lists are learned (Rivest 1987).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from encoder.assignment.layout import Codes, Mask, SortKey

_MAX_KEYS = 3
_BRANCHES = 4
_MAX_FOUND = 4


@dataclass(frozen=True, slots=True)
class Pairs:
    """Rows of which the first must come before the second, and rows that must be equal to the sort."""

    before: Codes
    after: Codes
    one: Codes
    other: Codes

    def __len__(self) -> int:
        return len(self.before)


def by_number(groups: Codes, wanted: Codes, rows: Codes) -> Pairs:
    """Pairs that make the rows of each group stand in the order of `wanted`, equal where that is equal."""
    line = np.lexsort((wanted, groups))
    same = np.diff(groups[line]) == 0
    rising = np.diff(wanted[line]) > 0
    strict, equal = np.flatnonzero(same & rising), np.flatnonzero(same & ~rising)
    sorted_ = rows[line]
    return Pairs(sorted_[strict], sorted_[strict + 1], sorted_[equal], sorted_[equal + 1])


def orderings(keys: Sequence[SortKey], pairs: Pairs) -> list[tuple[SortKey, ...]]:
    """The shortest lists of `keys` that put all pairs right, each key at least of use for one."""
    if not len(pairs):
        return []
    usable: list[SortKey] = []
    steps: list[Codes] = []
    for key in keys:
        step = key.codes[pairs.after] - key.codes[pairs.before]
        if (step > 0).any() and (key.codes[pairs.one] == key.codes[pairs.other]).all():
            usable.append(key)
            steps.append(step)
    found = list(_lists(usable, steps, np.ones(len(pairs), dtype=np.bool_), ()))
    return sorted(found, key=lambda chosen: sum(key.cost + 1 for key in chosen))[:_MAX_FOUND]


def _lists(
    keys: Sequence[SortKey], steps: Sequence[Codes], left: Mask, chosen: tuple[SortKey, ...]
) -> Iterator[tuple[SortKey, ...]]:
    """Lists that begin with `chosen` and put right what is `left`."""
    if not left.any():
        yield chosen
        return
    if len(chosen) >= _MAX_KEYS:
        return
    fits: list[tuple[int, int, int]] = []
    for place, step in enumerate(steps):
        near = step[left]
        if (near >= 0).all() and (done := int((near > 0).sum())):
            fits.append((-done, keys[place].cost, place))
    for _, _, place in sorted(fits)[:_BRANCHES]:
        yield from _lists(keys, steps, left & (steps[place] == 0), (*chosen, keys[place]))

"""Numbers that ranks give to rows, and values that go by rank: first of a group, second, the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations

import numpy as np

from emit.term import Term, raw
from encoder.assignment.layout import Codes, Layout, Partition, SortKey, order_parts, over, sorted_rows
from encoder.assignment.ordering import Pairs, by_number, orderings
from encoder.assignment.problem import Floats

# Pairs of rows for each of which a sort key is looked up.
_MAX_PAIRS = 30_000
_MAX_ALIKE = 6


@dataclass(frozen=True)
class Numbering:
    """A window function with its values, a float for every row of the frame (NaN where it has none)."""

    window: Term
    values: Floats
    partition: Partition
    keys: tuple[SortKey, ...]
    tied: bool  # the row key is needed to tell rows apart


@dataclass(frozen=True)
class Reach:
    """The rows `members` that a window sees, and those at which its value is known to be wanted: `rows`, or all
    rows of the groups that these are in, where the statement may `spread` to rows that it leaves as they are."""

    layout: Layout
    members: Codes
    rows: Codes
    spread: bool

    def rows_in(self, partition: Partition) -> Codes:
        if not self.spread:
            return self.rows
        return self.members[np.isin(partition.codes[self.members], partition.codes[self.rows])]

    def seen(self, partition: Partition, keys: Sequence[SortKey]) -> Codes:
        """The members that are left when the rows that the terms refer to are joined."""
        members = self.members
        for codes in (*(key.codes for key in keys if key.path), *([partition.codes] if partition.joined else [])):
            members = members[codes[members] >= 0]
        return members


def numberings(reach: Reach, final: Floats, parents: bool) -> Iterator[Numbering]:
    """rank (which is row_number where the order is total) and dense_rank of which the numbers `final`, one a row of
    the frame, are a linear function in the rows of `reach`; with `parents` by columns of the rows that they refer to.
    """
    layout = reach.layout
    for partition, keys in _ways(layout, parents):
        rows = reach.rows_in(partition)
        wanted = final[rows]
        if not np.isfinite(wanted).all() or wanted.min() == wanted.max() or (wanted != np.trunc(wanted)).any():
            continue
        whole = wanted.astype(np.int64)
        sizes = _Sizes(partition, reach.members, rows)
        for sign in (1, -1):
            if not sizes.allow(sign * whole):
                continue
            pairs = by_number(partition.codes[rows], sign * whole, rows)
            for chosen in orderings(keys, pairs):
                if not parents or partition.joined or any(key.path for key in chosen):
                    for found in _ranks(reach, partition, chosen, bool(len(pairs.one))):
                        if _linear(found.values[rows], wanted):
                            yield found


def _ways(layout: Layout, parents: bool) -> Iterator[tuple[Partition, Sequence[SortKey]]]:
    if not layout.table.row_key:
        return
    keys = (*layout.keys, *layout.parent_keys) if parents else layout.keys
    for partition in (*layout.partitions, *(layout.parent_partitions if parents else ())):
        yield partition, keys


class _Sizes:
    """How many rows the groups of a partition have: what numbers there can be."""

    def __init__(self, partition: Partition, members: Codes, rows: Codes) -> None:
        every, codes = np.unique(partition.codes[members], return_inverse=True)
        self._sizes = np.bincount(codes)
        self._groups = np.searchsorted(every, partition.codes[rows])
        self._known = np.bincount(self._groups, minlength=len(every))

    def allow(self, wanted: Codes) -> bool:
        """Whether `wanted` may rise with ranks: from the same number on in every group that is known whole, and
        nowhere farther than the group has rows."""
        most = np.full(len(self._sizes), np.iinfo(np.int64).min)
        least = np.full(len(self._sizes), np.iinfo(np.int64).max)
        np.maximum.at(most, self._groups, wanted)
        np.minimum.at(least, self._groups, wanted)
        step = int(np.gcd.reduce(wanted - wanted[0]))
        some = self._known > 0
        full = some & (self._known == self._sizes)
        if full.any() and least[full].min() != least[full].max():
            return False
        if self._known.max() < 2:
            return False
        return bool(((most - least)[some] <= step * (self._sizes[some] - 1)).all())


def _linear(values: Floats, wanted: Floats) -> bool:
    """Whether wanted = k * value + c for some k and c."""
    if np.isnan(values).any():
        return False
    first, last = int(np.argmin(values)), int(np.argmax(values))
    left = (values - values[first]) * (wanted[last] - wanted[first])
    right = (wanted - wanted[first]) * (values[last] - values[first])
    return bool(values[last] > values[first] and np.array_equal(left, right))


def _ranks(reach: Reach, partition: Partition, keys: tuple[SortKey, ...], repeated: bool) -> Iterator[Numbering]:
    """The numberings by `keys`; with the row key behind them where equal numbers are not wanted."""
    line, starts, ties = sorted_rows(partition, keys, reach.seen(partition, keys))
    place = np.arange(len(line))
    first = np.maximum.accumulate(np.where(starts, place, 0))
    tied = bool(ties.any())
    own = np.maximum.accumulate(np.where(ties, 0, place))
    dense = np.cumsum(~ties)
    # Under a total order rank() is row_number(), and shorter.
    kinds = [("rank", own - first + 1, False), ("dense_rank", dense - dense[first] + 1, False)][: 1 + tied]
    if tied and not repeated:
        kinds.append(("rank", place - first + 1, True))
    for name, found, by_key in kinds:
        values = np.full(reach.layout.frame.size, np.nan)
        values[line] = found
        window = over(raw(f"{name}()"), partition, order_parts(reach.layout.table, keys, by_key))
        yield Numbering(window, values, partition, keys, by_key)


@dataclass(frozen=True)
class Grading:
    """Values by rank: `classes[0]` for the first `firsts` rows of each group, then one each for the following ones,
    the last for all others."""

    numbering: Numbering
    classes: tuple[int, ...]
    firsts: int


def gradings(reach: Reach, final: Codes, parents: bool) -> Iterator[Grading]:
    """Ranks that tell in which of a few classes (0, 1, …; -1 for none) the rows of `reach` are; `final` has one a row
    of the frame."""
    for partition, keys in _ways(reach.layout, parents):
        rows = reach.rows_in(partition)
        classes = final[rows]
        count = int(classes.max()) + 1
        if (classes < 0).any() or not 2 <= count <= _MAX_ALIKE:
            continue
        groups = partition.codes[rows]
        for order, firsts in _sequences(groups, classes, count):
            grade = np.argsort(np.array(order))[classes]
            pairs = _between_grades(groups, grade, rows)
            for chosen in orderings(keys, pairs) if pairs is not None else ():
                if not parents or partition.joined or any(key.path for key in chosen):
                    for found in _ranks(reach, partition, chosen, False):
                        ranks = found.values[rows]
                        if np.array_equal(np.clip(ranks - firsts, 0, count - 1), grade):
                            yield Grading(found, order, firsts)


def _sequences(groups: Codes, classes: Codes, count: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """In which order the classes may follow each other in every group, and how many rows the first has."""
    _, group = np.unique(groups, return_inverse=True)
    table = np.zeros((int(group.max()) + 1, count), dtype=np.int64)
    np.add.at(table, (group, classes), 1)
    if (table.sum(axis=1) > 1).sum() < 1:
        return
    having = (table > 0).sum(axis=0)
    most = table.max(axis=0)
    ranked = sorted(range(count), key=lambda place: (-having[place], most[place]))
    tried = permutations(ranked) if count <= 3 else iter([tuple(ranked)])
    for order in tried:
        firsts = int(most[order[0]])
        if count > 2 and firsts > 1:
            continue
        full = table[:, list(order)]
        size = full.sum(axis=1)
        expected = np.minimum(size, firsts)
        fits = np.array_equal(full[:, 0], expected)
        for place in range(1, count - 1):
            fits = fits and np.array_equal(full[:, place], (size - firsts >= place).astype(np.int64))
        if fits and full[:, -1].any():
            yield order, firsts


def _between_grades(groups: Codes, grade: Codes, rows: Codes) -> Pairs | None:
    """Every row of a grade before every row of the next one in its group; None where that is too many."""
    line = np.lexsort((grade, groups))
    before: list[Codes] = []
    after: list[Codes] = []
    total = 0
    edges = np.flatnonzero((np.diff(groups[line]) != 0) | (np.diff(grade[line]) != 0)) + 1
    runs = np.split(line, edges)
    for one, following in pairwise(runs):
        if groups[one[0]] == groups[following[0]]:
            total += len(one) * len(following)
            if total > _MAX_PAIRS:
                return None
            before.append(np.repeat(rows[one], len(following)))
            after.append(np.tile(rows[following], len(one)))
    if not before:
        return None
    none = np.empty(0, dtype=np.int64)
    return Pairs(np.concatenate(before), np.concatenate(after), none, none)

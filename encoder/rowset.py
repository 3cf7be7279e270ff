"""Rows that have nothing in common, named by their key in the fewest bytes.

Every family of conditions spells the same: it holds for all rows that must be selected and for none that must
not.  Rows that may be either, and numbers that no row has, are taken or left as suits the spelling.  Each family is
tried on the rows to select and, negated, on those not to; and again beside a range that the rows to select fill.
Sizes are measured, and the shortest win.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from emit.term import Term, conjoin
from encoder import keyset_packed, keyset_ranges
from encoder.frame import Frame
from encoder.keyset import KeySet, Mask, Numbers, Run
from encoder.selection.model import Atom, Labels, MaskedAtom, Selection
from encoder.selection.rowset import key_atom
from encoder.selection.spelling import make_atom

_INTEGERS = frozenset({"smallint", "integer", "bigint"})
_LARGEST = 2**53
_AND = 4
# How many are remembered, and under what.
_KEPT = 4
_KEY, _NUMBERS = "row set", "numbers"
# No list of keys is shorter.
_LEAST = 12


def row_set_atoms(
    frame: Frame,
    labels: Labels,
    timezone: str | None,
    *,
    among: Mask | None = None,
    keep: int = 4,
    bound: int | None = None,
) -> list[Atom]:
    """At most `keep` conditions on the row key, the shortest first, each of which holds for all rows of
    `labels.must` and for none of `labels.must_not`.

    Keys of one integer column have all families, others IN and NOT IN.  A condition of a WHERE may be asked of
    every row of the table, and fails for none; elsewhere `among` tells for which rows it is asked.  What packs the
    numbers is left out where it cannot stay below `bound` bytes.  Empty for a table without a row key, and where
    there is nothing to select or nothing to tell it from.
    """
    names = frame.table.row_key
    if not names or not labels.must.any() or not labels.must_not.any():
        return []
    if keep > _KEPT:
        return _atoms(frame, labels, timezone, among, bound)[:keep]
    masks = (labels.must, labels.must_not, among)
    asked = (_KEY, timezone, *(None if mask is None else np.packbits(mask).tobytes() for mask in masks))
    known: tuple[int | None, list[Atom]] | None = frame.made.get(asked)
    if known is None or (known[0] is not None and (bound is None or bound > known[0])):
        known = frame.made[asked] = bound, _atoms(frame, labels, timezone, among, bound)[:_KEPT]
    return known[1][:keep]


def _atoms(frame: Frame, labels: Labels, timezone: str | None, among: Mask | None, bound: int | None) -> list[Atom]:
    """See `row_set_atoms`."""
    rows = _key_set(frame, labels, among) if len(frame.table.row_key) == 1 else None
    if rows is None:
        sides = ((labels.must, True), (labels.must_not, False))
        listed = [key_atom(frame, np.flatnonzero(mask).tolist(), yes, timezone) for mask, yes in sides]
        found = [atom for atom in listed if atom is not None]
    else:
        found = [make_atom(term, frozenset()) for term in dict.fromkeys(_conditions(rows, bound))]
    return sorted(found, key=lambda atom: atom.size)


def row_set_selections(
    frame: Frame,
    labels: Labels,
    timezone: str | None,
    *,
    within: Sequence[MaskedAtom] = (),
    keep: int = 4,
    bound: int | None = None,
) -> list[Selection]:
    """The same as selections; also beside each condition of `within` that holds for all rows to select, so that
    fewer rows are left to tell apart.  Sizes are without what joins cost."""
    found = [
        Selection(((atom,),), atom.size) for atom in row_set_atoms(frame, labels, timezone, keep=keep, bound=bound)
    ]
    for masked in within:
        if not masked.holds[labels.must].all():
            continue
        rest = Labels(labels.must, labels.must_not & masked.holds)
        if not rest.must_not.any():
            found.append(Selection(((masked.atom,),), masked.atom.size))
        left = None if bound is None else bound - masked.atom.size - _AND
        if left is not None and left < _LEAST:
            continue
        for atom in row_set_atoms(frame, rest, timezone, keep=2, bound=left):
            found.append(Selection(((masked.atom, atom),), masked.atom.size + _AND + atom.size))
    return sorted(found, key=lambda selection: selection.size)[:keep]


def _key_set(frame: Frame, labels: Labels, among: Mask | None) -> KeySet | None:
    column = frame.table.by_name[frame.table.row_key[0]]
    if column.base not in _INTEGERS:
        return None
    if _NUMBERS not in frame.made:
        frame.made[_NUMBERS] = np.array([int(key[0] or 0) for key in frame.keys], dtype=np.int64)
    numbers: Numbers = frame.made[_NUMBERS]
    if max(-int(numbers[0]), int(numbers[-1])) > _LARGEST:
        return None
    asked = np.ones(len(numbers), dtype=np.bool_) if among is None else among
    return KeySet(column.name, column.base == "bigint", numbers[asked], labels.must[asked], labels.must_not[asked])


def _least_packed(rows: KeySet) -> float:
    """The bytes that packing the rows to select needs at least, as sets of as many runs go.

    There are C(k-1,r-1)·C(m+1,r) ways to choose k of k+m rows in r runs, and a byte of what can be packed holds no
    more than seven bits.
    """
    chosen, others, runs = len(rows.listed), len(rows.others), len(rows.runs)
    return (_log_choose(chosen - 1, runs - 1) + _log_choose(others + 1, runs)) / (7 * math.log(2))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _conditions(rows: KeySet, bound: int | None) -> Iterator[Term]:
    if bound is not None and _least_packed(rows) > bound:
        for side, yes in ((rows, True), (rows.opposite, False)):
            yield from keyset_ranges.remainders(side, yes)
        return
    for side, yes in ((rows, True), (rows.opposite, False)):
        yield from keyset_ranges.lists(side, yes)
        yield from keyset_ranges.ranges(side, yes)
        yield from keyset_ranges.remainders(side, yes)
        yield from keyset_packed.characters(side, yes)
        yield from keyset_packed.gaps(side, yes)
        yield from keyset_packed.pages(side, yes)
        yield from keyset_packed.bitmaps(side, yes)
        yield from keyset_packed.numbered(side, yes)
    yield from keyset_ranges.boundaries(rows)
    yield from keyset_packed.coded(rows)
    yield from _beside_range(rows)


def _beside_range(rows: KeySet) -> Iterator[Term]:
    """A range that leaves out rows below or above those to select, and what tells the others apart."""
    first, last = int(rows.listed[0]), int(rows.listed[-1])
    below, above = rows.must_not & (rows.numbers < first), rows.must_not & (rows.numbers > last)
    ends = [outside for outside in (below, above, below | above) if outside.any()]
    for outside in ends if below.any() and above.any() else ends[:1]:
        range_term = keyset_ranges.between(rows, _hull(rows, outside, first, last))
        rest = replace(rows, must_not=rows.must_not & ~outside)
        if not rest.others.any():
            continue
        for term in _cut_short(rest):
            both = conjoin([range_term, term])
            assert both is not None
            yield both


def _hull(rows: KeySet, outside: Mask, first: int, last: int) -> Run:
    left, right = rows.numbers[outside & (rows.numbers < first)], rows.numbers[outside & (rows.numbers > last)]
    return Run(int(left[-1]) if len(left) else None, first, last, int(right[0]) if len(right) else None)


def _cut_short(rest: KeySet) -> Iterator[Term]:
    """The families that gain by having fewer rows not to select."""
    yield from keyset_ranges.lists(rest.opposite, False)
    yield from keyset_ranges.ranges(rest.opposite, False)
    yield from keyset_ranges.remainders(rest, True)
    yield from keyset_packed.characters(rest.opposite, False)
    yield from keyset_packed.gaps(rest.opposite, False)

"""How the rows of a table may be grouped, ordered and narrowed: what GROUP BY, ORDER BY and WHERE can say."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from weakref import WeakKeyDictionary

import numpy as np

from emit.term import SourceKey, Term, call, ref
from encoder.frame import Floats, Frame
from encoder.selection.links import Ints
from encoder.selection.masks import equation
from encoder.selection.model import Labels, Mask
from scratch.catalog import Column

# The source of the table's other rows in a nested query.
PEER: SourceKey = ("peer",)

_NUMBERS = frozenset({"smallint", "integer", "bigint", "numeric", "real", "double precision"})
_TIMES = frozenset({"date", "timestamp without time zone", "timestamp with time zone"})
_TEXTS = frozenset({"text", "character varying"})
# Types without equality, or of which no one makes groups.
_UNGROUPED = frozenset({"json", "jsonb", "xml", "point", "bytea", "real", "double precision"})
_ORDERS = 10
_PAIRED = 6  # columns of which pairs are formed
_SUBSETS = 3


@dataclass(frozen=True, slots=True)
class Groups:
    """What rows are grouped by: `codes` are equal for rows of one group, NULL being a value like others.

    `names` are the columns, () where `terms` are more than columns; `known`: no NULL in it.
    """

    terms: tuple[Term, ...]
    names: tuple[str, ...]
    codes: Ints
    known: Mask


@dataclass(frozen=True, slots=True)
class Order:
    """What rows are ordered by, ascending with NULL last.  Several columns break each other's ties; with `turned`
    the others run against the first."""

    names: tuple[str, ...]
    codes: Ints
    known: Mask
    is_key: bool
    turned: bool = False

    @property
    def terms(self) -> tuple[Term, ...]:
        return tuple(ref(PEER, name) for name in self.names)


@dataclass(frozen=True, slots=True)
class Subset:
    """The rows for which `where` holds."""

    holds: Mask
    where: Term | None


def dense(codes: Ints) -> Ints:
    """Codes without gaps, in the same order."""
    if not codes.size:
        return codes
    least = int(codes.min())
    width = int(codes.max()) - least + 1
    if width > 8 * codes.size:
        return np.unique(codes, return_inverse=True)[1].astype(np.int64)
    used = np.zeros(width, dtype=np.bool_)
    used[codes - least] = True
    return (np.cumsum(used) - 1)[codes - least]


@dataclass(slots=True)
class _Known:
    """What was made of a frame, so that the families share it."""

    singles: list[Groups] | None = None
    groups: list[Groups] | None = None
    orders: list[Order] | None = None


_known: WeakKeyDictionary[Frame, _Known] = WeakKeyDictionary()


def single_groups(frame: Frame) -> list[Groups]:
    """Every column of which several rows have one value, those that make the most groups first; texts also in
    lower case where that makes more rows equal."""
    known = _known.setdefault(frame, _Known())
    if known.singles is None:
        known.singles = _single_groups(frame)
    return known.singles


def _single_groups(frame: Frame) -> list[Groups]:
    found = []
    for column in frame.table.columns:
        if column.base not in _UNGROUPED:
            coded = frame.coded(column.name)
            term = ref(PEER, column.name)
            found.append(_group((term,), (column.name,), coded.codes.astype(np.int64)))
            if column.base in _TEXTS:
                lowered = _lowered(coded.values)
                if lowered.size and lowered.max() + 1 < len(coded.values):
                    found.append(_group((call("lower", term),), (), np.append(lowered, -1)[coded.codes]))
    counted = [(int(groups.codes.max()) + 1, groups) for groups in found if groups.codes.size]
    return [groups for count, groups in sorted(counted, key=lambda item: -item[0]) if 1 < count < frame.size]


def _lowered(values: tuple[str, ...]) -> Ints:
    places: dict[str, int] = {}
    return np.array([places.setdefault(value.lower(), len(places)) for value in values], dtype=np.int64)


def _group(terms: tuple[Term, ...], names: tuple[str, ...], codes: Ints) -> Groups:
    return Groups(terms, names, dense(codes), codes >= 0)


def all_groups(frame: Frame) -> list[Groups]:
    """The whole table, single columns, and pairs of columns (foreign keys before others)."""
    known = _known.setdefault(frame, _Known())
    if known.groups is None:
        known.groups = _all_groups(frame)
    return known.groups


def _all_groups(frame: Frame) -> list[Groups]:
    whole = Groups((), (), np.zeros(frame.size, dtype=np.int64), np.ones(frame.size, dtype=np.bool_))
    singles = single_groups(frame)
    foreign = {name for key in frame.table.foreign_keys for name in key.columns}
    likely = sorted((groups for groups in singles if groups.names), key=lambda groups: groups.names[0] not in foreign)
    pairs = []
    for first, second in combinations(likely[:_PAIRED], 2):
        both = dense(first.codes * (int(second.codes.max()) + 1) + second.codes)
        count = int(both.max()) + 1
        if max(int(first.codes.max()), int(second.codes.max())) + 1 < count < frame.size:
            known = first.known & second.known
            pairs.append(Groups(first.terms + second.terms, first.names + second.names, both, known))
    return [whole, *singles, *pairs]


def orders(frame: Frame) -> list[Order]:
    """The key, times, numbers and texts; what has ties also with the key to break them."""
    known = _known.setdefault(frame, _Known())
    if known.orders is None:
        known.orders = _orders(frame)
    return known.orders


def _orders(frame: Frame) -> list[Order]:
    key = frame.table.row_key
    foreign = {name for link in frame.table.foreign_keys for name in link.columns}
    ranked = sorted(
        (column for column in frame.table.columns if column.name not in foreign or (column.name,) == key),
        key=lambda column: _rank_of(column, key),
    )
    found: list[Order] = []
    for column in ranked:
        coded = frame.coded(column.name)
        if _rank_of(column, key) > 3 or len(coded.values) < 2 or len(found) >= _ORDERS:
            continue
        codes = np.where(coded.codes < 0, len(coded.values), coded.codes).astype(np.int64)
        known = coded.codes >= 0
        found.append(Order((column.name,), codes, known, (column.name,) == key))
        if len(coded.values) < frame.size and len(key) == 1 and found[0].is_key:
            tied = codes * frame.size + dense(found[0].codes)
            found.append(Order((column.name, *key), tied, known, False))
            against = codes * frame.size + frame.size - 1 - dense(found[0].codes)
            found.append(Order((column.name, *key), against, known, False, True))
    return found


def _rank_of(column: Column, key: tuple[str, ...]) -> int:
    for rank, bases in enumerate((_TIMES, _NUMBERS, _TEXTS), 1):
        if column.base in bases:
            return 0 if (column.name,) == key else rank
    return 4  # no order that means something, and for some no min and max


def subsets(frame: Frame, labels: Labels, timezone: str | None) -> list[Subset]:
    """All rows, and the rows that have one value in common with all must rows, the fewest first."""
    everywhere = Subset(np.ones(frame.size, dtype=np.bool_), None)
    found: list[tuple[int, str, Subset]] = []
    for column in frame.table.columns:
        if column.base in ("json", "xml", "point"):
            continue
        coded = frame.coded(column.name)
        codes = np.unique(coded.codes[labels.must])
        if len(codes) != 1:
            continue
        holds = coded.codes == codes[0]
        count = int(np.count_nonzero(holds))
        if int(np.count_nonzero(labels.must)) < count < frame.size:
            value = coded.values[codes[0]] if codes[0] >= 0 else None
            found.append((count, column.name, Subset(holds, equation(ref(PEER, column.name), column, value, timezone))))
    found.sort(key=lambda item: item[:2])
    return [everywhere, *(subset for *_, subset in found[:_SUBSETS])]


def ranks(subset: Mask, groups: Ints, order: Ints) -> tuple[Floats, Floats]:
    """rank() in each group of the rows of `subset`, ascending and descending; NaN for other rows."""
    rows = np.flatnonzero(subset)
    by_order = rows[np.lexsort((order[rows], groups[rows]))]
    group, value = groups[by_order], order[by_order]
    starts = np.append(True, group[1:] != group[:-1])
    changes = starts | np.append(True, value[1:] != value[:-1])
    place = np.arange(len(rows))
    group_of = np.cumsum(starts) - 1
    tie_of = np.cumsum(changes) - 1
    group_first = place[starts]
    group_last = np.append(group_first[1:], len(rows)) - 1
    tie_first = place[changes]
    tie_last = np.append(tie_first[1:], len(rows)) - 1
    ascending, descending = np.full(len(subset), np.nan), np.full(len(subset), np.nan)
    ascending[by_order] = tie_first[tie_of] - group_first[group_of] + 1
    descending[by_order] = group_last[group_of] - tie_last[tie_of] + 1
    return ascending, descending

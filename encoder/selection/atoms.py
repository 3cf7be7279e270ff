"""Atoms about the row itself and its parents, for either side of a search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from encoder.budget import Budget
from encoder.frame import State
from encoder.selection.booleans import measure
from encoder.selection.derive import derived
from encoder.selection.features import MAX_DEPTH, Feature, features
from encoder.selection.model import Atom, Labels, Mask, MaskedAtom
from encoder.selection.pairs import PairAtom, compared, distances
from encoder.selection.paths import join_cost
from encoder.selection.patterns import pattern_shapes
from encoder.selection.shapes import is_text, shapes
from encoder.selection.spelling import make_atom
from encoder.selection.view import Shape, View
from stream.model import TableName

EVERY_DEPTH = range(MAX_DEPTH + 1)
# Atoms kept a feature: those that reject most for their size.
_PER_FEATURE = 10
_DERIVED_DEPTH = 1
# Bytes of the shortest operator with its operand, ` ISNULL` apart.
_LEAST = 2
# What a feature costs beside its rows, in units.
_FEATURE = 3


def atoms(
    state: State,
    table: TableName,
    labels: Labels,
    budget: Budget,
    timezone: str | None,
    *,
    partial: bool = False,
    bound: int | None = None,
    depths: range = EVERY_DEPTH,
) -> Iterator[MaskedAtom]:
    """Conditions on the columns of the row and of its parents.

    Every atom holds for all rows that must be selected and fails for some that must not; with `partial` it holds
    for some that must and for none that must not.  Atoms that with their joins could not stay below `bound` bytes
    are left out, and those about rows whose distance is not among `depths` (0 is the row itself).  A unit of the
    budget is about a thousand cells.
    """
    known = all_features(state, table, budget, timezone)
    rows = state.frame(table).size
    for feature in known:
        if len(feature.path) not in depths:
            continue
        if bound is not None and join_cost(feature.paths) + measure(feature.term) + _LEAST >= bound:
            continue
        if not budget.spend(_FEATURE + rows // 1000):
            return
        yield from feature_atoms(feature, labels, budget, timezone, partial)
    for pair in _pairs(state, table, known):
        if max(map(len, pair.paths), default=0) not in depths:
            continue
        if bound is not None and join_cost(pair.paths) + measure(pair.term) >= bound:
            continue
        held_must, held_not = pair.holds[labels.must], pair.holds[labels.must_not]
        if _useful(held_must, held_not, partial):
            yield MaskedAtom(make_atom(pair.term, pair.paths), pair.holds)


def _useful(on_must: Mask, on_must_not: Mask, partial: bool) -> bool:
    if partial:
        return bool(on_must.any() and not on_must_not.any())
    return bool(on_must.all() and not on_must_not.all())


_features: WeakKeyDictionary[Feature, tuple[list[Feature], dict[str | None, list[Feature]]]] = WeakKeyDictionary()
_compared: WeakKeyDictionary[Feature, list[PairAtom]] = WeakKeyDictionary()


def all_features(state: State, table: TableName, budget: Budget, timezone: str | None) -> list[Feature]:
    """Columns, what is computed of them, and distances; remembered with the features that they come from."""
    plain = features(state, table, budget)
    if not plain:
        return []
    _, cached = _features.setdefault(plain[0], (plain, {}))
    if timezone not in cached:
        more = [made for feature in plain if len(feature.path) <= _DERIVED_DEPTH for made in derived(feature, timezone)]
        more.extend(distances(plain))
        cached[timezone] = more
    return [*plain, *cached[timezone]]


def _pairs(state: State, table: TableName, known: list[Feature]) -> list[PairAtom]:
    if not known:
        return []
    if known[0] not in _compared:
        _compared[known[0]] = list(compared(known))
    return _compared[known[0]]


def feature_atoms(
    feature: Feature, labels: Labels, budget: Budget, timezone: str | None, partial: bool
) -> Iterator[MaskedAtom]:
    """The atoms of one feature, see `atoms`."""
    view = View.of(feature, labels)
    found: list[_Ranked] = []
    for shape in _shapes(view.swapped() if partial else view, budget, timezone):
        accept = shape.opposite() if partial else shape.accept
        if partial:
            useful = view.need[accept].any() and not view.bad[accept].any()
            value = int(view.need[accept].sum())
        else:
            useful = view.bad[~accept].any() and not view.need[~accept].any()
            value = int(view.bad[~accept].sum())
        term = shape.spell(not partial) if useful else None
        if term is not None:
            found.append(_Ranked(make_atom(term, feature.paths), value, accept))
    counted = (view.need if partial else view.bad) > 0
    for ranked in _undominated(found, counted, partial):
        yield MaskedAtom(ranked.atom, ranked.accept[feature.coded.codes])


@dataclass(frozen=True, eq=False, slots=True)
class _Ranked:
    """An atom, how many rows it rejects (or selects, on the other side), and its accepted values."""

    atom: Atom
    value: int
    accept: Mask


def _shapes(view: View, budget: Budget, timezone: str | None) -> Iterator[Shape]:
    yield from shapes(view, timezone)
    if is_text(view):
        yield from pattern_shapes(view, budget)


def _undominated(found: list[_Ranked], counted: Mask, partial: bool) -> list[_Ranked]:
    """The atoms that no shorter one replaces on the values that count, those of most value for their size first."""
    kept: list[tuple[Mask, _Ranked]] = []
    for ranked in sorted(found, key=lambda r: (r.atom.size, -r.value)):
        worth = (ranked.accept if partial else ~ranked.accept)[counted]
        if not any((worth <= other).all() for other, _ in kept):
            kept.append((worth, ranked))
    # Better than all that are shorter: these must stay; the others only where there is room.
    best = 0
    front: list[_Ranked] = []
    rest: list[_Ranked] = []
    for _, ranked in kept:
        (front if ranked.value > best else rest).append(ranked)
        best = max(best, ranked.value)
    rest.sort(key=lambda r: -r.value / r.atom.size)
    return [*front[-_PER_FEATURE:], *rest[: max(_PER_FEATURE - len(front), 0)]]


def seed_masks(known: list[Feature], labels: Labels, limit: int) -> list[Mask]:
    """Parts of the rows to select that share a value, the most telling first (see `encoder.selection.search`)."""
    must, seen = int(labels.must.sum()), set()
    scored: list[tuple[float, int, Mask]] = []
    for feature in known:
        view = View.of(feature, labels)
        share = view.need / np.maximum(view.need + view.bad, 1)
        for code in np.flatnonzero((view.need > 1) & (view.need < must)).tolist():
            codes = feature.coded.codes
            size = len(view.need) - 1
            part = labels.must & (codes == (code if code < size else -1))
            mark = part.tobytes()
            if mark not in seen:
                seen.add(mark)
                scored.append((-float(share[code]) * float(np.sqrt(view.need[code])), len(scored), part))
    scored.sort(key=lambda entry: entry[:2])
    return [part for _, _, part in scored[:limit]]

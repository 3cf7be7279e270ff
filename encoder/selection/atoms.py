"""Atoms about the row itself and its parents, for either side of a search."""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

import numpy as np

from emit.literal import identifier
from emit.size import join
from emit.term import Ref, Term
from encoder.budget import Budget
from encoder.frame import State
from encoder.selection.derive import derived
from encoder.selection.features import Feature, features
from encoder.selection.model import Atom, Labels, Mask, MaskedAtom, Path
from encoder.selection.pairs import PairAtom, compared, distances
from encoder.selection.patterns import pattern_shapes
from encoder.selection.shapes import is_text, shapes
from encoder.selection.view import Shape, View
from stream.model import TableName

# Atoms kept a feature: those that reject most for their size.
_PER_FEATURE = 10
_DERIVED_DEPTH = 2


def make_atom(term: Term, paths: frozenset[Path]) -> Atom:
    """An atom with its size: the bytes of its tokens with every column by its plain name."""
    pieces = [part if isinstance(part, str) else _name(part) for part in term.parts]
    return Atom(term, paths, len(join(pieces).encode()))


def _name(part: object) -> str:
    return identifier(part.column) if isinstance(part, Ref) else "(SELECT)"


def atoms(
    state: State,
    table: TableName,
    labels: Labels,
    budget: Budget,
    timezone: str | None,
    *,
    partial: bool = False,
) -> Iterator[MaskedAtom]:
    """Conditions on the columns of the row and of its parents.

    Every atom holds for all rows that must be selected and fails for some that must not; with `partial` it holds
    for some that must and for none that must not.  A unit of the budget is about a thousand cells.
    """
    known = all_features(state, table, budget, timezone)
    rows = state.frame(table).size
    for feature in known:
        if not budget.spend(1 + rows // 1000):
            return
        yield from feature_atoms(feature, labels, budget, timezone, partial)
    for pair in _pairs(state, table, known):
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
        more = [
            made
            for feature in plain
            if len(feature.path) <= _DERIVED_DEPTH
            for made in derived(feature, timezone)
        ]
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
    if partial:
        found = [
            (~shape.accept, shape, False) for shape in _shapes(view.swapped(), budget, timezone)
        ]
        for accept, shape, _ in found:
            if not _is_null_test(shape):
                accept[-1] = False
    else:
        found = [(shape.accept, shape, True) for shape in _shapes(view, budget, timezone)]
    ranked: list[tuple[int, int, Mask, Atom]] = []
    for accept, shape, yes in found:
        good, wrong = int(view.need[accept].sum()), int(view.bad[accept].sum())
        if partial:
            if wrong or not good:
                continue
            value = good
        else:
            if view.need[~accept].any() or not view.bad[~accept].any():
                continue
            value = int(view.bad[~accept].sum())
        term = shape.spell(yes)
        if term is not None:
            atom = make_atom(term, feature.paths)
            ranked.append((atom.size, -value, accept, atom))
    ranked.sort(key=lambda entry: entry[:2])
    for accept, atom in _undominated(ranked, view, partial):
        yield MaskedAtom(atom, accept[feature.coded.codes])


def _shapes(view: View, budget: Budget, timezone: str | None) -> Iterator[Shape]:
    yield from shapes(view, timezone)
    if is_text(view):
        yield from pattern_shapes(view, budget)


def _is_null_test(shape: Shape) -> bool:
    return bool(shape.accept[-1]) or not bool(shape.accept[:-1].any()) or bool(shape.accept[:-1].all())


def _undominated(
    ranked: list[tuple[int, int, Mask, Atom]], view: View, partial: bool
) -> Iterator[tuple[Mask, Atom]]:
    """The atoms that no shorter one replaces on the rows that count."""
    counted = (view.need if partial else view.bad) > 0
    kept: list[Mask] = []
    for _, _, accept, atom in ranked:
        worth = accept[counted] if partial else ~accept[counted]
        if any(not (worth & ~other).any() for other in kept):
            continue
        kept.append(worth)
        yield accept, atom
        if len(kept) >= _PER_FEATURE:
            return


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

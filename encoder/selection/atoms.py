"""Atoms about the row itself and its parents, for either side of a search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from encoder.budget import Budget
from encoder.frame import State
from encoder.selection.derive import derived
from encoder.selection.features import MAX_DEPTH, Feature, look
from encoder.selection.ground import Ground, Held
from encoder.selection.model import Atom, Mask
from encoder.selection.pairs import Couple, Numeric, couples, distances, numeric
from encoder.selection.patterns import pattern_shapes
from encoder.selection.ratios import ratios
from encoder.selection.scales import NUMBERS
from encoder.selection.shapes import is_text, shapes
from encoder.selection.spelling import make_atom
from encoder.selection.view import Shape, View
from solver.setcover import dominated
from stream.model import TableName

# Atoms kept a feature: those that reject most for their size.
_PER_FEATURE = 10
_DERIVED_DEPTH = 1
# Bytes of the shortest operator with its operand, ` ISNULL` apart.
_LEAST = 2
# What a feature costs beside its rows, in units.
_FEATURE = 3
EVERY_DEPTH = range(MAX_DEPTH + 1)


def atoms(
    state: State,
    table: TableName,
    ground: Ground,
    part: Mask,
    budget: Budget,
    timezone: str | None,
    *,
    partial: bool = False,
    bound: int | None = None,
    depths: range = EVERY_DEPTH,
    least: int = 1,
) -> Iterator[Held]:
    """Conditions on the columns of the row and of its parents.

    Every atom holds for all rows of `part` and fails for some that must not be selected; with `partial` it holds
    for some of `part` and for none that must not.  Atoms that with their joins could not stay below `bound` bytes
    are left out, those about rows whose distance is not among `depths` (0 is the row itself), and columns that tell
    less than `least` rows apart.  A unit of the budget is about a thousand cells.
    """
    known = all_features(state, table, budget, timezone)
    rows = len(ground.must) + len(ground.must_not)
    for feature in known:
        if len(feature.path) not in depths:
            continue
        if bound is not None and feature.least + _LEAST >= bound:
            continue
        if not budget.spend(rows // 1000):
            return
        view = ground.view(feature, part)
        one, other = (view.need, view.bad) if partial else (view.bad, view.need)
        if int(one[other == 0].sum()) >= least:
            yield from feature_atoms(view, ground, budget, timezone, partial)
    for couple in _pairs(state, table, budget):
        if max(map(len, couple.paths), default=0) not in depths:
            continue
        if bound is not None and couple.least >= bound:
            continue
        yield from couple.atoms(ground, part, partial)
    if not partial and 0 in depths and part is ground.whole:
        yield from ratios(_amounts(state, table, budget), ground, bound)


def all_features(state: State, table: TableName, budget: Budget, timezone: str | None) -> list[Feature]:
    """Columns, what is computed of them, and distances; remembered with the features that they come from."""
    known = look(state, table, budget)
    if ("all", timezone) not in known.made:
        plain = known.features
        more = [made for feature in plain if len(feature.path) <= _DERIVED_DEPTH for made in derived(feature, timezone)]
        known.made["all", timezone] = [*plain, *more, *distances(plain)]
    found: list[Feature] = known.made["all", timezone]
    return found


def _pairs(state: State, table: TableName, budget: Budget) -> list[Couple]:
    known = look(state, table, budget)
    if "couples" not in known.made:
        known.made["couples"] = couples(known.features)
    found: list[Couple] = known.made["couples"]
    return found


def _amounts(state: State, table: TableName, budget: Budget) -> list[Numeric]:
    known = look(state, table, budget)
    if "amounts" not in known.made:
        columns = (each for each in known.features if each.column is not None and not each.path)
        numbers = (numeric(each) for each in columns if each.base in NUMBERS)
        known.made["amounts"] = [found for found in numbers if found is not None and found.amount]
    found: list[Numeric] = known.made["amounts"]
    return found


def feature_atoms(view: View, ground: Ground, budget: Budget, timezone: str | None, partial: bool) -> list[Held]:
    """The atoms of one feature, see `atoms`."""
    need = view.need > 0
    asked = (view.feature, np.packbits(need).tobytes(), partial)
    # Parts of the rows have often the same values in a column, and then the same conditions.
    if asked not in ground.found:
        sight = ground.sight(view.feature)
        ground.found[asked] = [
            Held((ranked.atom,), ranked.accept[sight.must], ranked.accept[sight.must_not])
            for ranked in _undominated(list(_useful(view, need, budget, timezone, partial)))
        ]
        budget.spend(_FEATURE)
    return ground.found[asked]


def _useful(view: View, need: Mask, budget: Budget, timezone: str | None, partial: bool) -> Iterator[_Ranked]:
    bad = view.bad > 0
    counted = need if partial else bad
    weights = view.need if partial else view.bad
    for shape in _shapes(view.swapped() if partial else view, budget, timezone):
        accept = shape.opposite() if partial else shape.accept
        if partial:
            useful, settled = not (bad & accept).any(), need & accept
        else:
            useful, settled = not (need & ~accept).any(), bad & ~accept
        value = int(weights[settled].sum()) if useful else 0
        term = shape.spell(not partial) if value else None
        if term is not None:
            yield _Ranked(make_atom(term, view.feature.paths), value, accept, settled[counted])


@dataclass(frozen=True, eq=False, slots=True)
class _Ranked:
    """An atom, how many rows it settles (rejects; selects on the other side), its accepted values, and those among
    the values that count that it settles."""

    atom: Atom
    value: int
    accept: Mask
    settled: Mask


def _shapes(view: View, budget: Budget, timezone: str | None) -> Iterator[Shape]:
    yield from shapes(view, timezone)
    if is_text(view):
        yield from pattern_shapes(view, budget)


def _undominated(found: list[_Ranked]) -> list[_Ranked]:
    """The atoms that no shorter one replaces on the values that count, those of most value for their size first."""
    if len(found) < 2:
        return found
    ranked = sorted(found, key=lambda r: (r.atom.size, -r.value))
    gone = dominated(np.array([r.settled for r in ranked]))
    # Better than all that are shorter: these must stay; the others only where there is room.
    best = 0
    front: list[_Ranked] = []
    rest: list[_Ranked] = []
    for each, replaced in zip(ranked, gone.tolist(), strict=True):
        if not replaced:
            (front if each.value > best else rest).append(each)
            best = max(best, each.value)
    rest.sort(key=lambda r: -r.value / r.atom.size)
    return [*front[-_PER_FEATURE:], *rest[: max(_PER_FEATURE - len(front), 0)]]


def seed_masks(known: list[Feature], ground: Ground, limit: int) -> list[Mask]:
    """Parts of the rows to select that share a value, the most telling first (see `encoder.selection.search`)."""
    seen: set[bytes] = set()
    scored: list[tuple[float, int, Feature, int]] = []
    for feature in known:
        view = ground.view(feature, ground.whole)
        some = np.flatnonzero((view.need > 1) & (view.need < len(ground.must)))
        telling = view.need[some] / (view.need[some] + view.bad[some]) * np.sqrt(view.need[some])
        best = some[np.argsort(-telling, kind="stable")[:limit]]
        scored += [
            (float(score), len(scored) + at, feature, code)
            for at, (score, code) in enumerate(zip(np.sort(-telling)[:limit].tolist(), best.tolist(), strict=True))
        ]
    parts: list[Mask] = []
    for _, _, feature, code in sorted(scored, key=lambda entry: entry[:2]):
        part = ground.sight(feature).must == (code if code < len(feature.coded.values) else -1)
        if (mark := part.tobytes()) not in seen:
            seen.add(mark)
            parts.append(part)
            if len(parts) == limit:
                break
    return parts

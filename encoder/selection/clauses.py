"""Two conditions of which one must hold: `(a OR b)` as one atom of a conjunction.

A rule such as `(a OR b)AND c` is no cover of the rows by conjunctions, and no single atom holds for all rows to
select.  All pairs of simple conditions on the row's own columns are looked at in one matrix product.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from emit.term import Term, disjoin, is_null, negate
from encoder.budget import Budget
from encoder.frame import State
from encoder.selection.atoms import all_features
from encoder.selection.booleans import arranged, measure
from encoder.selection.features import Feature
from encoder.selection.model import Atom, Labels, Mask, MaskedAtom
from encoder.selection.shapes import list_term
from encoder.selection.spelling import make_atom
from encoder.selection.view import View
from stream.model import TableName

_VALUES = 8  # of a column with more than these, no equation is looked at
_SIMPLE = 120  # conditions of which pairs are formed
_ROWS = 2_000  # rows of a side that are counted; the rest are taken to be like them
_CLAUSES = 24
# Clauses that exclude less than this part of the rows never pay for their length.
_SHARE = 20
_BRACKETS = 2


def clauses(
    state: State, table: TableName, labels: Labels, budget: Budget, timezone: str | None
) -> Iterator[MaskedAtom]:
    """Disjunctions of two conditions that hold for all rows to select, though neither does, those first that
    reject most for their size."""
    simple = [
        (term, holds)
        for feature in all_features(state, table, budget, timezone)
        if not feature.path and len(feature.coded.values) <= _VALUES
        for term, holds in _simple(feature, labels, timezone)
        if _partial(holds[labels.must])
    ][:_SIMPLE]
    if len(simple) < 2 or not budget.spend(len(simple) * len(labels.must) // 1000):
        return
    misses = np.array([~holds for _, holds in simple])
    open_must = _both(misses[:, _some(labels.must)])
    rejected = _both(misses[:, _some(labels.must_not)])
    least = max(1, min(int(labels.must_not.sum()), _ROWS) // _SHARE)
    sizes = np.array([measure(term) for term, _ in simple])
    worth = rejected / np.sqrt(sizes[:, None] + sizes[None, :])
    usable = np.triu((open_must == 0) & (rejected >= least), 1)
    places = np.flatnonzero(usable)
    for place in places[np.argsort(-worth.ravel()[places], kind="stable")][:_CLAUSES].tolist():
        (first, one), (second, other) = (simple[at] for at in divmod(place, len(simple)))
        either = one | other
        if either[labels.must].all() and (term := disjoin(arranged([first, second]))) is not None:
            atom = make_atom(term, frozenset())
            yield MaskedAtom(Atom(term, frozenset(), atom.size + _BRACKETS), either)


def _simple(feature: Feature, labels: Labels, timezone: str | None) -> Iterator[tuple[Term, Mask]]:
    codes, view = feature.coded.codes, View.of(feature, labels)
    known = codes >= 0
    if feature.base == "boolean":
        for code, value in enumerate(feature.coded.values):
            yield feature.term if value == "t" else negate(feature.term), codes == code
    elif feature.comparable:
        for code in range(len(feature.coded.values)):
            yield list_term(view, [code], True, timezone), codes == code
            if len(feature.coded.values) > 2:
                yield list_term(view, [code], False, timezone), known & (codes != code)
    if not known.all():
        yield is_null(feature.term), ~known
        yield is_null(feature.term, False), known


def _partial(on_must: Mask) -> bool:
    return bool(on_must.any() and not on_must.all())


def _some(rows: Mask) -> Mask:
    """The rows, evenly fewer where they are many."""
    places = np.flatnonzero(rows)
    chosen = np.zeros(len(rows), dtype=np.bool_)
    chosen[places[:: len(places) // _ROWS + 1]] = True
    return chosen


def _both(misses: Mask) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """How many rows both of two conditions miss."""
    counted = misses.astype(np.float32)
    return counted @ counted.T

"""Duplicates: all rows but the first (or last) of each group, `id NOT IN(SELECT min(id)FROM t GROUP BY a,b)`.

Which columns make rows equal is found by refining: from all rows in one group, add the column that leaves every row
that must go with an earlier equal one and spares the most rows that must stay.
"""

from __future__ import annotations

import numpy as np

from emit.term import Query, Term, call, in_query, ref, separate
from encoder.budget import Budget
from encoder.frame import Frame
from encoder.selection.grouping import PEER, Groups, dense, orders, single_groups
from encoder.selection.links import Ints
from encoder.selection.masks import Offers, source
from encoder.selection.model import Mask

_COLUMNS = 5  # of a key of duplicates


def duplicates(frame: Frame, offers: Offers, budget: Budget) -> None:
    """Offer duplicates by the table's key, with must rows as those that go, and as those that stay."""
    key = frame.table.row_key
    if not any(order.is_key for order in orders(frame)):
        return
    candidates = [groups for groups in single_groups(frame) if groups.names != key]
    labels = offers.labels
    codes = frame.coded(key[0]).codes.astype(np.int64)
    for stay in (False, True):
        gone, kept = (labels.must_not, labels.must) if stay else (labels.must, labels.must_not)
        if gone.any() and kept.any():
            for function, order in (("min", codes), ("max", -codes)):
                search = _Refinement(frame, offers, budget, function, order, stay)
                search.run(candidates, gone, kept)


class _Refinement:
    """One greedy search; `order` falls the further back a row is, `stay`: the atom is to hold for the rows kept."""

    def __init__(self, frame: Frame, offers: Offers, budget: Budget, function: str, order: Ints, stay: bool) -> None:
        self.frame = frame
        self.offers = offers
        self.budget = budget
        self.function = function
        self.order = order
        self.stay = stay

    def run(self, candidates: list[Groups], gone: Mask, kept: Mask) -> None:
        chosen: list[Groups] = []
        codes = np.zeros(self.frame.size, dtype=np.int64)
        wrong = int(np.count_nonzero(kept))
        left = list(candidates)
        while wrong and left and len(chosen) < _COLUMNS:
            trials: list[tuple[int, int, Ints, Mask]] = []
            for place, groups in enumerate(left):
                if not self.budget.spend(4 * self.frame.size):
                    return
                finer = dense(codes * (int(groups.codes.max()) + 1) + groups.codes)
                later = self._later(finer)
                if later[gone].all():
                    trials.append((int(np.count_nonzero(later & kept)), place, finer, later))
            # The fewest wrong rows, then the coarsest column: it is likely to be the one meant.
            best = min(trials, key=lambda trial: (trial[0], -trial[1]), default=None)
            if best is None or best[0] >= wrong:
                return
            wrong, place, codes, later = best
            chosen.append(left.pop(place))
            self._offer(chosen, later)

    def _later(self, groups: Ints) -> Mask:
        """The rows that are not the first of their group."""
        first = np.full(int(groups.max()) + 1, np.iinfo(np.int64).max)
        np.minimum.at(first, groups, self.order)
        later: Mask = self.order > first[groups]
        return later

    def _offer(self, chosen: list[Groups], later: Mask) -> None:
        key = self.frame.table.row_key[0]
        terms = [term for groups in chosen for term in groups.terms]
        tail = Term(("GROUP BY", *separate(terms)))
        query = Query((call(self.function, ref(PEER, key)),), (source(self.frame.table, PEER),), tail=tail)
        holds = ~later if self.stay else later
        self.offers.offer(holds, lambda: in_query(ref((), key), query, self.stay))

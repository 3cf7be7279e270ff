"""The cheapest cover of many rows, with only those in the model that decide it.

Ten thousands of rows are mostly alike.  A cover is found for a sample, the rows that are covered least among
them; rows that it leaves open join the sample until it leaves none (row generation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from solver.setcover import CoverSolution, best_covers

Ints: TypeAlias = NDArray[np.int64]

_DIRECT = 4_000
_SAMPLE = 1_500
_ADDED = 300
_ROUNDS = 6
_NODES, _NODES_WITH_LIST = 1_000, 150
_MAX_ATOMS, _MAX_ATOMS_WITH_LIST = 6, 3


@dataclass(frozen=True, eq=False, slots=True)
class Listing:
    """What it costs to leave rows to a list: `base` once, and the price of each row."""

    prices: Ints
    base: int


def cheapest_cover(
    covered: NDArray[np.bool_],
    *,
    costs: Sequence[int],
    needs: Sequence[frozenset[int]],
    charges: Sequence[int],
    listing: Listing | None,
    joiner: int,
    limit: int | None,
    banned: int | None,
) -> CoverSolution | None:
    """The cheapest cover without the atom `banned` (see `solver.setcover.best_covers`); None for none below `limit`.

    On more than some thousand rows the cost of the rows that are listed is an estimate while the search runs, so
    that a cover with a list need not be the cheapest; it is a cover, and its cost is right.
    """
    usable = np.flatnonzero(np.arange(len(costs)) != banned)
    problem = _Problem(
        covered[usable],
        np.array(costs, dtype=np.int64)[usable],
        [needs[place] for place in usable.tolist()],
        charges,
        joiner,
    )
    found = [problem.complete(limit)]
    if listing is not None:
        found.append(problem.listed(listing))
    best = min((cover for cover in found if cover is not None), key=lambda cover: cover.cost, default=None)
    if best is None or (limit is not None and best.cost >= limit):
        return None
    return CoverSolution(tuple(usable[list(best.atoms)].tolist()), best.exceptions, best.cost)


@dataclass(frozen=True, eq=False)
class _Problem:
    matrix: NDArray[np.bool_]
    costs: Ints
    groups: list[frozenset[int]]
    charges: Sequence[int]
    joiner: int

    def complete(self, limit: int | None) -> CoverSolution | None:
        """The cheapest cover that leaves no row open."""
        rows = _sample(self.matrix)
        for _ in range(_ROUNDS):
            found = self._bounded(rows, limit)
            if found is None or found.exceptions:
                return None
            missed = self._missed(found)
            if not len(missed):
                return CoverSolution(found.atoms, (), found.cost)
            rows = np.union1d(rows, missed[:: len(missed) // _ADDED + 1])
        return None

    def _bounded(self, rows: Ints, limit: int | None) -> CoverSolution | None:
        if limit is None:
            return self._solve(rows, None, 0, _NODES, _MAX_ATOMS)
        # A list of all rows, at the cost of the limit, keeps the search from looking at anything dearer.
        # It costs something for every row, so all other costs are scaled to make that nothing.
        scale = len(rows) + 1
        grown = replace(
            self,
            costs=self.costs * scale,
            charges=[charge * scale for charge in self.charges],
            joiner=self.joiner * scale,
        )
        listing = np.ones(len(rows), dtype=np.int64)
        found = grown._solve(rows, listing, max(limit - self.joiner, 0) * scale, _NODES, _MAX_ATOMS)
        return found and replace(found, cost=found.cost // scale)

    def listed(self, listing: Listing) -> CoverSolution | None:
        """A cheap cover by a few atoms and a list of the rows that they leave open."""
        rows = _sample(self.matrix)
        scale = -(-self.matrix.shape[1] // max(len(rows), 1))
        prices = listing.prices
        found = self._solve(rows, prices[rows] * scale, listing.base, _NODES_WITH_LIST, _MAX_ATOMS_WITH_LIST)
        if found is None:
            return None
        missed = self._missed(found)
        cost = found.cost + int(prices[missed].sum()) - int(prices[rows[list(found.exceptions)]].sum()) * scale
        if len(missed) and not found.exceptions:
            cost += listing.base + self.joiner
        return CoverSolution(found.atoms, tuple(missed.tolist()), cost)

    def _solve(self, rows: Ints, listing: Ints | None, base: int, nodes: int, most: int) -> CoverSolution | None:
        found = best_covers(
            self.matrix[:, rows],
            self.costs,
            groups=self.groups,
            group_costs=self.charges,
            exception_cost=listing,
            exception_base=base,
            joiner_cost=self.joiner,
            keep=1,
            max_atoms=most,
            budget=nodes,
        )
        return found[0] if found else None

    def _missed(self, cover: CoverSolution) -> Ints:
        return np.flatnonzero(~self.matrix[list(cover.atoms)].any(axis=0))


def _sample(matrix: NDArray[np.bool_]) -> Ints:
    """All rows where they are few; else half those with the fewest atoms, half evenly from the rest."""
    total = matrix.shape[1]
    if total <= _DIRECT:
        return np.arange(total)
    rare = np.argsort(matrix.sum(axis=0), kind="stable")
    return np.sort(np.concatenate([rare[: _SAMPLE // 2], rare[_SAMPLE // 2 :: (total // (_SAMPLE // 2)) + 1]]))

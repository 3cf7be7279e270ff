"""The cheapest cover of many rows, with only those in the model that decide it.

Ten thousands of rows are mostly alike: rows that the same atoms cover are one.  Of what is left a cover is found for
a sample, the rows that are covered least among them; rows that it leaves open join the sample until it leaves none
(row generation).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from solver.setcover import CoverSolution, best_covers, merge_rows

Ints: TypeAlias = NDArray[np.int64]

_DIRECT, _DIRECT_WITH_LIST = 800, 2_000
_SAMPLE = 500
_ADDED = 200
_ROUNDS = 8
_NODES, _NODES_WITH_LIST = 300, 100
_MAX_ATOMS, _MAX_ATOMS_WITH_LIST = 6, 3
# Atoms that are tried beside a list: those that save most of it for their size.
_BESIDE_LIST = 240


class Listing:
    """What it costs to leave rows to a list: `base` once, and the price of each row."""

    __slots__ = ("base", "prices")

    def __init__(self, prices: Ints, base: int) -> None:
        self.prices = prices
        self.base = base


class Covers:
    """One problem, to be solved with different atoms banned.

    `covered[a, r]` says that atom a covers row r; `needs`, `charges` and `joiner` are those of
    `solver.setcover.best_covers`.  With a `listing` rows may be left to a list.  Only covers below `limit` count.
    """

    def __init__(
        self,
        covered: NDArray[np.bool_],
        *,
        costs: Sequence[int],
        needs: Sequence[frozenset[int]],
        charges: Sequence[int],
        listing: Listing | None,
        joiner: int,
        limit: int | None,
    ) -> None:
        self.costs = np.array(costs, dtype=np.int64)
        self.needs = needs
        self.charges = charges
        self.listing = listing
        self.joiner = joiner
        self.limit = limit
        # Rows that the same atoms cover are one, those of the fewest atoms first.
        self.matrix, self.kind = merge_rows(covered)
        if listing is not None:
            weights = np.bincount(self.kind, weights=listing.prices, minlength=self.matrix.shape[1])
            self.prices: Ints = weights.astype(np.int64)

    def cheapest(self, banned: int | None = None, limit: int | None = None) -> CoverSolution | None:
        """The cheapest cover without the atom `banned`; None for none below the limit, or below this `limit`.

        On many rows the cost of those that are listed is an estimate while the search runs, so that a cover with a
        list need not be the cheapest; it is a cover, and its cost is right.
        """
        usable = np.flatnonzero(np.arange(len(self.costs)) != banned)
        limit = min((each for each in (limit, self.limit) if each is not None), default=None)
        # A cover with a list is found sooner, and bounds the search for one without.
        listed = None if self.listing is None else self._listed(usable, self.listing, limit)
        return self._complete(usable, limit if listed is None else listed.cost) or listed

    def _complete(self, usable: Ints, limit: int | None) -> CoverSolution | None:
        """The cheapest cover that leaves no row open."""
        kinds = self.matrix.shape[1]
        if not self.matrix[usable].any(axis=0).all():
            return None
        chosen = np.arange(kinds) if kinds <= _DIRECT else _sample(kinds)
        for turn in range(_ROUNDS):
            found = self._solve(usable, chosen, None, 0, limit, _NODES // (1 + turn))
            if found is None:
                return None
            missed = self._missed(found.atoms)
            if not len(missed):
                return found
            chosen = np.union1d(chosen, missed[:: len(missed) // _ADDED + 1])
        return None

    def _listed(self, usable: Ints, listing: Listing, limit: int | None) -> CoverSolution | None:
        """A cheap cover by a few atoms and a list of the rows that they leave open."""
        gains = self.matrix[usable].astype(np.float32) @ self.prices.astype(np.float32)
        if not self._promising(usable, gains, listing, limit):
            return None
        worth = gains / (self.costs[usable] + self.joiner)
        usable = np.sort(usable[np.argsort(-worth, kind="stable")[:_BESIDE_LIST]])
        kinds = self.matrix.shape[1]
        direct = kinds <= _DIRECT_WITH_LIST
        chosen = np.arange(kinds) if direct else _sample(kinds, 2)
        scale = -(-kinds // max(len(chosen), 1))
        found = self._solve(
            usable, chosen, self.prices[chosen] * scale, listing.base, limit if direct else None, _NODES_WITH_LIST
        )
        if found is None:
            return None
        missed = self._missed(found.atoms)
        cost = found.cost + int(self.prices[missed].sum())
        cost -= int(self.prices[chosen[list(found.exceptions)]].sum()) * scale
        if len(missed) and not found.exceptions:
            cost += listing.base + self.joiner
        if limit is not None and cost >= limit:
            return None
        open_rows = np.flatnonzero(np.isin(self.kind, missed))
        return CoverSolution(found.atoms, tuple(open_rows.tolist()), cost)

    def _promising(self, usable: Ints, gains: NDArray[np.float32], listing: Listing, limit: int | None) -> bool:
        """Whether a few atoms can save as much of the list as the limit asks for."""
        if limit is None or not len(usable):
            return True
        spare = limit - listing.base - self.joiner - int(self.costs[usable].min())
        most = float(np.sort(gains)[-_MAX_ATOMS_WITH_LIST:].sum())
        return spare > 0 and most >= int(self.prices.sum()) - spare

    def _solve(
        self, usable: Ints, chosen: Ints, prices: Ints | None, base: int, limit: int | None, nodes: int
    ) -> CoverSolution | None:
        found = best_covers(
            self.matrix[np.ix_(usable, chosen)],
            self.costs[usable],
            groups=[self.needs[place] for place in usable.tolist()],
            group_costs=self.charges,
            exception_cost=prices,
            exception_base=base,
            joiner_cost=self.joiner,
            keep=1,
            max_atoms=_MAX_ATOMS if prices is None else _MAX_ATOMS_WITH_LIST,
            budget=nodes,
            limit=limit,
        )
        if not found:
            return None
        return CoverSolution(tuple(usable[list(found[0].atoms)].tolist()), found[0].exceptions, found[0].cost)

    def _missed(self, atoms: Sequence[int]) -> Ints:
        """The kinds of rows that none of the atoms covers."""
        return np.flatnonzero(~self.matrix[list(atoms)].any(axis=0))


def _sample(kinds: int, times: int = 1) -> Ints:
    """Half those with the fewest atoms, which come first, half evenly from the rest."""
    half = times * _SAMPLE // 2
    return np.concatenate([np.arange(half), np.arange(half, kinds, (kinds - half) // half + 1)])

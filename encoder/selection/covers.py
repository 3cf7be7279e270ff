"""The cheapest cover of many rows, with only those in the model that decide it.

Ten thousands of rows are mostly alike.  A cover is found for a sample, the rows that are covered least among
them; rows that it leaves open join the sample until it leaves none (row generation).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from solver.setcover import CoverSolution, best_covers

Ints: TypeAlias = NDArray[np.int64]

_DIRECT = 4_000
_SAMPLE = 1_500
_ADDED = 300
_ROUNDS = 6
_NODES = 1_000


def cheapest_cover(
    covered: NDArray[np.bool_],
    *,
    costs: Sequence[int],
    needs: Sequence[frozenset[int]],
    charges: Sequence[int],
    listing: Ints | None,
    base: int,
    joiner: int,
    limit: int | None,
    banned: int | None,
) -> CoverSolution | None:
    """The cheapest cover without the atom `banned` (see `solver.setcover.best_covers`); None for none below `limit`.

    On more than some thousand rows the cost of the rows that are listed is an estimate while the search runs, so
    that a cover with a list need not be the cheapest; it is a cover, and its cost is right.
    """
    usable = np.flatnonzero(np.arange(len(costs)) != banned)
    matrix, prices = covered[usable], np.array(costs, dtype=np.int64)[usable]
    groups = [needs[place] for place in usable.tolist()]
    if limit is not None:
        # One more atom, which covers everything for the limit, keeps the search from looking at anything dearer.
        matrix = np.concatenate([matrix, np.ones((1, covered.shape[1]), dtype=np.bool_)])
        prices, groups = np.append(prices, limit), [*groups, frozenset()]
    rows = _sample(matrix)
    scale = -(-covered.shape[1] // max(len(rows), 1))
    solution: CoverSolution | None = None
    for _ in range(_ROUNDS):
        found = best_covers(
            matrix[:, rows],
            prices,
            groups=groups,
            group_costs=charges,
            exception_cost=None if listing is None else listing[rows] * scale,
            exception_base=base,
            joiner_cost=joiner,
            keep=1,
            budget=_NODES,
        )
        if not found or len(usable) in found[0].atoms:
            return None
        solution = found[0]
        listed = np.zeros(covered.shape[1], dtype=np.bool_)
        listed[rows[list(solution.exceptions)]] = True
        missed = np.flatnonzero(~matrix[list(solution.atoms)].any(axis=0))
        fresh = missed[~listed[missed]]
        if not len(fresh) or len(rows) == covered.shape[1]:
            break
        rows = np.union1d(rows, fresh[:: len(fresh) // _ADDED + 1])
    assert solution is not None
    if len(missed) and listing is None:
        return None
    cost = solution.cost
    if listing is not None:
        cost += int(listing[missed].sum()) - int(listing[rows[list(solution.exceptions)]].sum()) * scale
        if len(missed) and not solution.exceptions:
            cost += base + joiner
    return CoverSolution(tuple(usable[list(solution.atoms)].tolist()), tuple(missed.tolist()), cost)


def _sample(matrix: NDArray[np.bool_]) -> Ints:
    """All rows where they are few; else half those with the fewest atoms, half evenly from the rest."""
    total = matrix.shape[1]
    if total <= _DIRECT:
        return np.arange(total)
    rare = np.argsort(matrix.sum(axis=0), kind="stable")
    return np.sort(np.concatenate([rare[: _SAMPLE // 2], rare[_SAMPLE // 2 :: (total // (_SAMPLE // 2)) + 1]]))

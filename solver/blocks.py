"""Cutting a sequence into blocks: which intervals of segments are covered as one.

Covering several neighbouring segments as one block owes only their net effect and so costs less, but
fewer candidates are true of it.  Given the cost of each interval, the best cut is a shortest path
from 0 to n over the interval ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from solver.problem import Budget, CoverProblem, Infeasible, NoSolution, Solution, Strategy
from solver.solve import solve

Interval = tuple[int, int]


def partition(costs: Mapping[Interval, int], n: int) -> list[Interval]:
    """The intervals [i, j) of `costs` that partition [0, n) at the least total cost.

    Ties: the fewest intervals, then the lexicographically least list.  n = 0 needs none.
    Raises Infeasible when the intervals do not add up to [0, n), ValueError on an empty or outlying one.
    """
    starts: dict[int, list[Interval]] = {}
    for i, j in sorted(costs):
        if not 0 <= i < j <= n:
            raise ValueError(f"interval [{i}, {j}) is not within [0, {n})")
        starts.setdefault(i, []).append((i, j))
    best: dict[int, tuple[int, int]] = {n: (0, 0)}  # from here to the end: cost, blocks
    following: dict[int, int] = {}
    for i in range(n - 1, -1, -1):
        for _, j in starts.get(i, ()):
            if j not in best:
                continue
            reached = (best[j][0] + costs[i, j], best[j][1] + 1)
            if i not in best or reached < best[i]:
                best[i], following[i] = reached, j
    if 0 not in best:
        raise Infeasible(f"the intervals do not add up to [0, {n})")
    path = []
    at = 0
    while at < n:
        path.append((at, following[at]))
        at = following[at]
    return path


@dataclass(frozen=True, slots=True)
class BlockProblem:
    """`n` segments in order, and for each interval that may be one block its own cover problem."""

    n: int
    blocks: Mapping[Interval, CoverProblem]


@dataclass(frozen=True, slots=True)
class BlockSolution:
    """The blocks in order with the cover of each; `bound` holds for the whole."""

    blocks: tuple[tuple[Interval, Solution], ...]
    cost: int
    bound: int


def solve_blocks(problem: BlockProblem, *, budget: Budget, strategy: Strategy | None = None) -> BlockSolution:
    """Solves every interval within `budget` each, and takes the cheapest partition of them.

    Raises NoSolution when the intervals that have a cover do not add up.
    """
    covers: dict[Interval, Solution] = {}
    bounds: dict[Interval, int] = {}
    for interval, block in sorted(problem.blocks.items(), key=lambda item: item[0]):
        try:
            covers[interval] = solve(block, budget=budget, strategy=strategy)
            bounds[interval] = covers[interval].bound
        except Infeasible:
            continue
        except NoSolution:
            bounds[interval] = 0
    try:
        chosen = partition({interval: cover.cost for interval, cover in covers.items()}, problem.n)
    except Infeasible as error:
        raise (error if len(bounds) == len(covers) else NoSolution(str(error))) from None
    bound = _total(bounds, partition(bounds, problem.n))
    cost = sum(covers[interval].cost for interval in chosen)
    return BlockSolution(tuple((i, covers[i]) for i in chosen), cost, bound)


def _total(costs: Mapping[Interval, int], chosen: Iterable[Interval]) -> int:
    return sum(costs[interval] for interval in chosen)

"""The front door: reduce, solve each component, put the pieces together."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import replace

from solver.cp_sat import CpSat
from solver.greedy import Greedy
from solver.presolve import presolve
from solver.problem import Budget, CoverProblem, Infeasible, NoSolution, Solution, Strategy, solution

_LEAST_WALL = 0.01  # seconds that a component gets after the safety limit has struck


def solve(
    problem: CoverProblem, *, budget: Budget, strategy: Strategy | None = None, start: Collection[int] = ()
) -> Solution:
    """The cheapest cover that `strategy` (default: CP-SAT) finds within `budget`, in a valid order.

    The components are solved from the smallest to the largest, each with its share (by candidates) of
    the work that is left; `nodes` and `moves` count for each, `wall` for all together.  A component
    whose strategy fails keeps its greedy cover.  The answer is never worse than `start`, a cover of the
    whole problem, if one is given.

    Raises Infeasible when there is proof that no cover exists, NoSolution when none was found.
    """
    chosen_strategy = strategy or CpSat()
    deadline = None if budget.wall is None else time.monotonic() + budget.wall
    reduced = presolve(problem)
    chosen = list(reduced.forced)
    bound = reduced.forced_cost
    components = sorted(reduced.components, key=lambda c: (len(c.candidates), c.candidates))
    waiting = sum(len(c.candidates) for c in components)
    work = 0.0
    try:
        for component in components:
            share = (budget.work - work) * len(component.candidates) / waiting
            waiting -= len(component.candidates)
            wall = None if deadline is None else max(_LEAST_WALL, deadline - time.monotonic())
            share_of_budget = replace(budget, work=share, wall=wall)
            part = _solve_component(component.problem, share_of_budget, chosen_strategy)
            chosen += [component.candidates[c] for c in part.chosen]
            bound += part.bound
            work += part.work
        found = [solution(problem, chosen, chosen_strategy.name, bound, work)]
    except Infeasible:
        raise
    except NoSolution:
        if not start:
            raise
        found, bound = [], 0
    if start:
        found.append(solution(problem, start, "given", bound, work))
    return min(found, key=lambda s: s.cost)


def _solve_component(problem: CoverProblem, budget: Budget, strategy: Strategy) -> Solution:
    """The strategy's cover, started from the greedy one; the greedy one if the strategy has none."""
    try:
        greedy = Greedy().solve(problem, budget)
    except NoSolution:
        return strategy.solve(problem, budget)
    try:
        return strategy.solve(problem, budget, greedy.chosen)
    except Infeasible:
        raise
    except NoSolution:
        return greedy

"""Branch and cut by a MIP solver: better first solutions than CP-SAT on wide problems, and a bound."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from solver.linear import Engine, solve_linear
from solver.problem import Budget, CoverProblem, NoSolution, Solution, solution


@dataclass(frozen=True, slots=True)
class Mip:
    """HiGHS or SCIP within `budget.nodes` nodes; never worse than `start`."""

    engine: Engine = Engine.HIGHS

    @property
    def name(self) -> str:
        return f"mip {self.engine.name.lower()}"

    def solve(self, problem: CoverProblem, budget: Budget, start: Collection[int] = ()) -> Solution:
        result = solve_linear(problem, self.engine, budget, integer=True)
        found = [solution(problem, start, self.name, result.bound)] if start else []
        if result.values is not None:
            chosen = [c for c, value in enumerate(result.values) if value > 0.5]
            found.append(solution(problem, chosen, self.name, result.bound))
        if not found:
            raise NoSolution(f"{self.name} found no cover within {budget.nodes} nodes")
        return min(found, key=lambda s: s.cost)

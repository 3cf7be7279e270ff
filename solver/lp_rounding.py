"""The linear relaxation, rounded: a bound for the price of one linear program, and a cover near it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from solver.linear import Engine, solve_linear
from solver.partial import RATIO, Incidence, Partial
from solver.problem import Budget, CoverProblem, NoSolution, Solution, solution

_THRESHOLDS = (0.9, 0.5, 0.3, 0.1, 0.01)


@dataclass(frozen=True, slots=True)
class LpRounding:
    """Takes the candidates above a threshold of the relaxation, completes greedily, and prunes."""

    engine: Engine = Engine.GLOP

    @property
    def name(self) -> str:
        return f"lp rounding {self.engine.name.lower()}"

    def solve(self, problem: CoverProblem, budget: Budget, start: Collection[int] = ()) -> Solution:
        result = solve_linear(problem, self.engine, budget, integer=False)
        found = [solution(problem, start, self.name, result.bound)] if start else []
        values = np.round(result.values or np.zeros(len(problem.candidates)), 6)
        incidence = Incidence(problem)
        for threshold in _THRESHOLDS:
            partial = Partial(incidence)
            for c in np.argsort(-values, kind="stable").tolist():
                if values[c] < threshold:
                    break
                if not partial.blocked[c] and partial.gain[c] > 0:
                    partial.add(c)
                    if not partial.orderable():
                        partial.remove(c)
            if partial.complete(RATIO):
                partial.prune()
                if problem.is_cover(partial.chosen):
                    found.append(solution(problem, partial.chosen, self.name, result.bound))
        if not found:
            raise NoSolution(f"{self.name} came to a dead end")
        return min(found, key=lambda s: s.cost)

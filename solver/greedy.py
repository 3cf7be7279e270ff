"""The greedy cover: always there, in no time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from solver.partial import RULES, Incidence, Partial, Rule
from solver.problem import Budget, CoverProblem, NoSolution, Solution, solution


@dataclass(frozen=True, slots=True)
class Greedy:
    """Builds a cover by each rule and keeps the cheapest, without superfluous candidates if `prune`."""

    rules: Sequence[Rule] = RULES
    prune: bool = True

    @property
    def name(self) -> str:
        return "greedy " + "/".join(rule.name for rule in self.rules) + ("" if self.prune else " unpruned")

    def solve(self, problem: CoverProblem, budget: Budget, start: Collection[int] = ()) -> Solution:
        incidence = Incidence(problem)
        found = [solution(problem, start, self.name)] if start else []
        for rule in self.rules:
            partial = Partial(incidence)
            if not partial.complete(rule):
                continue
            if self.prune:
                partial.prune()
            if problem.is_cover(partial.chosen):
                found.append(solution(problem, partial.chosen, self.name))
        if not found:
            raise NoSolution(f"{self.name} came to a dead end")
        return min(found, key=lambda s: s.cost)

"""Enumeration: the oracle that the other strategies are tested against."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from solver.problem import Budget, CoverProblem, Infeasible, NoSolution, Solution, solution


@dataclass(frozen=True, slots=True)
class BruteForce:
    """Tries all choices, cutting only those that cost too much; gives up after `budget.nodes` nodes."""

    @property
    def name(self) -> str:
        return "brute force"

    def solve(self, problem: CoverProblem, budget: Budget, start: Collection[int] = ()) -> Solution:
        best: tuple[int, ...] | None = tuple(start) if start else None
        limit = problem.cost(best) if best is not None else None
        stack: list[tuple[int, tuple[int, ...]]] = [(0, ())]
        nodes = 0
        while stack and nodes < budget.nodes:
            nodes += 1
            position, chosen = stack.pop()
            cost = problem.cost(chosen)
            if limit is not None and cost >= limit:
                continue
            if position < len(problem.candidates):
                stack.append((position + 1, (*chosen, position)))
                stack.append((position + 1, chosen))
            elif problem.is_cover(chosen):
                best, limit = chosen, cost
        if best is None:
            if stack:
                raise NoSolution(f"{self.name} found no cover in {nodes} nodes")
            raise Infeasible("no choice of candidates is a cover")
        return solution(problem, best, self.name, 0 if stack else problem.cost(best))

"""Local search by ruin and recreate: take some candidates out, cover greedily again, keep what is no worse.

After Schrimpf et al. 2000; for set covering Jacobs and Brusco 1995.  Equal covers are accepted, so the
search can drift along plateaus.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from solver.greedy import Greedy
from solver.partial import RATIO, STEEP, Incidence, Partial
from solver.problem import Budget, CoverProblem, Solution, solution

_RIVALS = 8  # candidates most like a removed one whose elements say what else to remove


@dataclass(frozen=True, slots=True)
class LocalSearch:
    """`budget.moves` moves from the greedy cover (or `start`), drawn from a seeded generator.

    Each move takes up to `ruin` chosen candidates out, neighbours of each other half of the time.
    """

    ruin: int = 6
    seed: int = 1

    @property
    def name(self) -> str:
        return "local search"

    def solve(self, problem: CoverProblem, budget: Budget, start: Collection[int] = ()) -> Solution:
        first = tuple(start) or Greedy().solve(problem, budget).chosen
        draw = random.Random(self.seed)
        partial = Partial(Incidence(problem))
        for c in first:
            partial.add(c)
        partial.prune()
        best, best_cost = tuple(partial.chosen), problem.cost(partial.chosen)
        current, current_cost = best, best_cost
        for _ in range(budget.moves if current else 0):
            self._move(partial, draw)
            cost = problem.cost(partial.chosen)
            if cost <= current_cost and problem.is_cover(partial.chosen):
                current, current_cost = tuple(partial.chosen), cost
                if cost < best_cost:
                    best, best_cost = current, cost
            else:
                _return_to(partial, current)
        return solution(problem, best, self.name)

    def _move(self, partial: Partial, draw: random.Random) -> None:
        chosen = list(partial.chosen)
        count = draw.randint(1, min(self.ruin, len(chosen)))
        victims = draw.sample(chosen, count)
        if draw.random() < 0.5:
            victims = self._neighbours(partial, victims[0], count)
        for c in victims:
            partial.remove(c)
        partial.blocked[victims[0]] += 1  # the first one must not come straight back
        if partial.complete(draw.choice((RATIO, STEEP))):
            partial.prune()
        partial.blocked[victims[0]] -= 1

    def _neighbours(self, partial: Partial, c: int, count: int) -> list[int]:
        """c and the chosen candidates that could be replaced together with it: they share rivals."""
        touched = np.zeros(len(partial.blocked), dtype=np.int64)
        for element in partial.of.problem.candidates[c].covers:
            touched[partial.of.coverers[element]] += 1
        candidates = partial.of.problem.candidates
        rivals = np.argsort(-touched, kind="stable")[:_RIVALS].tolist()
        elements = frozenset[int]().union(*(candidates[r].covers for r in rivals))
        others = (o for o in partial.chosen if o != c)
        near = sorted(others, key=lambda o: (-len(elements & candidates[o].covers), o))
        return [c, *near[: count - 1]]


def _return_to(partial: Partial, chosen: tuple[int, ...]) -> None:
    """Undoes a move."""
    wanted = set(chosen)
    for c in [c for c in partial.chosen if c not in wanted]:
        partial.remove(c)
    for c in chosen:
        if c not in partial.chosen:
            partial.add(c)

"""A choice under construction: what adding or removing a candidate changes, kept up to date."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from solver.problem import CoverProblem

Ints = NDArray[np.int64]


def _incidence(sets: Sequence[Iterable[int]], size: int) -> list[Ints]:
    """For each of 0..size-1 the positions of the sets that hold it."""
    found: list[list[int]] = [[] for _ in range(size)]
    for position, members in enumerate(sets):
        for member in members:
            found[member].append(position)
    return [np.array(positions, dtype=np.int64) for positions in found]


class Incidence:
    """Who covers, repairs, excludes and needs what; built once, shared by all choices of a problem."""

    def __init__(self, problem: CoverProblem) -> None:
        candidates = problem.candidates
        debts = 1 + max((d for c in candidates for d in c.damages | c.repairs), default=-1)
        groups = 1 + max((g for c in candidates for g in c.excludes), default=-1)
        self.problem = problem
        self.coverers = _incidence([c.covers for c in candidates], len(problem.unique))
        self.menders = _incidence([c.repairs for c in candidates], debts)
        self.rivals = _incidence([c.excludes for c in candidates], groups)
        self.users = _incidence([c.needs for c in candidates], len(problem.resource_costs))
        self.ordered = bool(problem.precedence) or any(c.damages for c in candidates)
        self.total = np.array([problem.cost([c]) for c in range(len(candidates))], dtype=np.int64)
        mending = np.array([self.total[m].min(initial=0) for m in self.menders], dtype=np.int64)
        self.harm = np.array([sum(int(mending[d]) for d in c.damages) for c in candidates], dtype=np.int64)


class Partial:
    """The chosen candidates and, for every candidate, what it would bring.

    `gain` counts the open elements it covers and the open debts it repairs, `price` is its cost with
    the resources that are not paid yet, `blocked` counts the reasons why it must not be added.
    """

    def __init__(self, incidence: Incidence) -> None:
        self.of = incidence
        problem = incidence.problem
        self.chosen: dict[int, None] = {}
        self.times = np.zeros(len(problem.unique), dtype=np.int64)
        self.makers = np.zeros(len(incidence.menders), dtype=np.int64)
        self.mended = np.zeros(len(incidence.menders), dtype=np.int64)
        self.paid = np.zeros(len(problem.resource_costs), dtype=np.int64)
        self.gain = np.array([len(c.covers) for c in problem.candidates], dtype=np.int64)
        self.price = incidence.total.copy()
        self.blocked = np.zeros(len(problem.candidates), dtype=np.int64)

    def done(self) -> bool:
        """Whether every element is covered and every debt has somebody to repair it."""
        return bool((self.times > 0).all() and not ((self.makers > 0) & (self.mended == 0)).any())

    def add(self, c: int) -> None:
        self.chosen[c] = None
        self._apply(c, 1)

    def remove(self, c: int) -> None:
        del self.chosen[c]
        self._apply(c, -1)

    def _apply(self, c: int, sign: int) -> None:
        problem, of = self.of.problem, self.of
        candidate = problem.candidates[c]
        first = 1 if sign > 0 else 0  # the count after the step that turns something on, or off
        self.blocked[c] += sign
        for element in candidate.covers:
            self.times[element] += sign
            if self.times[element] == first:
                self.gain[of.coverers[element]] -= sign
            if problem.unique[element]:
                self.blocked[of.coverers[element]] += sign
        for group in candidate.excludes:
            self.blocked[of.rivals[group]] += sign
        for resource in candidate.needs:
            self.paid[resource] += sign
            if self.paid[resource] == first:
                self.price[of.users[resource]] -= sign * problem.resource_costs[resource]
        for debts, counts in ((candidate.damages, self.makers), (candidate.repairs, self.mended)):
            for debt in debts:
                was_open = self.makers[debt] > 0 and self.mended[debt] == 0
                counts[debt] += sign
                is_open = self.makers[debt] > 0 and self.mended[debt] == 0
                self.gain[of.menders[debt]] += int(is_open) - int(was_open)

    def orderable(self) -> bool:
        """Whether what is chosen so far can be put in order."""
        return not self.of.ordered or self.of.problem.order(self.chosen, unfinished=True) is not None

    def prune(self) -> None:
        """Removes candidates that nothing needs, the most expensive first (redundancy elimination)."""
        problem = self.of.problem
        for c in sorted(self.chosen, key=lambda c: (-int(self.of.total[c]), c)):
            candidate = problem.candidates[c]
            if any(self.times[e] == 1 for e in candidate.covers):
                continue
            if self.of.ordered and problem.order([o for o in self.chosen if o != c]) is None:
                continue
            self.remove(c)

    def complete(self, rule: Rule) -> bool:
        """Adds candidates by the rule until all is covered; False at a dead end."""
        banned = np.zeros(len(self.blocked), dtype=np.bool_)
        while not self.done():
            able = np.flatnonzero((self.gain > 0) & (self.blocked == 0) & ~banned)
            if not len(able):
                return False
            best = int(able[np.argmin(rule(self.price[able] + self.of.harm[able], self.gain[able]))])
            self.add(best)
            if not self.orderable():
                self.remove(best)
                banned[best] = True
        return True


class Rule:
    """How greedy a cover is: the score of candidates by price and gain, least first."""

    def __init__(self, name: str, gain_power: float, price_power: float) -> None:
        self.name = name
        self._gain, self._price = gain_power, price_power

    def __call__(self, price: Ints, gain: Ints) -> NDArray[np.float64]:
        score: NDArray[np.float64] = (price + 1e-6) ** self._price / gain.astype(np.float64) ** self._gain
        return score


RATIO = Rule("ratio", 1.0, 1.0)  # cost per newly covered element: Chvatal 1979
LARGEST = Rule("largest", 1.0, 0.0)  # most newly covered elements
CHEAPEST = Rule("cheapest", 0.0, 1.0)
STEEP = Rule("steep", 2.0, 1.0)  # between ratio and largest: Balas and Ho 1980
RULES = (RATIO, LARGEST, CHEAPEST, STEEP)

"""The cover problem: what is owed, what can be chosen, what each choice costs and does besides.

It is the weighted set cover problem, extended by what sets of statements need:

* *unique* elements may be covered at most once (set partitioning, for these elements);
* *fixed charges*: a resource is paid once, however many chosen candidates need it;
* *mutual exclusion*: of each group at most one candidate may be chosen;
* *debts*: a candidate may do harm, which a chosen candidate that comes after it must repair;
* *precedence*: a pair (a, b) says that a comes before b when both are chosen.

Everything is named by its index, so that a problem is plain data.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

NOTHING: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Candidate:
    """One thing that can be chosen.

    `cost` is in bytes, not negative.  `covers` names elements, `damages` debts that it makes, `repairs`
    debts of candidates before it that it settles, `excludes` groups of mutual exclusion, `needs`
    resources.
    """

    cost: int
    covers: frozenset[int]
    damages: frozenset[int] = NOTHING
    repairs: frozenset[int] = NOTHING
    excludes: frozenset[int] = NOTHING
    needs: frozenset[int] = NOTHING


@dataclass(frozen=True, slots=True)
class CoverProblem:
    """Elements 0..E-1 to be covered at the least cost; `unique[e]` says that e may be covered only once.

    `resource_costs[r]` is the fixed charge of resource r; `precedence` holds pairs of candidates.
    Raises ValueError when an index points outside or a cost is negative.
    """

    candidates: tuple[Candidate, ...]
    unique: tuple[bool, ...]
    resource_costs: tuple[int, ...] = ()
    precedence: frozenset[tuple[int, int]] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        for index, candidate in enumerate(self.candidates):
            if candidate.cost < 0:
                raise ValueError(f"candidate {index} has a negative cost")
            if not _within(candidate.covers, len(self.unique)):
                raise ValueError(f"candidate {index} covers an unknown element")
            if not _within(candidate.needs, len(self.resource_costs)):
                raise ValueError(f"candidate {index} needs an unknown resource")
        if any(cost < 0 for cost in self.resource_costs):
            raise ValueError("a resource has a negative cost")
        if not all(_within(pair, len(self.candidates)) for pair in self.precedence):
            raise ValueError("precedence names an unknown candidate")
        if any(a == b for a, b in self.precedence):
            raise ValueError("precedence puts a candidate before itself")

    def cost(self, chosen: Collection[int]) -> int:
        """The cost of choosing these candidates: their own, and each needed resource once."""
        needed = NOTHING.union(*(self.candidates[c].needs for c in chosen))
        return sum(self.candidates[c].cost for c in chosen) + sum(self.resource_costs[r] for r in needed)

    def order(self, chosen: Collection[int], *, unfinished: bool = False) -> tuple[int, ...] | None:
        """A valid order of these candidates, close to the order of their indexes; None if there is none.

        Precedence and "some repair comes later" are and/or precedence constraints: built from the end,
        whatever may come last now may still come last later, so taking the highest index that may
        always works.  A debt that no other chosen candidate can repair counts as a failure, unless the
        choice is `unfinished`.
        """
        later: dict[int, list[int]] = defaultdict(list)  # before whom b must come
        waits = dict.fromkeys(chosen, 0)
        for a, b in self.precedence:
            if a in waits and b in waits:
                waits[a] += 1
                later[b].append(a)
        debtors: dict[int, list[int]] = defaultdict(list)
        menders: dict[int, list[int]] = defaultdict(list)
        for c in waits:
            for debt in self.candidates[c].repairs:
                menders[debt].append(c)
        for c in waits:
            for debt in self.candidates[c].damages:
                if unfinished and menders[debt] in ([], [c]):
                    continue
                waits[c] += 1
                debtors[debt].append(c)
        ready = [-c for c, count in waits.items() if not count]
        heapq.heapify(ready)
        backwards = []
        while ready:
            c = -heapq.heappop(ready)
            backwards.append(c)
            settled = [a for debt in self.candidates[c].repairs for a in debtors.pop(debt, ())]
            for a in later[c] + settled:
                waits[a] -= 1
                if not waits[a]:
                    heapq.heappush(ready, -a)
        return tuple(reversed(backwards)) if len(backwards) == len(waits) else None

    def is_cover(self, chosen: Collection[int]) -> bool:
        """Whether these candidates are a solution: everything covered, nothing forbidden, orderable."""
        times = [0] * len(self.unique)
        groups: set[int] = set()
        for c in chosen:
            candidate = self.candidates[c]
            if groups & candidate.excludes:
                return False
            groups |= candidate.excludes
            for element in candidate.covers:
                times[element] += 1
        counted = zip(times, self.unique, strict=True)
        return all(n == 1 or (n > 1 and not once) for n, once in counted) and self.order(chosen) is not None


def _within(indexes: Iterable[int], size: int) -> bool:
    return all(0 <= index < size for index in indexes)


@dataclass(frozen=True, slots=True)
class Budget:
    """How much work a strategy may do, counted so that every machine stops at the same point.

    `work` is in CP-SAT's deterministic time (roughly seconds), `nodes` in nodes of a tree search,
    `moves` in moves of a local search.  `wall` is a safety limit in seconds that makes the answer
    depend on the machine when it strikes; None means no such limit.
    """

    work: float = 10.0
    nodes: int = 100_000
    moves: int = 2_000
    wall: float | None = None


class Status(StrEnum):
    OPTIMAL = "optimal"
    FEASIBLE = "feasible"


@dataclass(frozen=True, slots=True)
class Solution:
    """The chosen candidates in a valid order, and what is known of them.

    No solution costs less than `bound`; `work` is the deterministic time spent, where it is counted.
    """

    chosen: tuple[int, ...]
    cost: int
    bound: int
    method: str
    work: float = 0.0

    @property
    def status(self) -> Status:
        return Status.OPTIMAL if self.bound >= self.cost else Status.FEASIBLE


class NoSolution(Exception):
    """No solution was found; `str()` says why in one line."""


class Infeasible(NoSolution):
    """It is proven that there is no solution."""


class Strategy(Protocol):
    """A way to solve cover problems; see the README for a template."""

    @property
    def name(self) -> str: ...

    def solve(self, problem: CoverProblem, budget: Budget, start: Collection[int] = ()) -> Solution:
        """Solves `problem`; `start` is a cover that is known already, or empty.

        Raises Infeasible when there is proof that no solution exists, NoSolution when none was found.
        """
        ...


def solution(
    problem: CoverProblem, chosen: Collection[int], method: str, bound: int = 0, work: float = 0.0
) -> Solution:
    """The solution that consists of `chosen`, checked; raises NoSolution if it is none."""
    order = problem.order(chosen) if problem.is_cover(chosen) else None
    if order is None:
        raise NoSolution(f"{method} found no cover")
    cost = problem.cost(order)
    return Solution(order, cost, min(bound, cost), method, work)

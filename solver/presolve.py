"""Reductions that keep an optimum: what is left is smaller and falls apart into components.

The classical ones of set covering (Garfinkel and Nemhauser 1972; Beasley 1987), stated so that they stay
true in the presence of debts, exclusion, fixed charges and precedence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from solver.graph import UnionFind, cycles
from solver.problem import Candidate, CoverProblem, Infeasible


@dataclass(frozen=True, slots=True)
class Component:
    """A problem of its own; candidate i of `problem` is candidate `candidates[i]` of the given one."""

    problem: CoverProblem
    candidates: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reduced:
    """An optimum of the given problem is `forced` and an optimum of each component together.

    `forced_cost` is the cost of `forced`; what the components share with them costs nothing there.
    """

    forced: tuple[int, ...]
    forced_cost: int
    components: tuple[Component, ...]


def presolve(problem: CoverProblem) -> Reduced:
    """Fixes forced candidates, drops dominated candidates and elements, and splits the rest.

    Raises Infeasible when an element has no candidate left.
    """
    work = _Presolve(problem)
    while work.force() or work.drop_candidates() or work.drop_elements():
        pass
    forced = tuple(sorted(work.forced))
    return Reduced(forced, problem.cost(forced), tuple(work.components()))


def binding_precedence(problem: CoverProblem, alive: Iterable[int] | None = None) -> list[tuple[int, int]]:
    """The pairs that can take part in a cycle, sorted; the others never restrict a choice.

    A cycle may run through precedence and through arcs from a debt's maker to its repairs.
    """
    present = set(range(len(problem.candidates)) if alive is None else alive)
    successors = order_arcs(problem, present)
    component = cycles(successors)
    pairs = (p for p in problem.precedence if present.issuperset(p) and component[p[0]] == component[p[1]])
    return sorted(pairs)


def order_arcs(problem: CoverProblem, present: set[int]) -> list[list[int]]:
    """For each candidate those that must or may have to come after it."""
    repairs: dict[int, list[int]] = defaultdict(list)
    for c in sorted(present):
        for debt in problem.candidates[c].repairs:
            repairs[debt].append(c)
    successors: list[list[int]] = [[] for _ in problem.candidates]
    for c in present:
        for debt in problem.candidates[c].damages:
            successors[c].extend(r for r in repairs[debt] if r != c)
    for a, b in problem.precedence:
        if a in present and b in present:
            successors[a].append(b)
    return [sorted(targets) for targets in successors]


class _Presolve:
    """The problem while it shrinks.

    `alive` maps the remaining candidates to what they still do; `open` maps the remaining elements to
    the candidates that cover them.  A candidate with side effects (debts or binding precedence) stays
    when it is forced, with one element that forces it.
    """

    def __init__(self, problem: CoverProblem) -> None:
        self.problem = problem
        self.forced: list[int] = []
        self.alive: dict[int, Candidate] = dict(enumerate(problem.candidates))
        self.charges = list(problem.resource_costs)
        self.open: dict[int, set[int]] = {e: set() for e in range(len(problem.unique))}
        for c, candidate in self.alive.items():
            for element in candidate.covers:
                self.open[element].add(c)
        self.groups: dict[int, list[int]] = defaultdict(list)
        for c, candidate in self.alive.items():
            for group in candidate.excludes:
                self.groups[group].append(c)
        self.before: dict[int, set[int]] = defaultdict(set)
        self.after: dict[int, set[int]] = defaultdict(set)
        for a, b in binding_precedence(problem):
            self.before[b].add(a)
            self.after[a].add(b)

    def force(self) -> bool:
        """Chooses every candidate that alone covers some element."""
        before = len(self.alive), len(self.open)
        for element in list(self.open):
            cover = self.open.get(element, None)
            if cover is None:
                continue
            if not cover:
                raise Infeasible(f"no candidate is left that could cover element {element}")
            if len(cover) == 1:
                self._choose(min(cover), element)
        return (len(self.alive), len(self.open)) != before

    def _choose(self, c: int, reason: int) -> None:
        candidate = self.alive[c]
        rivals = {r for e in candidate.covers if self.problem.unique[e] for r in self.open[e]}
        rivals |= {r for group in candidate.excludes for r in self.groups[group] if r in self.alive}
        for rival in sorted(rivals - {c}):
            self._remove(rival)
        plain = not (candidate.damages or candidate.repairs or self.before[c] or self.after[c])
        if plain:
            self.forced.append(c)
            for resource in candidate.needs:
                self.charges[resource] = 0
        for element in sorted(candidate.covers):
            if plain or element != reason:
                self._close(element)
        if plain:
            del self.alive[c]

    def _remove(self, c: int) -> None:
        for element in self.alive.pop(c).covers:
            self.open[element].discard(c)
        for near, far in ((self.before, self.after), (self.after, self.before)):
            for other in near.pop(c, set()):
                far[other].discard(c)

    def _close(self, element: int) -> None:
        for c in self.open.pop(element):
            self.alive[c] = replace(self.alive[c], covers=self.alive[c].covers - {element})

    def drop_candidates(self) -> bool:
        """Drops candidates that do nothing or harm beyond repair, and those that another one replaces."""
        rank = {c: (self._total(c), -len(self.alive[c].covers), c) for c in self.alive}
        menders: dict[int, set[int]] = defaultdict(set)
        for c, candidate in self.alive.items():
            for debt in candidate.repairs:
                menders[debt].add(c)
        owed = set[int]().union(*(candidate.damages for candidate in self.alive.values()))
        gone: set[int] = set()
        for c in sorted(self.alive, key=rank.__getitem__, reverse=True):
            candidate = self.alive[c]
            useful = [self.open[e] for e in candidate.covers] + [menders[d] for d in candidate.repairs & owed]
            hopeless = any(menders[d] <= {c} for d in candidate.damages)
            if not useful or hopeless:
                gone.add(c)
                continue
            rivals = set.intersection(*sorted(useful, key=len)) - {c} - gone
            if any(rank[r] < rank[c] and self._stands_in(r, c) for r in rivals):
                gone.add(c)
        for c in sorted(gone):
            self._remove(c)
        return bool(gone)

    def _total(self, c: int) -> int:
        return self.alive[c].cost + sum(self.charges[r] for r in self.alive[c].needs)

    def _stands_in(self, a: int, b: int) -> bool:
        """Whether replacing b by a, at the place of b, keeps every solution one and costs no more."""
        one, other = self.alive[a], self.alive[b]
        return (
            one.covers >= other.covers
            and one.cost + sum(self.charges[r] for r in one.needs - other.needs) <= other.cost
            and not any(self.problem.unique[e] for e in one.covers - other.covers)
            and one.damages <= other.damages
            and one.repairs >= other.repairs
            and one.excludes <= other.excludes
            and self.before[a] <= self.before[b]
            and self.after[a] <= self.after[b]
        )

    def drop_elements(self) -> bool:
        """Drops elements that are covered whenever another one is."""
        rank = {e: (len(self.open[e]), not self.problem.unique[e], e) for e in self.open}
        gone: set[int] = set()
        for element in sorted(self.open, key=rank.__getitem__):
            if element in gone or not self.open[element]:
                continue
            common = frozenset.intersection(*(self.alive[c].covers for c in self.open[element])) - gone
            gone |= {o for o in common if rank[o] > rank[element] and self._follows(o, element)}
        for element in sorted(gone):
            self._close(element)
        return bool(gone)

    def _follows(self, element: int, other: int) -> bool:
        """Whether covering `other` within the rules covers `element` within the rules."""
        unique = self.problem.unique
        if unique[element]:
            return unique[other] and self.open[element] == self.open[other]
        return self.open[element] >= self.open[other]

    def components(self) -> Iterable[Component]:
        """What is left, split where nothing connects it."""
        alive = sorted(self.alive)
        index = {c: i for i, c in enumerate(alive)}
        links: dict[tuple[str, int], list[int]] = defaultdict(list)
        for c in alive:
            candidate = self.alive[c]
            kinds = (
                ("element", candidate.covers),
                ("debt", candidate.damages | candidate.repairs),
                ("group", candidate.excludes),
                ("charge", {r for r in candidate.needs if self.charges[r]}),
            )
            for kind, names in kinds:
                for name in names:
                    links[kind, name].append(index[c])
            for b in self.after[c]:
                links["after", c].append(index[b])
                links["after", c].append(index[c])
        sets = UnionFind(len(alive))
        for members in links.values():
            sets.union(members)
        return [self._component([alive[i] for i in members]) for members in sets.sets()]

    def _component(self, members: Sequence[int]) -> Component:
        elements = {e: i for i, e in enumerate(sorted({e for c in members for e in self.alive[c].covers}))}
        needed = {r for c in members for r in self.alive[c].needs if self.charges[r]}
        charges = {r: i for i, r in enumerate(sorted(needed))}
        place = {c: i for i, c in enumerate(members)}
        candidates = tuple(
            replace(
                self.alive[c],
                covers=frozenset(elements[e] for e in self.alive[c].covers),
                needs=frozenset(charges[r] for r in self.alive[c].needs if r in charges),
            )
            for c in members
        )
        problem = CoverProblem(
            candidates,
            tuple(self.problem.unique[e] for e in elements),
            tuple(self.charges[r] for r in charges),
            frozenset((place[a], place[b]) for a in members for b in self.after[a]),
        )
        return Component(problem, tuple(members))

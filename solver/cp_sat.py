"""The exact strategy: OR-Tools' CP-SAT.

One worker with `linearization_level=2`: on covers the bound comes from the linear relaxation, and the
default portfolio on few cores never gets to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from ortools.sat.python import cp_model

from solver.graph import cycles
from solver.presolve import order_arcs
from solver.problem import Budget, CoverProblem, Infeasible, NoSolution, Solution, solution


@dataclass(frozen=True, slots=True)
class CpSat:
    """CP-SAT within `budget.work` of deterministic time, every variable hinted from `start`."""

    seed: int = 1

    @property
    def name(self) -> str:
        return "cp-sat"

    def solve(self, problem: CoverProblem, budget: Budget, start: Collection[int] = ()) -> Solution:
        model = _Model(problem)
        if start:
            model.hint(start)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.linearization_level = 2
        solver.parameters.random_seed = self.seed
        solver.parameters.max_deterministic_time = budget.work
        if budget.wall is not None:
            solver.parameters.max_time_in_seconds = budget.wall
        status = solver.solve(model.model)
        work = solver.response_proto.deterministic_time
        if status == cp_model.INFEASIBLE:
            raise Infeasible("cp-sat proves that there is no cover")
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            if not start:
                raise NoSolution("cp-sat found no cover within its budget")
            return solution(problem, start, self.name, _bound(solver), work)
        chosen = [c for c, used in enumerate(model.used) if solver.boolean_value(used)]
        return solution(problem, chosen, self.name, _bound(solver), work)


def _bound(solver: cp_model.CpSolver) -> int:
    return max(0, round(solver.best_objective_bound))


class _Model:
    """The constraint model: a literal for each candidate, charge and repair, a place where order binds."""

    def __init__(self, problem: CoverProblem) -> None:
        self.problem = problem
        self.model = cp_model.CpModel()
        self.used = [self.model.new_bool_var(f"use{c}") for c in range(len(problem.candidates))]
        self.charged = [self.model.new_bool_var(f"charge{r}") for r in range(len(problem.resource_costs))]
        self.component = cycles(order_arcs(problem, set(range(len(problem.candidates)))))
        self.places: dict[int, cp_model.IntVar] = {}
        self.repairs: dict[tuple[int, int], cp_model.IntVar] = {}
        self._covers()
        self._order()
        costs = [candidate.cost for candidate in problem.candidates]
        self.model.minimize(
            cp_model.LinearExpr.weighted_sum(self.used, costs)
            + cp_model.LinearExpr.weighted_sum(self.charged, problem.resource_costs)
        )

    def _covers(self) -> None:
        by_element: list[list[cp_model.IntVar]] = [[] for _ in self.problem.unique]
        by_group: dict[int, list[cp_model.IntVar]] = {}
        for used, candidate in zip(self.used, self.problem.candidates, strict=True):
            for element in candidate.covers:
                by_element[element].append(used)
            for group in sorted(candidate.excludes):
                by_group.setdefault(group, []).append(used)
            for resource in candidate.needs:
                self.model.add_implication(used, self.charged[resource])
        for literals, unique in zip(by_element, self.problem.unique, strict=True):
            if unique:
                self.model.add_exactly_one(literals)
            else:
                self.model.add_bool_or(literals)
        for literals in by_group.values():
            self.model.add_at_most_one(literals)

    def _order(self) -> None:
        """Precedence and repairs; only candidates on a possible cycle need a place."""
        candidates = self.problem.candidates
        component = self.component
        size = Counter(component)
        for c, number in enumerate(component):
            if size[number] > 1:
                self.places[c] = self.model.new_int_var(0, size[number] - 1, f"place{c}")
        binding = {p for p in self.problem.precedence if component[p[0]] == component[p[1]]}
        for a, b in sorted(binding):
            self._before(a, b, self.used[a], self.used[b])
        menders: dict[int, list[int]] = {}
        for c, candidate in enumerate(candidates):
            for debt in sorted(candidate.repairs):
                menders.setdefault(debt, []).append(c)
        for c, candidate in enumerate(candidates):
            for debt in sorted(candidate.damages):
                choices = [self._repair(c, r) for r in menders.get(debt, ()) if r != c]
                self.model.add_bool_or([self.used[c].negated(), *choices])

    def _repair(self, c: int, r: int) -> cp_model.IntVar:
        """The literal that says that r is used after c; r itself where it can only come after."""
        if self.component[c] != self.component[r]:
            return self.used[r]
        if (c, r) not in self.repairs:
            literal = self.model.new_bool_var(f"repair{c}_{r}")
            self.repairs[c, r] = literal
            self.model.add_implication(literal, self.used[r])
            self._before(c, r, literal)
        return self.repairs[c, r]

    def _before(self, a: int, b: int, *when: cp_model.IntVar) -> None:
        self.model.add(self.places[a] < self.places[b]).only_enforce_if(when)

    def hint(self, start: Collection[int]) -> None:
        """Hints every variable, so that the first solution is the given one."""
        chosen = set(start)
        order = self.problem.order(chosen) or tuple(sorted(chosen))
        place = {c: position for position, c in enumerate(order)}
        for c, used in enumerate(self.used):
            self.model.add_hint(used, c in chosen)
        needed = {r for c in chosen for r in self.problem.candidates[c].needs}
        for resource, charged in enumerate(self.charged):
            self.model.add_hint(charged, resource in needed)
        rank: Counter[int] = Counter()
        for c in sorted(self.places, key=lambda c: place.get(c, len(place))):
            self.model.add_hint(self.places[c], rank[self.component[c]])
            rank[self.component[c]] += 1
        for (c, r), literal in self.repairs.items():
            self.model.add_hint(literal, c in chosen and r in chosen and place[c] < place[r])

"""The cover problem as a linear program, for the strategies that use one.

HiGHS, SCIP and GLOP come with OR-Tools; MathOpt is the interface that gives their incumbents and bounds
when a node limit strikes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from math import ceil

from ortools.math_opt.python import mathopt  # type: ignore[import-untyped]

from solver.graph import cycles
from solver.presolve import order_arcs
from solver.problem import Budget, CoverProblem, Infeasible

_TOLERANCE = 1e-6  # what a bound may be off by, relative to its size


class Engine(Enum):
    """The solvers that OR-Tools ships and that are of use here."""

    HIGHS = mathopt.SolverType.HIGHS
    SCIP = mathopt.SolverType.GSCIP
    GLOP = mathopt.SolverType.GLOP


@dataclass(frozen=True, slots=True)
class LinearResult:
    """The value of each candidate's variable (None: no solution), and a bound that is proven."""

    values: tuple[float, ...] | None
    bound: int


def solve_linear(problem: CoverProblem, engine: Engine, budget: Budget, *, integer: bool) -> LinearResult:
    """Solves the problem (`integer`) or its linear relaxation, within `budget.nodes` nodes.

    Raises Infeasible when the engine proves that there is no solution.
    """
    model, used = _model(problem, integer)
    limit = None if budget.wall is None else timedelta(seconds=budget.wall)
    nodes = budget.nodes if integer else None
    parameters = mathopt.SolveParameters(node_limit=nodes, time_limit=limit, random_seed=1)
    result = mathopt.solve(model, engine.value, params=parameters)
    if result.termination.reason in (
        mathopt.TerminationReason.INFEASIBLE,
        mathopt.TerminationReason.INFEASIBLE_OR_UNBOUNDED,
    ):
        raise Infeasible("the linear program has no solution")
    dual = result.dual_bound()
    bound = max(0, ceil(dual - _TOLERANCE * max(1.0, abs(dual)))) if abs(dual) < float("inf") else 0
    values = tuple(result.variable_values(used)) if result.has_primal_feasible_solution() else None
    return LinearResult(values, bound)


def _model(problem: CoverProblem, integer: bool) -> tuple[mathopt.Model, list[mathopt.Variable]]:
    """Variables: a candidate is used, a resource is paid, a repair happens, a place in the order."""
    model = mathopt.Model()
    used = [model.add_variable(lb=0, ub=1, is_integer=integer) for _ in problem.candidates]
    paid = [model.add_variable(lb=0, ub=1) for _ in problem.resource_costs]
    elements: list[list[mathopt.Variable]] = [[] for _ in problem.unique]
    groups: dict[int, list[mathopt.Variable]] = {}
    for variable, candidate in zip(used, problem.candidates, strict=True):
        for element in candidate.covers:
            elements[element].append(variable)
        for group in sorted(candidate.excludes):
            groups.setdefault(group, []).append(variable)
        for resource in sorted(candidate.needs):
            model.add_linear_constraint(paid[resource] >= variable)
    for variables, unique in zip(elements, problem.unique, strict=True):
        most = 1.0 if unique else float("inf")
        model.add_linear_constraint(lb=1, ub=most, expr=mathopt.fast_sum(variables))
    for variables in groups.values():
        model.add_linear_constraint(mathopt.fast_sum(variables) <= 1)
    _add_order(model, problem, used, integer)
    costs = [candidate.cost for candidate in problem.candidates]
    model.minimize(
        mathopt.fast_sum(cost * variable for cost, variable in zip(costs, used, strict=True))
        + mathopt.fast_sum(c * variable for c, variable in zip(problem.resource_costs, paid, strict=True))
    )
    return model, used


def _add_order(model: mathopt.Model, problem: CoverProblem, used: list[mathopt.Variable], integer: bool) -> None:
    """Precedence and repairs by places (Miller, Tucker and Zemlin 1960), where a cycle is possible."""
    component = cycles(order_arcs(problem, set(range(len(used)))))
    size = Counter(component)
    place = {c: model.add_variable(lb=0, ub=size[number] - 1) for c, number in enumerate(component) if size[number] > 1}
    for a, b in sorted(problem.precedence):
        if component[a] == component[b]:
            slack = size[component[a]] * (2 - used[a] - used[b])
            model.add_linear_constraint(place[b] >= place[a] + 1 - slack)
    menders: dict[int, list[int]] = {}
    for c, candidate in enumerate(problem.candidates):
        for debt in sorted(candidate.repairs):
            menders.setdefault(debt, []).append(c)
    for c, candidate in enumerate(problem.candidates):
        for debt in sorted(candidate.damages):
            repairs = []
            for r in menders.get(debt, ()):
                if component[r] != component[c]:
                    repairs.append(used[r])
                elif r != c:
                    repair = model.add_variable(lb=0, ub=1, is_integer=integer)
                    model.add_linear_constraint(repair <= used[r])
                    slack = size[component[c]] * (1 - repair)
                    model.add_linear_constraint(place[r] >= place[c] + 1 - slack)
                    repairs.append(repair)
            model.add_linear_constraint(mathopt.fast_sum(repairs) >= used[c])

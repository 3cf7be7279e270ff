"""Strategies against each other and against enumeration, on random problems with every feature."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.brute_force import BruteForce
from solver.cp_sat import CpSat
from solver.greedy import Greedy
from solver.linear import Engine
from solver.local_search import LocalSearch
from solver.lp_rounding import LpRounding
from solver.mip import Mip
from solver.presolve import presolve
from solver.problem import (
    Budget,
    Candidate,
    CoverProblem,
    Infeasible,
    NoSolution,
    Solution,
    Status,
    Strategy,
)
from solver.solve import solve

BUDGET = Budget(work=5.0, nodes=1 << 20, moves=60)
EXACT: list[Strategy] = [CpSat(), Mip(Engine.HIGHS), Mip(Engine.SCIP)]
HEURISTIC: list[Strategy] = [Greedy(), Greedy(prune=False), LocalSearch(), LpRounding()]


def random_problem(seed: int) -> CoverProblem:
    """Up to ten candidates; each feature is present in some of the problems."""
    rng = np.random.default_rng(seed)
    n, elements = int(rng.integers(1, 10)), int(rng.integers(1, 8))
    debts, groups, resources = (int(k) for k in rng.integers(0, 4, 3))
    some = rng.choice([0.0, 0.2, 0.5], 5)

    def draw(size: int, share: float) -> frozenset[int]:
        return frozenset(np.flatnonzero(rng.random(size) < share).tolist())

    candidates = [
        Candidate(
            int(rng.integers(0, 15)),
            draw(elements, 0.45),
            draw(debts, some[0]),
            draw(debts, 0.5),
            draw(groups, some[1] / 2),
            draw(resources, some[2]),
        )
        for _ in range(n)
    ]
    pairs = {(int(a), int(b)) for a, b in rng.integers(0, n, (int(12 * some[3]), 2)) if a != b}
    unique = tuple((rng.random(elements) < some[4]).tolist())
    costs = tuple(rng.integers(0, 12, resources).tolist())
    return CoverProblem(tuple(candidates), unique, costs, frozenset(pairs))


def outcome(strategy: Strategy, problem: CoverProblem, *, reduce: bool) -> Solution | None:
    try:
        if reduce:
            return solve(problem, budget=BUDGET, strategy=strategy)
        return strategy.solve(problem, BUDGET)
    except Infeasible:
        return None


def in_valid_order(problem: CoverProblem, chosen: tuple[int, ...]) -> bool:
    """The definition, spelled out: precedence holds and each debt is repaired later by another."""
    place = {c: i for i, c in enumerate(chosen)}
    pairs = all(place[a] < place[b] for a, b in problem.precedence if a in place and b in place)
    debts = all(
        any(debt in problem.candidates[r].repairs for r in chosen[place[c] + 1 :])
        for c in chosen
        for debt in problem.candidates[c].damages
    )
    return pairs and debts


@given(st.integers(0, 2**32))
@settings(max_examples=120, deadline=None)
def test_exact_strategies_agree_with_enumeration(seed: int) -> None:
    problem = random_problem(seed)
    truth = outcome(BruteForce(), problem, reduce=False)
    for strategy in EXACT:
        for reduce in (False, True):
            answer = outcome(strategy, problem, reduce=reduce)
            assert (answer and answer.cost) == (truth and truth.cost), (strategy.name, reduce)
            if answer:
                assert answer.status is Status.OPTIMAL
                assert problem.is_cover(answer.chosen)
                assert in_valid_order(problem, answer.chosen)
                assert problem.cost(answer.chosen) == answer.cost


@given(st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_presolve_keeps_the_optimum(seed: int) -> None:
    problem = random_problem(seed)
    truth = outcome(BruteForce(), problem, reduce=False)
    reduced = outcome(BruteForce(), problem, reduce=True)
    assert (truth and truth.cost) == (reduced and reduced.cost)
    assert reduced is None or in_valid_order(problem, reduced.chosen)


@given(st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_heuristics_are_covers_with_true_bounds(seed: int) -> None:
    problem = random_problem(seed)
    truth = outcome(BruteForce(), problem, reduce=False)
    for strategy in HEURISTIC:
        try:
            answer = strategy.solve(problem, BUDGET)
        except NoSolution:
            continue
        assert truth is not None
        assert in_valid_order(problem, answer.chosen)
        assert answer.bound <= truth.cost <= answer.cost


@given(st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_order_exists_iff_some_permutation_is_valid(seed: int) -> None:
    from itertools import permutations

    problem = random_problem(seed)
    chosen = range(min(5, len(problem.candidates)))
    exists = any(in_valid_order(problem, p) for p in permutations(chosen))
    order = problem.order(chosen)
    assert (order is not None) == exists
    assert order is None or in_valid_order(problem, order)


def cover(n: int, m: int, seed: int) -> CoverProblem:
    rng = np.random.default_rng(seed)
    covers = [frozenset(np.flatnonzero(rng.random(m) < 0.08).tolist()) for _ in range(n)]
    singles = [Candidate(40, frozenset([e])) for e in range(m)]
    return CoverProblem(
        tuple([Candidate(int(rng.integers(10, 60)), c) for c in covers] + singles),
        tuple(e % 3 == 0 for e in range(m)),
    )


@pytest.mark.parametrize("strategy", [*EXACT, *HEURISTIC], ids=lambda s: s.name)
def test_two_runs_give_the_same(strategy: Strategy) -> None:
    problem = cover(60, 40, 3)
    first = solve(problem, budget=Budget(work=0.5, nodes=50, moves=50), strategy=strategy)
    assert first == solve(problem, budget=Budget(work=0.5, nodes=50, moves=50), strategy=strategy)


def test_a_budget_of_nothing_still_gives_the_greedy_cover() -> None:
    problem = cover(60, 40, 4)
    answer = solve(problem, budget=Budget(work=0.0, nodes=0, moves=0))
    assert problem.is_cover(answer.chosen)


def test_start_is_never_made_worse() -> None:
    problem = cover(60, 40, 5)
    best = solve(problem, budget=Budget())
    assert solve(problem, budget=Budget(), strategy=Greedy(), start=best.chosen).cost == best.cost


def test_infeasible_names_the_element() -> None:
    problem = CoverProblem((Candidate(1, frozenset([0])),), (False, False))
    with pytest.raises(Infeasible, match="element 1"):
        solve(problem, budget=BUDGET)


def test_nothing_to_cover_costs_nothing() -> None:
    answer = solve(CoverProblem((Candidate(1, frozenset()),), ()), budget=BUDGET)
    assert (answer.chosen, answer.cost, answer.status) == ((), 0, Status.OPTIMAL)


def test_components_are_solved_apart() -> None:
    sets = [{0, 1}, {1, 2}, {0, 2}, {3, 4}, {4, 5}, {3, 5}]
    problem = CoverProblem(tuple(Candidate(3, frozenset(s)) for s in sets), (False,) * 6)
    assert [len(c.candidates) for c in presolve(problem).components] == [3, 3]
    assert solve(problem, budget=BUDGET).cost == 12


def test_a_repair_comes_after_the_damage() -> None:
    repair = Candidate(2, frozenset(), repairs=frozenset([0]))
    harmful = Candidate(3, frozenset([0]), damages=frozenset([0]))
    answer = solve(CoverProblem((repair, harmful), (True,)), budget=BUDGET)
    assert answer.chosen == (1, 0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: CoverProblem((Candidate(-1, frozenset()),), ()),
        lambda: CoverProblem((Candidate(1, frozenset([1])),), (False,)),
        lambda: CoverProblem((Candidate(1, frozenset(), needs=frozenset([0])),), ()),
        lambda: CoverProblem((), (), (-1,)),
        lambda: CoverProblem((), (), (), frozenset([(0, 1)])),
        lambda: CoverProblem((Candidate(1, frozenset()),), (), (), frozenset([(0, 0)])),
    ],
)
def test_bad_problems(make: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        make()  # type: ignore[operator]

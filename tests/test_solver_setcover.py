"""The weighted set cover against enumeration, and its reductions against their definitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.setcover import CoverSolution, best_covers, dominated, merge_rows


@dataclass(frozen=True)
class Instance:
    covered: np.ndarray
    costs: np.ndarray
    groups: list[frozenset[int]]
    group_costs: list[int]
    exception_cost: np.ndarray | None
    exception_base: int
    joiner: int
    max_atoms: int

    def cost(self, atoms: Sequence[int]) -> int | None:
        """The cost of a choice by its definition, None when it is no cover."""
        left = ~self.covered[list(atoms)].any(axis=0)
        if left.any() and self.exception_cost is None:
            return None
        needed = frozenset().union(*(self.groups[a] for a in atoms))
        total = sum(int(self.costs[a]) for a in atoms) + sum(self.group_costs[g] for g in needed)
        if left.any():
            assert self.exception_cost is not None
            total += self.exception_base + int(self.exception_cost[left].sum())
        return total + self.joiner * (len(atoms) + int(left.any()) - 1)

    def enumerate(self) -> list[int]:
        """The costs of all covers without a superfluous atom, ascending."""
        found = []
        for size in range(self.max_atoms + 1):
            for atoms in combinations(range(len(self.costs)), size):
                rows = self.covered[list(atoms)]
                lean = all((rows[:, rows.sum(axis=0) == 1][i]).any() for i in range(size))
                cost = self.cost(atoms)
                if lean and cost is not None:
                    found.append(cost)
        return sorted(found)

    def solve(self, keep: int = 4, budget: int = 200_000) -> list[CoverSolution]:
        return best_covers(
            self.covered,
            self.costs,
            groups=self.groups,
            group_costs=self.group_costs,
            exception_cost=self.exception_cost,
            exception_base=self.exception_base,
            joiner_cost=self.joiner,
            keep=keep,
            max_atoms=self.max_atoms,
            budget=budget,
        )


@st.composite
def instances(draw: st.DrawFn) -> Instance:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, m, g = draw(st.integers(1, 9)), draw(st.integers(1, 14)), draw(st.integers(0, 3))
    density = draw(st.sampled_from([0.15, 0.3, 0.6]))
    return Instance(
        covered=rng.random((n, m)) < density,
        costs=rng.integers(0, draw(st.sampled_from([2, 12])), n),
        groups=[frozenset(np.flatnonzero(rng.random(g) < 0.4).tolist()) for _ in range(n)],
        group_costs=rng.integers(0, 10, g).tolist(),
        exception_cost=rng.integers(1, 5, m) if draw(st.booleans()) else None,
        exception_base=draw(st.integers(0, 6)),
        joiner=draw(st.integers(0, 3)),
        max_atoms=draw(st.integers(0, 6)),
    )


@given(instances())
@settings(max_examples=400, deadline=None)
def test_cheapest_cover_equals_enumeration(instance: Instance) -> None:
    answers = instance.solve()
    assert [a.cost for a in answers[:1]] == instance.enumerate()[:1]
    assert [a.cost for a in answers] == sorted(a.cost for a in answers)
    assert len({a.atoms for a in answers}) == len(answers)
    for answer in answers:
        assert instance.cost(answer.atoms) == answer.cost
        left = ~instance.covered[list(answer.atoms)].any(axis=0)
        assert answer.exceptions == tuple(np.flatnonzero(left).tolist())
    assert answers == instance.solve()


@given(instances())
@settings(max_examples=150, deadline=None)
def test_alternatives_are_the_next_cheapest_when_nothing_is_dominated(instance: Instance) -> None:
    n = len(instance.costs)
    own = np.hstack([instance.covered, np.eye(n, dtype=bool)])  # a row of its own keeps every atom alive
    listing = np.concatenate([np.full(instance.covered.shape[1], 3), np.ones(n, dtype=np.int64)])
    free = Instance(own, instance.costs, instance.groups, instance.group_costs, listing, 2, 1, 4)
    assert [a.cost for a in free.solve(keep=5)] == free.enumerate()[:5]


def test_no_rows_and_no_cover() -> None:
    nothing = np.zeros((2, 0), dtype=bool)
    assert best_covers(nothing, np.array([1, 2])) == [CoverSolution((), (), 0)]
    assert best_covers(np.zeros((2, 3), dtype=bool), np.array([1, 2])) == []
    assert best_covers(np.zeros((0, 3), dtype=bool), np.zeros(0, dtype=np.int64)) == []


def test_all_rows_in_the_exception_list() -> None:
    answer = best_covers(
        np.zeros((0, 3), dtype=bool),
        np.zeros(0, dtype=np.int64),
        exception_cost=np.array([2, 3, 4]),
        exception_base=10,
        joiner_cost=3,
    )
    assert answer == [CoverSolution((), (0, 1, 2), 19)]


@pytest.mark.parametrize(
    "change",
    [
        {"costs": np.array([-1, 1])},
        {"costs": np.array([1])},
        {"exception_cost": np.array([0, 1, 1])},
        {"exception_cost": np.array([1, 1])},
        {"group_costs": [-1]},
        {"groups": [frozenset[int]()]},
        {"keep": 0},
    ],
)
def test_bad_arguments(change: dict[str, object]) -> None:
    arguments = {"covered": np.ones((2, 3), dtype=bool), "costs": np.array([1, 1])} | change
    with pytest.raises(ValueError, match=r"."):
        best_covers(**arguments)  # type: ignore[arg-type]


@given(st.integers(0, 2**32), st.integers(1, 20), st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_merge_rows(seed: int, n: int, m: int) -> None:
    covered = np.random.default_rng(seed).random((n, m)) < 0.2
    columns, place = merge_rows(covered)
    assert np.array_equal(columns[:, place], covered)
    assert len(np.unique(columns, axis=1).T) == columns.shape[1]


@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(0, 150), st.integers(1, 16))
@settings(max_examples=60, deadline=None)
def test_dominated(seed: int, n: int, m: int, block: int) -> None:
    bits = np.random.default_rng(seed).random((n, m)) < 0.02
    expected = [any(not (bits[j] & ~bits[i]).any() for i in range(j)) for j in range(n)]
    assert dominated(bits, block=block).tolist() == expected


def test_an_exhausted_budget_still_answers() -> None:
    rng = np.random.default_rng(5)
    covered = rng.random((60, 400)) < 0.3
    instance = Instance(covered, rng.integers(5, 30, 60), [frozenset()] * 60, [], np.full(400, 4), 10, 3, 6)
    rushed, patient = instance.solve(budget=1), instance.solve(budget=2_000)
    assert rushed[0].cost >= patient[0].cost
    assert all(instance.cost(a.atoms) == a.cost for a in rushed)

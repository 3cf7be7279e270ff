"""Blocks, file formats, and the known optima of OR-Library."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_solver_strategies import BUDGET, cover, random_problem

from bench.solver_bench import known_values, runs
from solver.blocks import BlockProblem, partition, solve_blocks
from solver.exchange import dump_problem, dump_solution, load_problem, load_solution
from solver.orlib import read_file, read_rail, read_scp, write_rail, write_scp
from solver.problem import Budget, Candidate, CoverProblem, Infeasible
from solver.solve import solve

SHARED = Path(__file__).parents[1] / "../shared/setcover"
needs_instances = pytest.mark.skipif(not SHARED.is_dir(), reason="the set-cover instances are not there")


def plain(seed: int) -> CoverProblem:
    problem = cover(12, 9, seed)
    return CoverProblem(problem.candidates, (False,) * len(problem.unique))


@given(st.integers(0, 2**32), st.integers(0, 7))
@settings(max_examples=150, deadline=None)
def test_partition_equals_enumeration(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    costs = {(i, j): int(rng.integers(0, 6)) for i in range(n) for j in range(i + 1, n + 1) if rng.random() < 0.7}
    cuts = ([0, *inner, n] for k in range(max(n, 1)) for inner in combinations(range(1, n), k))
    paths = [list(pairwise(cut)) for cut in cuts] if n else [[]]
    possible = [path for path in paths if all(interval in costs for interval in path)]
    if not possible:
        with pytest.raises(Infeasible):
            partition(costs, n)
        return
    best = min(possible, key=lambda path: (sum(costs[i] for i in path), len(path), path))
    assert partition(costs, n) == best


def test_partition_rejects_intervals_outside() -> None:
    with pytest.raises(ValueError, match="interval"):
        partition({(0, 3): 1}, 2)


def test_blocks_choose_the_cheaper_cut() -> None:
    single = CoverProblem((Candidate(5, frozenset([0])),), (False,))
    both = CoverProblem((Candidate(9, frozenset([0])),), (False,))
    hopeless = CoverProblem((), (False,))
    blocks = {(0, 1): single, (1, 2): single, (0, 2): both, (2, 3): single, (0, 3): hopeless}
    answer = solve_blocks(BlockProblem(3, blocks), budget=BUDGET)
    assert [interval for interval, _ in answer.blocks] == [(0, 2), (2, 3)]
    assert (answer.cost, answer.bound) == (14, 14)
    with pytest.raises(Infeasible):
        solve_blocks(BlockProblem(3, {(0, 3): hopeless}), budget=BUDGET)


@given(st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_formats_round_trip(seed: int) -> None:
    assert read_scp(write_scp(plain(seed))) == plain(seed)
    assert read_rail(write_rail(plain(seed))) == plain(seed)
    assert load_problem(dump_problem(random_problem(seed))) == random_problem(seed)


def test_solution_round_trip() -> None:
    answer = solve(plain(1), budget=BUDGET)
    read = load_solution(dump_solution(answer))
    assert (read.chosen, read.cost, read.bound, read.method) == (
        answer.chosen,
        answer.cost,
        answer.bound,
        answer.method,
    )


@pytest.mark.parametrize("text", ["1 1 5 1", "1 1 5 1 2", "1 1 5 1 1 9", "1 x", ""])
def test_bad_scp(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_scp(text)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "cover", "version": 1}', '{"format": "x"}'])
def test_bad_json(text: str) -> None:
    with pytest.raises(ValueError, match=r"^not "):
        load_problem(text)
    with pytest.raises(ValueError, match=r"^not "):
        load_solution(text)


def test_only_plain_covers_fit_the_text_formats() -> None:
    for write in (write_scp, write_rail):
        with pytest.raises(ValueError, match="plain"):
            write(CoverProblem((Candidate(1, frozenset([0])),), (True,)))


@needs_instances
@pytest.mark.parametrize("name", ["scp41", "scp51"])
def test_known_optima_are_proven(name: str) -> None:
    known = known_values((SHARED / "README.md").read_text(encoding="utf-8"))
    answer = solve(read_file(SHARED / f"{name}.txt.gz"), budget=Budget())
    assert (answer.cost, answer.bound) == (known[name], known[name])


@needs_instances
def test_bench_has_a_run_for_each_strategy(capsys: pytest.CaptureFixture[str]) -> None:
    found = list(runs(SHARED, ["scp41", "none"], ["greedy", "lp"], Budget()))
    assert [str(run).split()[:2] for run in found] == [["scp41", "greedy"], ["scp41", "lp"]]
    assert capsys.readouterr().err.endswith("skipped\n")

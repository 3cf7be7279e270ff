"""The same candidates for every strategy: figures that agree with each other, files, a plot."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import BinaryIO

import pytest
from conftest import SHARED
from matplotlib.figure import Figure
from typer.testing import CliRunner
from workload_bed import make_workload

from scratch.server import Server
from solver.blocks import BlockProblem
from solver.orlib import read_scp
from solver.problem import Budget, Candidate, CoverProblem
from tersql import Comparison, InputError, Options, compare
from tersql.cli import app
from tersql.compare import STRATEGIES
from tersql.compare_report import write_plot
from tersql.instances import Instance, dump_instance, read_instance, write_instances


@pytest.fixture(scope="module")
def comparison(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    folder = make_workload(server, tmp_path_factory.mktemp("compare") / "tiny")
    options = Options(effort="low", jobs=1)
    return compare([folder], scratch=server.dsn(), anytime=True, budget=Budget(moves=100), options=options)


def test_every_strategy_is_between_the_bound_and_the_literals(comparison: Comparison) -> None:
    assert [line.instance.transaction for line in comparison.lines] == [1, 2, 3]
    assert comparison.strategies == tuple(STRATEGIES)
    for line in comparison.lines:
        assert line.instance.literal is not None
        for name in STRATEGIES:
            run = line.run(name)
            assert run is not None
            assert line.bound <= run.size <= line.instance.literal
            assert run.bound <= run.size


def test_exact_strategies_agree_and_prove_it(comparison: Comparison) -> None:
    totals = [comparison.total(name) for name in ("cp-sat", "highs", "scip")]
    assert all(total is not None and total.gap == 0 and total.optimal == 3 for total in totals)
    script = comparison.yardstick("script")
    baseline = comparison.yardstick("baseline")
    assert script is not None
    assert baseline is not None
    assert totals[0] is not None
    assert totals[0].size <= script < baseline


def test_a_plot_is_drawn(comparison: Comparison, tmp_path: Path) -> None:
    write_plot(comparison, tmp_path / "plot.png")
    write_plot(comparison, tmp_path / "plot.svg")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "plot.svg").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plot.png", "plot.svg"]
    with pytest.raises(InputError, match=r"plot\.gif: a plot is a \.png or a \.svg"):
        write_plot(comparison, tmp_path / "plot.gif")


def test_a_plot_that_breaks_off_leaves_the_old_one(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(figure: Figure, file: BinaryIO, **_: object) -> None:
        file.write(b"half")
        raise OSError("no space")

    (tmp_path / "plot.png").write_bytes(b"old")
    monkeypatch.setattr(Figure, "savefig", fails)
    with pytest.raises(OSError, match="no space"):
        write_plot(comparison, tmp_path / "plot.png")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


def test_exported_instances_give_the_same_again(comparison: Comparison, tmp_path: Path) -> None:
    write_instances((line.instance for line in comparison.lines), tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert [name for name in names if name.endswith(".json")] == [f"tiny-00{index}.json" for index in (1, 2, 3)]
    again = compare(sorted(tmp_path.glob("*.json")), strategies=["cp-sat"])
    assert [line.instance for line in again.lines] == [line.instance for line in comparison.lines]
    assert again.total("cp-sat").size == comparison.total("cp-sat").size  # type: ignore[union-attr]
    plain = [name for name in names if name.endswith(".scp.txt")]
    assert plain  # the updates are plain set covers, the inserts are not
    assert not [name for name in plain if name.startswith("tiny-003")]
    assert read_scp((tmp_path / plain[0]).read_text()).candidates


def _block(*candidates: tuple[int, set[int]], elements: int) -> CoverProblem:
    return CoverProblem(tuple(Candidate(cost, frozenset(own)) for cost, own in candidates), (False,) * elements)


def test_rules_of_greedy_show_by_themselves(tmp_path: Path) -> None:
    # The cheapest candidates first is a trap here, the most elements first another one.
    block = _block((3, {0}), (3, {1}), (3, {2}), (8, {0, 1, 2}), (30, {0, 1, 2, 3}), (2, {3}), elements=4)
    path = tmp_path / "trap.json"
    path.write_text(dump_instance(Instance("trap", 1, BlockProblem(1, {(0, 1): block}))))
    found = compare([path])
    sizes = {name: total.size for name in STRATEGIES if (total := found.total(name)) is not None}
    assert sizes["cp-sat"] == sizes["highs"] == sizes["scip"] == 10
    assert min(sizes.values()) == 10
    assert sizes.keys() == STRATEGIES.keys()


def test_what_has_no_cover_falls_back_to_literals_and_is_proven(tmp_path: Path) -> None:
    path = tmp_path / "none.json"
    half = BlockProblem(2, {(1, 2): _block((1, {0}), elements=1)})
    path.write_text(dump_instance(Instance("none", 1, half, literal=77)))
    (line,) = compare([path], strategies=["cp-sat"]).lines
    assert (line.runs[0].size, line.bound) == (77, 77)


def test_or_library_instances_can_be_given(tmp_path: Path) -> None:
    path = tmp_path / "scp1.txt"
    path.write_text(" 2 3 \n 2 2 3 \n 2 \n 1 3 \n 2 \n 2 3 \n")
    found = compare([path])
    assert {name: found.total(name).size for name in ("lp", "cp-sat")} == {"lp": 3, "cp-sat": 3}  # type: ignore[union-attr]


@pytest.mark.parametrize(("name", "text"), [("a.json", "{}"), ("a.json", "["), ("a.txt", "2 3 hello"), ("a.txt", "")])
def test_other_files_are_one_line(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=f"^{path}: [^\n]+$"):
        read_instance(path)


def test_the_command_writes_tables_and_files(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    whole = BlockProblem(1, {(0, 1): _block((5, {0}), (9, {0, 1}), (7, {1}), elements=2)})
    path.write_text(dump_instance(Instance("one", 1, whole)))
    files = ("--csv", tmp_path / "o.csv", "--json", tmp_path / "o.json", "--export", tmp_path / "made")
    result = CliRunner().invoke(app, ["compare", str(path), "--strategies", "greedy-ratio,cp-sat", *map(str, files)])
    assert result.exit_code == 0, result.output
    assert "cp-sat" in result.stdout
    runs = list(csv.DictReader((tmp_path / "o.csv").open()))
    assert [(run["strategy"], run["bytes"], run["bound"]) for run in runs][1] == ("cp-sat", "9", "9")
    data = json.loads((tmp_path / "o.json").read_text())
    assert data["totals"]["cp-sat"]["gap"] == 0
    assert len(data["runs"]) == 2
    assert (tmp_path / "made" / "one-001.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: no before.sql.gz and stream.jsonl.gz"),
        (["nowhere", "--strategies", "luck"], "no strategy luck; there are greedy-ratio,"),
        (["nowhere", "--plot", "x.gif"], "x.gif: a plot is a .png or a .svg"),
    ],
)
def test_errors_are_one_line(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["compare", *arguments])
    assert result.exit_code == 1
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_samples(server: Server) -> None:
    folder = SHARED / "workloads" / "wagtail"
    if not folder.exists():
        pytest.skip("no sample workloads beside the repository")
    found = compare([folder], scratch=server.dsn(), options=Options(effort="low", timezone="UTC"))
    assert found.known is not None
    total = found.total("cp-sat")
    assert total is not None
    assert total.optimal == len(found.lines)

"""Tables of figures: what they hold, and what is told of the differences; no timing is tested."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench import __main__ as command
from bench import short
from bench.figures import Difference, Table, compared, differences, markdown
from bench.scaling import Point, exponent, table

OLD = Table("2024-01-01T00:00:00+00:00", {"a/x/bytes": 100, "a/x/seconds": 2.0, "a/x/MiB": 200, "b/y/share": 0.5})


def now(**changed: float | None) -> Table:
    """OLD with other values for bytes, seconds, …; None leaves the figure out."""
    figures = {name: changed.get(name.rsplit("/", 1)[-1], value) for name, value in OLD.figures.items()}
    return Table("2024-02-02T00:00:00+00:00", {name: value for name, value in figures.items() if value is not None})


def test_the_same_is_no_difference() -> None:
    assert differences(OLD, now()) == []
    assert compared(OLD, now()) == ["since 2024-01-01T00:00:00+00:00:", "no difference"]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"bytes": 99}, ["a/x/bytes: 100 -> 99 (-1.0 %)"]),
        ({"share": 0.25}, ["b/y/share: 0.5 -> 0.25 (-50.0 %)"]),
        ({"share": None}, ["b/y/share: 0.5 -> none"]),
        # A clock's and a scale's own noise, and what is more than that, both ways.
        ({"seconds": 2.5, "MiB": 190}, []),
        ({"seconds": 3.0, "MiB": 150}, ["a/x/MiB: 200 -> 150 (-25.0 %)", "a/x/seconds: 2 -> 3 (+50.0 %)"]),
    ],
)
def test_differences(changed: dict[str, float | None], told: list[str]) -> None:
    assert list(map(str, differences(OLD, now(**changed)))) == told


def test_what_is_new_is_told_and_instants_are_not() -> None:
    before, after = Table("1", {"a/seconds": 0.01}), Table("2", {"a/seconds": 0.3, "b/bytes": 3})
    assert differences(before, after) == [Difference("b/bytes", None, 3)]


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    whole = Table(OLD.date, OLD.figures, ("solver",))
    whole.write(tmp_path / "a.json")
    assert Table.read(tmp_path / "a.json") == whole
    text = "\n".join(markdown(whole))
    assert "## a\n\n| figure | |\n|---|---:|\n| x/bytes | 100 |" in text
    assert text.endswith("Skipped: solver.")
    for wrong in ("[]", "{", '{"date": "1", "skipped": [], "figures": {"a": null}}'):
        (tmp_path / "a.json").write_text(wrong)
        with pytest.raises(ValueError, match="not a table of figures"):
            Table.read(tmp_path / "a.json")


def test_the_command_compares_two_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    OLD.write(tmp_path / "old.json")
    now(bytes=90).write(tmp_path / "now.json")
    arguments = ["--table", str(tmp_path / "now.json"), "--against", str(tmp_path / "old.json")]
    monkeypatch.setattr(sys, "argv", ["bench", *arguments])
    command.main()
    assert "a/x/bytes: 100 -> 90 (-10.0 %)" in capsys.readouterr().out


def test_figures_of_each_bench() -> None:
    families = [{"name": name, "share": 0.5, "exact": 2, "ratio": 1.1} for name in ("up", "depth 1", "all")]
    assert [name for name, _ in short.recovery({"families": families}) if "share" in name] == [
        "up/recovered share",
        "all/recovered share",
    ]
    sets = [{"kind": "uniform", "best": n, "within_goal": n < 5, "search": 0.5} for n in (3, 9)]
    assert dict(short.literals(sets)) == {"uniform/bytes": 12, "uniform/within goal": 1, "uniform/seconds": 1.0}
    run = {"instance": "scp41", "strategy": "lp", "value": 433, "bound": 429, "known": 429, "seconds": 0.1}
    assert dict(short.solver([run]))["scp41, lp/value"] == 433
    point = {"rows": 10, "changes": 5, "size": 90, "seconds": 1.0, "worker": 120}
    assert dict(short.scaling({"rows": [point], "changes": []}))["10 rows, 5 changes/MiB"] == 120


def point(rows: int, seconds: float, late: bool = False) -> Point:
    return Point(rows, 300, 600, 9000, 450, seconds, seconds, seconds, 200, 100, late, ())


def test_scaling_is_told_by_an_exponent() -> None:
    assert exponent([point(1000, 2.0), point(100_000, 200.0)], "rows") == pytest.approx(1)
    assert exponent([point(1000, 2.0)], "rows") != exponent([], "rows")  # NaN, both
    head, rule, *lines = table([point(1000, 2.0), point(10_000, 9.5, late=True)])
    assert {line.count("|") for line in (head, rule, *lines)} == {12}
    assert lines[1].endswith("| cut by the time limit |")

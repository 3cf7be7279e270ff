"""The guard of byte counts: it holds what is recorded, and a worse search makes it fail."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner
from workload_bed import make_workload

from scratch.server import Server
from tersql import CheckReport, InputError, Options, Result, TransactionReport, check
from tersql.check import Entry, read_record, write_record
from tersql.cli import app

LOW = Options(effort="low", jobs=1, time_limit=600)

# Read by the worker processes when they start.
_NO_RULES = """
import encoder.block

def nothing(*_):
    return []

encoder.block.update_candidates = encoder.block.delete_candidates = nothing
encoder.block.insert_candidates = encoder.block.shared_candidates = nothing
"""


@pytest.fixture(scope="module")
def tiny(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workload(server, tmp_path_factory.mktemp("check") / "tiny")


@pytest.fixture(scope="module")
def record(server: Server, tiny: Path) -> Path:
    path = tiny.parent / "bytes.toml"
    report = check([tiny], path, update=True, scratch=server.dsn(), options=LOW)
    assert report.good
    assert report.updated
    return path


def test_the_same_search_is_as_recorded(server: Server, tiny: Path, record: Path) -> None:
    sizes = tomllib.loads(record.read_text())["tiny"]["low"]["bytes"]
    assert len(sizes) == 3
    # The parent folder stands for the workloads in it.
    result = CliRunner().invoke(
        app,
        ["check", str(tiny.parent), "--record", str(record), "--effort", "low", "--scratch", server.dsn()],
    )
    assert result.exit_code == 0, result.output
    assert result.stdout == f"tiny (low): {sum(sizes)} bytes in 3 transactions, as recorded\n"


def test_a_worse_search_fails(
    server: Server, tiny: Path, record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(_NO_RULES)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = record.read_bytes()
    result = CliRunner().invoke(
        app,
        ["check", str(tiny), "--record", str(record), "--effort", "low", "--jobs", "1", "--scratch", server.dsn()],
    )
    assert result.exit_code == 1, result.output
    head, titles, *lines = result.stdout.splitlines()
    assert head.startswith("tiny (low): ")
    assert titles.split() == ["transaction", "recorded", "now", "change"]
    assert [line.split()[0] for line in lines] == ["1", "2"]
    assert all(line.endswith("  grew") for line in lines)
    assert record.read_bytes() == before


# -- what is made of the figures; the search stands still here

Against = Callable[..., tuple[CheckReport, Entry | None]]


def _result(*sizes: int, late: bool = False, faults: tuple[str, ...] = ()) -> Result:
    reports = [TransactionReport(index, 1, 900, 800, size, size, "") for index, size in enumerate(sizes, 1)]
    return Result("", tuple(reports), 1.0, late, faults)


@pytest.fixture
def against(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Against:
    """Checks a result against an entry (None: nothing is recorded); gives what is recorded afterwards as well."""
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / "before.sql").touch()
    (folder / "stream.jsonl").touch()

    def run(result: Result, entry: Entry | None, *, update: bool = False) -> tuple[CheckReport, Entry | None]:
        monkeypatch.setattr(import_module("tersql.check"), "optimize", lambda *_, **__: result)
        path = tmp_path / "bytes.toml"
        write_record({} if entry is None else {("w", "low"): entry}, path)
        report = check([folder], path, update=update, options=LOW)
        return report, read_record(path).get(("w", "low"))

    return run


def test_nothing_recorded_is_no_success(against: Against) -> None:
    report, after = against(_result(5, 6), None)
    assert not report.good
    assert str(report) == "w (low): 11 bytes in 2 transactions: not in the record; --update puts it there"
    assert after is None
    report, after = against(_result(5, 6), None, update=True)
    assert report.good
    assert after == Entry((5, 6))


def test_shorter_invites_to_update(against: Against) -> None:
    report, after = against(_result(50, 60), Entry((57, 60)))
    assert report.good
    assert "-7" in str(report)
    assert str(report).endswith("shorter than recorded: --update keeps it so")
    assert after == Entry((57, 60))
    report, after = against(_result(50, 60), Entry((57, 60)), update=True)
    assert report.good
    assert after == Entry((50, 60))


def test_one_that_grew_fails_though_the_total_shrank(against: Against) -> None:
    report, _ = against(_result(10, 61), Entry((57, 60)))
    assert not report.good
    assert str(report).count("  grew") == 1


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (Entry((1, 2, 3)), "the record has 3 transactions, the stream 2"),
        (Entry((5, 6), "UTC"), "the record is for time zone UTC, this run for none"),
    ],
)
def test_what_cannot_be_compared_fails(against: Against, entry: Entry, message: str) -> None:
    report, _ = against(_result(5, 6), entry)
    assert not report.good
    assert message in str(report)
    report, after = against(_result(5, 6), entry, update=True)
    assert report.good
    assert after == Entry((5, 6))


def test_what_the_clock_cut_is_never_recorded(against: Against) -> None:
    report, after = against(_result(5, late=True, faults=("transaction 1: a search broke",)), Entry((7,)), update=True)
    assert not report.good
    assert "the time limit cut the search" in str(report)
    assert "w: transaction 1: a search broke" in str(report)
    assert after == Entry((7,))


@given(
    st.dictionaries(
        st.tuples(st.text(min_size=1), st.sampled_from(["low", "default"])),
        st.builds(Entry, st.lists(st.integers(1, 10**7), max_size=40).map(tuple), st.text()),
    )
)
def test_records_come_back(tmp_path_factory: pytest.TempPathFactory, record: dict[tuple[str, str], Entry]) -> None:
    path = tmp_path_factory.mktemp("record") / "bytes.toml"
    write_record(record, path)
    assert read_record(path) == record


@pytest.mark.parametrize("text", ["[", "a = 1", "[a.low]\ntimezone = ''", "[a.low]\nbytes = ['x']"])
def test_another_file_is_no_record(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bytes.toml"
    path.write_text(text)
    with pytest.raises(InputError, match="is no record of bytes"):
        read_record(path)

"""The guard of byte counts: it holds what is recorded, and a worse search makes it fail."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner
from workload_bed import make_workload

from scratch.server import Server
from tersql import CheckReport, InputError, Options, Strategy, check
from tersql.check import Entry, read_record, write_record
from tersql.cli import app

LOW = Options(effort="low", jobs=1, time_limit=600)
# Quick, where it is not about the search.
PLAIN = Options(strategy=Strategy.BASELINE, effort="low", jobs=1, time_limit=600)

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


def test_nothing_recorded_is_no_success(server: Server, tiny: Path, tmp_path: Path) -> None:
    report = check([tiny], tmp_path / "bytes.toml", scratch=server.dsn(), options=PLAIN)
    assert not report.good
    assert "not in the record; --update puts it there" in str(report)
    assert not (tmp_path / "bytes.toml").exists()


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


def _against(server: Server, tiny: Path, entry: Entry, path: Path, **options: bool) -> CheckReport:
    write_record({("tiny", "low"): entry}, path)
    return check([tiny], path, scratch=server.dsn(), options=PLAIN, **options)


def test_shorter_invites_to_update(server: Server, tiny: Path, tmp_path: Path) -> None:
    path = tmp_path / "bytes.toml"
    report = _against(server, tiny, Entry((10_000, 1, 10_000)), path)
    assert not report.good
    assert str(report).count("  grew") == 1
    (outcome,) = report.outcomes
    sizes = outcome.found.sizes
    report = _against(server, tiny, Entry((sizes[0] + 7, *sizes[1:])), path)
    assert report.good
    assert "shorter than recorded: --update keeps it so" in str(report)
    assert "-7" in str(report)
    report = _against(server, tiny, Entry((sizes[0] + 7, *sizes[1:])), path, update=True)
    assert report.good
    assert read_record(path) == {("tiny", "low"): outcome.found}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (Entry((1, 2)), "the record has 2 transactions, the stream 3"),
        (Entry((1, 2, 3), "UTC"), "the record is for time zone UTC, this run for none"),
    ],
)
def test_what_cannot_be_compared_fails(
    server: Server, tiny: Path, tmp_path: Path, entry: Entry, message: str
) -> None:
    report = _against(server, tiny, entry, tmp_path / "bytes.toml")
    assert not report.good
    assert message in str(report)


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

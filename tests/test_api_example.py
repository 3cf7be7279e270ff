"""The example of the Python API, run as it stands in the documentation."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest
from workload_bed import make_workload

from scratch.server import Server

EXAMPLE = Path(__file__).resolve().parent.parent / "docs" / "api.md"


def test_the_example_runs(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_workload(server, tmp_path / "tiny")
    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(str(EXAMPLE), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 20
    assert result.failed == 0

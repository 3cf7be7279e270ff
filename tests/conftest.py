"""Fixtures on the real embedded server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scratch.server import Server

SHARED = Path(__file__).resolve().parent.parent.parent / "shared"


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with Server.start() as started:
        yield started

"""Searches that break down."""

from __future__ import annotations

import pytest

from encoder.guard import guarded
from scratch.server import Server
from scratch.session import connect


def test_a_search_that_fails_finds_nothing(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TERSQL_STRICT", raising=False)

    def fails() -> list[int]:
        session.execute(b"CREATE TABLE left_behind()")
        raise KeyError("x")

    with connect(server.dsn()) as session, session.transaction(force_rollback=True):
        assert guarded(session, "nothing", fails, lambda: None) == []
        session.execute(b"CREATE TABLE left_behind()")


def test_one_that_lacks_memory_is_tried_again_with_more(server: Server) -> None:
    kept = [1, 2, 3]

    def needs_room() -> list[int]:
        if kept:
            raise MemoryError
        return [7]

    with connect(server.dsn()) as session, session.transaction(force_rollback=True):
        assert guarded(session, "much", needs_room, kept.clear) == [7]


def test_one_that_never_has_enough_finds_nothing(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TERSQL_STRICT", raising=False)
    calls: list[int] = []

    def needs_more() -> list[int]:
        calls.append(1)
        raise MemoryError

    with connect(server.dsn()) as session, session.transaction(force_rollback=True):
        assert guarded(session, "too much", needs_more, lambda: None) == []
    assert len(calls) == 2

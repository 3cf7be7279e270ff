"""Rows lie the same after trials as if none had been."""

from __future__ import annotations

from collections.abc import Iterator
from secrets import token_hex

import psycopg
import pytest

from scratch.database import create_database, drop_database, with_database
from scratch.layout import Layout, rewrite_all
from scratch.server import Server
from scratch.session import Session, TextRow, connect, rows

SCHEMA = """
CREATE TABLE "odd %" (id int PRIMARY KEY, pad text, at int DEFAULT 0);
CREATE TABLE empty (id int);
INSERT INTO "odd %" SELECT g, repeat('x', 90) FROM generate_series(1, 900) g
"""
LIES = 'SELECT ctid, * FROM "odd %"'


@pytest.fixture
def sessions(server: Server) -> Iterator[tuple[Session, Session]]:
    """Two databases, one a copy of the other."""
    names = [f"layout_{token_hex(4)}" for _ in range(2)]
    create_database(server.dsn(), names[0])
    with connect(with_database(server.dsn(), names[0])) as session:
        session.execute(SCHEMA.encode())
        rewrite_all(session)
    create_database(server.dsn(), names[1], names[0])
    with (
        connect(with_database(server.dsn(), names[0])) as tried,
        connect(with_database(server.dsn(), names[1])) as untried,
    ):
        yield tried, untried
    for name in names:
        drop_database(server.dsn(), name)


def _write(session: Session) -> list[TextRow]:
    with session.transaction():
        session.execute(b'UPDATE "odd %" SET at = at + 1 WHERE id % 7 = 0')
        session.execute(b'DELETE FROM "odd %" WHERE id % 11 = 0')
        session.execute(b"INSERT INTO \"odd %\" SELECT g, 'new' FROM generate_series(1000, 1090) g")
    return rows(session, LIES)


def test_rolled_back_trials_leave_their_mark(sessions: tuple[Session, Session]) -> None:
    """What the module is for: if this fails, it may go."""
    tried, untried = sessions
    with tried.transaction(force_rollback=True):
        _write(tried)
    assert _write(tried) != _write(untried)


def test_restored_rows_lie_as_if_never_written(sessions: tuple[Session, Session]) -> None:
    tried, untried = sessions
    layouts = Layout(tried), Layout(untried)
    with tried.transaction(force_rollback=True):
        _write(tried)
    layouts[0].restore()
    for _ in range(2):
        for session, layout in zip(sessions, layouts, strict=True):
            session.execute(b'DELETE FROM "odd %" WHERE id >= 1000')
            _write(session)
            layout.restore()
        assert rows(tried, LIES) == rows(untried, LIES)


def test_a_transaction_elsewhere_on_the_server_keeps_no_dead_rows(
    server: Server, sessions: tuple[Session, Session]
) -> None:
    tried, untried = sessions
    layouts = Layout(tried), Layout(untried)
    _write(untried)
    layouts[1].restore()
    with psycopg.connect(server.dsn()) as other:
        other.execute("SELECT pg_current_xact_id()")
        _write(tried)
        layouts[0].restore()
        size = "SELECT pg_relation_size('\"odd %\"'::regclass), reltuples FROM pg_class WHERE relname = 'odd %'"
        assert rows(tried, size) == rows(untried, size)
        assert rows(tried, LIES) == rows(untried, LIES)

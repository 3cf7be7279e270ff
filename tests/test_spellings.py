"""Every line of the table of spellings, proved."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from bench.spellings import TARGET, Pair, Rejected, Spelling, page, read
from emit.rules import check_script
from emit.size import minify
from scratch.database import create_database, drop_database, with_database
from scratch.server import Server
from scratch.session import Session, TextRow, connect

TABLE = read()
OLD = Path(os.environ.get("TERSQL_PG15_BIN", "/usr/lib/postgresql/15/bin"))
TABLES = "SELECT c.relname FROM pg_class c WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1"

pairs = pytest.mark.parametrize("pair", TABLE.pairs, ids=lambda pair: pair.name)
rejected = pytest.mark.parametrize("line", TABLE.rejected, ids=lambda line: line.name)


@pytest.fixture(scope="module")
def new(server: Server) -> Iterator[Session]:
    create_database(server.dsn(), "spellings")
    with connect(with_database(server.dsn(), "spellings"), timezone="UTC") as session:
        session.execute(TABLE.setup.encode())
        yield session
    drop_database(server.dsn(), "spellings")


@pytest.fixture(scope="module")
def old() -> Iterator[Session]:
    if not (OLD / "postgres").exists():
        pytest.skip("no PostgreSQL 15: TERSQL_PG15_BIN names the folder of its programs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERSQL_PG_BIN", str(OLD))
        with Server.start() as server, connect(server.dsn(), timezone="UTC") as session:
            session.execute(TABLE.setup.encode())
            yield session


def parses(spelling: Spelling) -> bool:
    return not check_script(f"BEGIN;{spelling.parsed};COMMIT;")


def effect(session: Session, spelling: Spelling) -> list[list[TextRow]]:
    """What the spelling returns and what it leaves in all tables."""
    with session.transaction(force_rollback=True):
        cursor = session.execute(spelling.run.encode())
        returned = cursor.fetchall() if cursor.description else []
        tables = [name for (name,) in session.execute(TABLES.encode()).fetchall()]
        left = [sorted(session.execute(f"TABLE {name}".encode()).fetchall(), key=repr) for name in tables]
    return [returned if "ORDER BY" in spelling.run else sorted(returned, key=repr), *left]


def runs(session: Session, spelling: Spelling) -> bool:
    try:
        effect(session, spelling)
    except psycopg.Error:
        return False
    return True


@pairs
def test_parses_and_is_shorter(pair: Pair) -> None:
    assert parses(pair.long)
    assert parses(pair.short)
    assert pair.short.bytes < pair.long.bytes
    if pair.short.kind == "spacing":
        assert pair.short.text == minify(pair.long.text)


@pairs
def test_equal_effect(new: Session, pair: Pair) -> None:
    assert effect(new, pair.short) == effect(new, pair.long)


@pairs
def test_equal_effect_on_15(old: Session, pair: Pair) -> None:
    assert effect(old, pair.short) == effect(old, pair.long)


@rejected
def test_rejected(new: Session, line: Rejected) -> None:
    assert parses(line.spelling) != ("parser" in line.by)
    assert runs(new, line.spelling) != ("18" in line.by)


@rejected
def test_rejected_by_15(old: Session, line: Rejected) -> None:
    assert runs(old, line.spelling) != ("15" in line.by)


def test_names_are_unique_in_a_group() -> None:
    names = [(pair.group, pair.name) for pair in TABLE.pairs]
    assert len(names) == len(set(names))


def test_page_is_up_to_date() -> None:
    assert TARGET.read_text() == page(TABLE), "run python -m bench.spellings"

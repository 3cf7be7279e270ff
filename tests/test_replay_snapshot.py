"""Digests see every column exactly, in no order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from replay.snapshot import digests, first_difference, touched
from scratch.catalog import Catalog, read_catalog
from scratch.database import create_database, drop_database, with_database
from scratch.server import Server
from scratch.session import Session, connect
from stream.model import TableName

TABLE = TableName("public", "t")
DATABASE = "snapshot_test"


@pytest.fixture(scope="module")
def opened(server: Server) -> Iterator[Session]:
    create_database(server.dsn(), DATABASE)
    with connect(with_database(server.dsn(), DATABASE)) as session:
        session.execute("CREATE EXTENSION citext")
        session.execute('CREATE TABLE t (a citext, "b%" json, f float8, c char(3))')
        session.execute("CREATE TABLE empty ()")
        yield session
    drop_database(server.dsn(), DATABASE)


@pytest.fixture
def session(opened: Session) -> Iterator[Session]:
    opened.execute("BEGIN")
    yield opened
    opened.execute("ROLLBACK")


@pytest.fixture
def catalog(session: Session) -> Catalog:
    return read_catalog(session)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("(NULL,NULL,NULL,NULL)", "('',NULL,NULL,NULL)"),
        ("('a',NULL,NULL,NULL)", "('A',NULL,NULL,NULL)"),
        ("(',',NULL,NULL,NULL)", "('\",\"',NULL,NULL,NULL)"),
        ("('','{\"a\":1}',0,'')", "('','{\"a\": 1}',0,'')"),
        ("('','{}',0,'')", "('','{}','-0','')"),
        ("('','{}','NaN','')", "('','{}',NULL,'')"),
        ("('x','{}',1,''),('x','{}',1,'')", "('x','{}',1,'')"),
        ("('x','{}',1,''),('x','{}',1,'')", "('y','{}',1,''),('y','{}',1,'')"),
    ],
)
def test_what_differs_has_another_digest(session: Session, catalog: Catalog, one: str, other: str) -> None:
    found = []
    for values in (one, other):
        session.execute("DELETE FROM t")
        session.execute(f"INSERT INTO t VALUES {values}".encode())
        found.append(digests(session, catalog, [TABLE])[TABLE])
    assert found[0] != found[1]


def test_order_does_not_matter(session: Session, catalog: Catalog) -> None:
    session.execute("INSERT INTO t SELECT g FROM generate_series(1, 50) g")
    before = digests(session, catalog, catalog)
    session.execute("DELETE FROM t")
    session.execute("INSERT INTO t SELECT g FROM generate_series(50, 1, -1) g")
    assert digests(session, catalog, catalog) == before
    assert before[TableName("public", "empty")].rows == 0
    assert first_difference(session, session, catalog, catalog) is None
    assert touched(session, catalog) == [TABLE]


def test_no_tables(session: Session, catalog: Catalog) -> None:
    assert digests(session, catalog, []) == {}

"""Whole scripts against whole streams."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import SHARED

from replay.difference import Kind
from replay.verify import verify
from scratch.database import create_database, drop_database, restore, with_database
from scratch.server import Server
from scratch.session import connect
from stream.model import Op, RowChange, TableName, Transaction
from stream.open import open_stream

TEMPLATE = "verify_test"
TABLE = TableName("public", "t")


@pytest.fixture(scope="module")
def template(server: Server) -> Iterator[str]:
    create_database(server.dsn(), TEMPLATE)
    with connect(with_database(server.dsn(), TEMPLATE)) as session:
        session.execute("CREATE TABLE t (id int PRIMARY KEY, name text)")
        session.execute("INSERT INTO t VALUES (1, 'one'), (2, 'two')")
    yield TEMPLATE
    drop_database(server.dsn(), TEMPLATE)


STREAM = [
    Transaction(1, (RowChange(Op.UPDATE, TABLE, {"id": "1", "name": "one"}, {"id": "1", "name": "uno"}, 2),), line=1),
    Transaction(2, (), line=4),
    Transaction(3, (RowChange(Op.DELETE, TABLE, {"id": "2", "name": "two"}, None, 7),), line=6),
]
FIRST = "BEGIN;UPDATE t SET name='uno'WHERE id=1;COMMIT;"
LAST = "BEGIN;DELETE FROM t WHERE id=2;COMMIT;"
EMPTY = "BEGIN;COMMIT;"


def test_an_exact_script(server: Server, template: str) -> None:
    report = verify(FIRST + EMPTY + LAST, STREAM, server.dsn(), template)
    assert report.exact
    assert report.transactions == 3


def test_of_nothing(server: Server, template: str) -> None:
    assert verify("", [], server.dsn(), template).exact


@pytest.mark.parametrize(
    ("script", "kind", "done", "message"),
    [
        (FIRST + LAST, Kind.MISSING, 1, "transaction 2: public.t row (id='2') is missing"),
        (FIRST + EMPTY, Kind.COUNT, 2, "transaction 3: the script has fewer transactions"),
        (FIRST + EMPTY + LAST + EMPTY, Kind.COUNT, 3, "transaction 4: the script has more transactions"),
        (FIRST + EMPTY + LAST.replace("2", "1"), Kind.MISSING, 2, "transaction 3: public.t row (id='1')"),
        (FIRST.replace("1", "id/0"), Kind.ERROR, 0, "transaction 1: statement 1 fails: division by zero"),
    ],
)
def test_inexact_scripts(server: Server, template: str, script: str, kind: Kind, done: int, message: str) -> None:
    report = verify(script, STREAM, server.dsn(), template)
    assert not report.exact
    assert report.difference is not None
    assert report.difference.kind is kind
    assert report.transactions == done
    assert str(report.difference).startswith(message)


def test_a_script_against_the_rules_is_not_run(server: Server, template: str) -> None:
    report = verify("BEGIN;TRUNCATE t;COMMIT;", STREAM, server.dsn(), template)
    assert not report.exact
    assert report.violations
    assert report.difference is None


@pytest.mark.parametrize("name", ["netbox", "saleor", "wagtail", "zulip"])
def test_the_sample_references_are_exact(server: Server, name: str) -> None:
    folder = SHARED / "workloads" / name
    if not folder.exists():
        pytest.skip(f"no sample workloads in {SHARED}")
    database = f"verify_{name}"
    create_database(server.dsn(), database)
    try:
        restore(with_database(server.dsn(), database), folder / "before.sql.gz")
        report = verify(
            (folder / "ref.sql").read_text(),
            open_stream(folder / "stream.jsonl.gz"),
            server.dsn(),
            database,
            timezone="UTC",
        )
    finally:
        drop_database(server.dsn(), database)
    assert report.violations == ()
    assert report.difference is None

"""Capture from a live server."""

from __future__ import annotations

import io
from collections.abc import Iterator

import psycopg
import pytest

from scratch.server import Server
from stream.capture import CaptureError, capture_script, capture_slot, column_types
from stream.model import Op, StreamError, TableName, Transaction
from stream.statements import statements
from stream.wal2json import read_wal2json
from stream.write import write_wal2json

SCHEMA = """
CREATE TABLE keyed (id int PRIMARY KEY, a text, big text);
CREATE TABLE whole (id int PRIMARY KEY, a text, big text, twice int GENERATED ALWAYS AS (id * 2) STORED);
ALTER TABLE whole REPLICA IDENTITY FULL;
ALTER TABLE whole ALTER big SET STORAGE EXTERNAL;
ALTER TABLE keyed ALTER big SET STORAGE EXTERNAL;
CREATE TABLE keyless (id int);
CREATE SCHEMA "Ünï";
CREATE TABLE "Ünï"."a ""b"" c" ("c d" bool, "é" numeric(9,2), "b" bytea);
"""


@pytest.fixture
def dsn(server: Server) -> Iterator[str]:
    with psycopg.connect(server.dsn(), autocommit=True) as admin:
        admin.execute("CREATE DATABASE captured")
        admin.execute("ALTER DATABASE captured SET DateStyle = German")
        # Decoding reads only what is flushed.
        admin.execute("ALTER DATABASE captured SET synchronous_commit = on")
        with psycopg.connect(server.dsn("captured"), autocommit=True) as session:
            session.execute(SCHEMA.encode())
        yield server.dsn("captured")
        admin.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
        admin.execute("DROP DATABASE captured WITH (FORCE)")


def left_behind(dsn: str) -> list[tuple[str, ...]]:
    with psycopg.connect(dsn) as session:
        return session.execute(
            "SELECT pubname::text FROM pg_publication UNION SELECT slot_name::text FROM pg_replication_slots"
        ).fetchall()


def images(transaction: Transaction) -> list[tuple[Op, object, object]]:
    return [(change.op, change.old, change.new) for change in transaction.changes]


def test_a_script_yields_its_transactions(dsn: str) -> None:
    script = """
    BEGIN; -- one; transaction
    INSERT INTO keyed VALUES (1, 'a;b', repeat('x', 9000)), (2, E'c\\';', NULL);
    UPDATE keyed SET a = $$;$$ WHERE id = 1;
    UPDATE keyed SET id = 3 WHERE id = 2;
    DELETE FROM keyed WHERE id = 3;
    COMMIT;
    INSERT INTO whole VALUES (1, 'a', repeat('x', 9000));
    UPDATE whole SET a = 'b'
    """
    big = "x" * 9000
    first, second, third = capture_script(dsn, script)
    assert images(first) == [
        (Op.INSERT, None, {"id": "1", "a": "a;b", "big": big}),
        (Op.INSERT, None, {"id": "2", "a": "c';", "big": None}),
        (Op.UPDATE, {"id": "1"}, {"id": "1", "a": ";"}),
        (Op.UPDATE, {"id": "2"}, {"id": "3", "a": "c';", "big": None}),
        (Op.DELETE, {"id": "3"}, None),
    ]
    row = {"id": "1", "a": "a", "big": big, "twice": "2"}
    assert images(second) == [(Op.INSERT, None, row)]
    assert images(third) == [(Op.UPDATE, row, row | {"a": "b"})]
    assert [transaction.index for transaction in (first, second, third)] == [1, 2, 3]
    assert first.xid is not None
    assert first.xid != second.xid
    assert left_behind(dsn) == []


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("INSERT INTO keyed VALUES (1); SELEC", "statement 2 of the script fails: syntax error"),
        ("BEGIN; INSERT INTO keyed VALUES (1)", "its COMMIT is missing"),
        ("INSERT INTO keyless VALUES (1); UPDATE keyless SET id = 2", "REPLICA IDENTITY FULL"),
        ("INSERT INTO keyless VALUES (1); DELETE FROM keyless", '"keyless"'),
    ],
)
def test_a_script_that_fails_leaves_nothing(dsn: str, script: str, message: str) -> None:
    with pytest.raises(CaptureError) as caught:
        list(capture_script(dsn, script))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert left_behind(dsn) == []


def test_truncate_is_refused_and_leaves_nothing(dsn: str) -> None:
    with pytest.raises(StreamError, match=r"TRUNCATE of public\.keyed, public\.whole is not replayable"):
        list(capture_script(dsn, "TRUNCATE keyed, whole"))
    assert left_behind(dsn) == []


def test_a_capture_given_up_leaves_nothing(dsn: str) -> None:
    script = ";".join(f"INSERT INTO keyed VALUES ({number}, repeat('y', 500))" for number in range(100))
    transactions = capture_script(dsn, script)
    next(transactions)
    transactions.close()  # type: ignore[attr-defined]
    assert left_behind(dsn) == []


def test_one_capture_a_database_at_a_time(server: Server, dsn: str) -> None:
    running = capture_script(dsn, "INSERT INTO keyed VALUES (1); INSERT INTO keyed VALUES (2)")
    next(running)
    with pytest.raises(CaptureError, match=r'cannot create a publication: .*"tersql_capture" already exists'):
        next(capture_script(dsn, "SELECT 1"))
    assert list(capture_script(server.dsn(), "SELECT 1")) == []
    assert len(list(running)) == 1


def test_a_slot_is_peeked_or_consumed(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as session:
        with pytest.raises(CaptureError, match="there is no replication slot s"):
            list(capture_slot(dsn, "s"))
        session.execute("CREATE PUBLICATION part FOR TABLE keyed")
        session.execute("SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
        session.execute("INSERT INTO keyed VALUES (1)")
        session.execute("INSERT INTO whole VALUES (1)")
        with pytest.raises(CaptureError, match="no publication FOR ALL TABLES"):
            list(capture_slot(dsn, "s"))
        peeked = list(capture_slot(dsn, "s", publication="part"))
        assert [change.table.name for transaction in peeked for change in transaction.changes] == ["keyed"]
        assert list(capture_slot(dsn, "s", publication="part", consume=True)) == peeked
        assert list(capture_slot(dsn, "s", publication="part")) == []

        session.execute('CREATE PUBLICATION "All ""of"" it" FOR ALL TABLES')
        session.execute("INSERT INTO whole VALUES (2)")
        (transaction,) = capture_slot(dsn, "s")
        assert transaction.changes[0].table == TableName("public", "whole")


def test_slots_that_cannot_be_read(server: Server, dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as session:
        session.execute("SELECT pg_create_logical_replication_slot('t', 'test_decoding')")
        session.execute("SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
        with pytest.raises(CaptureError, match="t is a slot of the plugin test_decoding"):
            list(capture_slot(dsn, "t"))
        with pytest.raises(CaptureError, match="belongs to the database captured, not to postgres"):
            list(capture_slot(server.dsn(), "s"))
        with pytest.raises(CaptureError, match="there is no publication none"):
            list(capture_slot(dsn, "s", publication="none"))


def test_a_capture_written_and_read_back(dsn: str) -> None:
    script = """INSERT INTO "Ünï"."a ""b"" c" VALUES (true, 1.5, '\\x00ff'), (false, 'NaN', NULL)"""
    captured = list(capture_script(dsn, script))
    with psycopg.connect(dsn) as session:
        types = column_types(session)
    assert types(TableName("Ünï", 'a "b" c')) == {"c d": "boolean", "é": "numeric(9,2)", "b": "bytea"}
    assert types(TableName("no", "such")) == {}
    out = io.StringIO()
    write_wal2json(captured, out, types)
    assert '"value":1.50' in out.getvalue()
    (again,) = read_wal2json(out.getvalue().splitlines())
    assert images(again) == images(captured[0])


def test_an_unreachable_server() -> None:
    with pytest.raises(CaptureError, match="cannot connect"):
        list(capture_slot("host=/nonexistent", "s"))


def test_statements() -> None:
    hiding = [
        "select ';', ''';', '\\'",
        "select e'\\';', E'a'';\\\\'",
        'select 1 as ";"";"',
        "select $$;$$, $a$;$$;$a$, a$b$ from t",
        "/* ; /* ; */ ; */ select 1 -- ;\n",
        "select 'é', $1",
    ]
    script = ";;\n".join(hiding) + "; ;"
    assert list(statements(script)) == [statement.strip() for statement in hiding]
    assert list(statements("select /* ;")) == ["select /* ;"]

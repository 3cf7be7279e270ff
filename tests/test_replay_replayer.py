"""The replayer on a real server: what is exact passes, and what is not is found, named and undone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import psycopg
import pytest

from replay.difference import Difference, Kind
from replay.replayer import Replayer
from scratch.database import cloned, create_database, drop_database, with_database
from scratch.errors import ScratchError
from scratch.server import Server
from scratch.session import connect, rows
from stream.capture import capture_script
from stream.model import Op, RowChange, TableName, Transaction

TEMPLATE = "replayer_test"

SCHEMA = """
CREATE TABLE author (id serial PRIMARY KEY, name text, books int NOT NULL DEFAULT 0);
CREATE TABLE book (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, title text,
    author_id int NOT NULL REFERENCES author ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    loud text GENERATED ALWAYS AS (upper(title)) STORED, at timestamptz, length interval);
CREATE TABLE audit (what text, doc json, f float8);
ALTER TABLE audit REPLICA IDENTITY FULL;
CREATE TABLE slot (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, name text);
ALTER TABLE slot REPLICA IDENTITY FULL;
CREATE SCHEMA hidden;
CREATE TABLE hidden.log (id int PRIMARY KEY, note text) PARTITION BY RANGE (id);
CREATE TABLE hidden.log_low PARTITION OF hidden.log FOR VALUES FROM (0) TO (100);
CREATE FUNCTION count_books() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
    UPDATE author SET books = books + 1 WHERE id = NEW.author_id;
    IF NEW.title = 'logged' THEN INSERT INTO hidden.log VALUES (NEW.id, 'x'); END IF;
    RETURN NULL;
END$$;
CREATE TRIGGER count_books AFTER INSERT ON book FOR EACH ROW EXECUTE FUNCTION count_books();
CREATE TABLE secret (id int PRIMARY KEY, v int);
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
INSERT INTO author (name) VALUES ('Ann'), ('Bob'), (''), (NULL);
INSERT INTO book (title, author_id, at)
SELECT 't' || g, 1 + g % 2, '2024-01-01 10:00+00' FROM generate_series(1, 4) g;
INSERT INTO audit SELECT 'same', '{"a": 1}', 0 FROM generate_series(1, 3);
INSERT INTO slot VALUES (1, 'one'), (2, 'two');
INSERT INTO secret VALUES (1, 1), (2, 2);
"""

Captured = Callable[[str], list[Transaction]]


@pytest.fixture(scope="module")
def template(server: Server) -> Iterator[str]:
    create_database(server.dsn(), TEMPLATE)
    with connect(with_database(server.dsn(), TEMPLATE)) as session:
        session.execute(SCHEMA.encode())
    yield TEMPLATE
    drop_database(server.dsn(), TEMPLATE)


@pytest.fixture(scope="module")
def captured(server: Server, template: str) -> Captured:
    """Runs a script in a copy of the database; what it did as a stream."""

    @cache
    def capture(script: str) -> list[Transaction]:
        with cloned(server.dsn(), template, f"{template}_source") as dsn:
            flushed = psycopg.conninfo.make_conninfo(dsn, options="-c synchronous_commit=on")
            return list(capture_script(flushed, script))

    return capture


@pytest.fixture
def replayer(server: Server, template: str) -> Iterator[Replayer]:
    with Replayer(server.dsn(), template) as opened:
        yield opened


def one(captured: Captured, script: str) -> Transaction:
    (transaction,) = captured(f"BEGIN;{script};COMMIT;")
    return transaction


def differs(replayer: Replayer, captured: Captured, truth: str, *tried: str) -> Difference:
    replayer.expect(one(captured, truth))
    difference = replayer.run(tried)
    assert difference is not None
    return difference


EXACT = [
    "INSERT INTO book(title,author_id)VALUES('new',2),('logged',2)",
    "INSERT INTO book(title,author_id)VALUES('early',9);INSERT INTO author VALUES(9,'Late',7)",
    "DELETE FROM author WHERE id=1",
    "UPDATE author SET id=id+10 WHERE id IN(3,4)",
    "UPDATE slot SET id=3-id",
    "UPDATE audit SET f='NaN'",
    "UPDATE book SET title=repeat(md5(title),900);UPDATE book SET at='2024-06-01 12:00+00'",
    "INSERT INTO slot VALUES(3,'gone');DELETE FROM slot WHERE id=3",
    "UPDATE secret SET v=v+1",
]
PLACED = [
    "DELETE FROM audit WHERE ctid='(0,1)';UPDATE audit SET what='other'WHERE ctid='(0,2)'",
    "UPDATE audit SET f='-0',doc='{\"a\":1}'WHERE ctid='(0,1)'",
]


@pytest.mark.parametrize("script", PLACED)
def test_the_statements_of_the_stream_are_exact(replayer: Replayer, captured: Captured, script: str) -> None:
    transaction = one(captured, script)
    replayer.expect(transaction)
    assert replayer.run(script.split(";")) is None
    assert replayer.accept() is None
    assert replayer.compare_all() is None


def test_transactions_follow_each_other(replayer: Replayer, captured: Captured) -> None:
    stream = captured("".join(f"BEGIN;{script};COMMIT;" for script in EXACT))
    for transaction, script in zip(stream, EXACT, strict=True):
        replayer.expect(transaction)
        assert replayer.run(script.split(";")) is None
        assert replayer.accept() is None
    assert replayer.compare_all() is None


@pytest.mark.parametrize(
    ("truth", "tried", "kind", "message"),
    [
        (
            "UPDATE author SET name='x'WHERE id<3",
            "UPDATE author SET name='x'WHERE id<2",
            Kind.VALUE,
            "public.author row (id='2'): column name is 'Bob', expected 'x'",
        ),
        (
            "UPDATE author SET name=''WHERE id=4",
            "UPDATE author SET name=name",
            Kind.VALUE,
            "public.author row (id='4'): column name is NULL, expected ''",
        ),
        (
            "DELETE FROM slot WHERE id=1",
            "DELETE FROM slot",
            Kind.MISSING,
            "public.slot row (id='2') is missing",
        ),
        (
            "DELETE FROM slot",
            "DELETE FROM slot WHERE id=1",
            Kind.UNEXPECTED,
            "public.slot row (id='2') is not in the stream",
        ),
        (
            "UPDATE audit SET f='-0',doc='{}'WHERE ctid='(0,1)'",
            "UPDATE audit SET f='0',doc='{}'WHERE ctid='(0,1)'",
            Kind.UNEXPECTED,
            "public.audit row (what='same', doc='{}', f='0') is not in the stream",
        ),
        (
            "UPDATE audit SET doc='{\"a\":1}'WHERE ctid='(0,1)'",
            "UPDATE audit SET doc='{\"a\":1}'",
            Kind.UNEXPECTED,
            """public.audit row (what='same', doc='{"a":1}', f='0') is not in the stream""",
        ),
        (
            "UPDATE slot SET name='x'WHERE id=1",
            "UPDATE slot SET name='x'WHERE id=1;INSERT INTO book(title,author_id)VALUES('logged',3)",
            Kind.UNEXPECTED,
            "hidden.log row (id='5') is not in the stream",
        ),
        (
            "UPDATE book SET at='2024-06-01 12:00+00'WHERE id=1",
            "UPDATE book SET at='2024-06-01 12:00'WHERE id=1",
            Kind.VALUE,
            "column at is '2024-05-31 23:15:00+00', expected '2024-06-01 12:00:00+00'",
        ),
        (
            "UPDATE book SET length='-1 day -02:00:00'WHERE id=1",
            "UPDATE book SET length='-1 2:00'WHERE id=1;UPDATE book SET title='x'WHERE id=2",
            Kind.VALUE,
            "public.book row (id='2'): column title is 'x', expected 't2'",
        ),
        (
            "DELETE FROM slot",
            "DELETE FROM nowhere",
            Kind.ERROR,
            'statement 1 fails: relation "nowhere" does not',
        ),
        (
            "DELETE FROM slot",
            "DELETE FROM slot;TRUNCATE slot",
            Kind.ERROR,
            "statement 2 fails: permission denied",
        ),
        (
            "DELETE FROM slot",
            "INSERT INTO book(title,author_id)VALUES('x',77)",
            Kind.ERROR,
            "COMMIT fails: insert or update on table",
        ),
        (
            "DELETE FROM slot",
            "INSERT INTO slot VALUES(1,'')",
            Kind.ERROR,
            "COMMIT fails: duplicate key value violates",
        ),
    ],
)
def test_differences_are_named_and_undone(
    replayer: Replayer, captured: Captured, truth: str, tried: str, kind: Kind, message: str
) -> None:
    difference = differs(replayer, captured, truth, *tried.split(";"))
    assert difference.kind is kind
    assert message in str(difference)
    assert str(difference).startswith("transaction 1: ")
    # Nothing of the failed try is left.
    assert replayer.run(truth.split(";")) is None
    assert replayer.accept() is None
    assert replayer.compare_all() is None


def test_sequences_are_as_if_a_failed_try_had_not_been(replayer: Replayer, captured: Captured) -> None:
    script = "INSERT INTO author(name)VALUES('five');INSERT INTO book(title,author_id)VALUES('fifth',1)"
    replayer.expect(one(captured, script))
    for _ in range(3):
        assert replayer.run([*script.split(";"), "DELETE FROM slot"]) is not None
    assert replayer.run(script.split(";")) is None
    assert replayer.run(script.split(";")) is None  # an exact try that was not accepted is undone too
    assert replayer.accept() is None


def test_a_promised_time_zone(server: Server, template: str, captured: Captured) -> None:
    transaction = one(captured, "UPDATE book SET at='2024-06-01 12:00+02'")
    with Replayer(server.dsn(), template, timezone="Europe/Berlin") as replayer:
        replayer.expect(transaction)
        assert replayer.run(["UPDATE book SET at='2024-6-1 12:00'"]) is None


def test_a_stream_of_another_database(replayer: Replayer) -> None:
    table = TableName("public", "slot")
    wrong = RowChange(Op.DELETE, table, {"id": "1", "name": "eins"}, None, 7)
    with pytest.raises(ScratchError, match=r"line 7: .* has name='one' in the database but 'eins'"):
        replayer.expect(Transaction(1, (wrong,)))


def test_nothing_is_left_behind(server: Server, template: str) -> None:
    with pytest.raises(ScratchError), Replayer(server.dsn(), template) as replayer:
        replayer.expect(Transaction(1, (RowChange(Op.DELETE, TableName("no", "where"), {}, None, 1),)))
    with connect(server.dsn()) as session:
        assert rows(session, "SELECT datname FROM pg_database WHERE datname ~ '^tersql'") == []
        assert rows(session, "SELECT rolname FROM pg_roles WHERE rolname ~ '^tersql'") == []

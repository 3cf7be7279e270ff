"""Row changes on a real server: applied exactly, completed from the state before."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from scratch.catalog import Catalog, read_catalog
from scratch.changes import apply_changes, complete
from scratch.database import create_database, drop_database, with_database
from scratch.errors import ScratchError
from scratch.server import Server
from scratch.session import Session, connect, rows
from stream.model import Op, Row, RowChange, TableName, Transaction

DATABASE = "changes_test"

SCHEMA = """
CREATE DOMAIN grade AS text CHECK (VALUE <> '');
CREATE TABLE plain (id int PRIMARY KEY, name varchar(40), n numeric(8,2), at timestamptz, f float8);
CREATE TABLE spot (id int PRIMARY KEY, place int UNIQUE);
CREATE TABLE later (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, name text);
CREATE TABLE span (id int PRIMARY KEY, r int4range, EXCLUDE USING gist (r WITH &&));
CREATE TABLE "odd %s" ("a""b" json, "p%" point, x circle, c char(4), d grade);
CREATE TABLE always (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text,
                     loud text GENERATED ALWAYS AS (upper(name)) STORED);
CREATE TABLE counted (k text PRIMARY KEY, n int GENERATED ALWAYS AS IDENTITY, v text);
CREATE TABLE child (id int PRIMARY KEY, plain_id int NOT NULL REFERENCES plain ON DELETE CASCADE);
CREATE TABLE part (id int PRIMARY KEY, b box, flags bit(3), tags text[], j jsonb) PARTITION BY RANGE (id);
CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (10);
CREATE TABLE part_2 PARTITION OF part FOR VALUES FROM (10) TO (99);
CREATE TABLE two (a int NOT NULL, b text NOT NULL, v text, UNIQUE (a, b));
CREATE FUNCTION boom() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'user trigger'; END$$;
CREATE TRIGGER boom BEFORE INSERT OR UPDATE OR DELETE ON plain FOR EACH ROW EXECUTE FUNCTION boom();
ALTER TABLE plain DISABLE TRIGGER boom;
INSERT INTO plain SELECT g, 'name ' || g, g / 3.0, '2024-01-01 00:00+00', g / 3.0::float8
FROM generate_series(1, 9) g;
ALTER TABLE plain ENABLE TRIGGER boom;
INSERT INTO spot SELECT g, g * 10 FROM generate_series(1, 4) g;
INSERT INTO later VALUES (1, 'one'), (2, 'two');
INSERT INTO span VALUES (1, '[1,5)'), (2, '[5,9)');
INSERT INTO "odd %s" SELECT '{"k": 1}', '(1,2)', '<(0,0),1>', 'ab', 'x' FROM generate_series(1, 3);
INSERT INTO "odd %s" VALUES (NULL, '(-0,2)', NULL, '', 'y');
INSERT INTO always (name) VALUES ('a'), ('b');
INSERT INTO counted (k, v) VALUES ('a', 'x'), ('b', 'y');
INSERT INTO child VALUES (1, 1), (2, 2);
INSERT INTO part VALUES (1, '(1,1),(0,0)', '101', '{a,NULL,"NULL"}', '{"a": 1}'),
    (12, NULL, NULL, '{}', '[]');
INSERT INTO two VALUES (1, 'x', 'p'), (1, 'y', 'q');
"""


@pytest.fixture(scope="module")
def shared(server: Server) -> Iterator[Session]:
    create_database(server.dsn(), DATABASE)
    with connect(with_database(server.dsn(), DATABASE)) as session:
        session.execute(SCHEMA.encode())
        yield session
    drop_database(server.dsn(), DATABASE)


@pytest.fixture
def session(shared: Session) -> Iterator[Session]:
    """A session whose work is undone after the test."""
    shared.execute("BEGIN")
    yield shared
    shared.execute("ROLLBACK")


@pytest.fixture
def catalog(shared: Session) -> Catalog:
    return read_catalog(shared)


def named(table: str) -> TableName:
    return TableName("public", table)


def insert(table: str, new: Row, line: int = 1) -> RowChange:
    return RowChange(Op.INSERT, named(table), None, new, line)


def update(table: str, old: Row, new: Row, line: int = 1) -> RowChange:
    return RowChange(Op.UPDATE, named(table), old, new, line)


def delete(table: str, old: Row, line: int = 1) -> RowChange:
    return RowChange(Op.DELETE, named(table), old, None, line)


def transaction(*changes: RowChange) -> Transaction:
    return Transaction(1, changes)


def run(session: Session, catalog: Catalog, *changes: RowChange) -> tuple[RowChange, ...]:
    """Complete, then apply; the completed changes."""
    completed = complete(session, catalog, transaction(*changes)).changes
    apply_changes(session, catalog, completed)
    return completed


def test_the_three_operations_fire_no_trigger_and_check_no_foreign_key(session: Session, catalog: Catalog) -> None:
    plain = {"id": "20", "name": None, "n": "1.50", "at": "2024-01-01 00:00:00+00", "f": "-0"}
    apply_changes(
        session,
        catalog,
        [
            insert("plain", plain),
            update("plain", {"id": "2"}, {"id": "2", "name": ""}),
            delete("plain", {"id": "1"}),
            insert("child", {"id": "3", "plain_id": "777"}),
        ],
    )
    assert rows(session, "SELECT * FROM plain WHERE id IN (1, 2, 20) ORDER BY id") == [
        ("2", "", "0.67", "2024-01-01 00:00:00+00", "0.6666666666666666"),
        ("20", None, "1.50", "2024-01-01 00:00:00+00", "-0"),
    ]
    assert rows(session, "SELECT * FROM child ORDER BY id") == [("1", "1"), ("2", "2"), ("3", "777")]
    assert rows(session, "SHOW session_replication_role") == [("origin",)]


def test_one_row_changes_often(session: Session, catalog: Catalog) -> None:
    run(
        session,
        catalog,
        insert("spot", {"id": "9", "place": "90"}),
        update("spot", {"id": "9", "place": "90"}, {"id": "10", "place": "91"}),
        update("spot", {"id": "10", "place": "91"}, {"id": "11", "place": "91"}),
        insert("spot", {"id": "12", "place": "92"}),
        delete("spot", {"id": "12", "place": "92"}),
        delete("spot", {"id": "1", "place": "10"}),
        insert("spot", {"id": "1", "place": "10"}),
    )
    assert rows(session, "SELECT id FROM spot ORDER BY id") == [("1",), ("2",), ("3",), ("4",), ("11",)]


@pytest.mark.parametrize("full", [True, False])
def test_keys_are_swapped(session: Session, catalog: Catalog, full: bool) -> None:
    olds: list[Row] = [{"id": "1", "name": "one"}, {"id": "2", "name": "two"}]
    if not full:
        olds = [{"id": old["id"]} for old in olds]
    completed = run(
        session,
        catalog,
        update("later", olds[0], {"id": "2", "name": "one"}),
        update("later", olds[1], {"id": "1", "name": "two"}),
    )
    assert rows(session, "SELECT * FROM later ORDER BY id") == [("1", "two"), ("2", "one")]
    assert [change.old for change in completed] == [{"id": "1", "name": "one"}, {"id": "2", "name": "two"}]


def test_unique_values_rotate(session: Session, catalog: Catalog) -> None:
    places = {"1": "20", "2": "30", "3": "40", "4": "10"}
    changes = [update("spot", {"id": k, "place": f"{k}0"}, {"id": k, "place": v}) for k, v in places.items()]
    run(session, catalog, *changes)
    assert dict(rows(session, "SELECT * FROM spot")) == places


def test_excluded_ranges_are_swapped(session: Session, catalog: Catalog) -> None:
    run(
        session,
        catalog,
        update("span", {"id": "1", "r": "[1,5)"}, {"id": "1", "r": "[5,9)"}),
        update("span", {"id": "2", "r": "[5,9)"}, {"id": "2", "r": "[1,5)"}),
    )
    assert rows(session, "SELECT * FROM span ORDER BY id") == [("1", "[5,9)"), ("2", "[1,5)")]


ODD: Row = {'a"b': '{"k": 1}', "p%": "(1,2)", "x": "<(0,0),1>", "c": "ab  ", "d": "x"}


def test_of_identical_rows_without_a_key_one_is_changed(session: Session, catalog: Catalog) -> None:
    negative_zero: Row = {'a"b': None, "p%": "(-0,2)", "x": None, "c": "    ", "d": "y"}
    run(
        session,
        catalog,
        delete("odd %s", ODD),
        update("odd %s", ODD, {**ODD, "d": "z"}),
        update("odd %s", negative_zero, {**negative_zero, 'a"b': "[1, 2]"}),
    )
    assert rows(session, 'SELECT * FROM "odd %s" ORDER BY d') == [
        ('{"k": 1}', "(1,2)", "<(0,0),1>", "ab  ", "x"),
        ("[1, 2]", "(-0,2)", None, "    ", "y"),
        ('{"k": 1}', "(1,2)", "<(0,0),1>", "ab  ", "z"),
    ]


def test_more_identical_rows_than_there_are(session: Session, catalog: Catalog) -> None:
    changes = [delete("odd %s", ODD, line) for line in (11, 12, 13, 14)]
    with pytest.raises(ScratchError, match=r"line 14: row \(.*\) of public.odd %s is not there"):
        apply_changes(session, catalog, changes)
    with pytest.raises(ScratchError, match="line 14"):
        complete(session, catalog, transaction(*changes))
    assert rows(session, 'SELECT count(*) FROM "odd %s"') == [("4",)]


def test_a_table_without_a_key_needs_full_rows(session: Session, catalog: Catalog) -> None:
    with pytest.raises(ScratchError, match=r"line 5: .*REPLICA IDENTITY FULL"):
        complete(session, catalog, transaction(delete("odd %s", {"d": "x"}, 5)))


def test_identity_always_and_generated_columns(session: Session, catalog: Catalog) -> None:
    completed = run(
        session,
        catalog,
        insert("always", {"id": "50", "name": "c", "loud": "C"}),
        update("always", {"id": "1", "name": "a", "loud": "A"}, {"id": "1", "name": "aa", "loud": "AA"}),
        update("always", {"id": "2", "name": "b", "loud": "B"}, {"id": "7", "name": "b", "loud": "B"}),
    )
    assert rows(session, "SELECT * FROM always ORDER BY id") == [
        ("1", "aa", "AA"),
        ("7", "b", "B"),
        ("50", "c", "C"),
    ]
    assert completed[0].new == {"id": "50", "name": "c"}


def test_an_identity_that_is_no_key(session: Session, catalog: Catalog) -> None:
    run(
        session,
        catalog,
        update("counted", {"k": "a"}, {"k": "a", "n": "1", "v": "z"}),
        update("counted", {"k": "b"}, {"k": "b", "n": "9", "v": "y"}),
    )
    assert rows(session, "SELECT * FROM counted ORDER BY k") == [("a", "1", "z"), ("b", "9", "y")]


def test_partitions_arrays_boxes_and_bits(session: Session, catalog: Catalog) -> None:
    moved = {"id": "30", "b": "(1,1),(0,0)", "flags": "011", "tags": '{a,NULL,"NULL"}', "j": '{"b": 2}'}
    run(
        session,
        catalog,
        update("part", {"id": "1"}, moved),
        delete("part", {"id": "12"}),
    )
    assert rows(session, "SELECT * FROM part") == [tuple(moved.values())]


def test_a_change_of_a_partition_is_one_of_its_table(session: Session, catalog: Catalog) -> None:
    new = {"id": "2", "b": None, "flags": None, "tags": None, "j": None}
    changes = run(session, catalog, delete("part_2", {"id": "12"}), insert("part_1", new))
    assert [change.table for change in changes] == [named("part")] * 2
    assert rows(session, "SELECT id FROM part_1 ORDER BY id") == [("1",), ("2",)]
    assert rows(session, "SELECT id FROM part_2") == []


def test_a_unique_key_stands_in_for_a_primary_key(session: Session, catalog: Catalog) -> None:
    run(session, catalog, update("two", {"a": "1", "b": "y"}, {"a": "1", "b": "z"}))
    assert rows(session, "SELECT * FROM two ORDER BY b") == [("1", "x", "p"), ("1", "z", "q")]


def test_completes_from_the_state_and_from_earlier_changes(session: Session, catalog: Catalog) -> None:
    completed = complete(
        session,
        catalog,
        transaction(
            RowChange(Op.UPDATE, named("plain"), None, {"id": "3", "name": "new"}, 1),
            update("plain", {"id": "3"}, {"id": "33", "n": "2"}, 2),
            delete("plain", {"id": "33"}, 3),
        ),
    )
    first = {
        "id": "3",
        "name": "name 3",
        "n": "1.00",
        "at": "2024-01-01 00:00:00+00",
        "f": "1",
    }
    second = {**first, "name": "new"}
    third = {**second, "id": "33", "n": "2.00"}
    assert [(change.old, change.new) for change in completed.changes] == [
        (first, second),
        (second, third),
        (third, None),
    ]
    assert rows(session, "SELECT name FROM plain WHERE id = 3") == [("name 3",)]


def test_other_spellings_become_the_servers(session: Session, catalog: Catalog) -> None:
    old = {
        "id": "1",
        "name": "name 1",
        "n": "0.330",
        "at": "2024-01-01 02:00:00+02",
        "f": "0.333333333333333",
    }
    new = {**old, "name": "é", "at": "2024-01-01 05:30:00.50+05:30"}
    (completed,) = run(session, catalog, update("plain", old, new))
    assert completed.new == {
        "id": "1",
        "name": "é",
        "n": "0.33",
        "at": "2024-01-01 00:00:00.5+00",
        "f": "0.3333333333333333",
    }
    assert rows(session, "SELECT * FROM plain WHERE id = 1") == [tuple(completed.new.values())]


def test_null_that_stands_for_nan(session: Session, catalog: Catalog) -> None:
    session.execute("ALTER TABLE plain DISABLE TRIGGER boom")
    session.execute("UPDATE plain SET f = 'NaN', n = 'NaN' WHERE id = 1")
    old = {"id": "1", "name": "name 1", "n": None, "at": "2024-01-01 00:00:00+00", "f": None}
    (completed,) = run(session, catalog, update("plain", old, {**old, "name": "x", "f": "2"}))
    assert completed.old == {**old, "n": "NaN", "f": "NaN"}
    assert completed.new == {**old, "name": "x", "n": "NaN", "f": "2"}
    session.execute("ALTER TABLE plain ALTER f SET NOT NULL")
    with pytest.raises(ScratchError, match=r"line 8: column f of public.plain is NOT NULL.*NaN"):
        complete(session, read_catalog(session), transaction(insert("plain", {**old, "id": "77"}, 8)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (delete("plain", {"id": "99"}, 4), r"line 4: row \(id='99'\) of public.plain is not there"),
        (delete("spot", {"id": "1", "place": "11"}, 4), "line 4: .* has place='10' in the database but '11'"),
        (insert("plain", {"id": "9", "nome": "x"}, 4), "line 4: table public.plain has no column nome"),
        (insert("plein", {"id": "9"}, 4), "line 4: the database has no table public.plein"),
        (insert("spot", {"id": "9"}, 4), "line 4: the insert into public.spot lacks column place"),
        (insert("spot", {"id": "nine", "place": "1"}, 4), "line 4: 'nine' is no integer .column id"),
        (
            insert("spot", {"id": "9", "place": "-2147483649"}, 4),
            "line 4: '-2147483649' is out of range for integer .column place",
        ),
        (
            update("plain", {"id": "1"}, {"at": "2023-02-29 00:00:00+00"}, 4),
            "line 4: '2023-02-29 00:00:00.00' is no timestamp with time zone .column at",
        ),
        (update("spot", {"id": "9999999999"}, {"place": "1"}, 4), "line 4: '9999999999' is out of range for integer"),
        (insert("spot", {"id": "1", "place": "1"}, 4), r"line 4: .* key \('1'\) already"),
        (update("spot", {"id": "1"}, {"id": "1", "place": None, "x": "1"}, 4), "line 4: .* no column x"),
    ],
)
def test_streams_that_do_not_fit(session: Session, catalog: Catalog, change: RowChange, message: str) -> None:
    before = rows(session, "SELECT * FROM spot ORDER BY id")
    with pytest.raises(ScratchError, match=message):
        complete(session, catalog, transaction(insert("spot", {"id": "70", "place": "70"}), change))
    assert rows(session, "SELECT * FROM spot ORDER BY id") == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (delete("plain", {"id": "99"}, 4), r"line 4: row \(id=99\) of public.plain is not there"),
        (update("plain", {"id": "99"}, {"id": "99"}, 4), r"line 4: row \(id=99\) .* not there"),
        (insert("plain", {"nome": "x"}, 4), "line 4: table public.plain has no column nome"),
        (insert("spot", {"id": "1", "place": "1"}, 4), "lines 4 to 4: .*duplicate key.*already exists"),
    ],
)
def test_nothing_of_a_misfit_is_applied(session: Session, catalog: Catalog, change: RowChange, message: str) -> None:
    with pytest.raises(ScratchError, match=message):
        apply_changes(session, catalog, [delete("child", {"id": "1"}), change])
    assert rows(session, "SELECT count(*) FROM child") == [("2",)]
    assert rows(session, "SHOW session_replication_role") == [("origin",)]


def test_three_thousand_changes_are_quick(session: Session, catalog: Catalog) -> None:
    session.execute("CREATE TABLE many AS SELECT g id, 'name ' || g name, g * 7 n FROM generate_series(1, 50000) g")
    session.execute("ALTER TABLE many ADD PRIMARY KEY (id)")
    catalog = read_catalog(session)
    changes = [
        update(
            "many",
            {"id": str(i), "name": f"name {i}", "n": str(i * 7)},
            {"id": str(i), "name": f"name {i}!", "n": str(i * 7)},
        )
        for i in range(5, 45005, 15)
    ]
    start = time.perf_counter()
    completed = complete(session, catalog, transaction(*changes))
    apply_changes(session, catalog, completed.changes)
    assert time.perf_counter() - start < 2  # about 0.1 s on an idle core
    assert rows(session, "SELECT count(*) FROM many WHERE name LIKE '%!'") == [("3000",)]

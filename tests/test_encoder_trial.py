"""Trials on a real server: the whole effect is seen, and nothing of it stays."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from encoder.deadline import Deadline
from encoder.effect import Effect
from encoder.trial import Laboratory, install_capture
from replay.role import drop_role, fresh_role, make_role
from scratch.catalog import read_catalog
from scratch.database import cloned, create_database, drop_database, with_database
from scratch.server import Server
from scratch.session import Session, connect, rows
from stream.model import TableName

TEMPLATE = "trial_test"
SCHEMA = """
CREATE TABLE parent (id int PRIMARY KEY, n int NOT NULL DEFAULT 0);
CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE orphan (id int PRIMARY KEY, parent int REFERENCES parent ON DELETE SET NULL);
CREATE TABLE audit (id serial PRIMARY KEY, what text);
CREATE TABLE late (id int PRIMARY KEY, child int REFERENCES child DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE moment (id int PRIMARY KEY, at timestamptz, day date, b bytea, i interval, g int
    GENERATED ALWAYS AS (id + 1) STORED, q text);
CREATE TABLE part (id int, v int, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE part_low PARTITION OF part FOR VALUES FROM (0) TO (10);
CREATE TABLE part_high (v int, gone int, id int NOT NULL);
ALTER TABLE part_high DROP gone;
ALTER TABLE part ATTACH PARTITION part_high FOR VALUES FROM (10) TO (20);
CREATE SEQUENCE down INCREMENT -1;
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
    INSERT INTO audit (what) VALUES (TG_TABLE_NAME || ' ' || TG_OP);
    RETURN COALESCE(NEW, OLD);
END$$;
CREATE FUNCTION count_up() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
    UPDATE parent SET n = n + 1 WHERE id = NEW.parent;
    RETURN NULL;
END$$;
CREATE TRIGGER a_note BEFORE INSERT OR DELETE ON child FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER z_count AFTER INSERT ON child FOR EACH ROW EXECUTE FUNCTION count_up();
INSERT INTO parent VALUES (1), (2);
INSERT INTO child VALUES (1, 1), (2, 1), (3, 2);
INSERT INTO orphan VALUES (1, 1), (2, 2);
INSERT INTO part VALUES (1, 1), (11, 2);
"""


def name(table: str) -> TableName:
    return TableName("public", table)


@pytest.fixture(scope="module")
def template(server: Server) -> Iterator[str]:
    create_database(server.dsn(), TEMPLATE)
    with connect(with_database(server.dsn(), TEMPLATE)) as session:
        session.execute(SCHEMA.encode())
    yield TEMPLATE
    drop_database(server.dsn(), TEMPLATE)


@contextmanager
def laboratory(server: Server, template: str, **options: object) -> Iterator[Laboratory]:
    with cloned(server.dsn(), template, "trial_clone") as dsn, connect(dsn) as session:
        catalog = read_catalog(session)
        install_capture(session, catalog)
        with session.transaction(force_rollback=True):
            yield Laboratory(session, catalog, **options)  # type: ignore[arg-type]


@pytest.fixture
def lab(server: Server, template: str) -> Iterator[Laboratory]:
    with laboratory(server, template) as found:
        yield found


def everything(session: Session) -> list[object]:
    tables = ("parent", "child", "orphan", "audit", "late", "moment", "part", "tersql.log")
    return [rows(session, f"SELECT t.* FROM {table} t ORDER BY t::text") for table in tables]


def test_rows_of_triggers_and_actions_are_seen_and_undone(lab: Laboratory) -> None:
    before, standing = everything(lab.session), lab.sequences()
    effect = lab.observe(["DELETE FROM parent WHERE id=1", "INSERT INTO child VALUES(9,2)"])
    assert isinstance(effect, Effect)
    assert effect.tables == {
        name("parent"): {("1", "2"): -1, ("2", "1"): -1, ("2", "2"): 1},
        name("child"): {("1", "1"): -1, ("2", "1"): -1, ("9", "2"): 1},
        name("orphan"): {("1", "1"): -1, ("1", None): 1},
        name("audit"): {("4", "child DELETE"): 1, ("5", "child DELETE"): 1, ("6", "child INSERT"): 1},
    }
    assert lab.moved == {name("audit_id_seq")}
    assert everything(lab.session) == before
    assert lab.sequences() == standing


def test_a_trial_that_fails_says_why_and_sets_sequences_back(lab: Laboratory) -> None:
    before, standing = everything(lab.session), lab.sequences()
    done = lab.observe(["INSERT INTO child VALUES(9,2)", "INSERT INTO child VALUES(9,2)"])
    assert done == 'duplicate key value violates unique constraint "child_pkey"'
    assert lab.observe(["SELEC"]) == 'syntax error at or near "SELEC"'
    assert (everything(lab.session), lab.sequences()) == (before, standing)
    repeated = [lab.observe(["INSERT INTO child VALUES(9,2)"]) for _ in range(2)]
    assert repeated[0] == repeated[1]


def test_triggers_that_wait_for_commit_are_seen(server: Server, template: str) -> None:
    with cloned(server.dsn(), template, "trial_late") as dsn:
        with connect(dsn) as session:
            session.execute(
                b'CREATE CONSTRAINT TRIGGER "at Commit" AFTER INSERT ON parent DEFERRABLE INITIALLY DEFERRED '
                b"FOR EACH ROW EXECUTE FUNCTION note()"
            )
        with laboratory(server, "trial_late") as lab:
            wanted = {name("parent"): {("9", "0"): 1}, name("audit"): {("4", "parent INSERT"): 1}}
            for constraints in (False, True):
                done = lab.observe(["INSERT INTO parent VALUES(9)"], constraints=constraints)
                assert isinstance(done, Effect)
                assert done.tables == wanted
            # Foreign keys still wait.
            assert isinstance(lab.observe(["INSERT INTO late VALUES(1,99)"]), Effect)
            both = ["INSERT INTO parent VALUES(9)", "INSERT INTO late VALUES(1,99)"]
            assert isinstance(lab.perform(both[0]), Effect)
            assert isinstance(lab.perform(both[1]), Effect)


@pytest.fixture
def restricted(server: Server, template: str) -> Iterator[tuple[Laboratory, str]]:
    """Trials as a role, and its name."""
    role = fresh_role()
    with cloned(server.dsn(), template, "trial_role") as dsn:
        with connect(dsn) as session:
            make_role(session, role)
        with laboratory(server, "trial_role", role=role.name) as found:
            yield found, role.name
    with connect(server.dsn()) as session:
        drop_role(session, role)


def test_trials_run_as_the_role_and_all_else_does_not(restricted: tuple[Laboratory, str]) -> None:
    lab, role = restricted
    who = "SELECT current_user, session_user"
    before = rows(lab.session, who)
    lab.session.execute(b"INSERT INTO moment VALUES (1)")
    text = "UPDATE moment SET q=concat(current_user,' ',session_user) RETURNING q"
    assert lab.returned(text) == [(f"{role} {role}",)]
    assert rows(lab.session, who) == before
    done = lab.observe(["UPDATE moment SET q=current_user", "INSERT INTO audit(what)VALUES('x')"], constraints=True)
    assert isinstance(done, Effect)
    assert done.tables[name("moment")][("1", None, None, None, None, role)] == 1
    assert rows(lab.session, who) == before
    assert lab.observe(["TRUNCATE late"]) == "permission denied for table late"
    assert rows(lab.session, who) == before
    assert lab.perform("SELECT pg_read_file('x')") == "permission denied for function pg_read_file"
    assert rows(lab.session, who) == before


def test_sequences_of_every_kind_are_set_back(lab: Laboratory) -> None:
    standing = lab.sequences()
    assert standing[name("down")] == ("-1", "f")
    assert isinstance(lab.observe(["INSERT INTO audit(what)SELECT nextval('down')"]), Effect)
    assert lab.moved == {name("down"), name("audit_id_seq")}
    assert lab.sequences() == standing


def test_a_sequence_stands_where_it_is_put(lab: Laboratory) -> None:
    lab.stand({name("audit_id_seq"): ("41", "t")})
    assert lab.next_value(name("audit_id_seq")) == 42
    effect = lab.observe(["INSERT INTO audit(what)VALUES('x')"])
    assert isinstance(effect, Effect)
    assert effect.tables == {name("audit"): {("42", "x"): 1}}
    assert lab.next_values()[name("audit_id_seq")] == 42


def test_deferred_constraints_are_checked_on_demand(lab: Laboratory) -> None:
    statement = ["INSERT INTO late VALUES(1,99)"]
    assert isinstance(lab.observe(statement), Effect)
    done = lab.observe(statement, constraints=True)
    assert isinstance(done, str)
    assert "violates foreign key constraint" in done
    assert isinstance(lab.observe([*statement, "INSERT INTO child VALUES(99,1)"], constraints=True), Effect)


def test_partitions_are_seen_as_their_root(lab: Laboratory) -> None:
    effect = lab.observe(["UPDATE part SET id=12 WHERE id=1", "UPDATE part SET v=7 WHERE id=11"])
    assert isinstance(effect, Effect)
    assert effect.tables == {name("part"): {("1", "1"): -1, ("12", "1"): 1, ("11", "2"): -1, ("11", "7"): 1}}


def test_statements_run_as_they_will_be_replayed_and_are_read_canonically(server: Server, template: str) -> None:
    odd = {"TimeZone": "Pacific/Chatham", "DateStyle": "SQL, DMY", "IntervalStyle": "sql_standard"}
    with laboratory(server, template, sessions=[odd]) as lab:
        effect = lab.observe(
            [
                "INSERT INTO moment(id,at,day,b,i,q)VALUES(1,'2024-01-02 10:00','03/02/2024','\\x00ff','1 2:03',"
                "'2024-05-06 00:00+00'::timestamptz::text)"
            ]
        )
        assert isinstance(effect, Effect)
        row = ("1", "2024-01-01 20:15:00+00", "2024-02-03", "\\x00ff", "1 day 02:03:00", "06/05/2024 12:45:00 +1245")
        assert effect.tables == {name("moment"): {row: 1}}
        assert rows(lab.session, "SELECT '2024-05-06 00:00+00'::timestamptz") == [("2024-05-06 00:00:00+00",)]


def test_what_is_performed_stays_until_the_transaction_ends(lab: Laboratory) -> None:
    with lab.savepoint():
        assert isinstance(lab.perform("UPDATE parent SET n=5 WHERE id=1"), Effect)
        assert lab.perform("UPDATE nowhere SET n=5") == 'relation "nowhere" does not exist'
        effect = lab.observe(["UPDATE parent SET n=6 WHERE n=5"])
        assert isinstance(effect, Effect)
        assert effect.tables == {name("parent"): {("1", "5"): -1, ("1", "6"): 1}}
    assert isinstance(lab.observe(["UPDATE parent SET n=6 WHERE n=5"]), Effect)
    assert lab.observe(["UPDATE parent SET n=6 WHERE n=5"]) == Effect()


def test_no_trial_outlasts_the_deadline_by_much(lab: Laboratory) -> None:
    lab.deadline = Deadline.in_seconds(0.2)
    started = time.monotonic()
    done = lab.observe(["UPDATE parent SET n=1 WHERE pg_sleep(15) IS NULL"])
    assert done == "canceling statement due to statement timeout"
    assert time.monotonic() - started < 8


def test_plans_are_priced(lab: Laboratory) -> None:
    assert lab.plan_cost("DELETE FROM parent WHERE id=1") < 100
    assert lab.plan_cost("DELETE FROM nowhere") == float("inf")

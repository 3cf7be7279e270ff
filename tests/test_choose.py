"""What a WHERE needs several families of conditions for, and what a search knows from those before it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from emit.render import render
from emit.size import size
from emit.term import Delete
from encoder.choose import lowered, select
from encoder.context import Context
from encoder.frame import State
from encoder.literals import source_of
from encoder.selection.model import Labels
from encoder.trial import Laboratory
from scratch.catalog import read_catalog
from scratch.database import cloned, with_database
from scratch.server import Server
from scratch.session import connect, rows
from stream.model import TableName

_SCHEMA = """
CREATE TABLE hall(id serial PRIMARY KEY, name text, state text);
INSERT INTO hall(name, state) SELECT CASE WHEN i%3=0 THEN 'room ' ELSE 'cage ' END||i,
    (ARRAY['live','plan','gone','live'])[abs(hashint4(i))%4+1] FROM generate_series(1,400)i;
CREATE TABLE rack(id serial PRIMARY KEY, hall_id int REFERENCES hall, height int, drawn int, most int);
INSERT INTO rack(hall_id, height, drawn, most) SELECT abs(hashint4(i))%400+1, 20+abs(hashint4(i+7))%20,
    abs(hashint4(i+1))%1000, 400+abs(hashint4(i+2))%900 FROM generate_series(1,500)i;
CREATE TABLE tag(id serial PRIMARY KEY, name text);
INSERT INTO tag(name) SELECT 't'||i FROM generate_series(1,9)i;
CREATE TABLE tagged(id serial PRIMARY KEY, object_id int, kind int, tag_id int REFERENCES tag);
INSERT INTO tagged(object_id, kind, tag_id) SELECT abs(hashint4(i))%120, abs(hashint4(i+3))%2, abs(hashint4(i+5))%9+1
    FROM generate_series(1,600)i;
"""


@pytest.fixture(scope="module")
def context(server: Server) -> Iterator[Context]:
    with (
        cloned(server.dsn(), "template0", "choose") as _,
        connect(with_database(server.dsn(), "choose")) as session,
    ):
        session.execute(_SCHEMA.encode())
        catalog = read_catalog(session)
        yield Context(State(session, catalog), Laboratory(session, catalog), "UTC")


def _labels(context: Context, table: str, where: str) -> Labels:
    frame = context.state.frame(TableName("public", table))
    chosen = {row[0] for row in rows(context.state.session, f"SELECT id FROM {table} t WHERE {where}")}
    must = np.array([key[0] in chosen for key in frame.keys])
    return Labels(must, ~must)


def _shortest(context: Context, table: str, labels: Labels) -> str:
    name = TableName("public", table)
    found = select(context, name, labels)[0]
    way = lowered(context, name, found)[0]
    return render(Delete(source_of(context.state.frame(name).table), way.sources, way.where))


@pytest.mark.parametrize(
    ("table", "where"),
    [
        ("hall", "name~'m'AND(state~'p'OR id IN(SELECT hall_id FROM rack WHERE height=24))"),
        ("hall", "state~'p'OR id IN(SELECT hall_id FROM rack WHERE height=24)"),
        ("tagged", "tag_id=7 OR id NOT IN(SELECT min(id)FROM tagged GROUP BY object_id,kind,tag_id)"),
        ("rack", "drawn>most*.8"),
        ("rack", "drawn<most*.3 AND height>30"),
    ],
)
def test_finds_what_was_planted(context: Context, table: str, where: str) -> None:
    labels = _labels(context, table, where)
    found = _shortest(context, table, labels)
    condition = found.split("WHERE", 1)[1]
    assert (_labels(context, table, condition).must == labels.must).all(), found
    assert size(found) <= size(f"DELETE FROM {table} WHERE {where}"), found


def test_what_does_not_look_at_a_changed_table_is_as_good_as_before(context: Context) -> None:
    where = "name~'m'AND id IN(SELECT hall_id FROM rack WHERE height=24)"
    labels = _labels(context, "hall", where)
    first = _shortest(context, "hall", labels)
    context.state.forget([TableName("public", "tag")])
    spent = context.meter.spent
    assert _shortest(context, "hall", labels) == first
    again = context.meter.spent - spent
    context.state.forget([TableName("public", "hall")])
    spent = context.meter.spent
    assert _shortest(context, "hall", labels) == first
    assert again < (context.meter.spent - spent) / 4


def test_a_changed_table_is_looked_at_again(context: Context) -> None:
    session, hall = context.state.session, TableName("public", "hall")
    with session.transaction(force_rollback=True):
        labels = _labels(context, "hall", "id%7=1 AND state='gone'OR id%5=2 AND name~'8'")
        before = _shortest(context, "hall", labels)
        session.execute(b"DELETE FROM tagged")
        for place in np.flatnonzero(labels.must).tolist():
            key = context.state.frame(hall).keys[place][0]
            session.execute(f"INSERT INTO tagged(object_id, kind) VALUES({key}, 1)".encode())
        context.state.forget([TableName("public", "tagged")])
        after = _shortest(context, "hall", labels)
        assert size(after) < size(before)
        assert "tagged" in after
    context.state.forget()

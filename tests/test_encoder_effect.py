"""Effects: row multisets that add up, and what they are by key."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from encoder.effect import Effect, effect_of, key_of, sortable, stored_row, stream_origins, table_effects
from scratch.catalog import Catalog, read_catalog
from scratch.database import create_database, drop_database, with_database
from scratch.server import Server
from scratch.session import connect
from stream.model import Op, RowChange, TableName, Value

T = TableName("public", "t")
K = TableName("public", "k")
NAME = "effect_test"


@pytest.fixture(scope="module")
def catalog(server: Server) -> Iterator[Catalog]:
    create_database(server.dsn(), NAME)
    with connect(with_database(server.dsn(), NAME)) as session:
        session.execute(
            b"CREATE TABLE t(v text, id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) STORED);"
            b"CREATE TABLE k(a int, b text)"
        )
        found = read_catalog(session)
    yield found
    drop_database(server.dsn(), NAME)


def change(old: dict[str, Value] | None, new: dict[str, Value] | None, table: TableName = T) -> RowChange:
    op = Op.INSERT if old is None else Op.DELETE if new is None else Op.UPDATE
    return RowChange(op, table, old, new)


def t(id_: int, v: Value) -> dict[str, Value]:
    return {"v": v, "id": str(id_)}


def test_changes_that_cancel_out_leave_nothing(catalog: Catalog) -> None:
    changes = [change(None, t(1, "a")), change(t(1, "a"), t(1, "b")), change(t(1, "b"), None)]
    effect = effect_of(catalog, changes)
    assert not effect
    assert effect.weight() == 0
    assert effect.tables == {}


def test_an_update_is_one_row_out_and_one_in(catalog: Catalog) -> None:
    effect = effect_of(catalog, [change(t(1, "a"), t(1, None))])
    assert effect.tables == {T: {("a", "1"): -1, (None, "1"): 1}}
    (part,) = table_effects(catalog, effect)
    assert part.updates == ((("a", "1"), (None, "1")),)
    assert (part.inserts, part.deletes) == ((), ())


def test_a_changed_key_is_a_delete_and_an_insert(catalog: Catalog) -> None:
    effect = effect_of(catalog, [change(t(1, "a"), t(2, "a"))])
    (part,) = table_effects(catalog, effect)
    assert (part.updates, part.deletes, part.inserts) == ((), (("a", "1"),), (("a", "2"),))


def test_a_null_key_column_is_told_from_text(catalog: Catalog) -> None:
    effect = Effect()
    effect.add(K, (None, "null"), 2)
    effect.add(K, ("null", None), -1)
    assert effect.weight() == 3
    assert effect.minus(effect).tables == {}
    assert key_of(catalog[K], (None, "null")) == (None, "null")


def test_what_is_left_is_counted_by_copies(catalog: Catalog) -> None:
    row: dict[str, Value] = {"a": "1", "b": "x"}
    owed = effect_of(catalog, [change(None, row, K), change(None, row, K), change(None, row, K)])
    done = effect_of(catalog, [change(None, row, K)])
    left = owed.minus(done)
    assert left.tables == {K: {("1", "x"): 2}}
    assert owed.weight() == 3  # not touched
    (part,) = table_effects(catalog, left)
    assert part.inserts == (("1", "x"), ("1", "x"))


def test_inserts_follow_the_first_version_of_each_row(catalog: Catalog) -> None:
    changes = [change(None, t(9, "a")), change(None, t(3, "b")), change(t(9, "a"), t(9, "z")), change(None, t(5, "c"))]
    origins = stream_origins(catalog, changes)
    assert origins.places[T][("z", "9")] == 0
    (part,) = table_effects(catalog, effect_of(catalog, changes), origins)
    assert [row[1] for row in part.inserts] == ["9", "3", "5"]


def test_stored_rows_leave_generated_columns_out(catalog: Catalog) -> None:
    assert stored_row(catalog[T], {"id": "1", "v": "a", "twice": "2"}) == ("a", "1")
    with pytest.raises(KeyError):
        stored_row(catalog[T], {"id": "1"})


def test_rows_sort_by_the_value_of_their_numbers() -> None:
    rows: list[tuple[Value, ...]] = [("10",), ("9",), ("-2",), (None,), ("a",), ("9" * 30,), ("٣",)]
    expected = [("-2",), ("9" * 30,), ("a",), ("٣",), ("9",), ("10",), (None,)]
    assert sorted(rows, key=sortable) == expected


def test_effects_do_not_depend_on_the_order_of_adding() -> None:
    rng = random.Random(7)
    steps = [(K, (str(rng.randrange(3)), None), rng.choice([-1, 1])) for _ in range(60)]
    one, other = Effect(), Effect()
    for step in steps:
        one.add(*step)
    for step in rng.sample(steps, len(steps)):
        other.add(*step)
    assert one == other
    assert not one.minus(other)

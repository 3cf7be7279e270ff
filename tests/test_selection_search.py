"""Planted predicates are found again, at most as long, with exactly their rows."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
from selection_bed import SCHEMA, Bed

from emit.size import size
from emit.term import raw
from encoder.budget import Budget
from encoder.selection.model import Labels, MaskedAtom
from encoder.selection.search import find_selections
from encoder.selection.spelling import make_atom
from scratch.database import cloned, with_database
from scratch.server import Server
from scratch.session import connect
from stream.model import TableName

ITEM = TableName("public", "item")
PERSON = TableName("public", "person")


@pytest.fixture(scope="module")
def bed(server: Server) -> Iterator[Bed]:
    with (
        cloned(server.dsn(), "template0", "selection_search"),
        connect(with_database(server.dsn(), "selection_search")) as session,
    ):
        session.execute(SCHEMA.encode())
        yield Bed(session)


def check(bed: Bed, table: TableName, where: str) -> str:
    """Looks for the rows of `where` and returns the shortest statement found."""
    wanted = bed.keys(table, where)
    assert wanted, where
    found = bed.find(table, bed.labels(table, where))
    assert found[0].size == min(selection.size for selection in found)
    for selection in found:
        for statement in bed.statements(table, selection):
            assert bed.deleted(table, statement) == wanted, statement
    best = bed.statements(table, found[0])[0]
    planted = size(f"DELETE FROM {table.name} {where}")
    assert size(best) <= planted, f"{best}\nis longer than\n{where}"
    return best


OWN = [
    "WHERE kind=3",
    "WHERE kind IN(1,4)",
    "WHERE kind<>2",
    "WHERE price<50",
    "WHERE price>=900 AND hidden",
    "WHERE price BETWEEN 200 AND 400",
    "WHERE name~'old'",
    "WHERE name^@'item c'",
    "WHERE name!~'b'AND kind>3",
    "WHERE note ISNULL",
    "WHERE note NOTNULL AND NOT hidden",
    "WHERE note=''",
    "WHERE note~''AND kind<3",
    "WHERE cost>0 AND kind=2",
    "WHERE flag",
    "WHERE NOT flag",
    "WHERE flag IS NOT TRUE",
    "WHERE hidden OR kind=1",
    "WHERE hidden AND flag",
    "WHERE made<'240301'",
    "WHERE made>'240201'AND made<'240215'",
    "WHERE sold-made>'90m'",
    "WHERE sold=made",
    "WHERE cost>price",
    "WHERE day>'240320'AND kind<3",
    "WHERE to_char(made,'D')='3'",
    "WHERE id%7=0",
    "WHERE length(name)>10",
    "WHERE 't1'=ANY(tags)",
    "WHERE data->>'client'='ios'",
    "WHERE data->'n'>'30'",
    "WHERE data?'extra'",
    "WHERE net<<'10.2/16'",
    "WHERE kind&2>0",
    "WHERE id%11=4 AND NOT hidden",
    "WHERE id%13=5 OR kind=2",
    "WHERE kind=2 AND id NOT IN(14,44)",
    "WHERE kind=2 OR id IN(5,300)",
    "WHERE kind=0 AND price<300 OR kind=5 AND price>700",
    "WHERE id IN(3,14,15,92,65,358)",
    "WHERE id NOT IN(3,14,15,92,65,358)",
    "WHERE id=77",
]
PARENTS = [
    "WHERE owner_id=5",
    "WHERE owner_id IN(SELECT id FROM person WHERE NOT active)",
    "WHERE owner_id IN(SELECT id FROM person WHERE role='member')AND kind<2",
    "WHERE owner_id IN(SELECT id FROM person WHERE region_id=3)",
    "WHERE owner_id IN(SELECT id FROM person WHERE region_id IN(SELECT id FROM region WHERE parent_id=2))",
    "WHERE page_id IN(SELECT id FROM base WHERE live)",
    "WHERE(place_region,place_nr)IN(SELECT region_id,nr FROM place WHERE name~'-2')",
]


@pytest.mark.parametrize(
    "where",
    [
        "WHERE(hidden OR kind=4)AND owner_id<30",
        "WHERE id%3=0 AND(flag ISNULL OR kind>4)",
        "WHERE price>500 AND NOT(flag AND kind=2)",
    ],
)
def test_clauses(bed: Bed, where: str) -> None:
    labels = bed.labels(ITEM, where)
    budget = Budget(100_000)
    found = find_selections(bed.state, ITEM, labels, budget=budget, timezone="UTC", further=lambda labels, bound: [])
    best = bed.statements(ITEM, found[0])[0]
    assert bed.deleted(ITEM, best) == bed.keys(ITEM, where)
    assert size(best) <= size(f"DELETE FROM item {where}"), best


def test_nothing_to_select(bed: Bed) -> None:
    nothing = np.zeros(bed.state.frame(ITEM).size, dtype=np.bool_)
    assert bed.find(ITEM, Labels(nothing, ~nothing)) == []


@pytest.mark.parametrize("where", OWN + PARENTS)
def test_finds_what_was_planted(bed: Bed, where: str) -> None:
    check(bed, ITEM, where)


@pytest.mark.parametrize(
    "where", ["WHERE bot", "WHERE active AND NOT bot", "WHERE boss_id ISNULL", "WHERE joined<'210301'"]
)
def test_finds_what_was_planted_on_persons(bed: Bed, where: str) -> None:
    check(bed, PERSON, where)


def _condition(draw: random.Random) -> str:
    column, values = draw.choice(
        [
            ("kind", [str(kind) for kind in range(6)]),
            ("owner_id", ["7", "23", "40"]),
            ("price", ["50", "333", "700", "950"]),
            ("cost", ["100", "400", "800"]),
            ("made", ["'240210'", "'240301'", "'240410'"]),
            ("name", ["'item b'", "'item d3'", "'item f'"]),
        ]
    )
    if draw.random() < 0.3:
        return draw.choice(["hidden", "NOT hidden", "flag", "note ISNULL", "name~'4'", "sold NOTNULL"])
    return f"{column}{draw.choice('<>')}{draw.choice(values)}"


@pytest.mark.parametrize("seed", range(24))
def test_finds_random_plants(bed: Bed, seed: int) -> None:
    draw = random.Random(seed)
    while True:
        where = f"WHERE {_condition(draw)}{draw.choice([' AND ', ' AND ', ' OR '])}{_condition(draw)}"
        if 2 <= len(bed.keys(ITEM, where)) <= 350:
            break
    check(bed, ITEM, where)


def test_every_row(bed: Bed) -> None:
    labels = bed.labels(ITEM, "")
    assert [selection.terms for selection in bed.find(ITEM, labels)] == [((),)]


def test_free_rows_shorten(bed: Bed) -> None:
    labels = bed.labels(ITEM, "WHERE kind=3 AND hidden OR kind=3 AND id>100")
    free = bed.labels(ITEM, "WHERE kind=3").must
    found = bed.find(ITEM, Labels(labels.must, labels.must_not & ~free))
    assert bed.statements(ITEM, found[0])[0] == "DELETE FROM item WHERE kind=3"


def test_without_a_promised_time_zone_a_bare_date_keeps_its_distance(bed: Bed) -> None:
    state, budget = bed.state, Budget(100_000)
    labels = bed.labels(PERSON, "WHERE joined<'2021-3-1Z'")
    found = find_selections(state, PERSON, labels, budget=budget, timezone=None)
    wanted = bed.keys(PERSON, "WHERE joined<'2021-3-1Z'")
    for selection in found:
        for statement in bed.statements(PERSON, selection):
            for zone in ("Pacific/Kiritimati", "Etc/GMT+12", "UTC"):
                bed.session.execute(f"SET timezone='{zone}'".encode())
                assert bed.deleted(PERSON, statement) == wanted, (zone, statement)
    bed.session.execute("SET timezone='UTC'")


def test_takes_atoms_of_other_families(bed: Bed) -> None:
    wanted = [3, 14, 15, 92, 65, 35, 89, 79, 32, 38]
    frame = bed.state.frame(ITEM)
    holds = np.array([int(key[0] or 0) in wanted for key in frame.keys])
    atom = MaskedAtom(make_atom(raw("id+1<3"), frozenset()), holds)
    found = bed.find(ITEM, Labels(holds, ~holds), (atom,))
    assert found[0].terms == ((atom.atom,),)


def test_same_work_same_answer(bed: Bed) -> None:
    labels = bed.labels(ITEM, "WHERE kind=0 AND price<300 OR kind=5 AND price>700")
    assert bed.find(ITEM, labels) == bed.find(ITEM, labels)


def test_an_empty_budget_still_names_the_rows(bed: Bed) -> None:
    labels = bed.labels(ITEM, "WHERE kind=0 AND price<300")
    found = find_selections(bed.state, ITEM, labels, budget=Budget(0), timezone=None)
    assert bed.deleted(ITEM, bed.statements(ITEM, found[0])[0]) == bed.keys(ITEM, "WHERE kind=0 AND price<300")

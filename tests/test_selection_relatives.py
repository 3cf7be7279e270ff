"""Atoms about other rows of the same table, on a real server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from atoms_bed import atoms_for, check_masks, check_planted, database, selected

from encoder.frame import State
from encoder.selection import relatives
from scratch.server import Server

_SCHEMA = """
CREATE TABLE person(id int PRIMARY KEY);
INSERT INTO person SELECT generate_series(1,25);
CREATE TABLE mute(id serial PRIMARY KEY, who_id int NOT NULL REFERENCES person, whom_id int REFERENCES person,
    tag int, price numeric, at date);
INSERT INTO mute(who_id, whom_id, tag, price, at)
    SELECT abs(hashint4(i))%25+1, CASE WHEN i%13>0 THEN abs(hashint4(i+50))%25+1 END, abs(hashint4(i+2))%5,
    CASE WHEN i%7>0 THEN abs(hashint4(i+5))%100/4.0 END, '2024-01-01'::date+abs(hashint4(i+9))%60
    FROM generate_series(1,100)i;
INSERT INTO mute(who_id, whom_id) SELECT whom_id, who_id FROM mute WHERE id%10=0 AND whom_id NOTNULL;
"""

_PLANTED = [
    "who_id IN(SELECT who_id FROM mute WHERE tag=1)",
    "who_id NOT IN(SELECT who_id FROM mute WHERE tag=1)",
    "(who_id,whom_id)IN(SELECT whom_id,who_id FROM mute)",
    "who_id IN(SELECT whom_id FROM mute WHERE tag=3)",
    "who_id IN(SELECT who_id FROM mute GROUP BY 1 HAVING count(*)>5)",
    "whom_id IN(SELECT whom_id FROM mute GROUP BY 1 HAVING count(*)=4)",
    "(SELECT count(*)FROM mute WHERE who_id=t.who_id)>5",
    "price>(SELECT avg(price)FROM mute)",
    "price>(SELECT avg(price)FROM mute WHERE who_id=t.who_id)",
    "price=(SELECT max(price)FROM mute WHERE who_id=t.who_id)",
    "at=(SELECT max(at)FROM mute)",
    "at>(SELECT min(at)FROM mute WHERE whom_id=t.whom_id)",
    "tag IN(SELECT tag FROM mute WHERE price<1)",
    "(who_id,tag)IN(SELECT who_id,tag FROM mute WHERE price ISNULL)",
]


@pytest.fixture(scope="module")
def state(server: Server) -> Iterator[State]:
    with database(server, "selection_relatives", _SCHEMA) as state:
        yield state


@pytest.mark.parametrize("predicate", _PLANTED)
def test_planted(state: State, predicate: str) -> None:
    check_planted(state, relatives.atoms, "mute", predicate)


@pytest.mark.parametrize("predicate", ["id%3=0", "price>10", "who_id IN(SELECT who_id FROM mute WHERE tag=1)"])
@pytest.mark.parametrize("partial", [False, True])
def test_masks(state: State, predicate: str, partial: bool) -> None:
    found = atoms_for(state, relatives.atoms, "mute", selected(state, "mute", predicate), partial=partial)
    assert found
    check_masks(state, "mute", found)

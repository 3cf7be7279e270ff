"""Rows that go with those that they refer to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from atoms_bed import database, table

from encoder.effect import TableEffect
from encoder.following import is_following
from encoder.frame import State
from scratch.server import Server
from scratch.session import rows

_SCHEMA = """
CREATE TABLE basket(id int PRIMARY KEY, old boolean);
INSERT INTO basket SELECT i,i%3=0 FROM generate_series(1,30)i;
CREATE TABLE entry(id int PRIMARY KEY, basket_id int REFERENCES basket, n int);
INSERT INTO entry SELECT i,nullif(i%31,0),i%5 FROM generate_series(1,90)i;
"""


@pytest.fixture(scope="module")
def state(server: Server) -> Iterator[State]:
    with database(server, "encoder_following", _SCHEMA) as state:
        yield state


def part(state: State, name: str, where: str) -> TableEffect:
    found = tuple(rows(state.session, f"SELECT * FROM {name} WHERE {where}"))
    return TableEffect(state.catalog[table(name)], deletes=found)


@pytest.mark.parametrize(
    ("where", "follows"),
    [
        ("basket_id IN(SELECT id FROM basket WHERE old)", True),
        ("basket_id IN(SELECT id FROM basket WHERE old)AND n<4", False),
        ("basket_id IN(SELECT id FROM basket WHERE old)OR n=4", False),
        ("basket_id ISNULL", False),
    ],
)
def test_all_that_refer_to_rows_that_go(state: State, where: str, follows: bool) -> None:
    leading, other = part(state, "basket", "old"), part(state, "entry", where)
    assert is_following(state, [leading, other], other) is follows
    assert not is_following(state, [other], other)
    assert not is_following(state, [leading, other], leading)

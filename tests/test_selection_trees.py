"""Atoms about trees, on a real server."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import sqlglot
from atoms_bed import atoms_for, check_masks, check_planted, database, selected, text_of
from hypothesis import given
from hypothesis import strategies as st

from encoder.frame import State
from encoder.selection import trees
from encoder.selection.forest import Forest
from scratch.server import Server

_SCHEMA = """
CREATE TABLE region(id bigserial PRIMARY KEY, parent_id bigint REFERENCES region, name text, live boolean);
INSERT INTO region SELECT i, nullif(i/3,0), (ARRAY['north','south',NULL])[i%3+1]||i%5, i%4>0
    FROM generate_series(1,60)i;
CREATE TABLE site(id serial PRIMARY KEY, region_id bigint REFERENCES region);
INSERT INTO site(region_id) SELECT nullif(abs(hashint4(i))%60,0) FROM generate_series(1,80)i;
CREATE TABLE page(id serial PRIMARY KEY, path text NOT NULL UNIQUE, live boolean, kind text);
WITH RECURSIVE r(p,d) AS(SELECT '0001',1
    UNION ALL SELECT p||to_char(i,'FM0000'),d+1 FROM r,generate_series(1,3)i WHERE d<4)
    INSERT INTO page(path,live,kind) SELECT p, right(p,1)<>'2'OR d%2=0, d%3 FROM r;
"""
_WALK = "WITH RECURSIVE r AS(SELECT int8'%d'i UNION SELECT %s FROM region,r WHERE %s=i)SELECT*FROM r"

_PLANTED = [
    ("region", f"id IN({_WALK % (2, 'id', 'parent_id')})"),
    ("region", f"id NOT IN({_WALK % (1, 'id', 'parent_id')})"),
    ("region", f"parent_id IN({_WALK % (2, 'id', 'parent_id')})"),
    ("region", f"id IN({_WALK % (50, 'parent_id', 'id')})"),
    ("site", f"region_id IN({_WALK % (1, 'id', 'parent_id')})"),
    (
        "region",
        "id IN(WITH RECURSIVE r AS(SELECT id i FROM region WHERE name='south1'UNION "
        "SELECT id FROM region,r WHERE parent_id=i)SELECT*FROM r)",
    ),
    (
        "region",
        "id IN(WITH RECURSIVE r AS(SELECT id i FROM region WHERE name='south1'UNION "
        "SELECT parent_id FROM region,r WHERE id=i)SELECT*FROM r)",
    ),
    ("page", "path^@'00010002'"),
    ("page", "NOT path^@'00010002'"),
    ("page", "'0001000200030001'^@path"),
    ("page", "EXISTS(SELECT FROM page WHERE t.path^@path AND NOT live)"),
    ("page", "EXISTS(SELECT FROM page WHERE path^@t.path AND NOT live)"),
    ("page", "EXISTS(SELECT FROM page WHERE path^@t.path AND path>t.path)"),
]


@pytest.fixture(scope="module")
def state(server: Server) -> Iterator[State]:
    with database(server, "selection_trees", _SCHEMA) as state:
        yield state


@pytest.mark.parametrize(("name", "predicate"), _PLANTED)
def test_planted(state: State, name: str, predicate: str) -> None:
    statement = check_planted(state, trees.atoms, name, predicate)
    sqlglot.parse_one(statement, dialect="postgres")


@pytest.mark.parametrize("predicate", ["id%3=0", "live", "id=7"])
@pytest.mark.parametrize("name", ["page", "region", "site"])
def test_masks_of_partial_atoms(state: State, name: str, predicate: str) -> None:
    if name == "site" and predicate == "live":
        predicate = "id<20"
    found = atoms_for(state, trees.atoms, name, selected(state, name, predicate), partial=True)
    check_masks(state, name, found)
    for masked in found:
        sqlglot.parse_one(text_of(state, name, masked.atom.term), dialect="postgres")


@given(st.lists(st.integers(-1, 11), min_size=1, max_size=12), st.integers(0, 11))
def test_forest(parents: list[int], seed: int) -> None:
    size = len(parents)
    parent = np.array([p if p < size else -1 for p in parents], dtype=np.int32)
    forest = Forest(parent)
    seeds = np.arange(size) == seed % size

    def chain(row: int) -> list[int]:
        seen: list[int] = []
        while row >= 0 and row not in seen:
            seen.append(row)
            row = int(parent[row])
        return seen

    below = [seed % size in chain(row) for row in range(size)]
    assert forest.below(seeds).tolist() == below
    assert forest.above(seeds).tolist() == [row in chain(seed % size) for row in range(size)]
    acyclic = forest.depth >= 0
    if acyclic.all():
        assert forest.counted(np.ones(size, dtype=np.int64))[seed % size] == sum(below)
        assert forest.depth.tolist() == [len(chain(row)) - 1 for row in range(size)]

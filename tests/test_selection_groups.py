"""Atoms about a row's place among the rows of its table, on a real server."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from atoms_bed import atoms_for, check_masks, check_planted, database, selected, table

from encoder.budget import Budget
from encoder.frame import State
from encoder.selection import groups
from encoder.selection.grouping import ranks
from encoder.selection.model import Labels
from scratch.server import Server

_SCHEMA = """
CREATE TABLE page(id int PRIMARY KEY);
INSERT INTO page SELECT generate_series(1,12);
CREATE TABLE rev(id serial PRIMARY KEY, page_id int REFERENCES page, lang text, at timestamptz NOT NULL,
    size int, mail text, live boolean);
INSERT INTO rev(page_id, lang, at, size, mail, live)
    SELECT CASE WHEN i%19>0 THEN abs(hashint4(i))%12+1 END, (ARRAY['en','fr','de',NULL])[abs(hashint4(i+7))%4+1],
    '2024-01-01'::timestamptz+(i*7919%1000)*interval '1h', CASE WHEN i%23>0 THEN abs(hashint4(i+99))%50 END,
    (ARRAY['a@x','A@x','b@x','c@x'])[abs(hashint4(i+3))%4+1]||abs(hashint4(i+5))%6, i%3=0
    FROM generate_series(1,90)i;
CREATE TABLE pair(a int, b int, x int, PRIMARY KEY(a,b));
INSERT INTO pair SELECT i%7, i/7, abs(hashint4(i))%1000 FROM generate_series(1,60)i;
"""

_PLANTED = [
    "id IN(SELECT max(id)FROM rev GROUP BY page_id)",
    "id NOT IN(SELECT min(id)FROM rev GROUP BY page_id,lang)",
    "id NOT IN(SELECT max(id)FROM rev GROUP BY page_id,lang,live)",
    "id NOT IN(SELECT min(id)FROM rev GROUP BY lower(mail),lang)",
    "(page_id,at)IN(SELECT page_id,max(at)FROM rev GROUP BY 1)",
    "id IN(SELECT id FROM(SELECT id,rank()OVER(PARTITION BY page_id ORDER BY id)r FROM rev)x WHERE r>2)",
    "id IN(SELECT id FROM(SELECT id,rank()OVER(PARTITION BY page_id ORDER BY at DESC)r FROM rev)x WHERE r<4)",
    "id IN(SELECT id FROM(SELECT id,rank()OVER(PARTITION BY page_id,lang ORDER BY at)r FROM rev)x WHERE r>1)",
    "id IN(SELECT id FROM(SELECT id,rank()OVER(PARTITION BY lang ORDER BY size,id)r FROM rev)x WHERE r<4)",
    "id IN(SELECT id FROM(SELECT id,rank()OVER(PARTITION BY lang ORDER BY size DESC,id)r FROM rev)x WHERE r<4)",
    "id IN(SELECT id FROM rev ORDER BY size,id DESC LIMIT 8)",
    "id IN(SELECT id FROM rev ORDER BY at DESC LIMIT 5)",
    "id IN(SELECT id FROM rev ORDER BY at LIMIT 7)",
    "id IN(SELECT id FROM rev ORDER BY size,id LIMIT 7)",
    "id IN(SELECT id FROM rev ORDER BY id OFFSET 80)",
    "id IN(SELECT id FROM rev WHERE lang='fr'ORDER BY at LIMIT 5)",
    "id IN(SELECT max(id)FROM rev WHERE live GROUP BY page_id)",
    "id IN(SELECT id FROM(SELECT id,rank()OVER(ORDER BY at)r FROM rev)x WHERE r%10=0)",
    "(SELECT count(*)FROM rev WHERE page_id=t.page_id AND at<t.at)>2",
    "at=(SELECT max(at)FROM rev)",
    "at NOT IN(SELECT max(at)FROM rev GROUP BY page_id,lang)",
]


@pytest.fixture(scope="module")
def state(server: Server) -> Iterator[State]:
    with database(server, "selection_groups", _SCHEMA) as state:
        yield state


@pytest.mark.parametrize("predicate", _PLANTED[:-1])
def test_planted(state: State, predicate: str) -> None:
    check_planted(state, groups.atoms, "rev", predicate)


@pytest.mark.parametrize("predicate", ["id%3=0", "size>20", "lang='fr'AND live"])
@pytest.mark.parametrize("partial", [False, True])
def test_masks(state: State, predicate: str, partial: bool) -> None:
    found = atoms_for(state, groups.atoms, "rev", selected(state, "rev", predicate), partial=partial)
    assert found
    check_masks(state, "rev", found)


def test_masks_with_a_key_of_two_columns(state: State) -> None:
    predicate = "(a,b)IN(SELECT a,b FROM(SELECT a,b,rank()OVER(PARTITION BY a ORDER BY x)r FROM pair)x WHERE r<3)"
    check_planted(state, groups.atoms, "pair", predicate)


def test_ranks_are_those_of_the_server(state: State) -> None:
    frame = state.frame(table("rev"))
    lang, size = (frame.coded(name).codes.astype(np.int64) for name in ("lang", "size"))
    order = np.where(size < 0, size.max() + 1, size)
    up, down = ranks(np.ones(frame.size, dtype=np.bool_), lang, order)
    window = "rank()OVER(PARTITION BY lang ORDER BY size"
    query = f"SELECT {window}),{window} DESC) FROM rev ORDER BY id"
    found = state.session.execute(query.encode()).fetchall()
    assert [(str(int(a)), str(int(b))) for a, b in zip(up, down, strict=True)] == found


def test_no_budget_no_atoms(state: State) -> None:
    must = selected(state, "rev", "id<4")
    assert list(groups.atoms(state, table("rev"), Labels(must, ~must), Budget(0), None)) == []

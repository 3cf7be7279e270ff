"""Atoms about other tables' rows, on a real server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from atoms_bed import atoms_for, check_masks, check_planted, database, selected

from encoder.frame import State
from encoder.selection import children
from scratch.server import Server

_SCHEMA = """
CREATE TABLE person(id serial PRIMARY KEY, email text, age int, total numeric(10,2), region_id int);
CREATE TABLE kind(id serial PRIMARY KEY, name text NOT NULL);
CREATE TABLE sale(id serial PRIMARY KEY, person_id int REFERENCES person, state text, price numeric(8,2),
    quantity int, paid boolean, at timestamptz, note varchar(40));
CREATE TABLE person_kind(id serial PRIMARY KEY, person_id int NOT NULL REFERENCES person,
    kind_id int NOT NULL REFERENCES kind);
CREATE TABLE line(id serial PRIMARY KEY, sale_id int NOT NULL REFERENCES sale, x int);
CREATE TABLE lead(id serial PRIMARY KEY, email text, region_id int, hot boolean);
CREATE TABLE tag(id serial PRIMARY KEY, object_id int NOT NULL, kind_id int REFERENCES kind);
INSERT INTO person(email, age, region_id)
    SELECT 'p'||i||'@x.org', CASE WHEN i%11>0 THEN i*7%60 END, CASE WHEN i%13>0 THEN i%9 END
    FROM generate_series(1,120)i;
INSERT INTO kind(name) VALUES('admin'),('guest'),('owner'),('author'),('editor');
INSERT INTO sale(person_id, state, price, quantity, paid, at, note)
   
    SELECT CASE WHEN i%17>0 THEN hashint4(i)%50+60 END, (ARRAY['new','sent','lost',NULL])[i*3%7%4+1],
    i*37%500/10.0, i%5,
    CASE WHEN i%7>0 THEN i%3>0 END, '2024-01-01'::timestamptz+i*7919%900*interval '1h',
    (ARRAY['fast track','slow lane','by fax',NULL,'fax again'])[i*7%11%5+1]||i%4
    FROM generate_series(1,200)i;
INSERT INTO person_kind(person_id, kind_id) SELECT hashint4(i)%50+60, i%5+1 FROM generate_series(1,140)i;
INSERT INTO line(sale_id, x) SELECT abs(hashint4(i))%190+1, i%4 FROM generate_series(1,80)i;
INSERT INTO lead(email, region_id, hot) SELECT 'p'||i*5||'@x.org', i%4, i%2=0 FROM generate_series(1,30)i;
INSERT INTO tag(object_id, kind_id) SELECT i*11%150, i%3+1 FROM generate_series(1,60)i;
UPDATE person p SET total=(SELECT sum(price) FROM sale WHERE person_id=p.id);
UPDATE person SET total=total+1 WHERE id%7=0;
"""

_PLANTED = [
    "id IN(SELECT person_id FROM sale)",
    "id NOT IN(SELECT person_id FROM person_kind)",
    "id NOT IN(SELECT person_id FROM sale WHERE person_id NOTNULL)",
    "id IN(SELECT person_id FROM sale WHERE state='lost')",
    "id NOT IN(SELECT person_id FROM sale WHERE state='new'AND person_id NOTNULL)",
    "id IN(SELECT person_id FROM sale WHERE state IN('lost','sent'))",
    "id IN(SELECT person_id FROM sale WHERE state ISNULL)",
    "id IN(SELECT person_id FROM sale WHERE paid)",
    "id IN(SELECT person_id FROM sale WHERE NOT paid)",
    "id IN(SELECT person_id FROM sale WHERE price>45)",
    "id IN(SELECT person_id FROM sale WHERE at<'2024-1-5')",
    "id IN(SELECT person_id FROM sale WHERE note^@'fax')",
    "id IN(SELECT person_id FROM sale WHERE note~'ax')",
    "id IN(SELECT person_id FROM sale WHERE state='new'AND paid)",
    "id IN(SELECT person_id FROM sale WHERE state='sent'AND quantity>2)",
    "id IN(SELECT person_id FROM person_kind,kind k WHERE k.id=kind_id AND name='admin')",
    "id IN(SELECT person_id FROM person_kind WHERE kind_id=2)",
    "(SELECT count(*)FROM sale WHERE person_id=t.id)>2",
    "(SELECT count(*)FROM sale WHERE person_id=t.id)=1",
    "(SELECT count(*)FROM sale WHERE person_id=t.id AND paid)>1",
    "(SELECT sum(price)FROM sale WHERE person_id=t.id)>50",
    "(SELECT avg(price)FROM sale WHERE person_id=t.id)<20",
    "(SELECT max(at)FROM sale WHERE person_id=t.id)<'2024-1-25'",
    "(SELECT count(DISTINCT state)FROM sale WHERE person_id=t.id)=2",
    "id IN(SELECT person_id FROM sale GROUP BY 1 HAVING bool_and(paid))",
    "total<>(SELECT sum(price)FROM sale WHERE person_id=t.id)",
    "age>(SELECT max(price)FROM sale WHERE person_id=t.id)",
    "id IN(SELECT person_id FROM sale s,line WHERE sale_id=s.id)",
    "id IN(SELECT person_id FROM sale s,line WHERE sale_id=s.id AND x=2)",
    "id NOT IN(SELECT person_id FROM sale s,line WHERE sale_id=s.id AND x>1 AND person_id NOTNULL)",
    "email IN(SELECT email FROM lead)",
    "email IN(SELECT email FROM lead WHERE hot)",
    "(email,region_id)IN(SELECT email,region_id FROM lead)",
    "region_id IN(SELECT region_id FROM lead WHERE NOT hot)",
    "id IN(SELECT object_id FROM tag WHERE kind_id=2)",
]


@pytest.fixture(scope="module")
def state(server: Server) -> Iterator[State]:
    with database(server, "selection_children", _SCHEMA) as state:
        yield state


@pytest.mark.parametrize("predicate", _PLANTED)
def test_planted(state: State, predicate: str) -> None:
    check_planted(state, children.atoms, "person", predicate)


@pytest.mark.parametrize("predicate", ["id%3=0", "age>30", "id IN(SELECT person_id FROM sale WHERE paid)AND age>20"])
@pytest.mark.parametrize("partial", [False, True])
def test_masks(state: State, predicate: str, partial: bool) -> None:
    found = atoms_for(state, children.atoms, "person", selected(state, "person", predicate), partial=partial)
    assert found
    check_masks(state, "person", found)


def test_nothing_to_say(state: State) -> None:
    assert atoms_for(state, children.atoms, "line", selected(state, "line", "true")) == []

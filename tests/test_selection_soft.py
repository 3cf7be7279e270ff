"""References without a foreign key: where they lead, and conditions on the rows there."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from atoms_bed import atoms_for, check_masks, database, selected, table

from encoder.frame import State
from encoder.selection import children
from encoder.selection.model import Labels
from encoder.selection.soft import soft_parents
from scratch.server import Server

_SCHEMA = """
CREATE TABLE kind(id int PRIMARY KEY, app text, model text);
INSERT INTO kind VALUES(4,'lab','sample'),(7,'lab','probe'),(9,'lab','box');
CREATE TABLE lab_box(id int PRIMARY KEY, shelf int);
INSERT INTO lab_box SELECT i,i%7 FROM generate_series(1,40)i;
CREATE TABLE lab_sample(id int PRIMARY KEY, state text, box_id int REFERENCES lab_box);
INSERT INTO lab_sample SELECT i,(ARRAY['new','old','lost'])[abs(hashint4(i))%3+1],i%40+1 FROM generate_series(1,90)i;
CREATE TABLE lab_probe(id int PRIMARY KEY, state text);
INSERT INTO lab_probe SELECT i,(ARRAY['new','old'])[abs(hashint4(i+5))%2+1] FROM generate_series(1,90)i;
CREATE TABLE tag(id int PRIMARY KEY, kind_id int REFERENCES kind, object_id int, label text);
INSERT INTO tag SELECT i,(ARRAY[4,7])[i%2+1],abs(hashint4(i+9))%90+1,md5(i::text) FROM generate_series(1,200)i;
CREATE TABLE remark(id int PRIMARY KEY, target text, object_id varchar(20));
INSERT INTO remark SELECT i,(ARRAY['Sample','Probe'])[i%2+1],abs(hashint4(i+3))%90+1 FROM generate_series(1,200)i;
CREATE TABLE history(id int PRIMARY KEY, probe_id int, at int);
INSERT INTO history SELECT i,abs(hashint4(i+1))%90+1,i%13 FROM generate_series(1,200)i;
"""


@pytest.fixture(scope="module")
def state(server: Server) -> Iterator[State]:
    with database(server, "selection_soft", _SCHEMA) as state:
        yield state


@pytest.mark.parametrize(
    ("name", "where", "links"),
    [
        ("tag", "kind_id=4", ["lab_sample"]),
        ("tag", "kind_id=7", ["lab_probe"]),
        ("tag", "true", ["lab_probe", "lab_sample", "history"]),
        ("tag", "id<9", []),
        ("remark", "target='Probe'", ["lab_probe"]),
        ("history", "at<5", ["lab_probe"]),
        ("lab_sample", "true", []),
    ],
)
def test_names_tell_where_they_lead(state: State, name: str, where: str, links: list[str]) -> None:
    must = selected(state, name, where)
    found = soft_parents(state, table(name), Labels(must, ~must))
    assert [link.other.name for link in found] == links


@pytest.mark.parametrize(
    ("name", "kind", "condition"),
    [
        ("tag", "kind_id=4", "object_id IN(SELECT id FROM lab_sample WHERE state='lost')"),
        ("tag", "kind_id=4", "object_id IN(SELECT a.id FROM lab_sample a,lab_box b WHERE b.id=box_id AND shelf=3)"),
        ("remark", "target='Sample'", "object_id IN(SELECT id::text FROM lab_sample WHERE state='new')"),
        ("history", "true", "probe_id IN(SELECT id FROM lab_probe WHERE state='new')"),
    ],
)
def test_conditions_on_the_rows_there(state: State, name: str, kind: str, condition: str) -> None:
    must = selected(state, name, f"{kind} AND {condition}")
    within = selected(state, name, kind)
    found = atoms_for(state, children.atoms, name, must)
    check_masks(state, name, found)
    assert any((atom.holds & within == must).all() and atom.atom.size <= len(condition) for atom in found)
    assert np.count_nonzero(must) > 3

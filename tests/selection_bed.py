"""A small database on which predicates are planted and looked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emit.literal import identifier, table_name
from emit.render import render
from emit.term import Delete, Source
from encoder.budget import Budget
from encoder.frame import State
from encoder.selection.lower import lower
from encoder.selection.model import Labels, MaskedAtom, Selection
from encoder.selection.search import find_selections
from scratch.catalog import read_catalog
from scratch.session import Session, rows
from stream.model import TableName

SCHEMA = """
CREATE TABLE region(id serial PRIMARY KEY, name text NOT NULL, parent_id int REFERENCES region);
CREATE TABLE place(region_id int NOT NULL REFERENCES region, nr int, name text, PRIMARY KEY(region_id, nr));
CREATE TABLE base(id serial PRIMARY KEY, title text NOT NULL, live bool NOT NULL, depth int NOT NULL);
CREATE TABLE page(base_ptr_id int PRIMARY KEY REFERENCES base, body text NOT NULL);
CREATE TABLE person(
    id serial PRIMARY KEY, region_id int NOT NULL REFERENCES region, boss_id int REFERENCES person,
    email text NOT NULL, role text NOT NULL, active bool NOT NULL, bot bool, joined timestamptz NOT NULL);
CREATE TABLE item(
    id serial PRIMARY KEY, owner_id int NOT NULL REFERENCES person, page_id int REFERENCES page,
    place_region int, place_nr int, name text NOT NULL, note text, kind smallint NOT NULL,
    price numeric(10,2) NOT NULL, cost numeric(10,2), made timestamp NOT NULL, sold timestamp, day date,
    tags text[] NOT NULL, data jsonb NOT NULL, net inet, hidden bool NOT NULL, flag bool,
    FOREIGN KEY(place_region, place_nr) REFERENCES place);
INSERT INTO region(name, parent_id) SELECT 'region '||i, CASE WHEN i>3 THEN 1+i%3 END FROM generate_series(1,12)i;
INSERT INTO place SELECT r.id, n, 'place '||r.id||'-'||n FROM region r, generate_series(1,4)n;
INSERT INTO base(title, live, depth) SELECT 'page '||chr(97+i%26)||i, i%3>0, i%5 FROM generate_series(1,40)i;
INSERT INTO page SELECT id, 'body '||id*7 FROM base WHERE id%2=0;
INSERT INTO person(region_id, boss_id, email, role, active, bot, joined)
    SELECT 1+i%12, CASE WHEN i>5 THEN i/5 END, 'u'||i||'@'||(array['x.org','mail.example'])[1+i%2],
           (array['member','admin','guest'])[1+i*i%3], i%4>0, CASE WHEN i%7>0 THEN i%5=0 END,
           '2021-1-1Z'::timestamptz+i*'53 hours'::interval FROM generate_series(1,60)i;
INSERT INTO item(owner_id, page_id, place_region, place_nr, name, note, kind, price, cost, made, sold, day, tags, data,
                 net, hidden, flag)
    SELECT 1+i*17%60, CASE WHEN i%3>0 THEN 2*(1+i%20) END, 1+i%12, 1+i%4,
           'item '||chr(97+i%7)||i*37%500||CASE WHEN i%9=0 THEN ' (old)' ELSE '' END,
           CASE WHEN i%4=0 THEN 'note '||i%8 WHEN i%4=1 THEN '' END, i%6, (i*7919%10007)/10.0,
           CASE WHEN i%5>0 THEN (i*104729%9973)/10.0 END, timestamp '2024-1-1'+i*'7 hours'::interval,
           CASE WHEN i%2=0 THEN timestamp '2024-1-1'+i*'7 hours'::interval+i%11*'10 min'::interval END,
           date '2024-1-1'+i%90, array['t'||i%4, 's'||i%3],
           jsonb_build_object('client',(array['web','ios','tv'])[1+i%3],'n',i%40)
               ||CASE WHEN i%6=0 THEN '{"extra":{"deep":"yes"}}' ELSE '{}' END::jsonb,
           ('10.'||i%4||'.'||i%250||'.1/24')::inet, i%8=0, CASE WHEN i%3>0 THEN i%2=0 END
    FROM generate_series(1,400)i;
ANALYZE;
"""


@dataclass
class Bed:
    session: Session

    def __post_init__(self) -> None:
        self.catalog = read_catalog(self.session)
        self.state = State(self.session, self.catalog)

    def keys(self, table: TableName, clause: str) -> set[tuple[str | None, ...]]:
        """The keys of the rows of `table` for which a clause from WHERE on holds."""
        names = ",".join(identifier(name) for name in self.catalog[table].row_key)
        return set(rows(self.session, f"SELECT {names} FROM {table_name(*table)} {clause}"))

    def labels(self, table: TableName, clause: str) -> Labels:
        wanted = self.keys(table, clause)
        must = np.array([key in wanted for key in self.state.frame(table).keys])
        return Labels(must, ~must)

    def find(self, table: TableName, labels: Labels, extra: tuple[MaskedAtom, ...] = ()) -> list[Selection]:
        return find_selections(self.state, table, labels, budget=Budget(100_000), timezone="UTC", extra_atoms=extra)

    def statements(self, table: TableName, selection: Selection) -> list[str]:
        """A DELETE for every way to say the selection, shortest first."""
        source = Source((), table_name(*table), tuple(column.name for column in self.catalog[table].columns))
        ways = lower(self.catalog, table, selection)
        return sorted((render(Delete(source, way.sources, way.where)) for way in ways), key=len)

    def deleted(self, table: TableName, statement: str) -> set[tuple[str | None, ...]]:
        """The keys that are missing after `statement`; nothing stays of it."""
        before = self.keys(table, "")
        with self.session.transaction(force_rollback=True):
            self.session.execute("SET LOCAL session_replication_role=replica")
            self.session.execute(statement.encode())
            return before - self.keys(table, "")

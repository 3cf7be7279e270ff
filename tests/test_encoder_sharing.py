"""Statements that are one: rows that a statement returns feed another, inserts that update, groups of equal rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from optimize_bed import sample

from encoder.transaction import Strategy
from scratch.server import Server

SCHEMA = """
CREATE TABLE item (id int PRIMARY KEY, label text NOT NULL, price int NOT NULL, sold timestamp NOT NULL);
INSERT INTO item SELECT i, substr(md5('a'||i),1,9), i*37%101, timestamp '2024-1-1'+i*interval '7 hours'
  FROM generate_series(1,240)i;
CREATE TABLE old_item (code text NOT NULL, amount int NOT NULL, note text NOT NULL);
CREATE TABLE journal (depot text NOT NULL, part int NOT NULL, delta int NOT NULL, reason text NOT NULL);
INSERT INTO journal SELECT (array['A','B','C'])[1+i%3], i%20, i*31%17-4, (array['loss','sale'])[1+i%2]
  FROM generate_series(1,300)i;
CREATE TABLE reading (taken timestamp NOT NULL, place int NOT NULL, load numeric(6,2) NOT NULL);
INSERT INTO reading SELECT timestamp '2024-1-1'+i*interval '3 hours', i%4, i*53%97 FROM generate_series(1,300)i;
CREATE TABLE level (depot text NOT NULL, part int NOT NULL REFERENCES item,
  stock int NOT NULL, PRIMARY KEY(depot,part));
INSERT INTO level SELECT 'A', i, i%7+100 FROM generate_series(1,200,2)i;
CREATE TABLE step (item_id int NOT NULL, place int NOT NULL, what int NOT NULL, PRIMARY KEY(item_id,place));
CREATE TABLE flag (a int NOT NULL, b text NOT NULL);
ALTER TABLE journal REPLICA IDENTITY FULL;
ALTER TABLE reading REPLICA IDENTITY FULL;
"""

PLANTED = [
    # An aggregated move inside a table without a key that holds equal rows.
    "WITH d AS(DELETE FROM journal WHERE reason='loss'RETURNING*)INSERT INTO journal "
    "SELECT depot,part,sum(delta),'settled'FROM d GROUP BY 1,2",
    # Groups by a unit of time.
    "WITH d AS(DELETE FROM reading WHERE taken<'240115'RETURNING*)INSERT INTO reading "
    "SELECT date_trunc('week',taken),place,round(avg(load),1)FROM d GROUP BY 1,2",
    # The new values of an update, into columns of other names; one row is updated to what it was.
    "WITH d AS(UPDATE item SET price=37 WHERE sold<'240120'RETURNING*)INSERT INTO old_item "
    "SELECT label||'/x',price,'sale'FROM d",
    "WITH d AS(UPDATE item SET price=price+1 WHERE sold<'240120'RETURNING*)INSERT INTO old_item "
    "SELECT label,price,'sale'FROM d",
    # Numbers by the order of the rows, in a key that no sequence fills.
    "WITH d AS(UPDATE item SET price=5 WHERE price>60 RETURNING*)INSERT INTO step "
    "SELECT id,row_number()OVER(ORDER BY id)+4,price FROM d",
    # Rows that are all the same.
    "INSERT INTO flag SELECT 7,'a flag that is set'FROM generate_series(1,30)",
    # Copies whose rows are told by a text that holds the source's.
    "INSERT INTO journal SELECT'D',part,delta,reason||' (copy)'FROM journal WHERE part<12",
    # Inserts and updates in one.
    "INSERT INTO level SELECT'A',id,price FROM item WHERE price>50 ON CONFLICT(depot,part)DO UPDATE "
    "SET stock=excluded.stock",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sharing")


@pytest.mark.parametrize("planted", PLANTED)
def test_finds_one_statement_at_most_as_long(server: Server, folder: Path, planted: str) -> None:
    with sample(server, folder, SCHEMA, f"BEGIN;{planted};COMMIT;") as made:
        (done,) = made.solved(Strategy.OPTIMAL, "UTC")
        best = done.solved.variants[0]
        assert best.size <= len(planted.encode()) + 1, best.statements

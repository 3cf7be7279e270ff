"""A small workload in a folder, as `compare` and `check` take it."""

from __future__ import annotations

import shutil
from pathlib import Path

from optimize_bed import sample

from scratch.server import Server

SCHEMA = """
CREATE TABLE kind (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE item (
  id int PRIMARY KEY, kind_id int NOT NULL REFERENCES kind ON DELETE CASCADE, price int NOT NULL, label text NOT NULL
);
INSERT INTO kind SELECT g, 'kind ' || g FROM generate_series(1, 6) g;
INSERT INTO item SELECT g, 1 + g % 6, 100 * (g % 37), 'item ' || g FROM generate_series(1, 300) g;
"""
# One transaction each.
SCRIPT = """
UPDATE item SET price=price+25 WHERE kind_id=3;
BEGIN; UPDATE item SET label=upper(label) WHERE price<900; DELETE FROM kind WHERE id=5; COMMIT;
INSERT INTO kind VALUES (7, 'new'), (8, 'newer');
"""


def make_workload(server: Server, folder: Path, schema: str = SCHEMA, script: str = SCRIPT) -> Path:
    """`folder` with before.sql and stream.jsonl."""
    folder.mkdir(parents=True)
    with sample(server, folder, schema, script) as made:
        made.dump(folder / "before.sql")
        shutil.move(made.stream, folder / "stream.jsonl")
    return folder

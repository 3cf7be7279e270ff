"""The committed sample workloads: stream and statements tell the same story, and make.py tells it again."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from data.make import CLOCK, FOLDER, WORKLOADS, make
from emit.size import size
from scratch.catalog import Catalog, read_catalog
from scratch.changes import apply_changes
from scratch.database import analyze, cloned, create_database, drop_database, restore
from scratch.server import Server
from scratch.session import TextRow, connect, rows
from stream.model import RowChange, TableName, Transaction
from stream.open import open_stream
from stream.statements import statements

Contents = dict[TableName, Counter[TextRow]]


@contextmanager
def restored(server: Server, name: str) -> Iterator[str]:
    database = f"data_{name}"
    create_database(server.dsn(), database)
    try:
        restore(server.dsn(database), FOLDER / name / "before.sql.gz")
        analyze(server.dsn(database))  # as when the stream was captured: ids of triggers follow the plan
        yield database
    finally:
        drop_database(server.dsn(), database)


def contents(dsn: str, workload: str) -> Contents:
    """All rows of all tables, without the columns that the clock wrote."""
    clock = CLOCK.get(workload, frozenset())
    found: Contents = {}
    with connect(dsn) as session:
        for table in read_catalog(session).tables.values():
            names = [column.name for column in table.columns if (table.name, column.name) not in clock]
            listed = ",".join(f'"{name}"' for name in names)
            found[table.name] = Counter(
                rows(session, f'SELECT {listed} FROM "{table.name.schema}"."{table.name.name}"')
            )
    return found


@pytest.mark.parametrize("name", WORKLOADS)
def test_stream_and_statements_give_the_same_database(server: Server, name: str) -> None:
    with restored(server, name) as database:
        with cloned(server.dsn(), database, f"{database}_run") as dsn:
            with psycopg.connect(dsn, autocommit=True) as run:
                for statement in statements((FOLDER / name / "statements.sql").read_text()):
                    run.execute(statement.encode())
            told = contents(dsn, name)
        dsn = server.dsn(database)
        before = contents(dsn, name)
        with connect(dsn) as session:
            catalog = read_catalog(session)
            for transaction in open_stream(FOLDER / name / "stream.jsonl.gz"):
                apply_changes(session, catalog, transaction.changes)
        after = contents(dsn, name)
    assert after == told
    assert after != before
    assert_described(name, catalog, before)


def assert_described(name: str, catalog: Catalog, before: Contents) -> None:
    meta = json.loads((FOLDER / name / "meta.json").read_text())
    stream = list(open_stream(FOLDER / name / "stream.jsonl.gz"))
    assert meta == {
        "name": name,
        "transactions": len(stream),
        "changes": sum(len(transaction.changes) for transaction in stream),
        "rows": sum(counter.total() for counter in before.values()),
        "statement_bytes": size((FOLDER / name / "statements.sql").read_text()),
    }
    assert all(table.replica_identity == "f" for table in catalog.tables.values())
    assert any(not table.row_key for table in catalog.tables.values())


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_is_small(name: str) -> None:
    assert sum(file.stat().st_size for file in (FOLDER / name).iterdir() if file.is_file()) < 300_000


def without_clock(name: str, transactions: Iterator[Transaction]) -> list[list[RowChange]]:
    clock = CLOCK.get(name, frozenset())

    def masked(change: RowChange) -> RowChange:
        old, new = (
            row and {key: value for key, value in row.items() if (change.table, key) not in clock}
            for row in (change.old, change.new)
        )
        return RowChange(change.op, change.table, old, new, change.line)

    return [[masked(change) for change in transaction.changes] for transaction in transactions]


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKLOADS)
def test_making_again_gives_the_same(server: Server, name: str, tmp_path: Path) -> None:
    make(name, server, tmp_path)
    made = FOLDER / name
    same = ["before.sql.gz", "meta.json"] + ([] if name in CLOCK else ["stream.jsonl.gz"])
    for file in same:
        assert (tmp_path / file).read_bytes() == (made / file).read_bytes(), file
    again, committed = (open_stream(folder / "stream.jsonl.gz") for folder in (tmp_path, made))
    assert without_clock(name, again) == without_clock(name, committed)


def test_packed_files_hold_no_time() -> None:
    for name in WORKLOADS:
        for file in ("before.sql.gz", "stream.jsonl.gz"):
            packed = (FOLDER / name / file).read_bytes()
            assert packed[4:8] == bytes(4), file
            assert gzip.decompress(packed)

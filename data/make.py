"""Makes the sample workloads: `python -m data.make [NAME …]` from the root of the repository.

A workload is a folder with schema.sql, rows.py (its `tables()` yields the rows) and statements.sql (the
transactions that the stream records).  They run on the embedded server; the result is the state before the
stream, the stream and the figures.  The same sources give the same bytes, but for the columns of CLOCK.
"""

from __future__ import annotations

import gzip
import importlib
import io
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from emit.size import size
from scratch.database import analyze, create_database, drop_database, dump_source, restore
from scratch.server import Server
from stream.capture import capture_script, column_types
from stream.model import TableName, Transaction
from stream.write import write_wal2json

FOLDER = Path(__file__).resolve().parent
WORKLOADS = ("shop", "pages", "network", "chat")

# Written by triggers from the clock: these columns differ from one making to the next.
CLOCK: dict[str, frozenset[tuple[TableName, str]]] = {
    "chat": frozenset({(TableName("public", "message"), "edited_at"), (TableName("ops", "trail"), "noted_at")}),
}

# A table, its columns, its rows.
Rows = tuple[str, Sequence[str], Iterable[Sequence[object]]]

# What of a dump differs between servers and runs and means nothing to a restore.
_NOISE = re.compile(r"^(-- Dumped .*|\\(un)?restrict .*)\n", re.MULTILINE)


def make(name: str, server: Server, out: Path) -> None:
    """Write before.sql.gz, stream.jsonl.gz and meta.json of the workload `name` into the folder `out`."""
    source = FOLDER / name
    script = (source / "statements.sql").read_text()
    with _database(server, f"{name}_made") as dsn:
        tables = importlib.import_module(f"data.{name}.rows").tables()
        rows = _load(dsn, (source / "schema.sql").read_text(), tables)
        _pack(out / "before.sql.gz", _dump(dsn))
    # The stream starts from what others will restore, down to the order of rows on disk.
    with _database(server, name) as dsn:
        restore(dsn, out / "before.sql.gz")
        analyze(dsn)
        transactions = _captured(dsn, script)
        _pack(out / "stream.jsonl.gz", _written(dsn, transactions))
    meta = {
        "name": name,
        "transactions": len(transactions),
        "changes": sum(len(transaction.changes) for transaction in transactions),
        "rows": rows,
        "statement_bytes": size(script),
    }
    (out / "meta.json").write_text(json.dumps(meta, indent=1) + "\n")


@contextmanager
def _database(server: Server, name: str) -> Iterator[str]:
    create_database(server.dsn(), name)
    try:
        yield server.dsn(name)
    finally:
        drop_database(server.dsn(), name)


def _captured(dsn: str, script: str) -> list[Transaction]:
    """The transactions of `script`, with ids that do not tell the server's history."""
    found = capture_script(dsn, script)
    return [replace(transaction, xid=1000 + place) for place, transaction in enumerate(found)]


def _load(dsn: str, schema: str, tables: Iterator[Rows]) -> int:
    """Make the schema and its rows; returns the number of rows."""
    count = 0
    with psycopg.connect(dsn) as session:
        session.execute(schema.encode())
        # The rows tell the past as it stands, so that no trigger has a say in it.
        session.execute("SET session_replication_role = replica")
        for table, columns, rows in tables:
            names = sql.SQL(",").join(map(sql.Identifier, columns))
            into = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(*table.split(".")), names)
            with session.cursor().copy(into) as copy:
                for row in rows:
                    copy.write_row([Jsonb(value) if isinstance(value, dict) else value for value in row])
                    count += 1
        _after_load(session)
    return count


def _after_load(session: psycopg.Connection) -> None:
    """Sequences stand behind the rows, and every table shows whole rows to the stream."""
    tables = session.execute(
        "SELECT c.oid::regclass::text, a.attname, pg_get_serial_sequence(c.oid::regclass::text, a.attname) "
        "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 "
        "WHERE c.relkind = 'r' AND n.nspname !~ '^pg_|^information_schema$' ORDER BY 1, a.attnum"
    ).fetchall()
    for table in sorted({row[0] for row in tables}):
        session.execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL".encode())
    for table, column, sequence in tables:
        if sequence is not None:
            query = f'SELECT setval(%s, coalesce(max("{column}"), 0) + 1, false) FROM {table}'
            session.execute(query.encode(), [sequence])


def _dump(dsn: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "before.sql"
        dump_source(dsn, file)
        return _NOISE.sub("", file.read_text())


def _written(dsn: str, transactions: Iterable[Transaction]) -> str:
    text = io.StringIO()
    with psycopg.connect(dsn) as session:
        write_wal2json(transactions, text, column_types(session))
    return text.getvalue()


def _pack(file: Path, text: str) -> None:
    file.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def main(names: Sequence[str]) -> None:
    with Server.start() as server:
        for name in names or WORKLOADS:
            make(name, server, FOLDER / name)


if __name__ == "__main__":
    main(sys.argv[1:])

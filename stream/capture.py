"""Captures transactions from a live server (wal_level=logical) through its own plugin, pgoutput."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import cast

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from stream.canonical import CANONICAL
from stream.model import TableName, Transaction
from stream.pgoutput import decode
from stream.statements import statements

_READ = {
    True: "pg_logical_slot_get_binary_changes",
    False: "pg_logical_slot_peek_binary_changes",
}


class CaptureError(Exception):
    """The server does not let the changes be captured; `str()` is one line for the user."""


def capture_slot(
    dsn: str, slot: str, *, publication: str | None = None, consume: bool = False
) -> Iterator[Transaction]:
    """What the logical slot `slot` (plugin pgoutput) holds, in the order of commits.

    `publication` says which tables, and without it one FOR ALL TABLES is looked for; the server
    applies it as it was at the time of each change.  The slot is left as it is unless `consume`.
    Raises CaptureError, and StreamError for changes that no script may replay.
    """
    with _session(dsn) as session, _clear_errors(f"cannot read the slot {slot}"):
        _require_pgoutput_slot(session, slot)
        yield from _changes(session, slot, _publication(session, publication), consume)


def capture_script(dsn: str, script: str, *, name: str = "tersql_capture") -> Iterator[Transaction]:
    """Run `script` in the database of `dsn`, statement by statement, and yield what it did.

    Needs a superuser: a publication `name` FOR ALL TABLES and a slot exist meanwhile and are
    dropped at the end, after an error too.  What other sessions commit in the same database
    meanwhile is captured with the script's own transactions.  The script starts with the first
    transaction asked for.  Raises CaptureError where a statement fails (the transactions before
    it stay committed), and where a publication `name` exists: one capture a database at a time.
    """
    with _session(dsn) as session, _published(session, name):
        # Slots are named across databases, where other captures may run.
        slot = f"{name}_{session.info.backend_pid}"
        with _clear_errors("cannot create a logical replication slot"):
            # A temporary slot goes with its session, however that ends.
            session.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput', true)", [slot])
        try:
            _run(dsn, script)
            with _clear_errors("cannot read the changes"):
                yield from _changes(session, slot, name, consume=True)
        finally:
            # It would go with its session, but a little later than the caller may want to drop the database.
            with suppress(psycopg.Error):
                session.execute("SELECT pg_drop_replication_slot(%s)", [slot])


def column_types(session: psycopg.Connection[tuple[str, ...]]) -> Callable[[TableName], Mapping[str, str]]:
    """The types of every table's columns, by `format_type`, as `stream.write` wants them.

    Read once, here; a table made later, or unknown, has no columns.
    """
    found: dict[TableName, dict[str, str]] = {}
    for schema, table, column, type_name in session.execute(
        """SELECT n.nspname::text, c.relname::text, a.attname::text, format_type(a.atttypid, a.atttypmod)
             FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
                  JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
              AND n.nspname NOT IN ('pg_catalog', 'information_schema')
            ORDER BY c.oid, a.attnum"""
    ):
        found.setdefault(TableName(schema, table), {})[column] = type_name
    return lambda table: found.get(table, {})


@contextmanager
def _session(dsn: str) -> Iterator[psycopg.Connection]:
    """An autocommit connection under canonical settings, which the text of decoded values follows."""
    with _clear_errors("cannot connect"):
        session = psycopg.connect(dsn, autocommit=True)
    with session:
        for name, value in CANONICAL.items():
            session.execute("SELECT set_config(%s, %s, false)", [name, value])
        yield session


@contextmanager
def _published(session: psycopg.Connection, name: str) -> Iterator[None]:
    level = session.execute("SHOW wal_level").fetchone()
    if level != ("logical",):
        raise CaptureError(f"wal_level is {level and level[0]}: logical decoding needs wal_level=logical")
    identifier = sql.Identifier(name)
    # From 18 on, FULL identity demands that generated columns are published, and none is by default.
    generated = " WITH (publish_generated_columns = stored)" if session.info.server_version >= 180000 else ""
    with _clear_errors("cannot create a publication"):
        session.execute(sql.SQL("CREATE PUBLICATION {} FOR ALL TABLES" + generated).format(identifier))
    try:
        yield
    finally:
        session.execute(sql.SQL("DROP PUBLICATION {}").format(identifier))


def _run(dsn: str, script: str) -> None:
    """Run the statements one by one, as psql would: those outside BEGIN and COMMIT are transactions."""
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None, client_encoding="UTF8") as session:
        # Decoding reads only what is flushed.
        session.execute("SET synchronous_commit = on")
        for number, statement in enumerate(statements(script), 1):
            with _clear_errors(f"statement {number} of the script fails"):
                session.execute(statement.encode())
        if session.info.transaction_status != TransactionStatus.IDLE:
            raise CaptureError("the script ends inside a transaction: its COMMIT is missing")


def _changes(session: psycopg.Connection, slot: str, publication: str, consume: bool) -> Iterator[Transaction]:
    query = sql.SQL(
        "SELECT data FROM {}(%s, NULL, NULL, 'proto_version', '1', 'publication_names', quote_ident(%s))"
    ).format(sql.Identifier(_READ[consume]))
    # Streamed, for a slot may hold more than fits in memory; closed before the session is used again.
    with session.cursor() as cursor:
        rows = cursor.stream(query, [slot, publication], binary=True)
        with closing(cast(Generator[tuple[bytes], None, None], rows)):
            yield from decode(row[0] for row in rows)


def _require_pgoutput_slot(session: psycopg.Connection, slot: str) -> None:
    found = session.execute(
        "SELECT plugin, database, current_database() FROM pg_replication_slots WHERE slot_name = %s", [slot]
    ).fetchone()
    if found is None:
        raise CaptureError(f"there is no replication slot {slot}")
    plugin, database, current = found
    if plugin != "pgoutput":
        kind = "a physical slot" if plugin is None else f"a slot of the plugin {plugin}"
        raise CaptureError(f"{slot} is {kind}; one of pgoutput is wanted")
    if database != current:
        raise CaptureError(f"the slot {slot} belongs to the database {database}, not to {current}")


def _publication(session: psycopg.Connection, wanted: str | None) -> str:
    """The publication `wanted`, else the first of all tables.

    Checked here, for the server may take one that is missing (18 does) for one without tables.
    """
    found = session.execute(
        """SELECT pubname::text FROM pg_publication
            WHERE pubname = %(wanted)s
               OR %(wanted)s::text IS NULL AND puballtables AND pubinsert AND pubupdate AND pubdelete
            ORDER BY pubname LIMIT 1""",
        {"wanted": wanted},
    ).fetchone()
    if found is None and wanted is None:
        raise CaptureError("there is no publication FOR ALL TABLES: name the publication to read the slot by")
    if found is None:
        raise CaptureError(f"there is no publication {wanted}")
    return str(found[0])


@contextmanager
def _clear_errors(what: str) -> Iterator[None]:
    """Turn the server's error into one line with its hint."""
    try:
        yield
    except psycopg.Error as error:
        text = error.diag.message_primary or str(error).strip().replace("\n", " ")
        hint = error.diag.message_hint
        if error.diag.sqlstate == "55000" and "replica identity" in text:
            hint = "ALTER TABLE … REPLICA IDENTITY FULL, or add a primary key"
        notes = [note for note in (error.diag.message_detail, hint and f"hint: {hint}") if note]
        raise CaptureError(f"{what}: {text}" + (f" ({'; '.join(notes)})" if notes else "")) from error

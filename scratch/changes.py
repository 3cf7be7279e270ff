"""Brings a scratch database to its next state by a transaction's row changes.

The changes go in as their net effect, a few set-wise statements a table, with
`session_replication_role=replica`: no user trigger fires and no foreign key is checked, as on a
replica.  Tables do not see each other then, so their order is free.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from psycopg import Error, errors

from scratch.arrays import Given, ident, own_rows, table_ident
from scratch.catalog import ALWAYS, Catalog, Column, Table
from scratch.completion import complete
from scratch.errors import ScratchError
from scratch.net import Key, NetRow, by_columns, locator, net_effect
from scratch.session import Session, TextRow
from stream.model import RowChange, TableName

__all__ = ["apply_changes", "complete"]


def apply_changes(session: Session, catalog: Catalog, changes: Sequence[RowChange]) -> None:
    """Apply the row changes of one transaction, all or none of them.

    Runs in the session's open transaction, or in one of its own.  Only the cells that the stream
    holds are written; generated columns follow by themselves.  With the output of `complete` no
    ambiguity is left; without it, a key that two rows hold for a while is resolved by what `old` tells.
    Raises ScratchError, with the line of the stream, for a row that is not there or a table or
    column that the database lacks.
    """
    grouped: dict[TableName, list[RowChange]] = {}
    for change in changes:
        if change.table not in catalog:
            raise ScratchError(f"line {change.line}: the database has no table {change.table}")
        grouped.setdefault(change.table, []).append(change)
    with session.transaction(), _as_replica(session):
        for name, group in grouped.items():
            _check_columns(catalog[name], group)
            try:
                _apply(session, catalog[name], net_effect(catalog[name], group))
            except Error as error:
                where = f"lines {group[0].line} to {group[-1].line}"
                raise ScratchError(
                    f"{where}: the changes of {name} do not fit the database: {_reason(error)}"
                ) from error


@contextmanager
def _as_replica(session: Session) -> Iterator[None]:
    setting = "SELECT pg_catalog.set_config('session_replication_role',%s,true)"
    before = session.execute("SELECT pg_catalog.current_setting('session_replication_role')").fetchone()
    session.execute(setting, ["replica"])
    yield
    session.execute(setting, list(before or ("origin",)))


def _check_columns(table: Table, changes: Sequence[RowChange]) -> None:
    seen: set[tuple[str, ...]] = set()
    for change in changes:
        for row in (change.old, change.new):
            # The columns of a table's changes are nearly always the same ones.
            if row is None or (names := tuple(row)) in seen:
                continue
            seen.add(names)
            for name in names:
                if name not in table.by_name:
                    raise ScratchError(f"line {change.line}: table {table.name} has no column {name}")


def _reason(error: Error) -> str:
    detail = f" ({error.diag.message_detail})" if error.diag.message_detail else ""
    return f"{error.diag.message_primary or error}{detail}".replace("\n", " ")


def _apply(session: Session, table: Table, rows: list[NetRow]) -> None:
    if not table.row_key:
        _replace_keyless(session, table, rows)
        return
    if any(_moves_identity(table, row) for row in rows):
        _replace(session, table, rows)
        return
    try:
        # Rows may have to pass each other on their way to a unique key.
        with session.transaction():
            _delete(session, table, [row for row in rows if row.after is None])
            _update(session, table, [row for row in rows if row.before is not None and row.after is not None])
            _insert(session, table, [row for row in rows if row.before is None])
    except (errors.UniqueViolation, errors.ExclusionViolation):
        _replace(session, table, rows)


def _moves_identity(table: Table, row: NetRow) -> bool:
    """Whether an update may change a column that is GENERATED ALWAYS AS IDENTITY, which no UPDATE can do."""
    if row.before is None or row.after is None:
        return False
    before = dict(zip(table.row_key, row.before, strict=True))
    return any(
        column.identity == ALWAYS and column.name in row.after and row.after[column.name] != before.get(column.name)
        for column in table.stored
    )


def _replace(session: Session, table: Table, rows: list[NetRow]) -> None:
    """Delete every old version, then insert every new one: no two rows can be in each other's way."""
    there = [row for row in rows if row.before is not None]
    names = [column.name for column in table.stored]
    held = _delete(session, table, there, names)
    moved = [
        NetRow(None, {**dict(zip(names, cells, strict=True)), **row.after}, row.line)
        for row, cells in zip(there, held, strict=True)
        if row.after is not None
    ]
    _insert(session, table, moved + [row for row in rows if row.before is None])


def _delete(session: Session, table: Table, rows: list[NetRow], names: Sequence[str] = ()) -> list[TextRow]:
    """Delete `rows` by their keys; returns what each had in the columns `names`."""
    if not rows:
        return []
    given, match = _located(table, rows)
    held = "".join(f",t.{ident(name)}" for name in names)
    query = f"DELETE FROM {own_rows(table)} t USING {given.source} WHERE {match} RETURNING x.n{held}"
    return [row[1:] for row in _all_found(session, table, rows, query, given.params)]


def _update(session: Session, table: Table, rows: list[NetRow]) -> None:
    settable = [column.name for column in table.stored if column.identity != ALWAYS]
    for present, group in by_columns(rows, settable):
        columns = [table.by_name[name] for name in present]
        given, match = _located(table, group, columns)
        width = len(table.row_key)
        assignments = ",".join(f"{ident(column.name)}={given.value(width + i)}" for i, column in enumerate(columns))
        if not assignments:  # nothing to set, but the rows have to be there
            query = f"SELECT x.n FROM {own_rows(table)} t,{given.source} WHERE {match}"
        else:
            query = f"UPDATE {own_rows(table)} t SET {assignments} FROM {given.source} WHERE {match} RETURNING x.n"
        _all_found(session, table, group, query, given.params)


def _insert(session: Session, table: Table, rows: list[NetRow]) -> None:
    if not rows:
        return
    cells = []
    for row in rows:
        after = row.after or {}
        try:
            cells.append([after[column.name] for column in table.stored])
        except KeyError as missing:
            raise ScratchError(
                f"line {row.line}: the insert into {table.name} lacks column {missing.args[0]}"
            ) from None
    given = Given(table.stored, cells)
    names = ",".join(ident(column.name) for column in table.stored)
    into = f"{table_ident(table.name)}({names})OVERRIDING SYSTEM VALUE" if names else table_ident(table.name)
    query = f"INSERT INTO {into} SELECT {','.join(given.values())} FROM {given.source} ORDER BY x.n"
    session.execute(query.encode(), given.params)


def _located(table: Table, rows: list[NetRow], columns: Sequence[Column] = ()) -> tuple[Given, str]:
    """The keys of `rows` (then their values of `columns`) as a source, and the join to the table t."""
    keys = [table.by_name[name] for name in table.row_key]
    after = [[(row.after or {})[column.name] for column in columns] for row in rows]
    given = Given([*keys, *columns], [[*_before(row), *cells] for row, cells in zip(rows, after, strict=True)])
    match = " AND ".join(f"t.{ident(column.name)}={given.value(i)}" for i, column in enumerate(keys))
    return given, match


def _before(row: NetRow) -> Key:
    assert row.before is not None
    return row.before


def _all_found(session: Session, table: Table, rows: list[NetRow], query: str, params: list[Any]) -> list[TextRow]:
    """Run `query`, whose first column is the number of the row that it found; in the order of `rows`."""
    found = {int(row[0] or 0): row for row in session.execute(query.encode(), params)}
    for number, row in enumerate(rows, 1):
        if number not in found:
            raise _not_there(table, row)
    return [found[number] for number in range(1, len(rows) + 1)]


def _not_there(table: Table, row: NetRow) -> ScratchError:
    return ScratchError(
        f"line {row.line}: {describe(table, _before(row))} is not there: "
        "the stream does not belong to this database state"
    )


def describe(table: Table, key: Key) -> str:
    """A row by its table and key, for messages."""
    cells = ", ".join(
        f"{name}={'NULL' if value is None else value}" for name, value in zip(locator(table), key, strict=True)
    )
    return f"row ({cells[:200]}) of {table.name}"


def _replace_keyless(session: Session, table: Table, rows: list[NetRow]) -> None:
    """The same for a table without a key: of several identical rows exactly as many go as the stream says.

    A row is told by the text of all its columns (a record's text is one-to-one with theirs), since
    types such as json and point have no equality.
    """
    there = [row for row in rows if row.before is not None]
    if there:
        given = Given(table.stored, [_before(row) for row in there])
        record = f"ROW({','.join(f't.{ident(column.name)}' for column in table.stored)})::text"
        # The copies of a row are numbered on both sides, and partitions count their ctids each for itself.
        query = f"""
            WITH gone AS MATERIALIZED(
                SELECT n,record,row_number()OVER(PARTITION BY record ORDER BY n)copy
                FROM(SELECT x.n,ROW({",".join(given.values())})::text COLLATE "C" record
                     FROM {given.source})x),
            held AS MATERIALIZED(
                SELECT place,tid,record,row_number()OVER(PARTITION BY record ORDER BY place,tid)copy
                FROM(SELECT t.tableoid place,t.ctid tid,{record} COLLATE "C" record
                     FROM {own_rows(table)} t)t
                WHERE record IN(SELECT record FROM gone))
            DELETE FROM {own_rows(table)} t USING gone JOIN held USING(record,copy)
            WHERE t.ctid=held.tid AND t.tableoid=held.place RETURNING gone.n"""
        _all_found(session, table, there, query, given.params)
    _insert(session, table, [row for row in rows if row.after is not None])

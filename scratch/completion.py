"""Fills a transaction's rows from the state before it, and checks that the two belong together.

Streams leave things out: the old row but its key under REPLICA IDENTITY DEFAULT, unchanged TOAST
values, and (wal2json) NaN and the infinities, which it prints as null.  The state before holds them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from scratch.arrays import Given, ident, own_rows
from scratch.canonical import Spellings, read_spellings
from scratch.catalog import Catalog, Column, Table
from scratch.errors import ScratchError
from scratch.net import Key, key_of, locator
from scratch.partitions import at_roots
from scratch.session import Session
from stream.model import Op, Row, RowChange, TableName, Transaction, Value

# Significant digits of the two float types under extra_float_digits=0, which older servers defaulted to.
_FLOAT_DIGITS = {"real": 6, "double precision": 15}
_NOT_FINITE = {"NaN", "Infinity", "-Infinity"}


def complete(session: Session, catalog: Catalog, transaction: Transaction) -> Transaction:
    """`transaction` with full rows of canonical text: all stored columns, none of the generated ones,
    and partitioned tables in the place of their partitions.

    The database behind `session` is in the state before the transaction, and stays so.  `old` comes
    from that state and from earlier changes of the transaction; every value of it that the stream holds
    is compared with it.  A value that the stream gives alike before and after is unchanged, so a
    null in both that stands for NaN stays NaN.
    Raises ScratchError, with the line of the stream, where the stream does not fit the database.
    """
    changes = [_stored(catalog, change) for change in at_roots(session, catalog, transaction.changes)]
    spellings = read_spellings(session, catalog, changes)
    spelled = [_spelled(catalog, spellings, change) for change in changes]
    states: dict[TableName, _State] = {}
    for name in dict.fromkeys(change.table for change in spelled):
        table = catalog[name]
        touched = [change for change in spelled if change.table == name]
        states[name] = _State(table, _read_rows(session, table, touched))
    completed = tuple(states[change.table].change(change) for change in spelled)
    for state in states.values():
        state.check_keys()
    return Transaction(
        transaction.index,
        completed,
        transaction.xid,
        transaction.line,
        transaction.last_line,
        transaction.size,
    )


def _stored(catalog: Catalog, change: RowChange) -> RowChange:
    """`change` without generated columns.  Raises ScratchError for a table or column that is not there."""
    if change.table not in catalog:
        raise ScratchError(f"line {change.line}: the database has no table {change.table}")
    by_name = catalog[change.table].by_name
    try:
        old, new = (
            None if row is None else {name: value for name, value in row.items() if not by_name[name].generated}
            for row in (change.old, change.new)
        )
    except KeyError as missing:
        raise ScratchError(f"line {change.line}: table {change.table} has no column {missing.args[0]}") from None
    return RowChange(change.op, change.table, old, new, change.line)


def _spelled(catalog: Catalog, spellings: Spellings, change: RowChange) -> RowChange:
    by_name = catalog[change.table].by_name
    old, new = (
        None if row is None else {name: spellings.canonical(by_name[name], value) for name, value in row.items()}
        for row in (change.old, change.new)
    )
    return RowChange(change.op, change.table, old, new, change.line)


def _keys(table: Table, changes: Iterable[RowChange]) -> list[Key]:
    """All keys that `changes` name, before or after; the latter to see where a key is taken already."""
    names = locator(table)
    found: dict[Key, None] = {}
    for change in changes:
        if change.op is not Op.INSERT:
            found[key_of(table, change)] = None
        if table.row_key and change.new is not None and all(name in change.new for name in names):
            found[tuple(change.new[name] for name in names)] = None
    return list(found)


def _read_rows(session: Session, table: Table, changes: Sequence[RowChange]) -> list[dict[str, Value]]:
    """The rows of the database that `changes` may be about."""
    keys = _keys(table, changes)
    if not keys:
        return []
    given = Given([table.by_name[name] for name in locator(table)], keys)
    if table.row_key:
        match = " AND ".join(f"t.{ident(column.name)}={given.value(i)}" for i, column in enumerate(given.columns))
        source = f"{given.source} JOIN {own_rows(table)} t ON {match}"
    else:
        record = f"ROW({','.join(f't.{ident(column.name)}' for column in table.stored)})::text"
        wanted = f"SELECT ROW({','.join(given.values())})::text FROM {given.source}"
        source = f'{own_rows(table)} t WHERE {record} COLLATE "C" IN({wanted})'
    cells = ",".join(f"t.{ident(column.name)}" for column in table.stored)
    names = [column.name for column in table.stored]
    rows = session.execute(f"SELECT {cells} FROM {source}".encode(), given.params)
    return [dict(zip(names, row, strict=True)) for row in rows]


class _State:
    """The rows of one table that a transaction touches, as they stand between its changes."""

    def __init__(self, table: Table, rows: Iterable[dict[str, Value]]) -> None:
        self._table = table
        self._names = locator(table)
        # A key may be held twice for a while: by deferred constraints, or by rows of a table without one.
        self._rows: dict[Key, list[Row]] = {}
        self._placed: dict[Key, int] = {}
        for row in rows:
            self._rows.setdefault(self._key(row), []).append(row)

    def _key(self, row: Row) -> Key:
        return tuple(row[name] for name in self._names)

    def change(self, change: RowChange) -> RowChange:
        """`change` with full rows, after moving the state past it."""
        held = None if change.op is Op.INSERT else self._take(change)
        new = None if change.new is None else self._new(change, held)
        if new is not None:
            key = self._key(new)
            self._rows.setdefault(key, []).append(new)
            self._placed[key] = change.line
        return RowChange(change.op, change.table, held, new, change.line)

    def _take(self, change: RowChange) -> Row:
        key = key_of(self._table, change)
        rows = self._rows.get(key, [])
        old = change.old or {}
        for place, row in enumerate(rows):
            if self._difference(row, old) is None:
                return rows.pop(place)
        cells = ", ".join(f"{name}={_show(value)}" for name, value in zip(self._names, key, strict=True))
        where = f"line {change.line}: row ({cells[:200]}) of {self._table.name}"
        if not rows:
            raise ScratchError(f"{where} is not there: the stream does not belong to this database state")
        name = self._difference(rows[0], old) or ""
        raise ScratchError(
            f"{where} has {name}={_show(rows[0][name])} in the database but {_show(old[name])} "
            "in the stream: the stream does not belong to this database state"
        )

    def _difference(self, row: Row, old: Row) -> str | None:
        """The first column in which the stream's `old` differs from `row`."""
        by_name = self._table.by_name
        for name, value in old.items():
            if row[name] != value and not _agrees(by_name[name], row[name], value):
                return name
        return None

    def _new(self, change: RowChange, held: Row | None) -> Row:
        old, new = change.old or {}, change.new or {}
        row: dict[str, Value] = {}
        for column in self._table.stored:
            name = column.name
            if held is not None and (name not in new or (name in old and old[name] == new[name])):
                row[name] = held[name]
            elif name in new:
                row[name] = new[name]
            else:
                raise ScratchError(f"line {change.line}: the insert into {self._table.name} lacks column {name}")
            if row[name] is None and column.not_null:
                hint = " (wal2json prints NaN and Infinity as null)" if _may_be_nan(column) else ""
                raise ScratchError(
                    f"line {change.line}: column {name} of {self._table.name} is NOT NULL, "
                    f"but the stream has null{hint}"
                )
        return row

    def check_keys(self) -> None:
        """At the end of the transaction no key is held twice."""
        if not self._table.row_key:
            return
        for key, rows in self._rows.items():
            if len(rows) > 1:
                raise ScratchError(
                    f"line {self._placed[key]}: {self._table.name} has a row with key "
                    f"({', '.join(map(_show, key))}) already: "
                    "the stream does not belong to this database state"
                )


def _may_be_nan(column: Column) -> bool:
    return column.base in _FLOAT_DIGITS or column.base == "numeric"


def _agrees(column: Column, held: Value, told: Value) -> bool:
    """Whether the stream's text can stand for the value that the database holds."""
    if told is None:
        return held in _NOT_FINITE and _may_be_nan(column)
    digits = _FLOAT_DIGITS.get(column.base)
    if held is None or digits is None or not math.isfinite(float(held)):
        return False
    return f"{float(held):.{digits}g}" == f"{float(told):.{digits}g}"


def _show(value: Value) -> str:
    return "NULL" if value is None else f"'{value[:60]}'"

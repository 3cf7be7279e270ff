"""Rows whose ids only a sequence can give, where the stream's ids leave some out.

A statement that failed, an ON CONFLICT or a savepoint rolled back took values that no row shows.  A script takes
them by statements that change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from emit.literal import quote, table_name
from emit.render import render
from encoder.effect import RowTuple
from encoder.literals import insert_rows
from encoder.trial import Laboratory
from encoder.yardstick import starter
from scratch.catalog import ALWAYS, Catalog, Table
from stream.model import Row, RowChange, TableName


def take_values(sequence: TableName, count: int, idle: TableName) -> str:
    """A statement that changes no row of `idle` and takes `count` values of the sequence."""
    call = f"nextval({quote(table_name(*sequence))})"
    query = f"SELECT {call}" if count == 1 else f"SELECT count({call})FROM generate_series(1,{count})"
    return f"DELETE FROM {table_name(*idle)} WHERE({query})<0"


def idle_table(catalog: Catalog) -> TableName:
    """The table with the shortest name of those that a statement without rows fires nothing on."""
    quiet = [name for name in catalog if not catalog[name].triggers] or list(catalog)
    return min(quiet, key=lambda name: (len(table_name(*name)), name), default=TableName("", ""))


def spaced(catalog: Catalog, lab: Laboratory, changes: Sequence[RowChange], timezone: str | None) -> list[str]:
    """The changes one by one in the order of the stream, rows with consecutive ids by one INSERT, and between
    them statements that take what the ids leave out; [] where no ids are left out."""
    idle = idle_table(catalog)
    made: list[str] = []
    rows: list[RowTuple] = []
    last: Table | None = None
    following: dict[TableName, int] = {}
    gaps = 0

    def flush() -> None:
        if rows and last is not None:
            made.append(render(insert_rows(last, rows, timezone)))
            rows.clear()

    for change in changes:
        table = catalog[change.table]
        new = change.new if change.old is None else None
        if new is None or table is not last:
            flush()
        if new is None:
            made += starter(catalog, [change], timezone)
            continue
        for sequence, value in _drawn(table, new):
            gap = value - following.get(sequence, lab.next_value(sequence))
            if gap > 0 and lab.behind(sequence, value):
                flush()
                made.append(take_values(sequence, gap, idle))
                gaps += 1
            following[sequence] = value + 1
        last = table
        rows.append(tuple(new[column.name] for column in table.stored))
    flush()
    return made if gaps else []


def _drawn(table: Table, row: Row) -> list[tuple[TableName, int]]:
    """The sequences that an INSERT draws from whatever it says, with the values of `row`."""
    return [
        (column.sequence, int(row[column.name] or 0))
        for column in table.columns
        if column.identity == ALWAYS and column.sequence is not None
    ]

"""Rows that are right but for which of them got which number of a sequence.

Rows are numbered in the order in which a statement meets others (a trigger logs each, an INSERT copies each), and where
nothing states that order it is that in which rows lie on disk.  Where they lie when the script runs hangs on every
statement before; only the last pass, which runs them all, can tell.  A candidate that does all but that is worth a try.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from encoder.effect import Effect, RowTuple
from scratch.catalog import Catalog, Table
from stream.model import TableName, Value


def as_numbered(catalog: Catalog, owed: Mapping[TableName, Iterable[RowTuple]], done: Effect) -> Effect | None:
    """`done` with the rows that it inserts under the numbers that the rows `owed` to each table have; None where that
    makes no difference, or where more than the numbers does.

    ```
    owed  {log: [(1,'a'), (2,'b')]}
    done  {log: [(1,'b'), (2,'a')]}   becomes   {log: [(1,'a'), (2,'b')]}
    ```
    """
    tables: dict[TableName, Counter[RowTuple]] = {}
    for name, rows in done.tables.items():
        other = _exchanged(catalog[name], rows, owed.get(name, ()))
        if other is not None:
            tables[name] = other
    return Effect({**done.tables, **tables}) if tables else None


def is_settled(catalog: Catalog, owed: Effect, done: Effect, *, hopeful: bool) -> bool:
    """Whether nothing of `owed` is left after `done`; `hopeful`: but for numbers."""
    if not owed.minus(done):
        return True
    wanted = {name: [row for row, count in rows.items() if count > 0] for name, rows in owed.tables.items()}
    other = as_numbered(catalog, wanted, done) if hopeful else None
    return other is not None and not owed.minus(other)


def _exchanged(table: Table, rows: Counter[RowTuple], owed: Iterable[RowTuple]) -> Counter[RowTuple] | None:
    place = _number(table)
    if place is None or len(rows) < 2 or any(count != 1 for count in rows.values()):
        return None
    by_number = {row[place]: row for row in owed}
    wanted = Counter(by_number[row[place]] for row in rows if row[place] in by_number)
    if len(wanted) < len(rows) or wanted == rows:
        return None
    return wanted if _unnumbered(wanted, place) == _unnumbered(rows, place) else None


def _number(table: Table) -> int | None:
    """The place of the column that a sequence numbers rows by, if that is the table's key."""
    if len(table.row_key) != 1 or table.by_name[table.row_key[0]].sequence is None:
        return None
    return [column.name for column in table.stored].index(table.row_key[0])


def _unnumbered(rows: Iterable[RowTuple], place: int) -> Counter[tuple[Value, ...]]:
    return Counter((*row[:place], *row[place + 1 :]) for row in rows)

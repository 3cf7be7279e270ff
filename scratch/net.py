"""The net effect of a transaction's row changes on one table.

Row by row application has to respect the order in which unique keys were freed and taken, which a
stream does not always show (one UPDATE may permute a key, a constraint may be deferred).  The net
effect has no order: each row that was there before, and what became of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from scratch.catalog import Table
from scratch.errors import ScratchError
from stream.model import Op, Row, RowChange, Value

Key: TypeAlias = tuple[Value, ...]


@dataclass(slots=True)
class NetRow:
    """One row: `before` is its key in the state before (None: it is new), `after` the cells that the
    stream gives it (None: deleted), `line` the stream's first line about it."""

    before: Key | None
    after: Row | None
    line: int


def locator(table: Table) -> tuple[str, ...]:
    """The columns by whose values a change finds its row: the row key, else all stored columns."""
    return table.row_key or tuple(column.name for column in table.stored)


def key_of(table: Table, change: RowChange) -> Key:
    """The key of the row that an update or delete finds.

    A key column that `old` lacks did not change, so `new` tells it.  Raises ScratchError where the
    stream does not tell it at all.
    """
    known = {**(change.new or {}), **(change.old or {})}
    if not table.row_key and (change.old is None or not all(column.name in change.old for column in table.stored)):
        raise ScratchError(
            f"line {change.line}: {table.name} has no primary key, so its rows can be told apart only in a "
            "stream with REPLICA IDENTITY FULL"
        )
    try:
        return tuple(known[name] for name in locator(table))
    except KeyError as missing:
        raise ScratchError(
            f"line {change.line}: the stream lacks key column {missing.args[0]} of {table.name}"
        ) from None


def net_effect(table: Table, changes: Iterable[RowChange]) -> list[NetRow]:
    """Each touched row of `table` once, in the order of the stream; rows that came and went are left out."""
    names = locator(table)
    live: dict[Key, list[NetRow]] = {}
    found: list[NetRow] = []
    for change in changes:
        if change.op is Op.INSERT:
            row = NetRow(None, change.new, change.line)
            found.append(row)
        else:
            key = key_of(table, change)
            taken = _take(live.get(key, []), change.old or {})
            if taken is None:
                taken = NetRow(key, {}, change.line)
                found.append(taken)
            row = taken
            row.after = None if change.new is None else {**(row.after or {}), **change.new}
        if row.after is not None:
            # Only cells that the key needs are certain to be known: a partial `new` keeps its old key.
            after = tuple(row.after.get(name, (change.old or {}).get(name)) for name in names)
            live.setdefault(after, []).append(row)
    return [row for row in found if row.before is not None or row.after is not None]


def _take(rows: list[NetRow], old: Row) -> NetRow | None:
    """Take out of `rows` the one that `old` describes; where a key is held twice, the rest of `old` tells."""
    for place, row in enumerate(rows):
        after = row.after or {}
        if all(name not in after or after[name] == value for name, value in old.items()):
            return rows.pop(place)
    return None


def by_columns(rows: Sequence[NetRow], names: Sequence[str]) -> list[tuple[tuple[str, ...], list[NetRow]]]:
    """`rows` grouped by which of the columns `names` their `after` holds, groups in order of appearance."""
    groups: dict[tuple[str, ...], list[NetRow]] = {}
    for row in rows:
        present = tuple(name for name in names if name in (row.after or {}))
        groups.setdefault(present, []).append(row)
    return list(groups.items())

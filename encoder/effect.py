"""What a transaction owes and what a statement did, in one form: a change of row multisets.

An effect maps a table's rows to how many more (or fewer) of them there are.  Effects add up; a
statement list is exact when its effect equals the one owed, whatever detours it took.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from scratch.catalog import Catalog, Table
from stream.model import Row, RowChange, TableName, Value

# All stored columns of one row, in the table's order.
RowTuple: TypeAlias = tuple[Value, ...]
Key: TypeAlias = tuple[Value, ...]


@dataclass
class Effect:
    """Row multiset changes by table; entries that cancel out are dropped."""

    tables: dict[TableName, Counter[RowTuple]] = field(default_factory=dict)

    def add(self, table: TableName, row: RowTuple, count: int) -> None:
        rows = self.tables.setdefault(table, Counter())
        total = rows[row] + count
        if total:
            rows[row] = total
        else:
            del rows[row]
            if not rows:
                del self.tables[table]

    def minus(self, other: Effect) -> Effect:
        """What is still owed of `self` once `other` is done."""
        left = Effect({table: Counter(rows) for table, rows in self.tables.items()})
        for table, rows in other.tables.items():
            for row, count in rows.items():
                left.add(table, row, -count)
        return left

    def weight(self) -> int:
        """How many rows come and go in all."""
        return sum(abs(count) for rows in self.tables.values() for count in rows.values())

    def __bool__(self) -> bool:
        return bool(self.tables)


@dataclass(frozen=True, slots=True)
class RowDelta:
    """One row by its key: before (None: inserted) and after (None: deleted)."""

    table: TableName
    key: Key
    before: RowTuple | None
    after: RowTuple | None


@dataclass(frozen=True)
class TableEffect:
    """The net effect on one table, by rows.  Inserts keep the order of the stream where it is known; `idle` are rows
    that statements met and left as they were, as far as the stream tells."""

    table: Table
    inserts: tuple[RowTuple, ...] = ()
    deletes: tuple[RowTuple, ...] = ()
    updates: tuple[tuple[RowTuple, RowTuple], ...] = ()
    idle: tuple[RowTuple, ...] = ()

    def anew(self) -> TableEffect:
        """The same with deletes and inserts in the place of updates."""
        going = tuple(before for before, _ in self.updates)
        coming = tuple(after for _, after in self.updates)
        return TableEffect(self.table, (*self.inserts, *coming), (*self.deletes, *going))

    def key(self, row: RowTuple) -> Key:
        return key_of(self.table, row)


def stored_row(table: Table, row: Row) -> RowTuple:
    """`row` as a tuple of the stored columns.  Raises KeyError where one is missing."""
    return tuple(row[column.name] for column in table.stored)


def key_of(table: Table, row: RowTuple) -> Key:
    """The row key of `row`; the whole row where the table has none."""
    if not table.row_key:
        return row
    places = {column.name: place for place, column in enumerate(table.stored)}
    return tuple(row[places[name]] for name in table.row_key)


def effect_of(catalog: Catalog, changes: Iterable[RowChange]) -> Effect:
    """The effect of completed row changes (see scratch.changes.complete)."""
    effect = Effect()
    for change in changes:
        table = catalog[change.table]
        if change.old is not None:
            effect.add(change.table, stored_row(table, change.old), -1)
        if change.new is not None:
            effect.add(change.table, stored_row(table, change.new), 1)
    return effect


def _take_pairs(
    going: Counter[RowTuple], coming: list[RowTuple], before: Mapping[RowTuple, Sequence[RowTuple]]
) -> list[tuple[RowTuple, RowTuple]]:
    """Takes out of `going` and `coming` the pairs that `before` knows."""
    pairs: list[tuple[RowTuple, RowTuple]] = []
    left: list[RowTuple] = []
    for row in coming:
        old = next((old for old in before.get(row, ()) if going[old] > 0), None)
        if old is None:
            left.append(row)
        else:
            going[old] -= 1
            pairs.append((old, row))
    coming[:] = left
    return pairs


@dataclass(frozen=True)
class Origins:
    """Where rows that come are from: by table and new row, the place of its first version in the stream,
    and, where the key does not tell (it changed, or there is none), the row that it was before (several where
    several became equal).  `idle` are rows that were updated to what they were."""

    places: Mapping[TableName, Mapping[RowTuple, int]] = field(default_factory=dict)
    before: Mapping[TableName, Mapping[RowTuple, Sequence[RowTuple]]] = field(default_factory=dict)
    idle: Mapping[TableName, Sequence[RowTuple]] = field(default_factory=dict)


def table_effects(catalog: Catalog, effect: Effect, origins: Origins | None = None) -> list[TableEffect]:
    """`effect` by table, sorted by name: a row that goes and one that comes under the same key are an update.

    Without a key it takes `origins` to tell.  Rows that come stand in the order of the stream where
    `origins` knows it, else sorted.
    """
    origins = origins or Origins()
    found = []
    for name in sorted(effect.tables):
        table = catalog[name]
        places = origins.places.get(name, {})
        before = origins.before.get(name, {})
        going = Counter({row: -count for row, count in effect.tables[name].items() if count < 0})
        coming = [row for row, count in effect.tables[name].items() if count > 0 for _ in range(count)]
        coming.sort(key=lambda row: (places.get(row, len(places)), sortable(row)))
        updates = _take_pairs(going, coming, before)
        inserts = []
        by_key = {key_of(table, row): row for row in going.elements()} if table.row_key else {}
        for row in coming:
            partner = by_key.pop(key_of(table, row), None)
            if partner is not None:
                going[partner] -= 1
                updates.append((partner, row))
            else:
                inserts.append(row)
        deletes = sorted(going.elements(), key=sortable)
        updates.sort(key=lambda pair: sortable(pair[0]))
        idle = tuple(origins.idle.get(name, ()))
        found.append(TableEffect(table, tuple(inserts), tuple(deletes), tuple(updates), idle))
    return found


def stream_origins(catalog: Catalog, changes: Sequence[RowChange], twins: Collection[TableName] = ()) -> Origins:
    """Origins of the rows that `changes` bring; `twins` are tables in which equal rows cannot be told apart."""
    first: dict[tuple[TableName, Key], tuple[int, RowTuple | None, RowTuple]] = {}
    places: dict[TableName, dict[RowTuple, int]] = {}
    before: dict[TableName, dict[RowTuple, list[RowTuple]]] = {}
    for place, change in enumerate(changes):
        if change.new is None:
            continue
        table = catalog[change.table]
        row = stored_row(table, change.new)
        origin: tuple[int, RowTuple | None] = (place, None)
        if change.old is not None:
            old = stored_row(table, change.old)
            origin = first.pop((change.table, key_of(table, old)), (place, old))[:2]
        first[(change.table, key_of(table, row))] = *origin, row
        places.setdefault(change.table, {})[row] = origin[0]
        changed_key = origin[1] is not None and key_of(table, origin[1]) != key_of(table, row)
        if origin[1] is not None and changed_key and change.table not in twins:
            before.setdefault(change.table, {}).setdefault(row, []).append(origin[1])
    return Origins(places, before, _idle(first))


def _idle(
    last: Mapping[tuple[TableName, Key], tuple[int, RowTuple | None, RowTuple]],
) -> dict[TableName, list[RowTuple]]:
    """The rows that are at the end what they were at the beginning."""
    found: dict[TableName, list[RowTuple]] = {}
    for (table, _), (_, before, after) in last.items():
        if before == after:
            found.setdefault(table, []).append(after)
    return {table: sorted(rows, key=sortable) for table, rows in found.items()}


def sortable(row: RowTuple) -> tuple[tuple[bool, int, str], ...]:
    """A sort key for rows with NULLs; digits by value so that ids come in their order."""
    return tuple(
        (True, 0, "") if value is None else (False, int(value) if _small_int(value) else 0, value) for value in row
    )


def _small_int(text: str) -> bool:
    return len(text) < 19 and (text.isdecimal() or (text[:1] == "-" and text[1:].isdecimal())) and text.isascii()

"""Columns that a BEFORE trigger fills by itself: they need not be given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from psycopg import Error

from emit.literal import literal
from encoder.frame import State, identifier_sql, rows_sql, table_sql
from encoder.insertion.slots import Slot
from scratch.catalog import Table
from scratch.session import rows
from stream.model import Value

# A table of more columns that its triggers might fill is not asked about.
_MAX_ASKED = 40


def filled_by_triggers(state: State, table: Table, slots: Sequence[Slot]) -> list[Slot]:
    """`slots`, those among them as defaults that the table's triggers give just so in the first and the last row.

    Asked of the server by inserting these rows without the column; nothing of it stays.
    """
    definitions = [trigger.definition.upper() for trigger in table.triggers]
    asked = [slot for slot in slots if slot.explicit and not slot.default and slot.sequence is None]
    if not any(" BEFORE " in text and "INSERT" in text for text in definitions) or len(asked) > _MAX_ASKED:
        return list(slots)
    filled = {slot.name for slot in asked if _fills(state, table, slots, {slot.name})}
    if len(filled) > 1 and not _fills(state, table, slots, filled):
        return list(slots)
    return [replace(slot, default=True) if slot.name in filled else slot for slot in slots]


def _fills(state: State, table: Table, slots: Sequence[Slot], without: set[str]) -> bool:
    given = [slot for slot in slots if slot.explicit and slot.name not in without]
    wanted = [slot for slot in slots if slot.name in without]
    names = ",".join(identifier_sql(slot.name) for slot in given)
    back = ",".join(identifier_sql(slot.name) for slot in wanted)
    try:
        with state.session.transaction(force_rollback=True):
            for place in {0: None, len(slots[0].values) - 1: None}:
                _clear(state, table, {slot.name: slot.values[place] for slot in slots})
                cells = ",".join(literal(slot.values[place], slot.column.base, context="assign") for slot in given)
                query = f"INSERT INTO {table_sql(table.name)}({names}) VALUES({cells}) RETURNING {back}"
                if rows(state.session, query) != [tuple(slot.values[place] for slot in wanted)]:
                    return False
    except Error:
        return False
    return True


def _clear(state: State, table: Table, row: Mapping[str, Value]) -> None:
    """Delete what holds the unique keys of `row`, triggers and references aside: the transaction that is searched may
    delete it too."""
    state.session.execute(b"SET LOCAL session_replication_role=replica")
    for key in (table.primary_key, *table.unique_keys):
        if key and None not in [row[name] for name in key]:
            same = " AND ".join(f"{identifier_sql(name)}=%s" for name in key)
            state.session.execute(f"DELETE FROM {rows_sql(table)} WHERE {same}".encode(), [row[n] for n in key])
    state.session.execute(b"SET LOCAL session_replication_role=origin")

"""Tables that refer to the same table as another and at most once to each of its rows.

A row then leads to a row of such a table as by a foreign key: a message to the stream that has its recipient.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from encoder.frame import State
from scratch.catalog import Catalog, ForeignKey, Table
from stream.model import TableName


def with_cousins(state: State, table: Table, wanted: Collection[TableName]) -> State | None:
    """`state` with a foreign key more from `table` to each of its cousins among `wanted`; None where it has none."""
    found = [
        _foreign_key(own, other)
        for own in table.foreign_keys
        for other in state.catalog.referenced_by.get(own.target, ())
        if len(own.columns) == 1 and own.target_columns == other.target_columns
        if other.table != table.name and other.table in wanted and _at_most_once(state, other)
    ]
    if not found:
        return None
    more = replace(table, foreign_keys=(*table.foreign_keys, *found))
    return state.under(Catalog({**state.catalog.tables, table.name: more}, state.catalog.referenced_by))


def _foreign_key(own: ForeignKey, other: ForeignKey) -> ForeignKey:
    """What leads from the rows of the one to those of the other that refer to the same row."""
    name = f"{own.name}={other.name}"
    return replace(own, name=name, target=other.table, target_columns=other.columns)


def _at_most_once(state: State, key: ForeignKey) -> bool:
    """Whether no two rows refer to the same one; what the rows say is enough."""
    texts = [text for text in state.frame(key.table).texts(key.columns[0]) if text is not None]
    return len(set(texts)) == len(texts)

"""References that no foreign key states: `object_id` beside a type, `page_id` of a log.

Where they lead is told by names.  The rows to select have a column of one text, or refer to one row with such a text,
that the other table is called by (`content_type_id` of the row ('dcim', 'interface') stands for dcim_interface), or
the column itself is called by the table (`message_id`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from encoder.frame import Frame, State
from encoder.selection.links import Link
from encoder.selection.model import Labels
from scratch.catalog import Column, Table
from stream.model import TableName, Value

_INTEGERS = frozenset({"smallint", "integer", "bigint"})
_TEXTS = frozenset({"text", "character varying"})
_NO_LETTER = re.compile(r"[^a-z0-9]")
# Shorter names mean nothing.
_SHORTEST = 3


def soft_parents(state: State, table: TableName, labels: Labels) -> list[Link]:
    """Links from the columns of `table` that refer to rows without a foreign key, for the rows to select; those whose
    names agree best come first."""
    frame = state.frame(table)
    rows = np.flatnonzero(labels.must).tolist()
    columns = list(_referring(frame.table))
    if not columns or not rows:
        return []
    told = _told(state, frame, rows)
    found: list[tuple[bool, TableName, str, str]] = []
    for column in columns:
        values = {frame.texts(column.name)[row] for row in rows}
        if None in values or not all(map(_is_number, values)):
            continue
        names = {*told, _plain(column.name.removesuffix("_id"))}
        for other in state.catalog:
            exact = _agrees(other, names)
            key = state.catalog[other].primary_key
            if exact is None or len(key) != 1 or state.catalog[other].by_name[key[0]].base not in _INTEGERS:
                continue
            if values <= set(state.frame(other).texts(key[0])):
                found.append((not exact, other, column.name, key[0]))
    return [Link(table, (own,), other, (key,)) for _, other, own, key in sorted(found)]


def _referring(table: Table) -> Iterator[Column]:
    """Columns called like references that no foreign key explains."""
    explained = {name for key in table.foreign_keys for name in key.columns}
    for column in table.columns:
        if not column.name.endswith("_id") or column.name in explained or column.sequence or column.identity:
            continue
        if column.base in _INTEGERS or column.base in _TEXTS:
            yield column


def _told(state: State, frame: Frame, rows: list[int]) -> set[str]:
    """The texts that all of the rows have, or the one row that all refer to."""
    found = set(_texts_of(frame, rows))
    for key in frame.table.foreign_keys:
        above = {int(row) for row in frame.parent(key)[rows]}
        if len(above) == 1 and above != {-1}:
            found.update(_texts_of(state.frame(key.target), list(above)))
    return {name for name in map(_plain, found) if len(name) >= _SHORTEST}


def _texts_of(frame: Frame, rows: list[int]) -> Iterator[str]:
    for column in frame.table.columns:
        if column.base in _TEXTS:
            values = {frame.texts(column.name)[row] for row in rows}
            yield from (value for value in values if value is not None and len(values) == 1)


def _agrees(table: TableName, names: set[str]) -> bool | None:
    """Whether the table is called exactly by one of `names`, apart from a prefix; None if its name ends with none."""
    own = _plain(table.name)
    if _plain(table.name.split("_", 1)[-1]) in names or own in names:
        return True
    return False if any(own.endswith(name) for name in names if len(name) >= _SHORTEST) else None


def _plain(name: str) -> str:
    return _NO_LETTER.sub("", name.lower())


def _is_number(value: Value) -> bool:
    return value is not None and value.isdecimal() and value.isascii()

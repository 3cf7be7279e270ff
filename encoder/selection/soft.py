"""References that no foreign key states: `object_id` beside a type, `page_id` of a log.

Where they lead is told by names.  The rows to select have a column of one text, or refer to one row with such a text,
that the other table is called by (`content_type_id` of the row ('dcim', 'interface') stands for dcim_interface), or
the column itself is called by the table (`message_id`).  Where no name tells, many different values that are all keys
of one of few tables do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import numpy as np

from encoder.frame import Frame, State
from encoder.selection.links import Link
from encoder.selection.model import Labels
from scratch.catalog import Column, Table
from stream.model import TableName, Value

_INTEGERS = frozenset({"smallint", "integer", "bigint"})
_TEXTS = frozenset({"text", "character varying"})
_KEYS = "keys"
_NO_LETTER = re.compile(r"[^a-z0-9]")
# Shorter names mean nothing.
_SHORTEST = 3
# Fewer values are keys of too many tables; how many tables are taken by their keys alone.
_FEWEST, _COVERING = 10, 3


def soft_parents(state: State, table: TableName, labels: Labels) -> list[Link]:
    """Links from the columns of `table` that refer to rows without a foreign key, for the rows to select; those whose
    names agree best come first."""
    frame = state.frame(table)
    rows = np.flatnonzero(labels.must).tolist()
    columns = list(_referring(frame.table))
    if not columns or not rows:
        return []
    told = _told(state, frame, rows)
    found: list[Link] = []
    for column in columns:
        values = {frame.texts(column.name)[row] for row in rows}
        if None not in values and all(map(_is_number, values)):
            names = {*told, _plain(column.name.removesuffix("_id"))}
            leads = _named(state, names, values) or _covering(state, values)
            found += [Link(table, (column.name,), other, state.catalog[other].primary_key) for other in leads]
    return found


def _named(state: State, names: set[str], values: set[Value]) -> list[TableName]:
    """Tables with these keys that are called by one of `names`, exactly first."""
    agreeing = [(not exact, name) for name in state.catalog if (exact := _agrees(name, names)) is not None]
    return [name for _, name in sorted(agreeing) if values <= _keys(state, name)]


def _covering(state: State, values: set[Value]) -> list[TableName]:
    """The smallest tables with these keys, if there are many."""
    if len(values) < _FEWEST:
        return []
    large = sorted((state.frame(name).size, name) for name in state.catalog if state.frame(name).size >= len(values))
    return list(islice((name for _, name in large if values <= _keys(state, name)), _COVERING))


def _keys(state: State, name: TableName) -> set[Value]:
    """The keys of the table's rows; none where they are no integers."""
    table, frame = state.catalog[name], state.frame(name)
    if len(table.primary_key) != 1 or table.by_name[table.primary_key[0]].base not in _INTEGERS:
        return set()
    if _KEYS not in frame.made:
        frame.made[_KEYS] = set(frame.texts(table.primary_key[0]))
    found: set[Value] = frame.made[_KEYS]
    return found


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

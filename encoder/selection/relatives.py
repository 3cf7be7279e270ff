"""Atoms about other rows of the same table: those with equal values of one or two columns.

`g IN(SELECT g FROM t WHERE …)`, groups by size, a column beside an aggregate of its group or of the whole table, and
pairs that are mirrored (`(a,b)IN(SELECT b,a FROM t)`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from encoder.budget import Budget
from encoder.frame import State
from encoder.selection.linked import search
from encoder.selection.links import Link
from encoder.selection.masks import Offers
from encoder.selection.model import Labels, MaskedAtom
from stream.model import TableName

# Types without equality, or of which no one makes groups.
_UNGROUPED = frozenset({"json", "jsonb", "xml", "point", "bytea", "real", "double precision", "boolean"})
_COLUMNS = 6  # columns of which pairs are formed


def atoms(
    state: State,
    table: TableName,
    labels: Labels,
    budget: Budget,
    timezone: str | None,
    *,
    partial: bool = False,
) -> Iterator[MaskedAtom]:
    """Atoms on the table's other rows; see encoder.selection.masks.Offers for which are taken."""
    offers = Offers(state.catalog[table], labels, partial)
    search(state, _links(state, table), offers, budget, timezone)
    yield from offers


def _links(state: State, table: TableName) -> Iterator[Link]:
    yield Link(table, (), table, ())
    groups = group_columns(state, table)
    for columns in groups:
        yield Link(table, columns, table, columns)
    single = [columns[0] for columns in groups if len(columns) == 1]
    by_name = state.catalog[table].by_name
    for first, second in combinations(single, 2):
        if by_name[first].base == by_name[second].base and _referred(state, table, first, second):
            yield Link(table, (first, second), table, (second, first))
            yield Link(table, (first,), table, (second,))
            yield Link(table, (second,), table, (first,))


def _referred(state: State, table: TableName, first: str, second: str) -> bool:
    """Whether both columns refer to the same table."""
    targets = {key.columns: key.target for key in state.catalog[table].foreign_keys}
    return (first,) in targets and targets[(first,)] == targets.get((second,))


def group_columns(state: State, table: TableName) -> list[tuple[str, ...]]:
    """Columns, and pairs of columns, some of whose values several rows share: those that make the fewest
    groups come last, since they say least about a row."""
    frame = state.frame(table)
    counted: list[tuple[int, str]] = []
    for column in state.catalog[table].columns:
        if column.base in _UNGROUPED:
            continue
        distinct = len(frame.coded(column.name).values)
        if 1 < distinct < int((frame.coded(column.name).codes >= 0).sum()):
            counted.append((distinct, column.name))
    counted.sort(key=lambda item: -item[0])
    singles = [name for _, name in counted]
    foreign = {name for key in state.catalog[table].foreign_keys for name in key.columns}
    likely = sorted(singles, key=lambda name: name not in foreign)[:_COLUMNS]
    pairs = combinations(sorted(likely, key=singles.index), 2)
    return [*((name,) for name in singles), *(pair for pair in pairs if _splits(state, table, pair))]


def _splits(state: State, table: TableName, pair: tuple[str, str]) -> bool:
    """Whether the pair makes more groups than either column, and still fewer than rows."""
    frame = state.frame(table)
    first, second = (frame.coded(name) for name in pair)
    known = (first.codes >= 0) & (second.codes >= 0)
    both = len(set(zip(first.codes[known].tolist(), second.codes[known].tolist(), strict=True)))
    return max(len(first.values), len(second.values)) < both < int(known.sum())

"""Atoms about rows that refer to a row, or that share values with it.

- child rows, by every foreign key that refers to the table;
- siblings: rows of another table that refer to the same row of a third one;
- rows that a column refers to without a foreign key;
- rows of another table with equal values in columns of the same name (a natural key, or a generic relation of an
  object's id and its type), and rows that refer to the key without a foreign key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from encoder.budget import Budget
from encoder.frame import State
from encoder.selection.linked import search
from encoder.selection.links import Link
from encoder.selection.masks import Offers
from encoder.selection.model import Labels, MaskedAtom
from encoder.selection.soft import soft_parents
from scratch.catalog import Column, Table
from stream.model import TableName

# Types whose equal values are a sign of a relation.
_KEYS = frozenset({"smallint", "integer", "bigint", "text", "character varying", "character", "uuid", "inet", "cidr"})
_INTEGERS = frozenset({"smallint", "integer", "bigint"})
_SHARED = 4  # shared columns of two tables of which pairs are formed
# Atoms that exclude less than this part of the rows never pay for their length.
_SHARE = 50


def atoms(
    state: State,
    table: TableName,
    labels: Labels,
    budget: Budget,
    timezone: str | None,
    *,
    partial: bool = False,
    bound: int | None = None,
    among: frozenset[TableName] | None = None,
) -> Iterator[MaskedAtom]:
    """Atoms on other tables' rows, those `among` only; see encoder.selection.masks.Offers for which are taken."""
    offers = Offers(state.catalog[table], labels, budget, partial=partial, share=_SHARE, bound=bound)
    children = _children(state, table)
    search(state, _by_size(state, table, children, among), offers, budget, timezone, depth=1)
    soft = [link for link in soft_parents(state, table, labels) if among is None or link.other in among]
    search(state, soft, offers, budget, timezone, depth=1)
    relations = [link for link in _relations(state, table) if link not in children]
    search(state, _by_size(state, table, relations, among), offers, budget, timezone, depth=0)
    yield from offers


def _by_size(state: State, table: TableName, links: Iterable[Link], among: frozenset[TableName] | None) -> list[Link]:
    """Small tables first: they cost least, so that the most links are seen before the budget ends."""
    asked = (link for link in links if among is None or link.other in among)
    sized = ((state.frame(link.other).size, link.other, link.own, link.columns) for link in asked)
    return [Link(table, own, other, columns) for _, other, own, columns in sorted(set(sized))]


def _children(state: State, table: TableName) -> list[Link]:
    return [Link(table, key.target_columns, key.table, key.columns) for key in state.catalog.below(table)]


def _relations(state: State, name: TableName) -> Iterator[Link]:
    table = state.catalog[name]
    for other_name in state.catalog:
        if other_name == name:
            continue
        other = state.catalog[other_name]
        pairs = list(_shared_columns(state, table, other))
        for own, columns in pairs:
            yield Link(name, (own,), other_name, (columns,))
        for first, second in combinations(pairs[:_SHARED], 2):
            if first[0] != second[0] and first[1] != second[1]:
                yield Link(name, (first[0], second[0]), other_name, (first[1], second[1]))
        yield from _soft_references(table, other)


def _shared_columns(state: State, table: Table, other: Table) -> Iterator[tuple[str, str]]:
    """Pairs of columns of the two tables that may hold the same things."""
    mine, theirs = _referring(table), _referring(other)
    for column in table.columns:
        for candidate in other.columns:
            if column.base != candidate.base or column.base not in _KEYS:
                continue
            if column.name in mine or candidate.name in theirs:
                if mine.get(column.name, 0) == theirs.get(candidate.name, 1):
                    yield column.name, candidate.name
            elif column.name == candidate.name and not _is_serial(column):
                keys = ((table, column), (other, candidate))
                if column.name.endswith("_id") or any(_tells_apart(state, *key) for key in keys):
                    yield column.name, candidate.name


def _soft_references(table: Table, other: Table) -> Iterator[Link]:
    """`object_id` and its like: integers named as a reference that no foreign key explains."""
    if len(table.primary_key) != 1 or table.by_name[table.primary_key[0]].base not in _INTEGERS:
        return
    theirs = _referring(other)
    for column in other.columns:
        named = column.name.endswith("_id") and column.name not in theirs
        if named and column.base in _INTEGERS and not _is_serial(column):
            yield Link(table.name, table.primary_key, other.name, (column.name,))


def _referring(table: Table) -> dict[str, tuple[TableName, str]]:
    """Column → what it refers to, of foreign keys of one column."""
    keys = (key for key in table.foreign_keys if len(key.columns) == 1)
    return {key.columns[0]: (key.target, key.target_columns[0]) for key in keys}


def _tells_apart(state: State, table: Table, column: Column) -> bool:
    """Whether most values of the column are in one row only, as those of a natural key are."""
    coded = state.frame(table.name).coded(column.name)
    return 2 * len(coded.values) > int((coded.codes >= 0).sum()) > 0


def _is_serial(column: Column) -> bool:
    """Numbers from a sequence: equal ones in two tables mean nothing."""
    return column.sequence is not None or bool(column.identity)

"""The relations in which a table's rows stand to rows of others, near ones and far ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, islice

from emit.literal import literal
from encoder.assignment.addresses import NETWORKS
from encoder.assignment.pathtree import path_trees
from encoder.assignment.problem import INTEGERS, STRINGS, Problem
from encoder.assignment.relations import Relation
from encoder.frame import State, identifier_sql, rows_sql
from encoder.selection.model import Path
from scratch.catalog import Catalog, Column, ForeignKey, Table
from scratch.session import rows
from stream.model import TableName

_MAX_RELATIONS = 16
_MAX_NEAR = 64
# Relations of each farther kind, and names by which the tables are found that rows are named in.
_MAX_FAR = 24
_MAX_NAMED = 12
# References by which rows may be alike.
_MAX_SHARED = 2
_MAX_ROWS = 20_000


@lru_cache(maxsize=8)
def near_relations(problem: Problem) -> tuple[Relation, ...]:
    """Children first, then rows under the same parent; those without any related row left out."""
    if problem.light:
        return ()
    return tuple(islice(_usable(chain(_children(problem), _siblings(problem))), _MAX_NEAR))


def relations(problem: Problem) -> tuple[Relation, ...]:
    """The first of `near_relations`, among which sums and products are looked for."""
    return near_relations(problem)[:_MAX_RELATIONS]


@lru_cache(maxsize=8)
def far_relations(problem: Problem) -> tuple[Relation, ...]:
    """The rest of `near_relations`; rows that a column names which is no foreign key; grandchildren; children of rows
    under the same parent; of all these, those alike in one more reference; rows under the same grandparent; rows within
    which the row lies, or that lie within it."""
    if problem.light:
        return ()
    kinds = (_named, _grandchildren, _nephews, _composite, _uncles, _ancestors, _networks)
    farther = (found for kind in kinds for found in islice(_usable(kind(problem)), _MAX_FAR))
    return (*near_relations(problem)[_MAX_RELATIONS:], *farther)


def _usable(found: Iterable[Relation]) -> Iterator[Relation]:
    seen: set[tuple[object, ...]] = set()
    for relation in found:
        if relation.mark not in seen:
            seen.add(relation.mark)
            if 0 < len(relation.flat) <= _MAX_ROWS:
                yield relation


def _children(problem: Problem) -> Iterator[Relation]:
    catalog = problem.state.catalog
    for key in catalog.below(problem.table.name):
        yield Relation(problem, catalog[key.table], key.target_columns, key.columns, True)


def _siblings(problem: Problem) -> Iterator[Relation]:
    catalog = problem.state.catalog
    for own in _telling(problem, problem.table, problem.rows):
        for key in catalog.referenced_by.get(own.target, ()):
            if key.target_columns == own.target_columns:
                yield Relation(problem, catalog[key.table], own.columns, key.columns, False)


def _telling(problem: Problem, table: Table, chosen: Sequence[int]) -> list[ForeignKey]:
    """The foreign keys of a table, those first that tell most of the chosen rows (-1 for none) apart."""

    def distinct(key: ForeignKey) -> int:
        columns = [problem.state.frame(table.name).texts(name) for name in key.columns]
        return len({tuple(column[row] for column in columns) for row in chosen if row >= 0})

    return sorted(table.foreign_keys, key=lambda key: -distinct(key))


def _grandchildren(problem: Problem) -> Iterator[Relation]:
    catalog = problem.state.catalog
    for key in catalog.referenced_by.get(problem.table.name, ()):
        for below in catalog.referenced_by.get(key.table, ()):
            yield Relation(problem, catalog[below.table], key.target_columns, key.columns, True, via=below)


def _nephews(problem: Problem) -> Iterator[Relation]:
    catalog = problem.state.catalog
    for own in _telling(problem, problem.table, problem.rows):
        for key in catalog.referenced_by.get(own.target, ()):
            if key.target_columns == own.target_columns and key.table != problem.table.name:
                for below in catalog.referenced_by.get(key.table, ()):
                    if below.table != problem.table.name:
                        yield Relation(problem, catalog[below.table], own.columns, key.columns, False, via=below)


def _uncles(problem: Problem) -> Iterator[Relation]:
    catalog = problem.state.catalog
    for own in _telling(problem, problem.table, problem.rows):
        for above in _telling(problem, catalog[own.target], problem.follow(own, problem.rows)):
            for key in catalog.referenced_by.get(above.target, ()):
                if key.target_columns == above.target_columns:
                    yield Relation(problem, catalog[key.table], above.columns, key.columns, False, path=(own,))


def _composite(problem: Problem) -> Iterator[Relation]:
    """Rows related by one reference of which only those are meant that share another: with the row itself, or with one
    that it refers to."""
    shared = _shared(problem)
    for relation in chain(_siblings(problem), _nephews(problem), _children(problem), _grandchildren(problem)):
        for link in relation.other.foreign_keys:
            if (
                len(link.columns) > 1
                or link == relation.via
                or (relation.via is None and link.columns == relation.theirs)
            ):
                continue
            for path, column in shared.get(link.target, ())[:_MAX_SHARED]:
                if (path or (column,) != relation.ours) and any(len(group) > 1 for group in relation.groups):
                    yield replace(relation, alike=((path, column, link.columns[0]),))


def _shared(problem: Problem) -> dict[TableName, list[tuple[Path, str]]]:
    """The tables that the row, and those that it refers to, refer to by one column: from where and by which."""
    found: dict[TableName, list[tuple[Path, str]]] = {}
    paths: list[Path] = [(), *(path for path, _ in problem.reached(1))]
    for path in paths:
        table = problem.state.catalog[path[-1].target] if path else problem.table
        for key in table.foreign_keys:
            if len(key.columns) == 1:
                found.setdefault(key.target, []).append((path, key.columns[0]))
    return found


def _named(problem: Problem) -> Iterator[Relation]:
    """Rows that a column like object_id names without a foreign key, on either side."""
    catalog, key = problem.state.catalog, problem.table.row_key
    if len(key) == 1:
        base = problem.table.by_name[key[0]].base
        for table in _tables(catalog):
            for column in _naming(table):
                if column.base in STRINGS or _comparable(column.base, base):
                    yield Relation(problem, table, key, (column.name,), False)
    for column in _naming(problem.table):
        texts = problem.frame.texts(column.name)
        named = sorted({text for row in problem.rows if (text := texts[row])})[:_MAX_NAMED]
        for target in _holders(problem.state, column, named) if named else ():
            yield Relation(problem, target, (column.name,), target.row_key, False)


def _naming(table: Table) -> Iterator[Column]:
    """Columns that look like references but are none."""
    links = {name for key in table.foreign_keys for name in key.columns} | set(table.primary_key)
    for column in table.columns:
        named = column.name.lower().endswith("id") and column.name not in links
        if named and column.base in INTEGERS | STRINGS | {"uuid"}:
            yield column


def _tables(catalog: Catalog) -> list[Table]:
    return [catalog[name] for name in sorted(catalog)]


def _comparable(a: str, b: str) -> bool:
    return a == b or (a in INTEGERS and b in INTEGERS)


def _holders(state: State, column: Column, named: Sequence[str]) -> list[Table]:
    """The tables of which all of `named` are keys, the smallest first."""
    whole = all(text.isdigit() and len(text) < 10 for text in named)
    asked: list[Table] = []
    for table in _tables(state.catalog):
        if len(table.row_key) == 1:
            base = table.by_name[table.row_key[0]].base
            if base in INTEGERS if whole else base == column.base:
                asked.append(table)
    listed = ",".join(literal(text, "text", context="compare") for text in named)
    counts = [
        f"(SELECT count(*) FROM {rows_sql(table)} WHERE {identifier_sql(table.row_key[0])} IN({listed}))"
        for table in asked
    ]
    if not counts:
        return []
    found = rows(state.session, f"SELECT {','.join(counts)}")[0]
    return [table for table, count in zip(asked, found, strict=True) if count == str(len(named))][:_MAX_FAR]


def _ancestors(problem: Problem) -> Iterator[Relation]:
    """Rows above the row in a tree of paths, and rows that refer to such."""
    catalog, table = problem.state.catalog, problem.table
    for tree in path_trees(problem.frame):
        path = (tree.column,)
        yield Relation(problem, table, path, path, False, operator="^@")
        for key in catalog.referenced_by.get(table.name, ()):
            if key.table != table.name:
                yield Relation(problem, catalog[key.table], path, path, False, via=key, operator="^@")


def _networks(problem: Problem) -> Iterator[Relation]:
    """Networks around an address and in a network, with equal references or without."""
    catalog, table = problem.state.catalog, problem.table
    links = {key.target: key.columns for key in table.foreign_keys if len(key.columns) == 1}
    for own in table.columns:
        for other in _tables(catalog) if own.base in NETWORKS else ():
            shared = [
                ((), links[key.target][0], key.columns[0])
                for key in other.foreign_keys
                if key.target in links and len(key.columns) == 1
            ]
            for column in other.columns:
                if column.base in NETWORKS:
                    for operator in (">>", "<<"):
                        for alike in ((), *((pair,) for pair in shared)):
                            ours, theirs = (own.name,), (column.name,)
                            yield Relation(problem, other, ours, theirs, False, operator=operator, alike=alike)

"""Put selections and expressions together into statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from emit.term import Delete, Query, Source, Statement, Term, Update, subquery
from encoder.assignment.model import Expression
from encoder.assignment.unnesting import respelled
from encoder.choose import lowered
from encoder.context import Context
from encoder.literals import source_of
from encoder.selection.model import Path, Selection
from scratch.catalog import Column, Table

Assignment = tuple[Column, Expression]

EVERY_ROW = Selection(((),), 0)


def updates(
    context: Context, table: Table, assignments: Sequence[Assignment], selections: Sequence[Selection]
) -> Iterator[Update]:
    """All spellings of UPDATE with these assignments under each of the selections."""
    needed: frozenset[Path] = frozenset().union(*(expression.paths for _, expression in assignments))
    sets = tuple(((column.name,), expression.term) for column, expression in assignments)
    for selection in selections:
        for where in lowered(context, table.name, selection, needed=needed):
            for target in _targets(table):
                plain = Update(target, sets, where.sources, where.where)
                yield plain
                merged = merge_queries(sets)
                if merged != sets:
                    yield replace(plain, sets=merged)
                yield from respelled(plain)


def deletes(context: Context, table: Table, selections: Sequence[Selection]) -> Iterator[Statement]:
    for selection in selections:
        for where in lowered(context, table.name, selection):
            for target in _targets(table):
                yield Delete(target, where.sources, where.where)


def _targets(table: Table) -> list[Source]:
    """`table` as the target of a statement; where tables inherit from it, with and without their rows."""
    own = source_of(table)
    return [replace(own, only=False), own] if own.only else [own]


_Sets = tuple[tuple[tuple[str, ...], Term], ...]


def merge_queries(sets: _Sets) -> _Sets:
    """Scalar queries over the same rows as one row-valued query: SET(a,b)=(SELECT x,y FROM …)."""
    merged: list[tuple[tuple[str, ...], Term]] = []
    places: dict[Query, int] = {}
    for columns, term in sets:
        query = _scalar_query(term)
        if query is None:
            merged.append((columns, term))
            continue
        frame = replace(query, select=())
        if frame not in places:
            places[frame] = len(merged)
            merged.append((columns, term))
            continue
        place = places[frame]
        before, kept = merged[place][0], _scalar_query(merged[place][1])
        assert kept is not None
        merged[place] = ((*before, *columns), subquery(replace(kept, select=(*kept.select, *query.select))))
    return tuple(merged)


def _scalar_query(term: Term) -> Query | None:
    if len(term.parts) == 3 and term.parts[0] == "(" and term.parts[2] == ")" and isinstance(term.parts[1], Query):
        return term.parts[1]
    return None

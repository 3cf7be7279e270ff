"""A join, a product or groups as one table: expressions over several sources are searched as if over one row.

The rows are laid out in a temporary table of the scratch database, one for each inserted row, whose columns stand for
terms over the real sources.  What is found over the table's columns is then said in those terms.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from psycopg import Error

from emit.term import Part, Prec, Query, Ref, Source, Term, cast
from encoder.assignment.families import CLOSE, FAMILIES
from encoder.assignment.model import Expression
from encoder.assignment.search import Goal, find_expressions
from encoder.budget import Budget
from encoder.frame import State, identifier_sql, table_sql
from encoder.insertion.slots import Slot
from encoder.selection.model import Path
from scratch.catalog import Catalog, Column, ForeignKey, Table
from stream.model import TableName, Value

_NAME = TableName("pg_temp", "tersql_relation")
# The row's number has a type that nothing can be computed from.
_NUMBER = Column("tersql_place", "pg_lsn", "pg_lsn", "U", True, None, False, "", None)
# Types whose values are also texts without their punctuation, cast: what stands between the digits.
_PUNCTUATED = {"uuid": "-", "macaddr": ":"}
_TEXT = Column("tersql_text", "text", "text", "S", False, None, False, "", None)


@dataclass(frozen=True, slots=True)
class Given:
    """A column of the relation: what its values are called in terms of the sources, and the values."""

    column: Column
    term: Term
    values: Sequence[Value]


@dataclass(frozen=True, slots=True)
class Upward:
    """A foreign key of a source: `columns` are places among the columns given; `key` says under which source key
    the row is known that a path, which starts with it, leads to."""

    columns: tuple[int, ...]
    foreign: ForeignKey
    key: Callable[[Path], Hashable]


def insertable(
    state: State, table: TableName, goal: Goal, *, budget: Budget, timezone: str | None, far: bool = False
) -> list[Expression]:
    """Expressions over the rows of `table` for a column of an INSERT; texts with a cast among them."""
    tiers = FAMILIES if far else CLOSE
    found = find_expressions(state, table, goal, budget=budget, timezone=timezone, split=False, tiers=tiers)
    mark = _PUNCTUATED.get(goal.column.base)
    if found or mark is None:
        return found
    bare = Goal(_TEXT, goal.rows, [value if value is None else value.replace(mark, "") for value in goal.new])
    texts = find_expressions(state, table, bare, budget=budget, timezone=timezone, split=False, tiers=tiers)
    base = goal.column.base
    return [Expression(cast(e.term, base), e.paths, e.size + len(base) + 2) for e in texts]


class Relation:
    """See `related`."""

    def __init__(self, state: State, table: Table, named: dict[str, Term], upwards: dict[str, Upward]) -> None:
        self._state = state
        self._table = table
        self._named = named
        self._upwards = upwards

    def express(self, slot: Slot, budget: Budget, timezone: str | None) -> tuple[Term, frozenset[Hashable]] | None:
        """The shortest term for `slot`, and the source keys of the rows that its paths lead to."""
        goal = Goal(slot.column, np.arange(len(slot.values)), slot.values)
        found = insertable(self._state, self._table.name, goal, budget=budget, timezone=timezone)
        best = min(found, key=lambda e: (e.size, str(e.term)), default=None)
        if best is None:
            return None
        return _replaced(best.term, self._part), frozenset(self._key(path) for path in best.paths)

    def _part(self, part: Ref) -> tuple[Part, ...]:
        if part.key == ():
            term = self._named[part.column]
            return term.parts if term.prec == Prec.ATOM else ("(", *term.parts, ")")
        if isinstance(part.key, tuple) and isinstance(part.key[0], ForeignKey):
            return (Ref(self._key(part.key), part.column),)
        return (part,)

    def _key(self, path: Path) -> Hashable:
        upward = self._upwards.get(path[0].name)
        return path if upward is None else upward.key((upward.foreign, *path[1:]))


@contextmanager
def related(state: State, given: Sequence[Given], upwards: Sequence[Upward]) -> Iterator[Relation | None]:
    """The relation of these columns, while the context lasts; None where the server cannot hold it."""
    named: dict[str, Term] = {}
    columns: list[Column] = []
    for place, one in enumerate(given):
        name = one.column.name if one.column.name not in named else f"{one.column.name}{place}"
        named[name] = one.term
        columns.append(replace(one.column, name=name, default=None, generated=False, identity="", sequence=None))
    keys = {f"{place}": upward for place, upward in enumerate(upwards)}
    foreign = [
        replace(upward.foreign, name=name, table=_NAME, columns=tuple(columns[at].name for at in upward.columns))
        for name, upward in keys.items()
    ]
    table = Table(_NAME, (*columns, _NUMBER), (_NUMBER.name,), (), tuple(foreign), (), "d")
    catalog = Catalog({**state.catalog.tables, _NAME: table}, state.catalog.referenced_by)
    with state.session.transaction(force_rollback=True):
        made = _lay_out(state, table, [one.values for one in given])
        yield Relation(state.under(catalog), table, named, keys) if made else None


def _lay_out(state: State, table: Table, values: Sequence[Sequence[Value]]) -> bool:
    count = len(values[0]) if values else 0
    listed = ",".join(
        f"{identifier_sql(c.name)} {c.type}" + (f" COLLATE {identifier_sql(c.collation)}" if c.collation else "")
        for c in table.columns
    )
    numbers: list[Value] = [f"0/{place:X}" for place in range(count)]
    arrays = ",".join("%s::text[]" for _ in table.columns)
    names = ",".join(f"c{place}" for place in range(len(table.columns)))
    cells = ",".join(f"c{place}::{c.type}" for place, c in enumerate(table.columns))
    try:
        with state.session.transaction():
            state.session.execute(f"CREATE TEMP TABLE {_NAME.name}({listed})".encode())
            query = f"INSERT INTO {table_sql(_NAME)} SELECT {cells} FROM unnest({arrays})t({names})"
            state.session.execute(query.encode(), [*map(list, values), numbers])
    except Error:
        return False
    return True


def _replaced(term: Term, said: Callable[[Ref], tuple[Part, ...]]) -> Term:
    """`term` with its references said otherwise, those in nested queries too."""
    parts: list[Part] = []
    for part in term.parts:
        if isinstance(part, Ref):
            parts += said(part)
        elif isinstance(part, Query):
            parts.append(_query(part, said))
        else:
            parts.append(part)
    return Term(tuple(parts), term.prec)


def _query(query: Query, said: Callable[[Ref], tuple[Part, ...]]) -> Query:
    return replace(
        query,
        select=tuple(_replaced(term, said) for term in query.select),
        sources=tuple(_source(source, said) for source in query.sources),
        where=None if query.where is None else _replaced(query.where, said),
        tail=None if query.tail is None else _replaced(query.tail, said),
    )


def _source(source: Source, said: Callable[[Ref], tuple[Part, ...]]) -> Source:
    text = source.text
    if isinstance(text, Query):
        return replace(source, text=_query(text, said))
    return replace(source, text=_replaced(text, said)) if isinstance(text, Term) else source

"""Expressions tried on the server: many a call, each on the rows that are asked for.

The server computes; nothing of its semantics is repeated here.  An expression's value goes through an INSERT
into a temporary table with a column of the goal's type, so that it meets exactly the assignment cast of
an UPDATE, and comes back in the text of the canonical settings.  A function catches what an expression
raises.  All of it lives inside a transaction that is rolled back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emit.render import render
from emit.term import Prec, Query, Ref, Source, Term, conjoin, op, raw, ref
from encoder.assignment.model import Expression
from encoder.frame import State, identifier_sql, rows_sql
from encoder.literals import source_of
from encoder.selection.model import Path
from scratch.catalog import Catalog, Column, Table
from scratch.session import Session
from stream.model import TableName, Value


class Mark(str):
    """What stands for a value where there is none; compare it with `is`."""

    __slots__ = ()


ERROR = Mark("<error>")
"""The expression raises on this row, so that a statement which touches the row fails."""
ABSENT = Mark("<absent>")
"""A joined source has no row for this row, so that the statement leaves it alone."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Session settings under which an expression is computed."""

    timezone: str
    datestyle: str = "ISO, YMD"


def environments(timezone: str | None) -> tuple[Environment, ...]:
    """The sessions in which a script has to do the same.

    Any date style, and any time zone unless one is promised: zones on both sides of UTC, one with summer time.
    """
    if timezone is not None:
        return (Environment(timezone), Environment(timezone, "SQL, DMY"))
    return (Environment("UTC"), Environment("America/Los_Angeles", "SQL, DMY"), Environment("Pacific/Apia"))


_ROWS = "tersql_rows"
_FUNCTION = """
CREATE FUNCTION pg_temp.tersql_try(queries text[], zone text, style text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    query text;
    got text;
BEGIN
    FOREACH query IN ARRAY queries LOOP
        BEGIN
            PERFORM set_config('TimeZone', zone, true), set_config('DateStyle', style, true);
            EXECUTE query;
            PERFORM set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO, YMD', true);
            SELECT json_build_array(
                coalesce(json_agg(n ORDER BY n), '[]'),
                coalesce(json_agg(CASE WHEN num_nulls(v) = 0 THEN format('%s', v) END ORDER BY n), '[]'))
            INTO got FROM pg_temp.tersql_out;
            DELETE FROM pg_temp.tersql_out;
        EXCEPTION WHEN others THEN
            PERFORM set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO, YMD', true);
            got := NULL;
        END;
        RETURN NEXT got;
    END LOOP;
END $$"""

# Failing rows that are looked for one by one; past them, what is not known to be good counts as bad.
_FAILURES = 40


class Bench:
    """Rows of one table laid out for trials; made by `bench`."""

    def __init__(self, session: Session, catalog: Catalog, table: Table, count: int) -> None:
        self.session = session
        self.catalog = catalog
        self.table = table
        self.count = count
        self._out: str | None = None

    def values(
        self,
        terms: Sequence[Term],
        column: Column,
        environment: Environment,
        places: Sequence[int] | None = None,
        beside: tuple[Source, ...] = (),
        on: Sequence[Term] = (),
    ) -> list[list[Value] | None]:
        """For every term its values in the rows (`places` among them, all by default), as text after the
        assignment cast to `column`; None for a term that raises on any of them.  `beside` are more sources,
        joined by the conditions `on`."""
        self._prepare(column)
        queries = [self._query(term, places, beside, on) for term in terms]
        call = "SELECT * FROM pg_temp.tersql_try(%s::text[], %s, %s)"
        size = self.count if places is None else len(places)
        place_of = {place: i for i, place in enumerate(range(self.count) if places is None else places)}
        found: list[list[Value] | None] = []
        for (text,) in self.session.execute(call, [queries, environment.timezone, environment.datestyle]).fetchall():
            if text is None:
                found.append(None)
                continue
            numbers, values = json.loads(text)
            line: list[Value] = values
            if len(numbers) != size or places is not None:
                line = [ABSENT] * size
                for number, value in zip(numbers, values, strict=True):
                    line[place_of[number]] = value
            found.append(line)
        return found

    def every_value(
        self, term: Term, column: Column, environment: Environment, within: Sequence[int] | None = None
    ) -> list[Value]:
        """The values of `term` in the rows (the first ones, `within`, or all), with ERROR where it raises."""
        every = list(range(self.count) if within is None else within)
        found: list[Value] = [ERROR] * len(every)
        pending = [every]
        failures = 0
        while pending and failures < _FAILURES:
            places = pending.pop()
            (values,) = self.values([term], column, environment, places)
            if values is not None:
                for place, value in zip(places, values, strict=True):
                    found[place] = value
            elif len(places) == 1:
                failures += 1
            else:
                half = len(places) // 2
                pending += [places[half:], places[:half]]
        return found

    def _prepare(self, column: Column) -> None:
        collate = f" COLLATE {identifier_sql(column.collation)}" if column.collation else ""
        kind = column.type + collate
        if self._out == kind:
            return
        self.session.execute("DROP TABLE IF EXISTS pg_temp.tersql_out")
        self.session.execute(f"CREATE TEMP TABLE tersql_out(n int,v {kind})".encode())
        self._out = kind

    def _query(self, term: Term, places: Sequence[int] | None, beside: tuple[Source, ...], on: Sequence[Term]) -> str:
        own = source_of(self.table)
        laid = Source(_ROWS, f"pg_temp.{_ROWS}", ("tersql_n", "tersql_id", "tersql_rel"))
        conditions = [
            op(ref((), "ctid"), "=", ref(_ROWS, "tersql_id")),
            op(ref((), "tableoid"), "=", ref(_ROWS, "tersql_rel")),
        ]
        if places is not None:
            listed = ",".join(map(str, places))
            conditions.append(Term((Ref(_ROWS, "tersql_n"), f" = ANY('{{{listed}}}')"), Prec.COMPARE))
        sources, joins = joined_sources(self.catalog, paths_of(term))
        where = conjoin([*conditions, *joins, *on])
        query = Query((ref(_ROWS, "tersql_n"), term), (own, laid, *sources, *beside), where)
        return f"INSERT INTO pg_temp.tersql_out {render(query)}"


def laid_first(count: int) -> Query:
    """The identities of the first `count` rows that are laid out, to select them by ctid in a query."""
    laid = Source(_ROWS, f"pg_temp.{_ROWS}", ("tersql_n", "tersql_id", "tersql_rel"))
    return Query((ref(_ROWS, "tersql_id"),), (laid,), op(ref(_ROWS, "tersql_n"), "<", raw(str(count))))


@contextmanager
def bench(state: State, table: TableName, places: NDArray[np.intp] | None) -> Iterator[Bench]:
    """Lay out the rows of `state.frame(table)` at `places` (all of them by default) for trials.

    What is done inside leaves no trace.
    """
    frame = state.frame(table)
    wanted = np.arange(frame.size) if places is None else places
    session = state.session
    with session.transaction(force_rollback=True):
        names = frame.table.row_key
        held = rows_sql(frame.table)
        order = ",".join(identifier_sql(name) for name in names) or ",".join(
            f'{identifier_sql(c.name)}::text COLLATE "C"' for c in frame.table.columns
        )
        # Spelled out, for with parameters a % in a column's name would be one.
        listed = ",".join(str(place) for place in wanted.tolist())
        session.execute(
            f"CREATE TEMP TABLE {_ROWS} AS SELECT w.n::int-1 tersql_n,t.i tersql_id,t.r tersql_rel FROM"
            f"(SELECT ctid i,tableoid r,row_number()OVER(ORDER BY {order or 'ctid'})-1 f FROM {held})t "
            f"JOIN unnest('{{{listed}}}'::int[])WITH ORDINALITY w(f,n)USING(f)".encode()
        )
        session.execute(_FUNCTION.encode())
        yield Bench(session, state.catalog, frame.table, len(wanted))


def paths_of(term: Term | Query) -> frozenset[Path]:
    """The non-empty foreign key paths that a term refers to outside of its own sources."""
    found: set[Path] = set()
    _collect(term, frozenset(), found)
    return frozenset(found)


def _collect(node: Term | Query, bound: frozenset[object], found: set[Path]) -> None:
    if isinstance(node, Query):
        inner = bound | {source.key for source in node.sources}
        for source in node.sources:
            if not isinstance(source.text, str):
                _collect(source.text, inner, found)
        for term in (*node.select, node.where, node.tail):
            if term is not None:
                _collect(term, inner, found)
        return
    for part in node.parts:
        if isinstance(part, Query):
            _collect(part, bound, found)
        elif isinstance(part, Ref) and part.key not in bound and isinstance(part.key, tuple) and part.key:
            found.add(part.key)


def joined_sources(catalog: Catalog, paths: frozenset[Path]) -> tuple[tuple[Source, ...], list[Term]]:
    """The sources that bring `paths` into scope, with the tables on the way, and their join conditions."""
    every = sorted({path[: i + 1] for path in paths for i in range(len(path))}, key=lambda p: (len(p), _name(p)))
    sources = tuple(source_of(catalog[path[-1].target], path) for path in every)
    joins = [
        op(ref(path, theirs), "=", ref(path[:-1], ours))
        for path in every
        for ours, theirs in zip(path[-1].columns, path[-1].target_columns, strict=True)
    ]
    return sources, joins


def _name(path: Path) -> tuple[str, ...]:
    return tuple(f"{key.table}.{key.name}" for key in path)


def measured(catalog: Catalog, table: Table, term: Term) -> Expression:
    """`term` as an Expression with its size: its bytes in a statement whose sources stand already."""
    paths = paths_of(term)
    sources = (source_of(table), *joined_sources(catalog, paths)[0])
    # Between parentheses nothing beside the term asks for a space.
    whole = len(render(Query((Term(("(", *term.parts, ")")),), sources)).encode())
    return Expression(term, paths, whole - len(render(Query((raw("()"),), sources)).encode()))

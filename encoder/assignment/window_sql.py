"""Statements that take columns' values from window functions: UPDATE … FROM(SELECT id i,rank()OVER(…)j FROM …)x."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from emit.render import render
from emit.term import Part, Query, Ref, Source, Term, Update, conjoin, op, raw, ref
from encoder.assignment.bench import joined_sources, paths_of
from encoder.assignment.model import VALUE, WINDOW, WindowExpression
from encoder.literals import source_of
from encoder.selection.model import Path
from scratch.catalog import Catalog, Table

_INNER = "numbered"


def rekeyed(term: Term, key: object = _INNER) -> Term:
    """`term` about the rows of another source of the same table, and about those that they refer to."""
    parts: list[Part] = []
    for part in term.parts:
        if isinstance(part, Ref) and isinstance(part.key, tuple):
            parts.append(Ref(key if part.key == () else (key, part.key), part.column))
        else:
            parts.append(part)
    return Term(tuple(parts), term.prec)


def joined(catalog: Catalog, term: Term, selected: bool, window: Term) -> WindowExpression:
    """The expression, not sized yet, with what the window's references to other rows need."""
    sources, joins = joined_sources(catalog, paths_of(window))
    return WindowExpression(term, window, selected, 0, sources, tuple(joins))


def derived(
    table: Table, expressions: Sequence[WindowExpression], where: Term | None, sources: tuple[Source, ...] = ()
) -> tuple[Source, Term]:
    """The derived source of windows (key WINDOW) and the condition that joins it to the row.

    `where` says which rows the windows see; its references are keyed as in a statement on the table, `sources` are
    what it joins.
    """
    names = _free_names(table, len(table.row_key) + len(expressions))
    beside = dict.fromkeys(source for one in expressions for source in one.sources)
    joins = dict.fromkeys(join for one in expressions for join in one.joins)
    conditions = [*(rekeyed(join) for join in joins), *([] if where is None else [_own_rekeyed(where)])]
    inner = Query(
        (*(ref(_INNER, name) for name in table.row_key), *(rekeyed(one.window) for one in expressions)),
        (source_of(table, _INNER), *(replace(s, key=(_INNER, s.key)) for s in beside), *sources),
        conjoin(conditions),
        names=names,
    )
    source = Source(WINDOW, inner, names)
    matches = [op(ref(WINDOW, a), "=", ref((), b)) for a, b in zip(names, table.row_key, strict=False)]
    condition = conjoin(matches)
    assert condition is not None
    return source, condition


def _own_rekeyed(term: Term) -> Term:
    """A condition on the rows of the derived query, whose paths keep the sources that come with it."""
    parts = tuple(Ref(_INNER, p.column) if isinstance(p, Ref) and p.key == () else p for p in term.parts)
    return Term(parts, term.prec)


def _free_names(table: Table, count: int) -> tuple[str, ...]:
    """Short output names that are no columns of the table, so that nothing has to be qualified."""
    letters = (letter for letter in "ijklmnopqrstuvwxyzabcdefgh" if letter not in table.by_name)
    return tuple(next(letters) for _ in range(count))


def valued(table: Table, term: Term, place: int = 0) -> Term:
    """`term` with the value of the window number `place` under the name that `derived` gives it."""
    name = _free_names(table, len(table.row_key) + place + 1)[-1]
    return Term(tuple(Ref(WINDOW, name) if part == Ref(WINDOW, VALUE) else part for part in term.parts), term.prec)


def update_from_window(
    catalog: Catalog,
    table: Table,
    column: str,
    expression: WindowExpression,
    *,
    where: Term | None = None,
    sources: tuple[Source, ...] = (),
    others: Sequence[tuple[str, Term]] = (),
    windows: Sequence[tuple[str, WindowExpression]] = (),
) -> Update:
    """UPDATE table SET column=… FROM(SELECT id i,row_number()OVER(…)j FROM table)x WHERE i=id.

    `where` with the sources that it joins is the statement's selection: it goes inside of the derived query
    where the expression counts only the selected rows (which selects the outer rows too), beside the join
    otherwise, and may refer to the window's value there.  `others` are further columns to set, `windows` columns that
    take more windows of the same rows.  What the assigned terms read of rows above is joined where `sources` do not
    bring it.
    """
    every = ((column, expression), *windows)
    inside = expression.selected
    source, join = derived(table, [one for _, one in every], where if inside else None, sources if inside else ())
    sets = (
        *(((name,), valued(table, one.term, place)) for place, (name, one) in enumerate(every)),
        *(((name,), term) for name, term in others),
    )
    given = () if inside or where is None else sources
    above, joins = _above(catalog, [term for _, term in sets], given)
    conditions = [join, *joins, *([] if inside or where is None else [valued(table, where)])]
    return Update(source_of(table), sets, (source, *given, *above), conjoin(conditions))


def _above(catalog: Catalog, terms: Sequence[Term], given: Sequence[Source]) -> tuple[list[Source], list[Term]]:
    """The sources of rows above that the terms need beside those `given`, and how they are joined."""
    sources, joins = joined_sources(catalog, frozenset[Path]().union(*map(paths_of, terms)))
    known = {source.key for source in given}
    # A join begins with the column of the row that it brings.
    news = [join for join in joins if isinstance(join.parts[0], Ref) and join.parts[0].key not in known]
    return [source for source in sources if source.key not in known], news


def sized(catalog: Catalog, table: Table, expression: WindowExpression) -> WindowExpression:
    """The expression with its size: the bytes of the term, the derived source and its join."""
    column = table.columns[0].name
    whole = len(render(update_from_window(catalog, table, column, expression)).encode())
    bare = len(render(Update(source_of(table), (((column,), raw("1")),))).encode())
    return replace(expression, size=whole - bare + 1)

"""SQL as data: terms, row sources, queries and statements, before names and spaces are chosen.

A term is a run of parts: text, references to a column of a source, and nested queries.  It knows its
precedence, so that parentheses are put only where they are needed; it does not know how its sources
will be called.  `emit.render` decides that, for a whole statement at a time.

>>> from emit.render import render
>>> page = Source((), "page", ("id", "title"))
>>> render(Delete(page, where=op(ref((), "title"), "=", raw("'x'"))))
"DELETE FROM page WHERE title='x'"
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

SourceKey: TypeAlias = Hashable


class Prec(IntEnum):
    """PostgreSQL's operator precedence (manual, 4.1.6), loosest first."""

    OR = 1
    AND = 2
    NOT = 3
    IS = 4
    COMPARE = 5
    LIKE = 6  # BETWEEN IN LIKE SIMILAR
    OTHER = 7  # || -> ~ @> and every other operator
    ADD = 8
    MUL = 9
    EXP = 10
    UNARY = 11
    CAST = 12
    ATOM = 13


@dataclass(frozen=True, slots=True)
class Ref:
    """A column of the source with this key."""

    key: SourceKey
    column: str


@dataclass(frozen=True, slots=True)
class Whole:
    """The name of a source itself (`x.*` without the star): a row value."""

    key: SourceKey


@dataclass(frozen=True, slots=True)
class Source:
    """A row source of a FROM list.

    `text` is how FROM spells it (a table's name, or a Query); `columns` are the names that it
    brings into scope.  `alias` is a fixed alias that must be written (with its column list in
    `alias_columns`); tables get one only where it pays.  `only` leaves out the rows of tables that inherit from it.
    """

    key: SourceKey
    text: str | Query | Term
    columns: tuple[str, ...]
    alias: str | None = None
    alias_columns: tuple[str, ...] = ()
    only: bool = False


@dataclass(frozen=True, slots=True)
class Term:
    """An expression: its parts in order, and how tightly its outermost operator binds."""

    parts: tuple[Part, ...]
    prec: Prec = Prec.ATOM

    def __post_init__(self) -> None:
        assert self.parts


@dataclass(frozen=True, slots=True)
class Query:
    """SELECT; `tail` is what follows WHERE (GROUP BY, HAVING, ORDER BY, LIMIT) as one term."""

    select: tuple[Term, ...]
    sources: tuple[Source, ...] = ()
    where: Term | None = None
    tail: Term | None = None
    distinct: bool = False
    names: tuple[str | None, ...] = ()  # output names, written where not None


Part: TypeAlias = str | Ref | Whole | Query


@dataclass(frozen=True, slots=True)
class Update:
    """`sets`: pairs of target columns and the term; several columns take a row-valued query."""

    target: Source
    sets: tuple[tuple[tuple[str, ...], Term], ...]
    sources: tuple[Source, ...] = ()
    where: Term | None = None
    returning: Term | None = None
    ctes: tuple[Cte, ...] = ()


@dataclass(frozen=True, slots=True)
class Delete:
    target: Source
    sources: tuple[Source, ...] = ()
    where: Term | None = None
    returning: Term | None = None
    ctes: tuple[Cte, ...] = ()


@dataclass(frozen=True, slots=True)
class Insert:
    """`columns` () means all in order.  `rows` is a query or a VALUES term; `conflict` the ON CONFLICT clause."""

    target: Source
    columns: tuple[str, ...]
    rows: Query | Term
    conflict: Term | None = None
    returning: Term | None = None
    ctes: tuple[Cte, ...] = ()


Statement: TypeAlias = Update | Delete | Insert


@dataclass(frozen=True, slots=True)
class Cte:
    """`name` [(`columns`)] AS (`body`)."""

    name: str
    body: Statement | Query
    columns: tuple[str, ...] = ()


def raw(text: str, prec: Prec = Prec.ATOM) -> Term:
    """A piece of SQL that refers to no column."""
    return Term((text,), prec)


def ref(key: SourceKey, column: str) -> Term:
    return Term((Ref(key, column),))


def wrap(term: Term, least: Prec) -> tuple[Part, ...]:
    """The parts of `term`, in parentheses where it binds looser than `least`."""
    return term.parts if term.prec >= least else ("(", *term.parts, ")")


# What an operator needs on either side; the right operand of a left-associative operator must bind tighter.
_BINARY: dict[str, Prec] = {
    "OR": Prec.OR,
    "AND": Prec.AND,
    "=": Prec.COMPARE,
    "<": Prec.COMPARE,
    ">": Prec.COMPARE,
    "<=": Prec.COMPARE,
    ">=": Prec.COMPARE,
    "<>": Prec.COMPARE,
    "IS DISTINCT FROM": Prec.IS,
    "IS NOT DISTINCT FROM": Prec.IS,
    "LIKE": Prec.LIKE,
    "NOT LIKE": Prec.LIKE,
    "IN": Prec.LIKE,
    "NOT IN": Prec.LIKE,
    "+": Prec.ADD,
    "-": Prec.ADD,
    "*": Prec.MUL,
    "/": Prec.MUL,
    "%": Prec.MUL,
    "^": Prec.EXP,
    "::": Prec.CAST,
}
_ASSOCIATIVE = frozenset({"OR", "AND", "||"})


def op(left: Term, operator: str, right: Term) -> Term:
    """`left operator right` with the parentheses that it needs."""
    prec = _BINARY.get(operator, Prec.OTHER)
    if prec in (Prec.COMPARE, Prec.LIKE):  # non-associative
        sides = (Prec(prec + 1), Prec(prec + 1))
    elif operator in _ASSOCIATIVE:
        sides = (prec, prec)
    else:
        sides = (prec, Prec(min(prec + 1, Prec.ATOM)))
    return Term((*wrap(left, sides[0]), operator, *wrap(right, sides[1])), prec)


def call(function: str, *arguments: Term) -> Term:
    return Term((function, "(", *separate(arguments), ")"))


def cast(term: Term, type_name: str) -> Term:
    return Term((*wrap(term, Prec.CAST), "::", type_name), Prec.CAST)


def negate(term: Term) -> Term:
    return Term(("NOT", *wrap(term, Prec.NOT)), Prec.NOT)


def is_null(term: Term, yes: bool = True) -> Term:
    return Term((*wrap(term, Prec.COMPARE), "ISNULL" if yes else "NOTNULL"), Prec.IS)


def conjoin(terms: Sequence[Term]) -> Term | None:
    """All of `terms`; None for none."""
    return _chain(terms, "AND")


def disjoin(terms: Sequence[Term]) -> Term | None:
    return _chain(terms, "OR")


def subquery(query: Query) -> Term:
    """A query in parentheses as a value."""
    return Term(("(", query, ")"))


def separate(terms: Iterable[Term]) -> tuple[Part, ...]:
    """The parts of all terms with commas between."""
    parts: list[Part] = []
    for term in terms:
        if parts:
            parts.append(",")
        parts.extend(term.parts)
    return tuple(parts)


def tuple_of(terms: Sequence[Term]) -> Term:
    """(a,b,…), or the single term itself."""
    if len(terms) == 1:
        return terms[0]
    return Term(("(", *separate(terms), ")"))


def in_values(left: Term, values: Sequence[Term], yes: bool = True) -> Term:
    """`left IN(…)`; one value becomes an equation."""
    if len(values) == 1:
        return op(left, "=" if yes else "<>", values[0])
    parts = (*wrap(left, Prec.OTHER), "IN(" if yes else "NOT IN(", *separate(values), ")")
    return Term(parts, Prec.LIKE)


def in_query(left: Term, query: Query, yes: bool = True) -> Term:
    """`left IN(query)`; of a whole table `left=ANY(TABLE t)` or `left<>ALL((TABLE t))`.

    sqlglot 27.29.0 reads neither IN(TABLE t) nor ALL(TABLE t).
    """
    table = whole_table(query)
    if table is not None:
        whole = ("ANY(", "TABLE", table, ")") if yes else ("ALL((", "TABLE", table, "))")
        return op(left, "=" if yes else "<>", Term(whole))
    return Term((*wrap(left, Prec.OTHER), "IN(" if yes else "NOT IN(", query, ")"), Prec.LIKE)


def whole_table(query: Query) -> str | None:
    """The name of the table whose rows, with all their columns in order, are those of `query`."""
    if len(query.sources) != 1 or query.where is not None or query.tail is not None or query.distinct:
        return None
    source = query.sources[0]
    columns = tuple((Ref(source.key, name),) for name in source.columns)
    if not isinstance(source.text, str) or "(" in source.text or source.only or not columns:
        return None
    return source.text if tuple(term.parts for term in query.select) == columns else None


def row_values(lines: Sequence[Sequence[Term]]) -> Term:
    """The rows of an INSERT: VALUES(…),(…), or SELECT for one row, which is shorter but may not say DEFAULT."""
    if len(lines) == 1 and all(cell.parts != ("DEFAULT",) for cell in lines[0]):
        return Term(("SELECT", *separate(lines[0])))
    return Term(("VALUES", *separate(Term(("(", *separate(line), ")")) for line in lines)))


def _chain(terms: Sequence[Term], operator: str) -> Term | None:
    result: Term | None = None
    for term in terms:
        result = term if result is None else op(result, operator, term)
    return result

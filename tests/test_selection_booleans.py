"""Shorter spellings of AND, OR and NOT hold for the same rows, NULLs included."""

from __future__ import annotations

from itertools import combinations

import pytest

from emit.render import render
from emit.term import Query, Source, Term, disjoin, in_values, is_null, negate, op, raw, ref
from encoder.selection.booleans import after_where, conjunctions, disjunctions, opposite
from scratch.server import Server
from scratch.session import connect, scalars

SOURCE = Source((), "x", ("a", "b", "n", "t"))
VALUES = (
    "(SELECT a,b,n,t FROM unnest('{t,f,null}'::bool[])a,unnest('{t,f,null}'::bool[])b,"
    "unnest('{0,1,2,null}'::int[])n,unnest('{ab,cd,null}'::text[])t)x"
)
N, T = ref((), "n"), ref((), "t")
TERMS = [
    ref((), "a"),
    negate(ref((), "b")),
    op(N, "<", raw("1")),
    op(N, ">=", raw("1")),
    op(N, "=", raw("2")),
    in_values(N, [raw("0"), raw("2")]),
    in_values(N, [raw("0"), raw("2")], False),
    op(T, "~", raw("'b'")),
    op(T, "!~", raw("'[(]|c'")),
    op(T, "=", raw("'cd'")),
    is_null(T),
    negate(op(T, "^@", raw("'a'"))),
    Term((*N.parts, "BETWEEN", "1", "AND", "2"), in_values(N, [raw("0"), raw("2")]).prec),
    op(N, "IS DISTINCT FROM", raw("1")),
]


def held(session: object, condition: Term) -> list[str]:
    text = render(Query((raw("row(a,b,n,t)"),), (SOURCE,), condition)).replace("FROM x", f"FROM {VALUES}")
    return sorted(str(value) for value in scalars(session, text))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def session(server: Server) -> object:
    with connect(server.dsn()) as opened:
        yield opened


def test_conjunctions(session: object) -> None:
    for terms in [*combinations(TERMS, 2), *list(combinations(TERMS, 3))[::7]]:
        first, *rest = conjunctions(terms)
        wanted = held(session, _plain(terms))
        for other in [first, *rest]:
            assert held(session, other) == wanted, render(Query((raw("1"),), (SOURCE,), other))
            assert after_where(first) <= after_where(other)


def _plain(terms: tuple[Term, ...]) -> Term:
    result = terms[0]
    for term in terms[1:]:
        result = op(result, "AND", term)
    return result


def test_disjunctions_without_nulls(session: object) -> None:
    full = negate(is_null(ref((), "a")))
    for name in ("b", "n", "t"):
        full = op(full, "AND", negate(is_null(ref((), name))))
    for terms in combinations(TERMS, 2):
        wanted = held(session, op(full, "AND", disjoin(terms) or raw("true")))
        for other in disjunctions(terms, [True, True]):
            assert held(session, op(full, "AND", other)) == wanted


def test_disjunctions_with_nulls(session: object) -> None:
    for terms in combinations(TERMS, 2):
        assert len(disjunctions(terms, [True, False])) == 1


@pytest.mark.parametrize("term", TERMS)
def test_opposite(session: object, term: Term) -> None:
    turned = opposite(term)
    if turned is not None:
        assert held(session, turned) == held(session, Term(("NOT(", *term.parts, ")"), negate(term).prec))


def test_expected_spellings() -> None:
    a, b = ref((), "a"), ref((), "b")
    assert _first(a, negate(b)) == "a>b"
    assert _first(op(T, "~", raw("'x'")), a) == "a>t!~'x'"
    assert _first(op(N, "=", raw("1")), op(ref((), "b"), "=", raw("2"))) == "(n,b)=(1,2)"
    assert _first(is_null(T), op(T, "=", raw("''"))) == "t=''AND t ISNULL"


def _first(*terms: Term) -> str:
    return render(Query((raw("1"),), (SOURCE,), conjunctions(terms)[0])).split("WHERE")[1].strip()

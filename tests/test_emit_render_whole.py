"""Whole tables, rows of values and counts in their shortest form."""

from __future__ import annotations

from emit.render import render
from emit.term import (
    Delete,
    Insert,
    Prec,
    Query,
    Source,
    Term,
    Update,
    call,
    conjoin,
    in_query,
    is_null,
    op,
    raw,
    ref,
    row_values,
    tuple_of,
)

PAGE = Source((), "page", ("id", "title"))
LIST = Source("q", "q", ("id",))
BOTH = Source("b", "both", ("id", "n"))


def test_whole_tables() -> None:
    inner = Query((ref("q", "id"),), (LIST,))
    own = ref((), "id")
    assert render(Delete(PAGE, where=in_query(own, inner))) == "DELETE FROM page WHERE id=ANY(TABLE q)"
    assert render(Delete(PAGE, where=in_query(own, inner, False))) == "DELETE FROM page WHERE id<>ALL((TABLE q))"
    pair = tuple_of([own, ref((), "title")])
    both = Query((ref("b", "id"), ref("b", "n")), (BOTH,))
    assert render(Delete(PAGE, where=in_query(pair, both))) == "DELETE FROM page WHERE(id,title)=ANY(TABLE both)"
    assert render(Insert(PAGE, (), both)) == "INSERT INTO page TABLE both"


def test_part_of_a_table() -> None:
    for query in (
        Query((ref("b", "id"),), (BOTH,)),
        Query((ref("b", "n"), ref("b", "id")), (BOTH,)),
        Query((ref("b", "id"), ref("b", "n")), (BOTH,), is_null(ref("b", "n"))),
        Query((ref("q", "id"),), (LIST,), distinct=True),
        Query((ref("q", "id"),), (LIST,), tail=raw("LIMIT 1")),
    ):
        assert "TABLE" not in render(Insert(PAGE, (), query))
    assert "TABLE" not in render(Insert(PAGE, (), Query((), (Source("v", "generate_series(1,9)", ()),))))


def test_precedence() -> None:
    inner = in_query(ref((), "id"), Query((ref("q", "id"),), (LIST,)))
    assert inner.prec is Prec.COMPARE
    assert render(Delete(PAGE, where=op(raw("true"), ">", inner))) == "DELETE FROM page WHERE true>(id=ANY(TABLE q))"


def test_rows() -> None:
    one, two, default = raw("1"), raw("'x'"), raw("DEFAULT")
    assert render(Insert(PAGE, (), row_values([[one, two]]))) == "INSERT INTO page SELECT 1,'x'"
    assert render(Insert(PAGE, (), row_values([[one, default]]))) == "INSERT INTO page VALUES(1,DEFAULT)"
    assert render(Insert(PAGE, (), row_values([[one, two]] * 2))) == "INSERT INTO page VALUES(1,'x'),(1,'x')"


def test_counts() -> None:
    count = raw("count(*)")
    having = Term(("GROUP BY 1", "HAVING", *op(count, ">", raw("1")).parts))
    assert render(Query((ref("b", "n"),), (BOTH,), tail=having)) == "SELECT n FROM both GROUP BY 1 HAVING sum(1)>1"
    assert render(Query((count,), (BOTH,))) == "SELECT count(*)FROM both"
    filtered = Term(("count(*)", "FILTER(WHERE n>1)"))
    assert render(Query((filtered,), (BOTH,), tail=having)).startswith("SELECT count(*)FILTER")
    window = Query((Term(("count(*)", "OVER()")),), (BOTH,))
    assert render(Update(PAGE, ((("id",), raw("1")),), (Source("w", window, ("c",)),))).count("sum(1)OVER()") == 1
    nested = Query(
        (ref("b", "n"),), (BOTH,), tail=Term(("GROUP BY 1 HAVING", "3", ">", "(", Query((count,), (LIST,)), ")"))
    )
    assert "count(*)" in render(nested)
    every = Query((call("bool_and", ref("b", "n")),), (BOTH,), conjoin([ref("b", "n")]))
    assert render(every) == "SELECT every(n)FROM both WHERE n"

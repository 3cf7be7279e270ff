"""What the assignment search promises beside short expressions: parts, windows, zones, errors, no trace."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from emit.render import render
from emit.size import size
from emit.term import cast, op, raw, ref
from encoder.assignment.bench import measured
from encoder.assignment.evaluate import ABSENT, ERROR, evaluate
from encoder.assignment.search import Goal, find_expressions, find_partial, find_windows
from encoder.assignment.window_sql import update_from_window
from encoder.budget import Budget
from encoder.frame import State
from scratch.catalog import read_catalog
from scratch.database import create_database, drop_database, with_database
from scratch.server import Server
from scratch.session import Session, connect, rows
from stream.model import TableName

SCHEMA = """
CREATE TABLE shelf(id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE book(id int PRIMARY KEY, shelf_id int REFERENCES shelf(id), title text NOT NULL, pages int NOT NULL,
  place int, rented bool NOT NULL, price numeric(8,2) NOT NULL, seen timestamptz NOT NULL, label text, row_no int);
CREATE TABLE notice(id int PRIMARY KEY, body varchar(30));
INSERT INTO shelf SELECT i, 'shelf '||chr(64+i) FROM generate_series(1,5) i;
INSERT INTO book SELECT i, nullif(1+i%6,6), 'Book '||(i*37%71), i*13%50*10, NULL, i%3=0, i*7919%3000/100.+1,
  '2024-1-1'::timestamptz+i*interval '5h 7m', NULL, NULL FROM generate_series(1,120) i;
ANALYZE;
"""
BOOK = TableName("public", "book")


@pytest.fixture(scope="module")
def session(server: Server) -> Iterator[Session]:
    create_database(server.dsn(), "assignment_search")
    with connect(with_database(server.dsn(), "assignment_search")) as opened:
        opened.execute(SCHEMA.encode())
        yield opened
    drop_database(server.dsn(), "assignment_search")


def goal_of(session: Session, column: str, statement: str) -> tuple[State, Goal]:
    catalog = read_catalog(session)
    state = State(session, catalog)
    old = state.frame(BOOK).texts(column)
    with session.transaction(force_rollback=True):
        session.execute(statement.encode())
        new = State(session, catalog).frame(BOOK).texts(column)
    changed = np.array([i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b], dtype=np.intp)
    return state, Goal(catalog[BOOK].by_name[column], changed, [new[i] for i in changed])


# A column, the derived query that its new value n comes from, the expression over n, a selection.
WINDOWS = [
    ("place", "rank()OVER(PARTITION BY shelf_id ORDER BY title,id)", "n", None),
    ("place", "rank()OVER(ORDER BY pages DESC,id)", "n-1", None),
    ("place", "rank()OVER(ORDER BY title,id)", "n+500", "rented"),
    ("label", "lag(title)OVER(PARTITION BY shelf_id ORDER BY seen)", "n", None),
    ("label", "rank()OVER(ORDER BY seen DESC)", "'B'||to_char(n,'FM0000')", None),
    ("price", "max(price)OVER(PARTITION BY shelf_id)", "n", None),
    ("price", "sum(pages)OVER(PARTITION BY shelf_id ORDER BY id)", "n", None),
    ("place", "ntile(7)OVER(ORDER BY seen)", "n", None),
    ("place", "rank()OVER(PARTITION BY shelf_id ORDER BY seen)", "(n-1)/10", None),
    ("place", "rank()OVER(ORDER BY id)", "n%7+1", "rented"),
    ("price", "rank()OVER(PARTITION BY shelf_id ORDER BY id)", "1./n", None),
]


@pytest.mark.parametrize(("column", "window", "value", "where"), WINDOWS)
def test_window_statement_does_the_same(
    session: Session, column: str, window: str, value: str, where: str | None
) -> None:
    selected = "" if where is None else f" WHERE {where}"
    statement = f"UPDATE book SET {column}={value} FROM(SELECT id i,{window}n FROM book{selected})x WHERE i=id"
    state, goal = goal_of(session, column, statement)
    found = find_windows(state, BOOK, goal, budget=Budget(500), timezone="UTC")
    assert found
    book = state.catalog[BOOK]
    best = render(
        update_from_window(state.catalog, book, column, found[0], where=None if where is None else raw(where))
    )
    assert size(best) <= size(statement)
    again, wanted = goal_of(session, column, best)
    assert again.catalog == state.catalog
    assert wanted.rows.tolist() == goal.rows.tolist()
    assert list(wanted.new) == list(goal.new)


def test_partial_footprint_is_exact(session: Session) -> None:
    state, goal = goal_of(
        session, "price", "UPDATE book SET price=CASE WHEN pages>200 THEN price*2 ELSE price+id*id*.37 END"
    )
    found = find_partial(state, BOOK, goal, budget=Budget(2000), timezone="UTC")
    texts = state.frame(BOOK).texts("pages")
    many = np.array([int(texts[row] or 0) > 200 for row in goal.rows])
    assert any((mask | ~many).all() and mask.any() for _, mask in found)
    for (_, mask), values in zip(
        found, evaluate(state, BOOK, [e for e, _ in found], [goal.column] * len(found), goal.rows), strict=True
    ):
        assert [a == b for a, b in zip(values, goal.new, strict=True)] == mask.tolist()


def test_expression_holds_in_every_zone_unless_one_is_promised(session: Session) -> None:
    state, goal = goal_of(session, "seen", "UPDATE book SET seen=date_trunc('day',seen)")
    promised = find_expressions(state, BOOK, goal, budget=Budget(500), timezone="UTC")
    anywhere = find_expressions(state, BOOK, goal, budget=Budget(500), timezone=None)
    assert promised[0].size < anywhere[0].size
    assert "utc" in str(anywhere[0].term.parts)


def test_days_are_hours_where_summer_time_may_come(session: Session) -> None:
    state, goal = goal_of(session, "seen", "UPDATE book SET seen=seen+'90 days'")
    anywhere = find_expressions(state, BOOK, goal, budget=Budget(500), timezone=None)
    assert "d'" not in str(anywhere[0].term.parts)


def test_goal_of_another_table(session: Session) -> None:
    catalog = read_catalog(session)
    state = State(session, catalog)
    body = catalog[TableName("public", "notice")].by_name["body"]
    titles = state.frame(BOOK).texts("title")
    chosen = np.arange(10, 60, dtype=np.intp)
    goal = Goal(body, chosen, [f"Lost: {titles[row]}" for row in chosen])
    found = find_expressions(state, BOOK, goal, budget=Budget(500), timezone=None)
    assert found[0].size == len("'Lost: '||title")


def test_longer_expression_that_spares_more_rows_is_kept(session: Session) -> None:
    state, goal = goal_of(session, "pages", "UPDATE book SET pages=least(pages,300)")
    found = find_expressions(state, BOOK, goal, budget=Budget(500), timezone="UTC")
    assert found[0].term == raw("300")
    assert any("least" in one.term.parts for one in found)


def test_evaluate_marks_errors_and_missing_parents(session: Session) -> None:
    catalog = read_catalog(session)
    state = State(session, catalog)
    book = catalog[BOOK]
    divided = measured(catalog, book, op(raw("100"), "/", ref((), "pages")))
    shelf = next(key for key in book.foreign_keys if key.columns == ("shelf_id",))
    named = measured(catalog, book, ref((shelf,), "name"))
    counts, names = evaluate(state, BOOK, [divided, named], [book.by_name["place"], book.by_name["label"]])
    pages = state.frame(BOOK).texts("pages")
    for place, text in enumerate(pages):
        assert (counts[place] is ERROR) == (text == "0")
    shelves = state.frame(BOOK).texts("shelf_id")
    assert [name is ABSENT for name in names] == [text is None for text in shelves]
    assert names[0] == "shelf B"


def test_assignment_cast_is_the_columns(session: Session) -> None:
    catalog = read_catalog(session)
    state = State(session, catalog)
    body = catalog[TableName("public", "notice")].by_name["body"]
    book = catalog[BOOK]
    long = measured(catalog, book, op(ref((), "title"), "||", raw("repeat('x',40)")))
    truth = measured(catalog, book, ref((), "rented"))
    unfit = measured(catalog, book, cast(ref((), "title"), "int"))
    values = evaluate(state, BOOK, [long, truth, unfit], [body, body, body], np.array([0, 2]))
    assert all(value is ERROR for value in values[0])
    assert values[1] == ["false", "true"]
    assert all(value is ERROR for value in values[2])


def test_search_leaves_no_trace(session: Session) -> None:
    def standing() -> list[tuple[str | None, ...]]:
        return rows(session, "SELECT relname FROM pg_class WHERE relname~'tersql' UNION SELECT proname FROM pg_proc "
                             "WHERE proname~'tersql' UNION SELECT current_setting('TimeZone')")  # fmt: skip

    before = standing()
    state, goal = goal_of(session, "price", "UPDATE book SET price=price*1.1")
    with session.transaction():
        assert find_expressions(state, BOOK, goal, budget=Budget(500), timezone=None)
    assert standing() == before


def test_nothing_is_found_within_no_budget(session: Session) -> None:
    state, goal = goal_of(session, "price", "UPDATE book SET price=price*1.1")
    assert find_expressions(state, BOOK, goal, budget=Budget(0), timezone="UTC") == []


def test_same_input_gives_the_same_expressions(session: Session) -> None:
    state, goal = goal_of(session, "label", "UPDATE book SET label=upper(left(title,3))||'-'||id")
    runs = [find_expressions(state, BOOK, goal, budget=Budget(500), timezone="UTC") for _ in range(2)]
    assert runs[0] == runs[1]

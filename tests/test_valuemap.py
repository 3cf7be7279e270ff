"""Row → value maps, proved on a real server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from literal_bed import SERVERS, database, table

from emit.render import render
from emit.rules import check_script
from emit.size import minify
from encoder.effect import RowTuple
from encoder.frame import State
from encoder.valuemap import value_map_updates
from scratch.server import Server
from scratch.session import rows
from stream.model import Value

_COLUMNS = """n int,small smallint,t text,v varchar(30),flag boolean,d date,at timestamptz,price numeric(9,2),ids int[],
    j jsonb,c char(4)"""
_ROW = """i*7%50,i%5,'old '||i,'v'||i,i%3=0,'2024-01-01'::date+i,'2024-01-01'::timestamptz+i*'1h'::interval,i/4.0,
    ARRAY[i],'{}','ab'"""
_SCRIPT = f"""
CREATE TABLE plain(id int PRIMARY KEY,{_COLUMNS});
INSERT INTO plain SELECT i,{_ROW} FROM generate_series(1,200)i WHERE i%10<>4;
CREATE TABLE wide(id bigint PRIMARY KEY,{_COLUMNS});
INSERT INTO wide SELECT i+70000,{_ROW} FROM generate_series(1,100)i;
CREATE TABLE named(name text PRIMARY KEY,{_COLUMNS});
INSERT INTO named SELECT 'key '||i,{_ROW} FROM generate_series(1,60)i;
CREATE TABLE pair(a int,b date,{_COLUMNS},PRIMARY KEY(a,b));
INSERT INTO pair SELECT i%8,'2024-01-01'::date+i,{_ROW} FROM generate_series(1,60)i;
"""
Pair = tuple[RowTuple, RowTuple]


@pytest.fixture(scope="module", params=SERVERS)
def state(request: pytest.FixtureRequest, server: Server) -> Iterator[State]:
    with database(server, request.param, "valuemap", _SCRIPT) as state:
        yield state


def _pairs(state: State, name: str, chosen: Sequence[int], column: str, values: Sequence[Value]) -> list[Pair]:
    frame = state.frame(table(name))
    stored = [frame.texts(other.name) for other in frame.table.stored]
    place = next(place for place, other in enumerate(frame.table.stored) if other.name == column)
    pairs = []
    for row, value in zip(chosen, values, strict=True):
        before = tuple(texts[row] for texts in stored)
        pairs.append((before, (*before[:place], value, *before[place + 1 :])))
    return pairs


def _prove(state: State, name: str, pairs: Sequence[Pair], columns: Sequence[str], least: int = 1) -> list[str]:
    """Every statement does exactly that; returns their texts."""
    owner = state.catalog[table(name)]
    places = [place for place, column in enumerate(owner.stored) if column.name in columns]
    texts = [render(update) for update in value_map_updates(state, owner, pairs, places, None)]
    assert len(texts) >= least
    assert texts == sorted(texts, key=lambda text: len(text.encode()))
    expected = {**{row: row for row in _standing(state, name)}, **dict(pairs)}
    for text in texts:
        assert check_script(f"BEGIN;{text};COMMIT;") == [], text
        assert len(minify(text)) >= len(text), text
        with state.session.transaction(force_rollback=True):
            state.session.execute(text.encode())
            assert sorted(_standing(state, name), key=str) == sorted(expected.values(), key=str), text
    return texts


def _standing(state: State, name: str) -> list[RowTuple]:
    return rows(state.session, f"SELECT * FROM {name}")


_VALUES: dict[str, st.SearchStrategy[Value]] = {
    "n": st.integers(-5, 40_000).map(str),
    "small": st.integers(0, 9).map(str),
    "t": st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6),
    "v": st.sampled_from(["lost", "won", "draw", "it's", 'a "b"', "x,y", "NULL", "", "{}", "back\\slash"]),
    "flag": st.sampled_from(["t", "f"]),
    "d": st.dates().map(str),
    "at": st.integers(0, 59).map(lambda minute: f"2024-03-01 10:{minute:02}:00+00"),
    "price": st.integers(0, 99_999).map(lambda cents: f"{cents // 100}.{cents % 100:02}"),
    "ids": st.sampled_from(["{}", "{1,2}", "{7}"]),
    "j": st.sampled_from(["{}", '{"a": [1, "x\'y"]}', "null"]),
    "c": st.sampled_from(["ab  ", "x   ", "abcd"]),
}


@pytest.mark.parametrize("column", sorted(_VALUES))
@settings(max_examples=5, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_values(state: State, column: str, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["plain", "wide", "named", "pair"]))
    size = state.frame(table(name)).size
    if data.draw(st.booleans()):
        start, count = data.draw(st.integers(0, size - 12)), data.draw(st.integers(1, 12))
        chosen = list(range(start, start + count))
    else:
        chosen = sorted(data.draw(st.sets(st.integers(0, size - 1), min_size=1, max_size=25)))
    strategy = _VALUES[column] if data.draw(st.booleans()) else st.none() | _VALUES[column]
    values = data.draw(st.lists(strategy, min_size=len(chosen), max_size=len(chosen)))
    _prove(state, name, _pairs(state, name, chosen, column, values), [column])


def test_several_columns(state: State) -> None:
    pairs = _pairs(state, "plain", range(20, 60), "n", [str(i * 37 % 1000) for i in range(40)])
    flags = [value for _, value in _pairs(state, "plain", range(20, 60), "v", [f"page {i % 4}" for i in range(40)])]
    place = next(i for i, column in enumerate(state.catalog[table("plain")].stored) if column.name == "v")
    both = [
        (before, (*after[:place], flag[place], *after[place + 1 :]))
        for (before, after), flag in zip(pairs, flags, strict=True)
    ]
    _prove(state, "plain", both, ["n", "v"], least=4)


@pytest.mark.parametrize(
    ("column", "values", "limit"),
    [
        ("n", [str(i * i % 90 + 10) for i in range(60)], 160),
        ("small", [str(i * 7 % 11 % 3) for i in range(60)], 150),
        ("t", [f"page {i * 7 % 60} of the book" for i in range(60)], 330),
        ("v", [("won", "lost", "drawn")[i * i % 7 % 3] for i in range(60)], 190),
        ("flag", ["ft"[i * i % 11 % 2] for i in range(60)], 90),
    ],
)
def test_far_shorter_than_values(state: State, column: str, values: list[str], limit: int) -> None:
    """One byte a row or so where it can be."""
    texts = _prove(state, "plain", _pairs(state, "plain", range(100, 160), column, values), [column])
    assert len(texts[0].encode()) <= limit, texts[0]


@pytest.mark.parametrize(
    ("name", "column", "values", "limit"),
    [
        ("plain", "n", [str(i * 7 % 50) for i in range(45)], 225),
        ("plain", "small", [str(i * i % 11 % 3) for i in range(45)], 180),
        ("wide", "n", [str(i * i * 37 % 9000) for i in range(25)], 260),
        ("wide", "v", [("won", "lost", None)[i * i % 7 % 3] for i in range(25)], 210),
        ("plain", "t", [f"{i * i} %" for i in range(45)], 425),
    ],
)
def test_steps_from_key_to_key(state: State, name: str, column: str, values: list[Value], limit: int) -> None:
    chosen = [place * 4 + place * place % 3 for place in range(len(values))]
    texts = _prove(state, name, _pairs(state, name, chosen, column, values), [column])
    assert any("UNBOUNDED" in text for text in texts)
    assert len(texts[0].encode()) <= limit, texts[0]


@pytest.mark.parametrize("count", [2, 3, 4, 5, 7, 11])
@pytest.mark.parametrize("start", [0, 5, 37])
def test_numbers_share_a_byte(state: State, count: int, start: int) -> None:
    values = [str(i * i * 7 % 13 % count + 2) for i in range(50)]
    for name in ("plain", "wide"):
        texts = _prove(state, name, _pairs(state, name, range(start, start + 50), "n", values), ["n"])
        assert any("get_b" in text for text in texts)


def test_steps_with_several_columns(state: State) -> None:
    chosen = list(range(0, 90, 3))
    first = _pairs(state, "plain", chosen, "n", [str(i * 7 % 20) for i in range(30)])
    second = _pairs(state, "plain", chosen, "flag", ["ft"[i * i % 3 % 2] for i in range(30)])
    place = next(i for i, column in enumerate(state.catalog[table("plain")].stored) if column.name == "flag")
    both = [
        (before, (*after[:place], flagged[place], *after[place + 1 :]))
        for (before, after), (_, flagged) in zip(first, second, strict=True)
    ]
    texts = _prove(state, "plain", both, ["n", "flag"])
    assert sum("UNBOUNDED" in text for text in texts) == 2


def test_needs_a_key_that_stays(state: State) -> None:
    pairs = _pairs(state, "plain", [3], "id", ["900"])
    assert value_map_updates(state, state.catalog[table("plain")], pairs, [0], None) == []


def test_is_deterministic(state: State) -> None:
    random = np.random.default_rng(5)
    values = [str(value) for value in random.integers(0, 500, 30)]
    pairs = _pairs(state, "wide", range(10, 40), "n", values)
    assert _prove(state, "wide", pairs, ["n"]) == _prove(state, "wide", pairs, ["n"])

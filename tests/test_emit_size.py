"""The size of a script, and that no needed space is lost and no other kept."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emit.lexer import Kind, LexError, tokenize
from emit.size import join, minify, size

WORKLOADS = Path(__file__).parents[1].parent / "shared" / "workloads"

SAMPLES = r"""
    a e b x n u U E type é a$ 1 12 1. .5 1.5 1e6 0x1F $1 'a' 'it''s' E'\'' b'1' x'F' n'a' U&'a' U&"a" "a"
    $$a$$ $t$a$t$ + - * / < > = <= >= <> != || @ @- -> ->> ~ ! ? & | # % ^ ^@ => ( ) [ ] , ; : :: . .. :=
"""
TOKENS = st.sampled_from(SAMPLES.split())


def texts(sql: str) -> list[str] | None:
    try:
        return [token.text for token in tokenize(sql)]
    except LexError:
        return None


@given(st.lists(TOKENS, max_size=8))
def test_joined_tokens_stay_and_no_space_is_needless(tokens: list[str]) -> None:
    joined = join(tokens)
    assert texts(joined) == tokens
    spaces = [token.start - 1 for token in tokenize(joined) if joined[token.start - 1 : token.start] == " "]
    for space in spaces:
        assert texts(joined[:space] + joined[space + 1 :]) != tokens


@given(st.lists(st.tuples(TOKENS, st.sampled_from([" ", "\t", " -- x\n ", " /* -- /* */ */ "])), max_size=8))
def test_minify_keeps_tokens(pairs: list[tuple[str, str]]) -> None:
    sql = "".join(token + gap for token, gap in pairs)
    small = minify(sql)
    assert texts(small) == texts(sql)
    assert minify(small) == small
    assert size(sql) == len(small.encode()) <= len(sql.encode())


def test_examples() -> None:
    assert minify("SELECT  a , 'x' AS b -- c\nFROM t\nWHERE a = 1 AND b = - 1 ;") == (
        "SELECT a,'x'AS b FROM t WHERE a=1 AND b=-1;"
    )
    assert minify("a - -1, a @ -1, 1 . x") == "a- -1,a@ -1,1 .x"
    assert minify("ELSE .5") == "ELSE .5"
    assert join(["ELSE", ".5", "END"]) == "ELSE.5 END"
    assert join(["SELECT count( * )", "FROM", '"order"']) == 'SELECT count(*)FROM"order"'
    assert size("'é'") == 4


def test_kinds_are_all_sampled() -> None:
    sample = "a \"a\" 'a' 1 $1 + ,"
    assert {token.kind for token in tokenize(sample)} == set(Kind)


@pytest.mark.parametrize("name", ["netbox", "saleor", "wagtail", "zulip"])
def test_sample_replays_have_their_known_size(name: str) -> None:
    folder = WORKLOADS / name
    if not folder.exists():
        pytest.skip("sample workloads not found")
    assert size((folder / "ref.sql").read_text()) == json.loads((folder / "meta.json").read_text())["k"]

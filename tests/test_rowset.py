"""Row sets by their key, proved on a real server."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import sqlglot
from literal_bed import SERVERS, database, table
from sqlglot import exp

from emit.render import render
from emit.rules import check_script
from emit.size import minify
from emit.term import Delete, Term
from encoder.frame import State
from encoder.literals import source_of
from encoder.rowset import row_set_atoms, row_set_selections
from encoder.selection.model import Labels, Mask, MaskedAtom
from scratch.server import Server
from scratch.session import rows

_SIZES = {
    "few": (90, "int"),
    "wide": (900, "bigint"),
    "high": (1200, "int"),
    "holes": (700, "bigint"),
    "signed": (60, "smallint"),
    "many": (3000, "int"),
}
_IDS = {"few": "i", "wide": "i", "high": "i+54700", "holes": "i*i/3+i", "signed": "i-30", "many": "i-1000"}
_PAIR = """
CREATE TABLE pair(a int, b text, PRIMARY KEY(a,b));
INSERT INTO pair SELECT i%7,i FROM generate_series(1,50)i
"""


@pytest.fixture(scope="module", params=SERVERS)
def state(request: pytest.FixtureRequest, server: Server) -> Iterator[State]:
    script = [
        f"CREATE TABLE {name}(id {kind} PRIMARY KEY, half int);"
        f"INSERT INTO {name} SELECT {_IDS[name]}, i*2/{size} FROM generate_series(1,{size})i"
        for name, (size, kind) in _SIZES.items()
    ]
    with database(server, request.param, "rowset", ";".join([*script, _PAIR])) as state:
        yield state


def text_of(state: State, name: str, term: Term) -> str:
    """The statement that deletes the rows for which `term` holds."""
    return render(Delete(source_of(state.catalog[table(name)]), where=term))


def _labels(size: int, density: float, kind: str, free: float, seed: int) -> Labels:
    random = np.random.default_rng(seed)
    if kind == "uniform":
        must = random.random(size) < density
    elif kind == "periodic":
        must = np.arange(size) % max(2, round(1 / density)) == 1
    else:
        must = (np.sin(np.arange(size) * 0.02 / density + seed) > 1 - 2 * density) & (np.arange(size) > size // 5)
    must[size // 3] = True
    must[size // 2] = False
    return Labels(must, ~must & (random.random(size) >= free))


def _prove(state: State, name: str, labels: Labels, keep: int) -> list[str]:
    frame = state.frame(table(name))
    found = row_set_atoms(frame, labels, None, keep=keep)
    assert found
    key = ",".join(frame.table.row_key)
    texts = []
    for atom in found:
        text = text_of(state, name, atom.term)
        where = text.split("WHERE", 1)[1]
        chosen = set(rows(state.session, f"SELECT {key} FROM {name} WHERE {where}"))
        holds = np.array([row in chosen for row in frame.keys])
        assert holds[labels.must].all(), text
        assert not holds[labels.must_not].any(), text
        assert len(text.encode()) == len(f"DELETE FROM {name} WHERE") + len(where.encode())
        assert atom.size == len(where.removeprefix(" ").encode()), text
        texts.append(text)
    return texts


@pytest.mark.parametrize("name", sorted(_SIZES))
@pytest.mark.parametrize("kind", ["uniform", "periodic", "clustered"])
@pytest.mark.parametrize(("density", "free"), [(0.03, 0), (0.4, 0.3), (0.9, 0)])
def test_holds_for_the_rows(state: State, name: str, kind: str, density: float, free: float) -> None:
    _prove(state, name, _labels(_SIZES[name][0], density, kind, free, seed=7), keep=1000)


@pytest.mark.parametrize(("name", "density"), [("few", 0.4), ("wide", 0.1), ("holes", 0.9)])
def test_parses_and_keeps_its_strings(state: State, name: str, density: float) -> None:
    labels = _labels(_SIZES[name][0], density, "uniform", 0, seed=3)
    for text in _prove(state, name, labels, keep=1000):
        assert check_script(f"BEGIN;{text};COMMIT;") == []
        assert minify(text) == text
        tree = sqlglot.parse_one(text, read="postgres")
        again = sqlglot.parse_one(tree.sql(dialect="postgres"), read="postgres")
        assert _strings(tree) == _strings(again)


def _strings(tree: exp.Expression) -> list[str]:
    return [node.this for node in tree.find_all(exp.Literal, exp.RawString, exp.Heredoc) if isinstance(node.this, str)]


def test_short_ways(state: State) -> None:
    """Each kind of set has the spelling that one would choose."""
    ids = np.array([int(key[0] or 0) for key in state.frame(table("wide")).keys])
    for must, text in (
        (ids == 7, "id=7"),
        (ids > 899, "id=900"),
        (ids > 800, "id>800"),
        (ids != 7, "id<>7"),
        ((ids > 99) & (ids < 201), "id BETWEEN 100 AND 200"),
        (ids % 7 == 3, "id%7=3"),
        ((ids % 7 == 3) & (ids > 400), "id>400 AND id%7=3"),
        ((ids > 500) & (ids != 600), "id>500 AND id<>600"),
        (ids // 100 == 3, "id/100=3"),
    ):
        best = row_set_atoms(state.frame(table("wide")), Labels(must, ~must), None, keep=1)[0]
        assert best.size <= len(text), text_of(state, "wide", best.term)


def test_uniform_sets_are_near_the_bound(state: State) -> None:
    labels = _labels(900, 0.5, "uniform", 0, seed=1)
    best = row_set_atoms(state.frame(table("wide")), labels, None, keep=1)[0]
    assert best.size <= 1.25 * 900 / 8 + 60


@pytest.mark.parametrize("density", [0.15, 0.2, 0.8])
def test_sets_of_many_rows_are_one_number(state: State, density: float) -> None:
    labels = _labels(3000, density, "uniform", 0.01, seed=4)
    texts = _prove(state, "many", labels, keep=1000)
    assert any("WITH RECURSIVE t(i,y)" in text for text in texts)
    for text in texts:
        assert check_script(f"BEGIN;{text};COMMIT;") == []


def test_key_of_two_columns(state: State) -> None:
    assert len(_prove(state, "pair", _labels(50, 0.9, "uniform", 0, seed=2), keep=9)) == 2


def test_beside_a_condition(state: State) -> None:
    frame = state.frame(table("wide"))
    half: Mask = np.array(frame.texts("half")) == "1"
    labels = _labels(900, 0.95, "uniform", 0, seed=5)
    labels = Labels(labels.must & half, ~(labels.must & half))
    atom = row_set_atoms(frame, Labels(half, ~half), None, keep=1)[0]
    found = row_set_selections(frame, labels, None, within=[MaskedAtom(atom, half)])
    assert found[0].terms[0][0] == atom or len(found[0].terms[0]) == 1
    assert [selection.size for selection in found] == sorted(selection.size for selection in found)


def test_nothing_to_say(state: State) -> None:
    every = np.ones(900, dtype=np.bool_)
    assert row_set_atoms(state.frame(table("wide")), Labels(every, ~every), None) == []
    assert row_set_atoms(state.frame(table("wide")), Labels(~every, every), None) == []

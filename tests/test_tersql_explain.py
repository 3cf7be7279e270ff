"""What the statements of a script do is told right, in the terminal and on a page that stands alone."""

from __future__ import annotations

import io
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner
from workload_bed import make_workload

from scratch.server import Server
from stream.model import Op, TableName
from tersql import Explanation, InputError, explain
from tersql.cli import app
from tersql.explain import kind_of
from tersql.explain_json import write_json
from tersql.explain_page import page
from tersql.explain_text import visible

REPLAY = """\
BEGIN;UPDATE item SET price=price+25 WHERE kind_id=3;COMMIT;
BEGIN;UPDATE item SET label=upper(label)WHERE price<900;DELETE FROM kind WHERE id=5;COMMIT;
BEGIN;INSERT INTO kind VALUES(7,'new'),(8,'newer');COMMIT;
"""
ITEM, KIND = TableName("public", "item"), TableName("public", "kind")


@pytest.fixture(scope="module")
def tiny(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workload(server, tmp_path_factory.mktemp("explain") / "tiny")


def told(server: Server, tiny: Path, script: str, search: str | None = None) -> Explanation:
    stream, dump = tiny / "stream.jsonl", tiny / "before.sql"
    return explain(script, stream, dump=dump, scratch=server.dsn(), search=search)


@pytest.fixture(scope="module")
def story(server: Server, tiny: Path) -> Explanation:
    return told(server, tiny, REPLAY)


def test_rows_and_bytes_of_each_statement(story: Explanation) -> None:
    assert all(one.exact for one in story.transactions)
    assert story.size == len("".join(REPLAY.split("\n")).encode())
    (first,) = story.transactions[0].statements
    assert first.counts == [(ITEM, Op.UPDATE, 50)]
    assert first.rows[0].key == (("id", "2"),)
    assert first.rows[0].cells == (("price", "200", "225"),)
    _, delete = story.transactions[1].statements
    # The rows that the foreign key takes along are the statement's too.
    assert delete.counts == [(ITEM, Op.DELETE, 50), (KIND, Op.DELETE, 1)]
    (insert,) = story.transactions[2].statements
    assert [(row.key, row.cells) for row in insert.rows] == [
        ((("id", "7"),), (("name", None, "new"),)),
        ((("id", "8"),), (("name", None, "newer"),)),
    ]


def test_the_next_best_names_rows_and_values(story: Explanation) -> None:
    (first,) = story.transactions[0].statements
    assert first.literal is not None
    assert first.literal.size > first.size
    assert first.next_best == first.literal
    assert story.transactions[0].baseline < story.transactions[0].starter


def test_bytes_by_kind_add_up(story: Explanation) -> None:
    kinds = {kind: (count, size) for kind, count, size in story.kinds}
    assert kinds.keys() == {"UPDATE", "DELETE", "INSERT … VALUES", "BEGIN, COMMIT"}
    assert kinds["UPDATE"][0] == 2
    assert sum(size for _, size in kinds.values()) == story.size


def test_the_search_finds_a_rival(server: Server, tiny: Path) -> None:
    # A longer way to say the same, so that the search has something to say.
    script = REPLAY.replace("kind_id=3", "kind_id IN(SELECT id FROM kind WHERE name='kind 3')")
    (first,) = told(server, tiny, script, "low").transactions[0].statements
    assert first.rival is not None
    assert first.rival.size < first.size


def test_what_goes_wrong_is_told_and_the_rest_goes_on(server: Server, tiny: Path) -> None:
    script = REPLAY.replace("price+25", "price+24").replace("id=5", "idd=5")
    first, second, third = told(server, tiny, script).transactions
    assert first.trouble == "the rows of public.item are not those of the stream"
    assert second.statements[1].error == 'column "idd" does not exist'
    assert not second.exact
    assert third.exact


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (REPLAY + "BEGIN;COMMIT;", "the script has 4 transactions, the stream 3"),
        ("BEGIN;TRUNCATE item;COMMIT;", "line 1: .*TRUNCATE"),
        ("BEGIN;", "line 1: BEGIN without COMMIT"),
    ],
)
def test_what_is_no_script_for_the_stream(server: Server, tiny: Path, script: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        told(server, tiny, script)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_stands_alone(story: Explanation) -> None:
    text = page(story, "a <title> & more")
    reader = _Reader()
    reader.feed(text)
    assert reader.open == []
    assert not {"script", "link", "img", "iframe"} & set(reader.tags)
    assert not {"src", "href"} & {name for name, _ in reader.attributes}
    assert "url(" not in text
    assert "@import" not in text
    assert "<h1>a &lt;title&gt; &amp; more</h1>" in text
    assert "prefers-color-scheme: dark" in text
    assert reader.tags.count("svg") == 1
    assert reader.tags.count("article") == 4


def test_long_lists_are_cut_on_the_page(server: Server, tiny: Path) -> None:
    script = REPLAY.replace("price+25 WHERE kind_id=3", "0")
    explanation = told(server, tiny, script)
    assert len(explanation.transactions[0].statements[0].rows) > 50
    text = page(explanation, "t")
    assert "more</p>" in text
    assert "Not exact: transaction 1." in text


def test_nothing_that_a_terminal_obeys_is_shown() -> None:
    assert visible("a\x1b[31m\x7f\tb\n") == "a␛[31m␡\tb\n"


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("INSERT INTO t VALUES(1)", "INSERT … VALUES"),
        ("INSERT INTO t SELECT 1", "INSERT … SELECT"),
        ("WITH a AS(DELETE FROM t RETURNING*)INSERT INTO u TABLE a", "WITH"),
        ("delete from t", "DELETE"),
    ],
)
def test_kinds(statement: str, kind: str) -> None:
    assert kind_of(statement) == kind


def test_the_command(server: Server, tiny: Path, tmp_path: Path) -> None:
    script = tmp_path / "replay.sql"
    script.write_text(REPLAY)
    common = ["explain", script, tiny / "stream.jsonl", "--dump", tiny / "before.sql", "--scratch", server.dsn()]
    result = CliRunner().invoke(app, [*map(str, common), "--rows", "1"])
    assert result.exit_code == 0, result.output
    assert "transaction 1: 60 bytes" in result.stdout
    assert "~ item id=2: price 200 → 225" in result.stdout
    assert "and 49 more" in result.stdout
    files = ("--html", tmp_path / "page.html", "--json", tmp_path / "told.json")
    result = CliRunner().invoke(app, [*map(str, common), *map(str, files)])
    assert result.exit_code == 0, result.output
    assert "transaction 1" not in result.stdout
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    data = json.loads((tmp_path / "told.json").read_text(encoding="utf-8"))
    assert data["size"] == sum(one["size"] for one in data["transactions"])
    assert data["size"] == sum(one["size"] for one in data["kinds"])
    (first,) = data["transactions"][0]["statements"]
    assert first["text"] == "UPDATE item SET price=price+25 WHERE kind_id=3"
    assert first["rows"] == [{"schema": "public", "table": "item", "op": "update", "count": 50}]
    assert first["next_best"] == first["literal"]
    assert first["next_best"]["size"] > first["size"]


def test_json_tells_what_went_wrong(server: Server, tiny: Path) -> None:
    out = io.StringIO()
    write_json(told(server, tiny, REPLAY.replace("id=5", "idd=5")), out)
    second = json.loads(out.getvalue())["transactions"][1]
    assert not second["exact"]
    assert second["trouble"].startswith("the rows of")
    failed = second["statements"][1]
    assert failed["error"] == 'column "idd" does not exist'
    assert (failed["rows"], failed["next_best"]) == ([], None)

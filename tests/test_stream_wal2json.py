"""Reading and writing wal2json's format-version 2."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.model import Op, RowChange, StreamError, TableName, Transaction, Value
from stream.open import open_stream
from stream.wal2json import read_wal2json
from stream.write import write_wal2json

SHARED = Path(__file__).resolve().parent.parent.parent / "shared" / "workloads"

BEGIN = '{"action":"B","xid":7}'
COMMIT = '{"action":"C","xid":7}'


def column(name: str, type_name: str, token: str) -> str:
    return f'{{"name":{json.dumps(name)},"type":{json.dumps(type_name)},"value":{token}}}'


def insert(*columns: str) -> str:
    return f'{{"action":"I","xid":7,"schema":"public","table":"t","columns":[{",".join(columns)}]}}'


def update(new: str, old: str) -> str:
    return f'{{"action":"U","schema":"public","table":"t","columns":[{new}],"identity":[{old}]}}'


LONG = "1234567890123456789012345678901234567890.10"


@pytest.mark.parametrize(
    ("type_name", "token", "value"),
    [
        ("numeric", LONG, LONG),
        ("numeric", "1e400", "1e400"),
        ("numeric(6,2)", "270.20", "270.20"),
        ("double precision", "-0", "-0"),
        ("double precision", "1e-05", "1e-05"),
        ("double precision", '"NaN"', "NaN"),
        ("numeric", '"-Infinity"', "-Infinity"),
        ("numeric", "null", None),
        ("bigint", '"12"', "12"),
        ("boolean", "true", "t"),
        ("boolean", "false", "f"),
        ("bytea", '"00ff"', "\\x00ff"),
        ("bytea", '"\\\\x00FF"', "\\x00ff"),
        ("bytea", '""', "\\x"),
        ("text", '"00ff"', "00ff"),
        ("bytea[]", '"{\\"\\\\\\\\x00\\"}"', '{"\\\\x00"}'),
        ("boolean[]", '"{t,f}"', "{t,f}"),
        ("text", '"\\ud83d\\ude00 \u2028 \\n"', "\U0001f600 \u2028 \n"),
        ("jsonb", '"{\\"a\\": \\"\\\\u0000\\"}"', '{"a": "\\u0000"}'),
    ],
)
def test_values_keep_their_text(type_name: str, token: str, value: Value) -> None:
    (transaction,) = read_wal2json([BEGIN, insert(column("c", type_name, token)), COMMIT])
    assert transaction.changes[0].new == {"c": value}


def test_transactions_changes_and_lines() -> None:
    lines = [
        "\ufeff" + BEGIN,
        '{"action":"M","xid":null,"transactional":false,"prefix":"p","content":"x"}',
        insert(column("id", "integer", "1")),
        update(column("id", "integer", "2"), column("id", "integer", "1")),
        '{"action":"D","schema":"public","table":"t","identity":[' + column("id", "integer", "2") + "]}",
        COMMIT,
        "",
        '{"action":"B"}',
        '{"action":"C"}',
    ]
    table = TableName("public", "t")
    expected = [
        Transaction(
            1,
            (
                RowChange(Op.INSERT, table, None, {"id": "1"}, 3),
                RowChange(Op.UPDATE, table, {"id": "1"}, {"id": "2"}, 4),
                RowChange(Op.DELETE, table, {"id": "2"}, None, 5),
            ),
            7,
            1,
            6,
        ),
        Transaction(2, (), None, 8, 9),
    ]
    assert list(read_wal2json(lines)) == expected
    assert list(read_wal2json(f"{line}\r\n".encode() for line in lines)) == expected


def test_unchanged_toast_comes_from_the_identity() -> None:
    one, big = column("id", "integer", "1"), column("big", "text", '"long"')
    lines = [BEGIN, update(one, f"{one},{big}"), update(one, one), COMMIT]
    (transaction,) = read_wal2json(lines)
    assert [change.new for change in transaction.changes] == [{"id": "1", "big": "long"}, {"id": "1"}]


ONE = column("id", "integer", "1")


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        ([insert(ONE)], 1, "INSERT of public.t outside a transaction"),
        ([COMMIT], 1, "COMMIT without a BEGIN"),
        ([BEGIN, BEGIN], 2, "BEGIN inside transaction 1 (BEGIN at line 1, xid 7)"),
        ([BEGIN, insert(ONE)], 2, "cut off inside transaction 1"),
        ([BEGIN, '{"action":"C","xid":8}'], 2, "COMMIT of xid 8 inside transaction 1 (BE"),
        ([BEGIN, insert(ONE).replace("7", "9")], 2, "INSERT of xid 9 inside"),
        ([BEGIN, insert(ONE)[:-20]], 2, "the JSON object is cut off"),
        ([BEGIN, insert(ONE)[:12]], 2, "the JSON object is cut off"),
        ([BEGIN, "{'action': 'C'}"], 2, "not JSON"),
        ([BEGIN, COMMIT + COMMIT], 2, "more than one JSON value"),
        (["[1]"], 1, "no object"),
        (["[" * 100_000], 1, "nested too deeply"),
        (['{"a":1}'], 1, 'no "action"'),
        (['{"action":"X"}'], 1, '"action" is "X"'),
        (['{"action":"B","xid":true}'], 1, '"xid" is true'),
        ([BEGIN, '{"action":"T","schema":"s","table":"t"}'], 2, "TRUNCATE of s.t is not replayable"),
        ([BEGIN, '{"action":"I","table":"t","columns":[]}'], 2, "include-schemas"),
        ([BEGIN, '{"action":"I","schema":"t","columns":[]}'], 2, 'no "table"'),
        ([BEGIN, '{"action":"I","schema":"s","table":"t"}'], 2, 'INSERT of s.t has no "columns"'),
        ([BEGIN, '{"action":"D","schema":"s","table":"t"}'], 2, "REPLICA IDENTITY FULL"),
        ([BEGIN, insert("1")], 2, "not a column"),
        ([BEGIN, insert("{}")], 2, 'has no "name"'),
        ([BEGIN, insert('{"name":"c"}')], 2, 'column c of public.t has no "value"'),
        ([BEGIN, insert('{"name":"c","value":"x"}')], 2, "include-types"),
        ([BEGIN, insert(column("c", "jsonb", "{}"))], 2, "JSON object or array"),
        ([BEGIN, insert(ONE, ONE)], 2, "column id of public.t is twice"),
        ([BEGIN, insert(column("c", "bytea", '"a\\\\000"'))], 2, "bytea_output=hex"),
        ([BEGIN, insert(column("c", "text", '"\\u0000"'))], 2, "cannot be text"),
        ([BEGIN, insert(column("c", "text", '"\\ud800"'))], 2, "cannot be text"),
        ([BEGIN.encode(), b'{"action":"\xff"}'], 2, "byte 12 of the line is not UTF-8"),
        ([BEGIN, "\udc80"], 2, "not Unicode"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(lines: list[str], line: int, message: str) -> None:
    with pytest.raises(StreamError) as caught:
        list(read_wal2json(lines))
    assert caught.value.line == line
    assert str(caught.value).startswith(f"line {line}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_broken_stream_yields_what_came_before() -> None:
    transactions = read_wal2json([BEGIN, COMMIT, "nonsense"])
    assert next(transactions).index == 1
    with pytest.raises(StreamError, match="line 3"):
        next(transactions)


def test_memory_is_that_of_one_transaction() -> None:
    body = insert(column("c", "text", json.dumps("x" * 1000)))
    lines = (line for _ in range(2000) for line in (BEGIN, body, COMMIT))
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_wal2json(lines)) == 2000
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()


# What PostgreSQL can hold: any Unicode text but NUL.
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
NAMES = TEXTS.filter(bool)
NUMBERS = st.one_of(
    st.integers().map(str),
    st.decimals(allow_nan=False, allow_infinity=False).map(lambda number: f"{number:f}"),
    st.floats().map(repr),
    st.sampled_from(["NaN", "Infinity", "-Infinity", "-0", "1e400", "007", "1.", ".5", "1_0", "\u0661"]),
)
VALUES: dict[str, st.SearchStrategy[str]] = {
    "text": TEXTS,
    "boolean": st.sampled_from(["t", "f"]),
    "bytea": st.binary().map(lambda raw: "\\x" + raw.hex()),
    "numeric(10,2)": NUMBERS,
    "double precision": NUMBERS,
    "bigint": NUMBERS,
    "bytea[]": TEXTS,
    'app."Mood"': TEXTS,
}
Schema = dict[TableName, dict[str, str]]


@st.composite
def streams(draw: st.DrawFn) -> tuple[Schema, list[Transaction]]:
    schema: Schema = draw(
        st.dictionaries(
            st.builds(TableName, NAMES, NAMES),
            st.dictionaries(NAMES, st.sampled_from(sorted(VALUES)), max_size=4),
            min_size=1,
            max_size=2,
        )
    )
    lines = count(1)
    transactions = []
    for index in range(1, draw(st.integers(0, 3)) + 1):
        xid = draw(st.none() | st.integers(0, 2**32 - 1))
        first = next(lines)
        changes = []
        for _ in range(draw(st.integers(0, 3))):
            op = draw(st.sampled_from(Op))
            table = draw(st.sampled_from(sorted(schema)))
            values = {name: st.none() | VALUES[kind] for name, kind in schema[table].items()}
            rows = st.fixed_dictionaries(values)
            old = None if op is Op.INSERT else draw(rows)
            new = None if op is Op.DELETE else draw(rows)
            changes.append(RowChange(op, table, old, new, next(lines)))
        transactions.append(Transaction(index, tuple(changes), xid, first, next(lines)))
    return schema, transactions


@given(streams())
def test_what_is_written_is_read_back(stream: tuple[Schema, list[Transaction]]) -> None:
    schema, transactions = stream
    out = io.StringIO()
    write_wal2json(transactions, out, schema.__getitem__)
    # As a file is read: lines end at \n only, whatever else the text holds.
    assert list(read_wal2json(io.BytesIO(out.getvalue().encode()))) == transactions


def written(value: Value, type_name: str) -> object:
    change = RowChange(Op.INSERT, TableName("s", "t"), None, {"c": value})
    out = io.StringIO()
    write_wal2json([Transaction(1, (change,))], out, lambda _: {"c": type_name})
    return out.getvalue().split("\n")[1].partition('"value":')[2].removesuffix("}]}")


def test_written_values() -> None:
    assert written("1.50", "numeric(6,2)") == "1.50"
    assert written("1.50", "text") == '"1.50"'
    assert written("NaN", "real") == '"NaN"'
    assert written("007", "integer") == '"007"'
    assert written("t", "boolean") == "true"
    assert written("\\x0aff", "bytea") == '"0aff"'
    assert written(None, "bytea") == "null"
    assert written("é\u2028", "text") == '"é\u2028"'
    with pytest.raises(ValueError, match="hex text"):
        written("abc", "bytea")


STREAM = f"{BEGIN}\n{insert(ONE)}\n{COMMIT}\n".encode()


def test_open_plain_and_gzip_and_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    plain.write_bytes(STREAM)
    packed.write_bytes(gzip.compress(STREAM))
    expected = list(read_wal2json(STREAM.splitlines(keepends=True)))
    assert list(open_stream(plain)) == list(open_stream(str(packed))) == expected
    for path in (plain, packed):
        with path.open("rb") as file:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(file))
            assert list(open_stream("-")) == expected


def test_open_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.write_bytes(b"")
    assert list(open_stream(path)) == []
    with pytest.raises(FileNotFoundError):
        next(open_stream(tmp_path / "none"))


def v1(pretty: bool) -> bytes:
    return b'{\n\t"change": [\n' if pretty else b'{"xid":7,"change":[{"kind":"insert"}]}\n'


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (v1(pretty=True), 1, "this is wal2json format-version 1"),
        (v1(pretty=False), 1, "this is wal2json format-version 1"),
        (b"\n\nBEGIN 693\n", 3, "the text of test_decoding"),
        (b"table public.t: INSERT: id[integer]:1\n", 1, "the text of test_decoding"),
        (b"B\x00\x00\x00\x00\x01", 1, "pgoutput"),
        (b"PGDMP\x01", 1, "pg_dump"),
        (b"    lsn    | xid | data\n", 1, "a table of psql"),
        (b"--\n-- PostgreSQL database dump\n", 1, "not JSON"),
        (b"[\n", 1, "a JSON array"),
        (b"\x28\xb5\x2f\xfd\x00", 1, "compressed with zstd"),
        (gzip.compress(STREAM * 1000)[:-20], None, "the gzip file is cut off"),
        (gzip.compress(STREAM)[:-6] + b"\0" * 6, None, "the gzip file is damaged"),
    ],
)
def test_other_formats_have_names(tmp_path: Path, content: bytes, line: int | None, message: str) -> None:
    path = tmp_path / "stream"
    path.write_bytes(content)
    with pytest.raises(StreamError) as caught:
        list(open_stream(path))
    assert message in str(caught.value)
    assert line is None or caught.value.line == line


@pytest.mark.parametrize("name", ["wagtail", "zulip", "saleor", "netbox"])
def test_sample_streams(name: str) -> None:
    folder = SHARED / name
    if not folder.is_dir():
        pytest.skip(f"no sample workload {name} beside the repository")
    meta = json.loads((folder / "meta.json").read_text())
    transactions = list(open_stream(folder / "stream.jsonl.gz"))
    assert len(transactions) == meta["transactions"]
    assert sum(len(transaction.changes) for transaction in transactions) == meta["changes"]
    assert sum(transaction.size for transaction in transactions) == meta["stream_bytes"]

    out = io.StringIO()
    write_wal2json(transactions, out, types_of(folder / "stream.jsonl.gz"))
    assert list(read_wal2json(io.BytesIO(out.getvalue().encode()))) == transactions


def types_of(path: Path) -> Callable[[TableName], dict[str, str]]:
    types: dict[TableName, dict[str, str]] = {}
    with gzip.open(path) as lines:
        for event in map(json.loads, lines):
            for item in event.get("columns", []) + event.get("identity", []):
                table = TableName(event["schema"], event["table"])
                types.setdefault(table, {})[item["name"]] = item["type"]
    return types.__getitem__

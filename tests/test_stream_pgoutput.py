"""Decoding pgoutput: rows of every type as the server prints them, and messages that are wrong."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql

from scratch.server import Server
from scratch.session import Session, connect
from stream.capture import capture_script
from stream.model import Op, RowChange, StreamError, TableName, Transaction
from stream.pgoutput import decode

TABLE = TableName("app", "t é")


def name(text: str) -> bytes:
    return text.encode() + b"\0"


def begin(xid: int = 7) -> bytes:
    return b"B" + struct.pack(">qqI", 1, 2, xid)


COMMIT = b"C" + struct.pack(">bqqq", 0, 1, 2, 3)


def relation(*columns: tuple[str, bool], oid: int = 5, identity: bytes = b"d") -> bytes:
    described = b"".join(struct.pack(">B", key) + name(column) + struct.pack(">Ii", 25, -1) for column, key in columns)
    return (
        b"R" + struct.pack(">I", oid) + name("app") + name("t é") + identity
        + struct.pack(">h", len(columns)) + described
    )  # fmt: skip


def row(*values: str | bytes | None) -> bytes:
    def value(item: str | bytes | None) -> bytes:
        if item is None:
            return b"n"
        if isinstance(item, bytes):
            return item
        return b"t" + struct.pack(">I", len(item.encode())) + item.encode()

    return struct.pack(">h", len(values)) + b"".join(map(value, values))


def change(kind: bytes, *parts: bytes, oid: int = 5) -> bytes:
    return kind + struct.pack(">I", oid) + b"".join(parts)


KEYED = relation(("id", True), ("a", False), ("b", False))


def changes_of(*messages: bytes) -> tuple[RowChange, ...]:
    (transaction,) = decode([begin(), *messages, COMMIT])
    return transaction.changes


def test_default_identity() -> None:
    assert changes_of(
        KEYED,
        b"Y" + struct.pack(">I", 9) + name("app") + name("mood"),
        b"O" + struct.pack(">q", 1) + name("origin"),
        b"M" + struct.pack(">bq", 1, 1) + name("prefix") + struct.pack(">I", 1) + b"x",
        change(b"I", b"N", row("1", "", None)),
        change(b"U", b"N", row("1", "é", b"u")),
        change(b"U", b"K", row("1", None, None), b"N", row("2", "x", "y")),
        change(b"D", b"K", row("2", None, None)),
    ) == (
        RowChange(Op.INSERT, TABLE, None, {"id": "1", "a": "", "b": None}, 6),
        RowChange(Op.UPDATE, TABLE, {"id": "1"}, {"id": "1", "a": "é"}, 7),
        RowChange(Op.UPDATE, TABLE, {"id": "1"}, {"id": "2", "a": "x", "b": "y"}, 8),
        RowChange(Op.DELETE, TABLE, {"id": "2"}, None, 9),
    )


def test_full_identity_fills_unchanged_toast() -> None:
    full = relation(("id", True), ("a", True), identity=b"f")
    old = {"id": "1", "a": None}
    assert changes_of(
        full,
        change(b"U", b"O", row("1", "long"), b"N", row("2", b"u")),
        change(b"D", b"O", row("1", None)),
    ) == (
        RowChange(Op.UPDATE, TABLE, {"id": "1", "a": "long"}, {"id": "2", "a": "long"}, 3),
        RowChange(Op.DELETE, TABLE, old, None, 4),
    )


def test_transactions_are_counted_in_messages() -> None:
    assert list(decode([begin(3), COMMIT, begin(4), COMMIT])) == [
        Transaction(1, (), 3, 1, 2),
        Transaction(2, (), 4, 3, 4),
    ]


@pytest.mark.parametrize(
    ("messages", "line", "text"),
    [
        ([begin(), begin()], 2, "BEGIN inside transaction 1"),
        ([COMMIT], 1, "COMMIT without"),
        ([begin()], 1, "cut off inside"),
        ([b""], 1, "message is cut off"),
        ([begin()[:-1]], 1, "message is cut off"),
        ([KEYED[:9]], 1, "message is cut off"),
        ([b"S\0"], 1, "unknown to proto_version 1"),
        ([begin(), change(b"I", b"N", row("1"))], 2, "oid 5, which no Relation"),
        ([begin(), KEYED, change(b"I", b"N", row("1"))], 3, "row of 1 columns, not 3"),
        ([begin(), KEYED, change(b"I", b"N", row("1", "a", b"b"))], 3, "column b of app.t é is of kind b'b'"),
        ([begin(), KEYED, change(b"D", b"N", row("1", "a", "b"))], 3, "DELETE of app.t é"),
        ([begin(), KEYED, change(b"I", b"N", row("1", "a", b"t\0\0\0\1\xff"))], 3, "not UTF-8"),
        ([begin(), KEYED, b"T" + struct.pack(">IBI", 1, 0, 5)], 3, "TRUNCATE of app.t é is not replayable"),
    ],
)
def test_what_is_wrong_is_said(messages: list[bytes], line: int, text: str) -> None:
    with pytest.raises(StreamError) as caught:
        list(decode(messages))
    assert caught.value.line == line
    assert text in str(caught.value)


# Types and values whose text is easy to get wrong: extremes, signs, zones, blanks, escapes.
SAMPLES = {
    "smallint": ["-32768", "32767"],
    "integer": ["-2147483648", "2147483647"],
    "bigint": ["-9223372036854775808", "9223372036854775807"],
    "numeric": ["1e131071", "1e-16383", "NaN", "Infinity", "-Infinity", "1.500", "-0"],
    "numeric(12,4)": ["1.5", "-99999999.9999"],
    "numeric(3,-2)": ["12345"],
    "real": ["3.4028235e38", "1e-45", "-0", "NaN", "Infinity", "0.1"],
    "double precision": ["1.7976931348623157e308", "5e-324", "-0", "NaN", "-Infinity", "0.1", "1e20"],
    "money": ["-92233720368547758.08", "12.34"],
    "boolean": ["t", "f"],
    "char(5)": ["ab", ""],
    '"char"': ["x", ""],
    "name": ["n"],
    "varchar(9)": ["é\n\t'\"\\", " "],
    "text": ["", "\U0001f600", "null", "line\u2028separator\r\n"],
    "bytea": ["\\x", "\\x00ff5c27"],
    "date": ["4713-01-01 BC", "5874897-12-31", "infinity", "-infinity", "2024-02-29"],
    "time": ["00:00", "24:00:00", "12:34:56.789"],
    "timetz": ["00:00+15:59:59", "23:59:59.999999-15:59"],
    "timestamp": ["4713-11-24 00:00 BC", "294276-12-31 23:59:59.999999", "infinity", "2024-01-01"],
    "timestamp(0)": ["2024-01-01 00:00:00.6"],
    "timestamptz": ["2024-06-01 12:00+02", "-infinity", "4713-11-24 00:00+00 BC"],
    "interval": ["-178000000 years", "1 mon -2 days 03:04:05.000006", "0", "infinity"],
    "uuid": ["00000000-0000-0000-0000-0000000000ff"],
    "json": ['{ "a" : 1.0, "a":[null] }', '"\\u0000"'],
    "jsonb": ['{"b":1.00,"a":{"c":"é"}}', "null"],
    "jsonpath": ["$.a[*] ? (@ > 1)"],
    "inet": ["10.0.0.1", "10.0.0.1/8", "::1/128"],
    "cidr": ["10.0.0.0/8", "::/0"],
    "macaddr": ["08:00:2b:01:02:03"],
    "macaddr8": ["08:00:2b:01:02:03:04:05"],
    "bit(3)": ["101"],
    "varbit": ["", "1"],
    "point": ["(1e300,-0.1)"],
    "line": ["{1,2,3}"],
    "lseg": ["[(0,0),(1,1)]"],
    "box": ["(0,0),(1,1)"],
    "path": ["[(0,0),(1,1)]", "((0,0),(1,1))"],
    "polygon": ["((0,0),(1,1))"],
    "circle": ["<(0,0),1.5>"],
    "tsvector": ["'a b':1A,2 'c'"],
    "tsquery": ["'a' & !'b':*"],
    "int4range": ["[1,5)", "empty", "(,)"],
    "numrange": ["(1.50,]"],
    "tstzrange": ["[2024-01-01 00:00+01,infinity]"],
    "daterange": ["[2024-01-01,2024-01-02]"],
    "int8multirange": ["{[1,2],[5,9)}", "{}"],
    "integer[]": ["{}", "{1,NULL}", "[0:1]={1,2}", "{{1,2},{3,4}}"],
    "text[]": ['{"a,b","\\"q\\"",NULL,"NULL","","{}","\\\\"}'],
    "boolean[]": ["{t,f}"],
    "bytea[]": ['{"\\\\x00ff"}'],
    "oid": ["4294967295"],
    "xid8": ["18446744073709551615"],
    "pg_lsn": ["FFFFFFFF/FFFFFFFF"],
    "tid": ["(0,1)"],
    "regclass": ["pg_class"],
    "pg_snapshot": ["10:20:10,14"],
    "mood": ["it's\nok"],
    "pair": ['(1,"a,b")', "(,)"],
    "positive": ["1.50"],
    "digits": ["{1,2}"],
}  # fmt: skip


@pytest.fixture(scope="module")
def session(server: Server) -> Iterator[Session]:
    with connect(server.dsn()) as admin:
        admin.execute("CREATE DATABASE pgoutput_types")
    with connect(server.dsn("pgoutput_types")) as opened:
        opened.execute(
            """CREATE TYPE mood AS ENUM ($$it's
ok$$);
               CREATE TYPE pair AS (a int, b text);
               CREATE DOMAIN positive AS numeric CHECK (VALUE > 0);
               CREATE DOMAIN digits AS int[]"""
        )
        yield opened
    with connect(server.dsn()) as admin:
        admin.execute("DROP DATABASE pgoutput_types")


def test_rows_of_every_type_are_as_the_server_prints_them(server: Server, session: Session) -> None:
    columns = {f"c{number}": type_name for number, type_name in enumerate(SAMPLES)}
    session.execute(
        f"CREATE TABLE every (id int PRIMARY KEY, {', '.join(f'{c} {t}' for c, t in columns.items())});"
        "ALTER TABLE every REPLICA IDENTITY FULL".encode()
    )
    statements = []
    for number in range(max(map(len, SAMPLES.values())) + 1):
        values = [samples[number] if number < len(samples) else None for samples in SAMPLES.values()]
        spelled = sql.SQL(", ").join(map(sql.Literal, [str(number), *values]))
        statements.append(sql.SQL("INSERT INTO every VALUES ({})").format(spelled).as_string())
    statements.append("UPDATE every SET id = -id")
    statements.append("DELETE FROM every")
    # The session that writes may have any settings: the text is made by the one that reads.
    script = "SET DateStyle = German; SET TimeZone = 'Asia/Tokyo'; SET IntervalStyle = iso_8601;"
    script += "CREATE TABLE copied AS TABLE every WITH NO DATA;" + ";".join(statements[:-1])
    script += ";INSERT INTO copied TABLE every;" + statements[-1]

    transactions = list(capture_script(server.dsn("pgoutput_types"), script))

    cursor = session.execute("TABLE copied")
    names = [item.name for item in cursor.description or ()]
    printed = [dict(zip(names, values, strict=True)) for values in cursor]
    inserted = {int(new["id"] or ""): new for new in news(transactions, "every", Op.INSERT)}
    assert len(inserted) == len(statements) - 2
    assert [new | {"id": str(-number)} for number, new in sorted(inserted.items())] == printed
    assert news(transactions, "every", Op.UPDATE) == news(transactions, "copied", Op.INSERT) == printed
    deleted = [change.old for transaction in transactions for change in transaction.changes if not change.new]
    assert deleted == printed


def news(transactions: list[Transaction], table: str, op: Op) -> list[dict[str, str | None]]:
    return [
        dict(change.new or {})
        for transaction in transactions
        for change in transaction.changes
        if change.table == TableName("public", table) and change.op is op
    ]


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(TEXTS, st.floats(), st.decimals(allow_nan=False, places=5)), min_size=1))
def test_arbitrary_values(server: Server, session: Session, values: list[tuple[object, ...]]) -> None:
    session.execute("DROP TABLE IF EXISTS drawn; CREATE TABLE drawn (t text, f float8, n numeric)")
    spelled = (sql.SQL("({})").format(sql.SQL(",").join(sql.Literal(str(value)) for value in row)) for row in values)
    script = sql.SQL("INSERT INTO drawn VALUES {}").format(sql.SQL(",").join(spelled)).as_string()
    (transaction,) = capture_script(server.dsn("pgoutput_types"), script)
    printed = session.execute("TABLE drawn").fetchall()
    assert [tuple((change.new or {}).values()) for change in transaction.changes] == printed
    assert [value for value, *_ in printed] == [value for value, *_ in values]

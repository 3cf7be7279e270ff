"""Every shortened spelling is read back by PostgreSQL as exactly the value it stands for."""

from __future__ import annotations

import datetime
import json
import os
import string
import uuid
from collections.abc import Iterator

import psycopg
import pytest
import sqlglot
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emit.literal import Context, identifier, literal, table_name
from emit.size import size
from emit.strings import quote
from scratch.server import Server
from scratch.session import Session, connect

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12) | st.text(
    "ab'$\\\"{},: \n\r\té()[]0N", max_size=12
)
INT2, INT4, INT8 = (st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (16, 32, 64))
ROUND = st.builds(lambda digits, zeros: digits * 10**zeros, st.integers(-99, 99), st.integers(0, 3))
DECIMAL = st.builds(lambda digits, point: f"{digits}e{-point}", st.integers(-(10**8), 10**8) | ROUND, st.integers(0, 9))
SPECIAL = st.sampled_from(["NaN", "Infinity", "-Infinity", "0", "-0", "0.00", "1000000"])
FLOAT = st.floats(width=64).map(repr) | st.floats(width=32).map(repr) | ROUND.map(str) | SPECIAL
DATE = st.dates().map(str) | st.dates(datetime.date(1960, 1, 1), datetime.date(2080, 1, 1)).map(str)
DATES = DATE | st.sampled_from(["infinity", "-infinity", "epoch", "0044-03-15 BC", "12345-06-07", "0044-03-15"])
CLOCK = st.builds(
    lambda h, m, s, f: f"{h:02}:{m:02}:{s:02}.{f}",
    st.integers(0, 23),
    st.sampled_from([0, 5, 59]),
    st.sampled_from([0, 5, 59]),
    st.sampled_from(["0", "5", "000001", "12", "123456"]),
)
STAMP = st.builds(lambda day, clock: f"{day} {clock}", DATE, CLOCK) | DATES
COUNT = st.sampled_from([0, 0, 1, 2, 7, 12, 14, 90, 365, -1, -7, -12, -13])
INTERVAL = st.builds(
    lambda mon, day, sec, frac: f"{mon} mons {day} days {sec} seconds {frac} microseconds",
    COUNT,
    COUNT,
    st.sampled_from([0, 0, 1, 59, 60, 90, 900, 3600, 7200, 3661, 86400, 360000, -1, -60, -3600, -3725]),
    st.sampled_from([0, 0, 0, 500000, 1, -1, -500000]),
)
JSON = st.recursive(
    st.none() | st.booleans() | INT4 | ROUND | st.sampled_from([0.5, 1e20, 0.00001, 1.5]) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
).map(json.dumps)
BITS = st.text("01", max_size=24)
OCTET = st.sampled_from([0, 0, 1, 10, 192, 255])
IPV4 = st.builds(lambda a, b, c, d: f"{a}.{b}.{c}.{d}", OCTET, OCTET, OCTET, OCTET)
INET = st.builds(lambda ip, mask: f"{ip}/{mask}", IPV4, st.integers(0, 32)) | st.sampled_from(["::1", "fe80::/10"])
MAC = st.binary(min_size=6, max_size=6).map(lambda raw: raw.hex(":"))


def array_of(element: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def shown(items: list[str | None]) -> str:
        escaped = (
            "NULL" if item is None else '"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"' for item in items
        )
        return "{" + ",".join(escaped) + "}"

    return st.lists(st.none() | element, max_size=4).map(shown)


def range_of(element: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    bound = st.just("") | element.map(lambda text: f'"{text}"')
    return st.builds(
        lambda low, high, ends: f"{ends[0]}{low},{high}{ends[1]}",
        bound,
        bound,
        st.sampled_from(["[)", "(]", "[]", "()"]),
    )


TYPES: dict[str, st.SearchStrategy[str]] = {
    "smallint": (INT2 | ROUND.filter(lambda n: abs(n) < 30000)).map(str),
    "integer": (INT4 | ROUND).map(str),
    "bigint": (INT8 | ROUND).map(str),
    "oid": (st.integers(0, 2**32 - 1) | ROUND.map(abs)).map(str),
    "numeric": DECIMAL | SPECIAL,
    "numeric(12,3)": st.integers(-(10**8), 10**8).map(lambda n: f"{n / 1000}"),
    "double precision": FLOAT,
    "real": st.floats(width=32).map(repr) | SPECIAL,
    "boolean": st.sampled_from("tf"),
    "text": TEXT | DECIMAL | SPECIAL | ROUND.map(str) | st.sampled_from(["true", "false", "007", ".5", "1.0"]),
    "character varying(40)": TEXT | ROUND.map(str),
    "character varying": TEXT | ROUND.map(str),
    "character(20)": TEXT | ROUND.map(str),
    '"char"': st.sampled_from(string.printable[:80]),
    "name": TEXT,
    "date": DATES,
    "time without time zone": CLOCK | st.just("24:00:00"),
    "time with time zone": st.builds(str.__add__, CLOCK, st.sampled_from(["+00", "+02", "-03:30", "+05:45", "-10"])),
    "timestamp without time zone": STAMP,
    "timestamp(2) without time zone": STAMP,
    "timestamp with time zone": STAMP,
    "interval": INTERVAL,
    "interval(2)": INTERVAL,
    "interval hour to minute": INTERVAL,
    "uuid": st.binary(min_size=16, max_size=16).map(lambda raw: str(uuid.UUID(bytes=raw))),
    "bytea": (st.binary(max_size=40) | TEXT.map(str.encode)).map(lambda raw: "\\x" + raw.hex()),
    "json": JSON.filter(lambda text: "\\u0000" not in text),
    "jsonb": JSON.filter(lambda text: "\\u0000" not in text and "\\ud" not in text),
    "bit(8)": st.text("01", min_size=8, max_size=8),
    "bit varying": BITS,
    "inet": INET,
    "cidr": IPV4 | st.sampled_from(["10/8", "192.168/16", "10.1.2/24", "0/0", "172.16/12", "1.2.3.4/32", "fe80::/10"]),
    "macaddr": MAC,
    "money": st.integers(-(10**9), 10**9).map(lambda cents: f"{cents / 100:.2f}"),
    "xml": st.sampled_from(["<a/>", "<a b='c'>d</a>", "x"]),
    "point": st.sampled_from(["(1,2)", "(0.5,-1e20)"]),
    "tsvector": st.sampled_from(["'a':1 'b':2A,3", "'it''s' 'b c':4", "'\\\\' x", "", "aé b:1"]),
    "tsquery": st.sampled_from(["'a' & !'b'", "'it''s' | c:*"]),
    "pg_lsn": st.just("16/B374D848"),
    "int4range": range_of(st.integers(-200, 200).map(str)),
    "int8range": range_of(st.integers(-200, 200).map(str)),
    "numrange": range_of(DECIMAL),
    "daterange": range_of(DATE),
    "tsrange": range_of(STAMP),
    "tstzrange": range_of(STAMP),
    "int4multirange": st.just("{[1,3),[5,9)}"),
    "integer[]": array_of(INT4.map(str)) | st.sampled_from(["{{1,2},{3,4}}", "[0:1]={1,2}"]),
    "text[]": array_of(TEXT | st.sampled_from(["null", "NULL", "", " ", "a b", "a,b"])),
    "numeric[]": array_of(DECIMAL),
    "boolean[]": array_of(st.sampled_from("tf")),
    "timestamp with time zone[]": array_of(STAMP),
    "interval[]": array_of(INTERVAL),
    "uuid[]": array_of(st.uuids().map(str)),
    "bytea[]": array_of(st.binary(max_size=4).map(lambda raw: "\\x" + raw.hex())),
    "jsonb[]": array_of(st.sampled_from(['{"a": 1}', "[1, 2.50]", '"x"'])),
    "tsrange[]": array_of(range_of(STAMP)),
    "citext": TEXT | ROUND.map(str) | st.sampled_from(["true", "false"]),
    "citext[]": array_of(TEXT),
    "hstore": st.dictionaries(TEXT, st.none() | TEXT | st.just("null"), max_size=3).map(
        lambda pairs: ",".join(
            json_text(key) + "=>" + ("NULL" if value is None else json_text(value)) for key, value in pairs.items()
        )
    ),
    "ltree": st.sampled_from(["a.b.c", "", "Top.x_1"]),
    "mood": st.sampled_from(["ok", "it's"]),
    "pair": st.sampled_from(["(1,a)", '(,"a b")', '(1,"x""y")', "(,)"]),
}
# Types without an equality, and rows, whose comparison takes no unknown literal.
INCOMPARABLE = {"json", "xml", "point", "pair"}
STYLES = [
    ("ISO, MDY", "postgres"),
    ("SQL, DMY", "sql_standard"),
    ("German, DMY", "iso_8601"),
    ("Postgres, MDY", "postgres_verbose"),
]


def json_text(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def prepare(session: Session) -> Session:
    session.execute("CREATE EXTENSION citext;CREATE EXTENSION hstore;CREATE EXTENSION ltree")
    session.execute("CREATE TYPE mood AS ENUM('ok','it''s');CREATE TYPE pair AS(a int,b text)")
    for number, type_name in enumerate(TYPES):
        session.execute(f"CREATE TABLE t{number}(c {type_name})")
    return session


@pytest.fixture(scope="module")
def session(server: Server) -> Iterator[Session]:
    with connect(server.dsn("postgres")) as admin:
        admin.execute("DROP DATABASE IF EXISTS emit_literal")
        admin.execute("CREATE DATABASE emit_literal")
    with connect(server.dsn("emit_literal")) as opened:
        yield prepare(opened)


@pytest.fixture(scope="module")
def old_session() -> Iterator[Session]:
    folder = os.environ.get("TERSQL_PG15_BIN")
    if folder is None:
        pytest.skip("TERSQL_PG15_BIN does not name the programs of a PostgreSQL 15")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERSQL_PG_BIN", folder)
        with Server.start() as server, connect(server.dsn("postgres")) as opened:
            yield prepare(opened)


def run(session: Session, script: str) -> str | None:
    cursor = session.execute(script)
    while cursor.nextset():
        pass
    row = cursor.fetchone()
    assert row is not None
    return row[0]


def canonical(session: Session, table: str, text: str) -> str | None:
    """The value's own text, or None if the server does not take it."""
    try:
        return run(session, f"DELETE FROM {table};INSERT INTO {table} VALUES({quote(text)});SELECT c FROM {table}")
    except (psycopg.DataError, psycopg.NotSupportedError):
        return None


def check(session: Session, type_name: str, text: str, styles: tuple[str, str], timezone: str | None) -> None:
    table = f"t{list(TYPES).index(type_name)}"
    value = canonical(session, table, text)
    if value is None:
        return
    spelled = {
        context: literal(value, type_name, context=context, timezone=timezone)
        for context in ("assign", "compare", "bare", "text")
    }
    replay_zone = timezone or "Asia/Kathmandu"
    before = f"SET DateStyle='{styles[0]}';SET IntervalStyle='{styles[1]}';SET TimeZone='{replay_zone}';"
    after = "SET DateStyle='ISO, YMD';SET IntervalStyle='postgres';SET TimeZone='UTC';"
    comparable = "true" if type_name in INCOMPARABLE else f"bool_and(c={spelled['compare']})"
    for statement in (
        f"INSERT INTO {table} VALUES({spelled['assign']})",
        f"INSERT INTO {table} SELECT {spelled['assign']}",
        f"INSERT INTO {table} SELECT x FROM(SELECT {spelled['bare']} OFFSET 0)s(x)",
    ):
        script = f"DELETE FROM {table};{before}{statement};"
        compared = run(session, f"{script}SELECT {comparable} FROM {table}")
        assert (statement, compared) == (statement, "t")
        assert (statement, run(session, f"{after}SELECT c FROM {table}")) == (statement, value)
    assert run(session, f"SELECT {spelled['text']}") == value
    assert size(spelled["assign"]) <= size(quote(value))
    for context in spelled.values():
        sqlglot.parse_one(f"UPDATE t SET c={context} WHERE c={context}", dialect="postgres")


@pytest.mark.parametrize("type_name", TYPES)
def test_read_back(type_name: str, session: Session) -> None:
    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(TYPES[type_name], st.sampled_from(STYLES), st.sampled_from([None, "UTC"]))
    def every(text: str, styles: tuple[str, str], timezone: str | None) -> None:
        check(session, type_name, text, styles, timezone)

    every()


@pytest.mark.parametrize("type_name", TYPES)
def test_read_back_by_the_oldest_version(type_name: str, old_session: Session) -> None:
    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(TYPES[type_name], st.sampled_from(STYLES), st.sampled_from([None, "UTC"]))
    def every(text: str, styles: tuple[str, str], timezone: str | None) -> None:
        check(old_session, type_name, text, styles, timezone)

    every()


@pytest.mark.parametrize(
    ("value", "type_name", "context", "expected"),
    [
        (None, "integer", "assign", "NULL"),
        (None, "integer", "bare", "NULL::int"),
        ("1000000", "integer", "assign", "1e6"),
        ("1000000", "integer", "bare", "1000000"),
        ("1.50", "numeric", "assign", "1.50"),
        ("1.50", "numeric(10,2)", "assign", "1.5"),
        ("1.50", "numeric", "compare", "1.5"),
        ("7", "numeric", "bare", "7."),
        ("0.1", "real", "compare", "'.1'"),
        ("0.5", "real", "compare", ".5"),
        ("-0", "double precision", "assign", "'-0'"),
        ("t", "boolean", "assign", "'t'"),
        ("t", "boolean", "bare", "true"),
        ("5", "text", "assign", "5"),
        ("5", "text", "compare", "'5'"),
        ("2024-03-01", "date", "assign", "'240301'"),
        ("2024-03-01", "date", "bare", "date'240301'"),
        ("2024-03-01 09:14:02.551203", "timestamp without time zone", "assign", "'240301 9:14:2.551203'"),
        ("2024-03-01 09:00:00+00", "timestamp with time zone", "assign", "'240301 9:Z'"),
        ("2024-03-01 00:00:00+00", "timestamp with time zone", "assign", "'240301Z'"),
        ("7 days", "interval", "assign", "'7d'"),
        ("00:15:00", "interval", "assign", "'900'"),
        ("01:00:00", "interval", "assign", "'1:'"),
        ("2 mons", "interval", "assign", "'P2M'"),
        ('{"a": [1, "b c"]}', "jsonb", "assign", """'{"a":[1,"b c"]}'"""),
        ('{"a b",NULL,"null"}', "text[]", "assign", """'{a b,NULL,"null"}'"""),
        ("{1,2}", "integer[]", "bare", "'{1,2}'::int[]"),
        ("\\x" + "ff" * 30, "bytea", "assign", "decode('" + "/" * 40 + "','base64')"),
        ("\\xff6162", "bytea", "assign", r"'\377ab'"),
        ("\\x6162", "bytea", "bare", "bytea'ab'"),
        ("it's", "text", "assign", "'it''s'"),
        ("'a' 'b'", "text", "assign", "$$'a' 'b'$$"),
        ("a\rb\\", "text", "assign", "E'a\\rb\\\\'"),
        ("[10,100)", "int4range", "assign", "'(9,99]'"),
    ],
)
def test_examples(value: str | None, type_name: str, context: Context, expected: str) -> None:
    assert literal(value, type_name, context=context) == expected


def test_promised_zone_leaves_the_zone_out() -> None:
    stamp = "2024-03-01 09:05:00+00"
    assert literal(stamp, "timestamptz", context="assign", timezone="UTC") == "'240301 9:5'"
    assert literal(stamp, "timestamptz", context="assign", timezone="Europe/Paris") == "'240301 9:5Z'"


def test_nul_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        literal("a\0", "text", context="assign")


NAMES = st.sampled_from(
    ["a", "order", "key", "select", "Foo", "foo_1", "1a", "a$", "é", "É", "²", "interval", "function", "over", "date"]
) | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8)


# Names that no column of a table may have.
SYSTEM = frozenset({"tableoid", "ctid", "xmin", "cmin", "xmax", "cmax"})


@given(NAMES.filter(lambda name: name not in SYSTEM))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_identifiers_mean_their_name(session: Session, name: str) -> None:
    spelled = identifier(name)
    with session.transaction(force_rollback=True):
        session.execute(f"CREATE TABLE {spelled}({spelled} int)")
        session.execute(f"UPDATE {spelled} SET {spelled}=1 WHERE {spelled}>0")
        found = session.execute("SELECT 1 FROM pg_attribute WHERE attname=%s AND attnum=1", [name]).fetchone()
        assert found is not None
    tree = sqlglot.parse_one(f"UPDATE {spelled} SET {spelled}=1 WHERE {spelled}>0", dialect="postgres")
    assert {found.name for found in tree.find_all(sqlglot.exp.Identifier)} == {name}


def test_table_names() -> None:
    assert table_name("public", "order") == '"order"'
    assert table_name("app", "t") == "app.t"
    assert table_name("public", "values") == 'public."values"'
    assert table_name("public", "pg_user") == "public.pg_user"

"""The rules of a script: what passes, and that one of each forbidden kind is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from emit.builtin_functions import BUILTIN_FUNCTIONS
from emit.rules import BUILTIN_FUNCTIONS_QUERY, ScriptError, check_script, split_script
from scratch.server import Server
from scratch.session import connect, rows

WORKLOADS = Path(__file__).resolve().parents[2] / "shared" / "workloads"


def messages(statement: str) -> list[str]:
    return [violation.message for violation in check_script(f"BEGIN;{statement};COMMIT;")]


@pytest.mark.parametrize("name", ["netbox", "saleor", "wagtail", "zulip"])
def test_sample_replays_pass(name: str) -> None:
    folder = WORKLOADS / name
    if not folder.exists():
        pytest.skip("sample workloads not found")
    assert check_script((folder / "ref.sql").read_text()) == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET a=1",
        "DELETE FROM t USING u WHERE t.a=u.b",
        "INSERT INTO t VALUES(DEFAULT,1)ON CONFLICT(a)DO UPDATE SET b=excluded.b",
        "INSERT INTO s.t(a,b)SELECT a,b FROM x",
        'INSERT INTO"Order"(a)VALUES(1)',
        "WITH d AS(DELETE FROM t RETURNING*),e(a)AS(UPDATE u SET a=1 RETURNING a)INSERT INTO t SELECT*FROM d",
        "WITH RECURSIVE r(n)AS(SELECT 1 UNION ALL SELECT n+1 FROM r WHERE n<9)UPDATE t SET a=n FROM r WHERE b=n",
        "UPDATE t SET a=n FROM(VALUES(1,2),(3,4))v(n,m)WHERE m=b",
        "UPDATE t SET a=x FROM unnest('{1,2}'::int[])WITH ORDINALITY o(x,y)WHERE y=b",
        "INSERT INTO t SELECT*FROM jsonb_to_recordset('[]')x(a int,b numeric(10,2))",
        "UPDATE t SET a=pg_catalog.lower(b),c=coalesce(c,greatest(1,2)),d=nullif(d,'')",
        "UPDATE t SET a=nextval('t_a_seq'),b=d::numeric(10,2),c=e::varchar(3),f=CAST(g AS char(2))",
        "UPDATE t SET a=extract(year FROM b),c=substring(d,1,2),e=age(b,c),f=overlay(g placing 'x'from 1)",
        "UPDATE t SET a=(SELECT count(*)FILTER(WHERE b>0)OVER(ORDER BY c)FROM u LIMIT 1)",
        "UPDATE t SET a=string_agg FROM(SELECT string_agg(b,','ORDER BY b)FROM u)x",
        "UPDATE t SET(a,b)=(SELECT 1,2)WHERE(a,b)IN(SELECT 1,2)AND NOT EXISTS(SELECT FROM u)",
        "INSERT INTO t AS x(a)VALUES(1)ON CONFLICT(a)DO UPDATE SET a=x.a",
        "UPDATE t SET a=d FROM u,(SELECT 1)x(d),LATERAL(SELECT 1)y(e)WHERE x.d=y.e",
        "UPDATE t SET a=b FROM ROWS FROM(unnest('{1}'::int[]),unnest('{1}'::int[]))x(a,b)",
        "WITH x AS MATERIALIZED(SELECT DISTINCT ON(a)lower(a)b FROM u)DELETE FROM t USING x",
        "UPDATE t SET a=percentile_cont(.5)WITHIN GROUP(ORDER BY b)FROM u WHERE b IN(VALUES(1),(2))",
        "UPDATE t SET a=sum(b)OVER(PARTITION BY(c)ORDER BY d ROWS BETWEEN(1)PRECEDING AND CURRENT ROW)FROM u",
        "UPDATE t SET a=date_trunc('day',b AT TIME ZONE('UTC')),c=ARRAY(SELECT 1),d=ROW(1,2)",
        "UPDATE t SET a='now'",
        "UPDATE t SET a='random() now() pg_sleep(1) -- ;'",
        "UPDATE t SET a=t.user,b=date'240301'+'1d'::interval",
        "DELETE FROM t WHERE id IN(SELECT id FROM t ORDER BY a FOR UPDATE)",
    ],
)
def test_accepts(statement: str) -> None:
    assert messages(statement) == []


@pytest.mark.parametrize(
    ("statement", "part"),
    [
        ("SELECT 1", "SELECT"),
        ("DO $$BEGIN END$$", "DO"),
        ("COPY t FROM stdin", "COPY"),
        ("CREATE TEMP TABLE x(a int)", "CREATE"),
        ("TRUNCATE t", "TRUNCATE"),
        ("MERGE INTO t USING u ON a=b WHEN MATCHED THEN DELETE", "MERGE"),
        ("LOCK TABLE t", "does not parse"),
        ("SET search_path=x", "SET"),
        ("SET CONSTRAINTS ALL DEFERRED", "SET"),
        ("ALTER TABLE t DISABLE TRIGGER ALL", "ALTER"),
        ("SAVEPOINT a", "SAVEPOINT"),
        ("ROLLBACK", "ROLLBACK"),
        ("CALL p()", "CALL"),
        ("EXPLAIN UPDATE t SET a=1", "EXPLAIN"),
        ("WITH d AS(DELETE FROM t RETURNING*)SELECT*FROM d", "WITH"),
        ("UPDATE t SET", "does not parse"),
        ("INSERT INTO t OVERRIDING SYSTEM VALUE VALUES(1)", "does not parse"),
        ("UPDATE t SET a=my_function(b)", "function my_function"),
        ("UPDATE t SET a=s.lower(b)", "function s.lower"),
        ('UPDATE t SET a="Lower"(b)', "function Lower"),
        ('UPDATE t SET a="now"()', "function now"),
        ("UPDATE t SET a=x(b)FROM(VALUES(1))x(b)", "function x"),
        ("UPDATE t SET a=b FROM my_table_function(1)x(b)", "function my_table_function"),
        ("UPDATE t SET a=now()", "function now"),
        ("UPDATE t SET a=NOW ( )", "function now"),
        ("UPDATE t SET a=pg_catalog.now()", "function now"),
        ("UPDATE t SET a=current_timestamp", "current_timestamp"),
        ("UPDATE t SET a=current_timestamp(3)", "current_timestamp"),
        ("UPDATE t SET a=current_user", "current_user"),
        ("UPDATE t SET a=localtime", "localtime"),
        ("UPDATE t SET a=user", "user"),
        ("UPDATE t SET a='now'::timestamptz", "clock"),
        ("UPDATE t SET a=date'today'", "clock"),
        ("UPDATE t SET a=CAST('tomorrow 12:00'AS timestamp)", "clock"),
        ("UPDATE t SET a='[yesterday,)'::tstzrange", "clock"),
        ("UPDATE t SET a=age(b)", "age"),
        ("UPDATE t SET a=random()", "random"),
        ("UPDATE t SET a=gen_random_uuid()", "gen_random_uuid"),
        ("UPDATE t SET a=array_shuffle(b)", "array_shuffle"),
        ("UPDATE t SET a=(SELECT 1 FROM u TABLESAMPLE bernoulli(5))", "TABLESAMPLE"),
        ("UPDATE t SET a=pg_read_file('x')", "pg_read_file"),
        ("UPDATE t SET a=lo_import('x')", "lo_import"),
        ("UPDATE t SET a=b FROM dblink('x','y')d(b int)", "dblink"),
        ("UPDATE t SET a=current_setting('x')", "current_setting"),
        ("UPDATE t SET a=set_config('x','y',false)", "set_config"),
        ("UPDATE t SET a=query_to_xml('x',true,true,'')", "query_to_xml"),
        ("UPDATE t SET a=pg_sleep(1)", "pg_sleep"),
        ("UPDATE t SET a=pg_notify('a','b')", "pg_notify"),
        ("UPDATE t SET a=pg_advisory_lock(1)", "pg_advisory_lock"),
        ("UPDATE t SET a=setval('s',1)", "setval"),
        ("UPDATE t SET a=currval('s')", "currval"),
        ("UPDATE t SET a=lastval()", "lastval"),
        ("UPDATE t SET a=version()", "version"),
        ("UPDATE t SET a=txid_current()", "txid_current"),
        ("UPDATE t SET a=has_table_privilege('t','select')", "has_table_privilege"),
        ("UPDATE t SET a=relname FROM pg_class", "system catalog pg_class"),
        ("UPDATE t SET a=relname FROM pg_catalog.pg_class", "system catalog pg_catalog.pg_class"),
        ("DELETE FROM t USING information_schema.tables", "system catalog information_schema.tables"),
        ("DELETE FROM t WHERE ctid='(0,1)'", "system column ctid"),
        ("DELETE FROM t WHERE t.xmin=1", "system column xmin"),
        ("UPDATE t SET a='t'::regclass", "type regclass"),
        ("UPDATE t SET a=$1", "parameter"),
    ],
)
def test_rejects(statement: str, part: str) -> None:
    (found, *_) = messages(statement)
    assert part in found


@pytest.mark.parametrize(
    ("script", "line", "part"),
    [
        ("UPDATE t SET a=1;", 1, "only BEGIN"),
        ("BEGIN;COMMIT;\nSELECT 1;", 2, "only BEGIN"),
        ("BEGIN;COMMIT;\nBEGIN;UPDATE t SET a=1;", 2, "without COMMIT"),
        ("BEGIN;COMMIT;COMMIT;", 1, "only BEGIN"),
        ("BEGIN;UPDATE t SET a=1;COMMIT", 1, "semicolon"),
        ("BEGIN;;COMMIT;", 1, "empty"),
        ("BEGIN;\nUPDATE t SET a='x;COMMIT;", 2, "unterminated string"),
        ("START TRANSACTION;COMMIT;", 1, "only BEGIN"),
    ],
)
def test_scripts_out_of_shape(script: str, line: int, part: str) -> None:
    (violation,) = check_script(script)
    assert (violation.line, part in violation.message) == (line, True)
    with pytest.raises(ScriptError, match=f"line {line}: .*{part}"):
        split_script(script)


def test_splits_into_transactions() -> None:
    script = "BEGIN; UPDATE t SET a=';' -- ;\n WHERE b ; DELETE FROM t;COMMIT;\nbegin;commit; -- end"
    first, second = split_script(script)
    assert first.statements == ("UPDATE t SET a=';' -- ;\n WHERE b", "DELETE FROM t")
    assert (first.line, second.line, second.statements) == (1, 3, ())
    assert split_script("") == []


def test_violations_carry_their_line() -> None:
    script = "BEGIN;UPDATE t SET a=1;COMMIT;\nBEGIN;UPDATE t\nSET a=1;\n\nUPDATE t SET a=now();COMMIT;"
    assert [str(violation) for violation in check_script(script)] == ["line 5: function now is not allowed"]


def test_the_list_of_functions_is_that_of_the_server(server: Server) -> None:
    with connect(server.dsn()) as session:
        if session.info.server_version // 10000 != 18:
            pytest.skip("the list is that of PostgreSQL 18")
        assert {name for (name,) in rows(session, BUILTIN_FUNCTIONS_QUERY)} == BUILTIN_FUNCTIONS

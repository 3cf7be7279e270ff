"""Whole runs: what is captured is replayed exactly, whatever the schema does beside it."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from builtin_types import NO_EQUALITY, TYPES_OF_THEIR_OWN, VALUES
from optimize_bed import Sample, sample

import tersql
from encoder.transaction import Strategy
from scratch.server import Server
from tersql.errors import NotReplayable

DATA = Path(__file__).resolve().parent.parent / "data"


def _cases() -> Iterator[tuple[str, str, str]]:
    text = Path(__file__).with_name("transactions.sql").read_text(encoding="utf-8")
    for case in text.split("-- * ")[1:]:
        name, _, rest = case.partition("\n")
        schema, _, script = rest.partition("-- ->\n")
        yield name, schema, script


CASES = {name: (schema, script) for name, schema, script in _cases()}
YARDSTICKS = [Strategy.STARTER, Strategy.BASELINE]


@pytest.mark.parametrize("name", CASES)
def test_transactions_are_replayed(server: Server, tmp_path: Path, name: str) -> None:
    with sample(server, tmp_path, *CASES[name]) as found:
        found.optimized(Strategy.OPTIMAL)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("strategy", YARDSTICKS)
def test_yardsticks_are_replayed(server: Server, tmp_path: Path, name: str, strategy: Strategy) -> None:
    with sample(server, tmp_path, *CASES[name]) as found:
        found.optimized(strategy)


def test_what_no_stream_tells_of_is_left_alone(server: Server, tmp_path: Path) -> None:
    with sample(server, tmp_path, *CASES["trigger on what is in no stream"]) as found:
        result = found.optimized(Strategy.OPTIMAL)
    assert "ul" not in result.script.replace("NULL", "")
    assert [one.kind for one in result.transactions] == ["update", "update", "delete"]


@pytest.mark.parametrize(
    ("schema", "script", "reason"),
    [
        (
            "CREATE TABLE t(id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v int); INSERT INTO t(v) VALUES (1), (2)",
            "INSERT INTO t OVERRIDING SYSTEM VALUE VALUES (-1, 5)",
            r"transaction 1 .*line 2: public\.t\.id is GENERATED ALWAYS AS IDENTITY and its sequence gives 3 next",
        ),
        (
            "CREATE TABLE t(id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 5);"
            "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN"
            " IF current_setting('application_name') <> 'psql' THEN RAISE 'never again'; END IF;"
            " RETURN NEW; END$$;"
            "CREATE TRIGGER f BEFORE INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION f()",
            "SET application_name = 'psql'; UPDATE t SET v = 6",
            r"transaction 1 .*UPDATE t SET v=6 WHERE id=1 fails: never again",
        ),
    ],
)
def test_what_cannot_be_replayed_is_told_with_its_reason(
    server: Server, tmp_path: Path, schema: str, script: str, reason: str
) -> None:
    with sample(server, tmp_path, schema, script) as found, pytest.raises(NotReplayable, match=reason):
        found.optimized(Strategy.OPTIMAL)


# -- values


def _values_schema(types: list[str]) -> str:
    tables = (
        f"CREATE TABLE a{n}(id int PRIMARY KEY, v {name}, w {name}, n int);"
        f"CREATE TABLE k{n}(v {name}, n int); ALTER TABLE k{n} REPLICA IDENTITY FULL;"
        for n, name in enumerate(types)
    )
    return TYPES_OF_THEIR_OWN + "".join(tables)


def _values_script(types: list[str]) -> str:
    """Every value inserted, put in the place of another, copied, moved between columns and deleted; in a table
    with a key, whose old rows the stream lacks, and in one without, which has rows more than once."""
    steps: list[list[str]] = [[] for _ in range(7)]
    for n, name in enumerate(types):
        values = [*VALUES[name], "NULL"]
        count = len(values)
        keyed = ",".join(f"({i},{value},{values[(i + 1) % count]},{i % 2})" for i, value in enumerate(values))
        keyless = ",".join(f"({value},{i % 2}),({value},{i % 2}),({value},7)" for i, value in enumerate(values))
        steps[0] += [f"INSERT INTO a{n} VALUES{keyed}", f"INSERT INTO k{n} VALUES{keyless}"]
        steps[1] += [
            f"UPDATE a{n} SET v={value},w={values[(i + 2) % count]},n=n+1 WHERE id={(i + 3) % count}"
            for i, value in enumerate(values)
        ]
        steps[1] += [f"UPDATE k{n} SET v={values[0]} WHERE n=7"]
        steps[2] += [f"UPDATE a{n} SET w=v", f"UPDATE k{n} SET n=n+1 WHERE ctid=(SELECT max(ctid) FROM k{n})"]
        steps[3] += [f"INSERT INTO a{n} SELECT id+100,v,w,n FROM a{n}"]
        steps[3] += [f"DELETE FROM k{n} WHERE ctid IN(SELECT min(ctid) FROM k{n} WHERE n<7 GROUP BY n)"]
        steps[4] += [f"UPDATE a{n} SET w={values[0]}"]
        matching = "id=0" if name in NO_EQUALITY else f"v=CAST({values[0]} AS {name})"
        steps[5] += [f"DELETE FROM a{n} WHERE {matching}"]
        steps[6] += [f"DELETE FROM a{n} WHERE id>100", f"DELETE FROM k{n}"]
    return "".join(f"BEGIN;{';'.join(step)};COMMIT;" for step in steps)


def _built_in(server: Server) -> list[str]:
    """The types that this server was built with."""
    with psycopg.connect(server.dsn()) as session:
        try:
            session.execute("SELECT '<a/>'::xml")
        except psycopg.errors.FeatureNotSupported:
            return [name for name in VALUES if name != "xml"]
    return list(VALUES)


@pytest.mark.parametrize("share", range(8))
def test_values_of_every_type_are_replayed(server: Server, tmp_path: Path, share: int) -> None:
    types = _built_in(server)[share::8]
    with sample(server, tmp_path, _values_schema(types), _values_script(types)) as found:
        found.optimized(Strategy.BASELINE)


@pytest.mark.parametrize("timezone", ["UTC", "America/St_Johns"])
def test_times_are_replayed_under_a_promised_zone(server: Server, tmp_path: Path, timezone: str) -> None:
    types = ["timestamptz", "timetz", "tstzrange", "timestamptz[]", "timestamptz_domain", "date"]
    with sample(server, tmp_path, _values_schema(types), _values_script(types)) as found:
        found.optimized(Strategy.BASELINE, timezone)


@pytest.mark.slow
@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("strategy", [Strategy.OPTIMAL, Strategy.STARTER])
def test_values_are_replayed_by_the_search(server: Server, tmp_path: Path, name: str, strategy: Strategy) -> None:
    if name not in _built_in(server):
        pytest.skip(f"the server was built without {name}")
    with sample(server, tmp_path, _values_schema([name]), _values_script([name])) as found:
        found.optimized(strategy)


# -- the call

SCHEMA = """
CREATE TABLE shop (id int PRIMARY KEY, city text);
CREATE TABLE item (id serial PRIMARY KEY, shop int REFERENCES shop, price numeric(9,2), name text);
INSERT INTO shop SELECT g, 'c' || g % 4 FROM generate_series(1, 12) g;
INSERT INTO item (shop, price, name) SELECT 1 + g % 12, g * 1.25, 'n' || g % 50 FROM generate_series(1, 300) g;
"""
SCRIPT = """
UPDATE item SET price = price * 1.1 WHERE shop = 3;
UPDATE item i SET name = s.city FROM shop s WHERE s.id = i.shop AND s.city = 'c2';
INSERT INTO item (shop, price, name) SELECT id, 2.5, city FROM shop;
DELETE FROM item WHERE price > 300;
UPDATE item SET name = upper(name) WHERE id % 10 = 0;
"""


@pytest.fixture(scope="module")
def good(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sample]:
    with sample(server, tmp_path_factory.mktemp("optimize"), SCHEMA, SCRIPT) as found:
        yield found


@pytest.fixture(scope="module")
def dump(good: Sample) -> Path:
    path = good.dump(good.stream.with_name("before.sql"))
    packed = path.with_suffix(".sql.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    return packed


def test_any_number_of_jobs_gives_the_same_bytes(good: Sample, dump: Path, server: Server) -> None:
    told: list[tuple[int, int]] = []
    results = [
        tersql.optimize(
            good.stream,
            dump=dump,
            scratch=server.dsn(),
            options=tersql.Options(effort="low", jobs=jobs, progress=lambda done, total: told.append((done, total))),
        )
        for jobs in (1, 3)
    ]
    assert results[0].script == results[1].script
    assert (results[0].late, results[0].faults) == (False, ())
    assert told[4:6] == [(5, 5), (1, 5)]
    assert results[0].size == sum(one.size for one in results[0].transactions) <= results[0].baseline
    report = tersql.verify(results[0].script, good.stream, dump=dump, scratch=server.dsn())
    assert report.exact


def test_the_clock_leaves_a_valid_script(good: Sample, dump: Path, server: Server) -> None:
    result = tersql.optimize(
        good.stream, dump=dump, scratch=server.dsn(), options=tersql.Options(time_limit=0.01, jobs=1)
    )
    assert result.late
    assert result.size <= result.baseline
    assert tersql.verify(result.script, good.stream, dump=dump, scratch=server.dsn()).exact


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="effort is one of low, default, high"):
        tersql.Options(effort="utmost")
    with pytest.raises(ValueError, match="either a dump or a database"):
        tersql.optimize("stream")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chat", "network", "pages", "shop"])
def test_samples_are_replayed(server: Server, name: str) -> None:
    """The committed samples, twice, by different numbers of workers."""
    folder = DATA / name
    arguments = {"dump": folder / "before.sql.gz", "scratch": server.dsn()}
    one, two = (
        tersql.optimize(folder / "stream.jsonl.gz", **arguments, options=tersql.Options(jobs=jobs))  # type: ignore[arg-type]
        for jobs in (2, 1)
    )
    assert (one.late, one.faults, two.late) == (False, (), False)
    assert one.script == two.script
    assert one.size < one.baseline
    assert all(first.size == second.size for first, second in itertools.zip_longest(one.transactions, two.transactions))


def test_rows_numbered_as_they_lie_are_backed_by_a_stated_order(server: Server, tmp_path: Path) -> None:
    """A scan may meet them elsewhere in the replaying database than where the search was made."""
    schema = (
        "CREATE TABLE shelf(id int PRIMARY KEY, name text);CREATE TABLE label(id serial PRIMARY KEY, name text);"
        "INSERT INTO shelf SELECT g, md5(g::text) FROM generate_series(1, 100) g"
    )
    script = "INSERT INTO label(name)SELECT name||'!' FROM shelf WHERE id%4<2 ORDER BY id"
    with sample(server, tmp_path, schema, script) as found:
        (done,) = found.solved(Strategy.OPTIMAL)
    searched = [variant.statements for variant in done.solved.variants if variant.kind == "insert"]
    assert ["ORDER BY" in statements[0] for statements in searched][:2] == [False, True], searched

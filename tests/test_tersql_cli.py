"""The command line: what goes wrong is one clear line, and nothing is left half done."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from optimize_bed import Sample, sample
from processes import Place, needs_proc, place, wait_for
from typer.testing import CliRunner, Result

from replay.role import restricted_role
from scratch.database import with_database
from scratch.server import Server
from scratch.session import connect, rows
from tersql.cli import app
from tersql.files import written

SCHEMA = """
CREATE TABLE t (id serial PRIMARY KEY, v int, w text);
INSERT INTO t (v, w) SELECT g % 7, 'w' || g FROM generate_series(1, 200) g;
"""
SCRIPT = "UPDATE t SET w='x' WHERE v=3;DELETE FROM t WHERE id>190;INSERT INTO t(v)VALUES(1),(2)"


@pytest.fixture(scope="module")
def good(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sample]:
    with sample(server, tmp_path_factory.mktemp("cli"), SCHEMA, SCRIPT) as found:
        yield found


@pytest.fixture(scope="module")
def dump(good: Sample) -> Path:
    return good.dump(good.stream.with_name("before.sql"))


@pytest.fixture
def here() -> Iterator[Place]:
    with place() as found:
        yield found
        assert found.left() == []


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def complains(result: Result, *parts: str, code: int = 1) -> None:
    """One line on standard error that says `parts`; nothing on standard output."""
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("tersql: ")
    for part in parts:
        assert part in line


def write(folder: Path, *lines: object) -> Path:
    stream = folder / "stream.jsonl"
    stream.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
    return stream


B, C = {"action": "B"}, {"action": "C"}


def row(action: str, **values: object) -> dict[str, object]:
    cells = [{"name": name, "type": "integer", "value": value} for name, value in values.items()]
    return {"action": action, "schema": "public", "table": "t", "columns" if action == "I" else "identity": cells}


# -- before any work


def test_usage() -> None:
    complains(run("optimize", "s"), "--dump FILE or --database DSN", code=2)
    complains(run("optimize", "s", "--dump", "d", "--database", "d"), "--dump FILE or --database DSN", code=2)
    complains(run("optimize", "s", "--dump", "d", "--effort", "huge"), "--effort is one of low, default, high", code=2)
    assert run("optimize", "s", "--dump", "d", "--jobs", "0").exit_code == 2
    assert run("optimize", "s", "--dump", "d", "--strategy", "magic").exit_code == 2
    assert run("nonsense").exit_code == 2
    assert run("--help").exit_code == 0


def test_a_missing_stream(tmp_path: Path, dump: Path) -> None:
    complains(run("optimize", tmp_path / "no.jsonl", "--dump", dump), "no.jsonl: No such file or directory")
    complains(run("verify", dump, tmp_path / "no.jsonl", "--dump", dump, "--scratch", "host=/nowhere"), "nowhere")


def test_streams_that_cannot_be_read(tmp_path: Path, dump: Path) -> None:
    for lines, parts in (
        ((B, row("I", id=1)), ("line 2", "COMMIT")),
        ((B, row("I", id=1), '{"action":"C'), ("line 3", "cut off")),
        ((B, {"action": "T", "schema": "public", "table": "t"}, C), ("line 2", "TRUNCATE of public.t")),
        (("BEGIN 42\n",), ("line 1", "test_decoding")),
        (("\x00\x01\n",), ("line 1",)),
    ):
        complains(run("optimize", write(tmp_path, *lines), "--dump", dump), *parts)
    packed = tmp_path / "stream.gz"
    packed.write_bytes(gzip.compress(json.dumps(B).encode())[:-6])
    complains(run("optimize", packed, "--dump", dump), "cut off")


def test_an_output_that_cannot_be_written_is_told_before_the_work(tmp_path: Path, good: Sample) -> None:
    arguments = ("optimize", good.stream, "--dump", tmp_path / "absent.sql", "--output")
    complains(run(*arguments, tmp_path / "no" / "out.sql"), f"{tmp_path}/no/out.sql: No such file or directory")
    complains(run(*arguments, tmp_path), "Is a directory")
    assert list(tmp_path.iterdir()) == []


# -- the source


def test_dumps_that_cannot_be_restored(tmp_path: Path, server: Server, good: Sample) -> None:
    broken, custom, cut = tmp_path / "broken.sql", tmp_path / "custom.dump", tmp_path / "cut.sql.gz"
    broken.write_text("CREATE TABLE t (id int);\nCREATE TABLE u (id nonsense);\n")
    custom.write_bytes(b"PGDMP\x01\x0e")
    cut.write_bytes(gzip.compress(b"SELECT 1;" * 1000)[:-20])
    output = tmp_path / "out.sql"
    output.write_text("as it was")
    for path, parts in (
        (tmp_path / "absent.sql", ("cannot read the dump", "No such file")),
        (tmp_path, ("cannot read the dump", "Is a directory")),
        (broken, ("cannot restore broken.sql", "line 2", '"nonsense"', "--scratch")),
        (custom, ("custom-format", "pg_dump -Fp")),
        (cut, ("cannot unpack",)),
    ):
        arguments = ("optimize", good.stream, "--dump", path, "--scratch", server.dsn(), "-o", output, "--jobs", 1)
        complains(run(*arguments), *parts)
    assert output.read_text() == "as it was"
    with connect(server.dsn()) as session:
        assert rows(session, r"SELECT datname FROM pg_database WHERE datname LIKE 'tersql\_%'") == []


def test_servers_that_cannot_be_reached(good: Sample, dump: Path, server: Server) -> None:
    complains(run("optimize", good.stream, "--dump", dump, "--scratch", "host=/nowhere"), "scratch server", "/nowhere")
    arguments = ("optimize", good.stream, "--database", "host=/nowhere dbname=x", "--scratch", server.dsn())
    complains(run(*arguments), "cannot dump the source database", "/nowhere")
    complains(run("optimize", good.stream, "--dump", dump, "--scratch", "no dsn"), 'missing "="')


def test_a_time_zone_that_does_not_exist(good: Sample, dump: Path, server: Server) -> None:
    arguments = ("--dump", dump, "--scratch", server.dsn(), "--timezone", "Mars/Olympus")
    complains(run("optimize", good.stream, *arguments), "TimeZone", "Mars/Olympus")


def test_a_stream_that_does_not_fit(tmp_path: Path, good: Sample, dump: Path, server: Server) -> None:
    scratch = ("--dump", dump, "--scratch", server.dsn(), "--jobs", 1)
    complains(run("optimize", write(tmp_path, B, row("D", id=999), C), *scratch), "line 2", "id='999'", "not there")
    other = row("D", id=1) | {"table": "other"}
    complains(run("optimize", write(tmp_path, B, other, C), *scratch), "line 2", "no table public.other")
    again = row("I", id=1, v=None, w=None)
    complains(run("optimize", write(tmp_path, B, again, C), *scratch), "line 2", "already")


def test_streams_of_nothing(tmp_path: Path, dump: Path, server: Server) -> None:
    scratch = ("--dump", dump, "--scratch", server.dsn(), "--jobs", 2, "-o", tmp_path / "out.sql")
    for lines, script in (((), "\n"), ((B, C, B, C), "BEGIN;COMMIT;\nBEGIN;COMMIT;\n")):
        result = run("optimize", write(tmp_path, *lines), *scratch)
        assert result.exit_code == 0, result.stderr
        assert (tmp_path / "out.sql").read_text() == script
        verified = run("verify", tmp_path / "out.sql", tmp_path / "stream.jsonl", *scratch[:4])
        assert verified.exit_code == 0, verified.stderr


def test_an_id_that_no_statement_can_make(tmp_path: Path, server: Server) -> None:
    schema = "CREATE TABLE t(id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,v int);INSERT INTO t(v)VALUES(1),(2),(3)"
    script = "INSERT INTO t OVERRIDING SYSTEM VALUE VALUES(-5,1)"
    with sample(server, tmp_path, schema, script) as bad:
        dump = bad.dump(tmp_path / "before.sql")
        result = run("optimize", bad.stream, "--dump", dump, "--scratch", server.dsn(), "--jobs", 1)
    complains(result, "transaction 1 cannot be replayed", "line 2", "GENERATED ALWAYS", "gives 4 next", "-5")


# -- the result


def test_a_run_and_its_proof(tmp_path: Path, good: Sample, dump: Path, server: Server) -> None:
    scratch = ("--dump", dump, "--scratch", server.dsn())
    script = tmp_path / "out.sql"
    script.write_text("older")
    result = run("optimize", good.stream, *scratch, "--json", "--timezone", "UTC", "-o", script)
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert (len(told["transactions"]), told["late"], told["faults"]) == (3, False, [])
    assert told["size"] <= told["baseline"] <= told["starter"]
    sized = run("size", script)
    assert int(sized.stdout) == told["size"]
    verified = run("verify", script, good.stream, *scratch, "--timezone", "UTC")
    assert verified.stdout == f"exact: 3 transactions, {told['size']} bytes\n"
    assert run("lint", script).exit_code == 0
    script.write_text(script.read_text().replace("'x'", "'y'"))
    wrong = run("verify", script, good.stream, *scratch)
    complains(wrong, "transaction 1: public.t row", "column w is 'y', expected 'x'")


def test_a_role_that_may_only_read_is_enough(tmp_path: Path, good: Sample, server: Server) -> None:
    def standing() -> list[object]:
        with connect(source) as session:
            return [
                rows(session, "SELECT * FROM t ORDER BY id"),
                rows(session, "SELECT last_value, is_called FROM t_id_seq"),
                rows(session, "SELECT count(*), sum(n_tup_ins+n_tup_upd+n_tup_del) FROM pg_stat_user_tables"),
                rows(session, "SELECT datname FROM pg_database ORDER BY 1"),
            ]

    source = with_database(server.dsn(), good.template)
    before = standing()
    with connect(source) as session, restricted_role(session) as role:
        session.execute(
            f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {role.name};"
            f"REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM {role.name};"
            f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role.name};"
            f"GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO {role.name}".encode()
        )
        script = tmp_path / "out.sql"
        reading = ("--database", role.dsn(source), "--scratch", server.dsn())
        result = run("optimize", good.stream, *reading, "--strategy", "baseline", "-o", script)
        assert result.exit_code == 0, result.stderr
        verified = run("verify", script, good.stream, *reading)
        assert verified.exit_code == 0, verified.stderr
        session.execute(f"REVOKE ALL ON SEQUENCE t_id_seq FROM {role.name}".encode())
        complains(run("optimize", good.stream, *reading), "cannot dump the source database", "t_id_seq")
    assert standing() == before


def test_files_are_whole_or_as_they_were(tmp_path: Path) -> None:
    real, link = tmp_path / "real.sql", tmp_path / "link.sql"
    link.symlink_to(real)
    with written(link) as file:
        file.write("one")
    assert (link.is_symlink(), real.read_text()) == (True, "one")

    def fail() -> None:
        with written(real) as file:
            file.write("two")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert real.read_text() == "one"
    assert sorted(tmp_path.iterdir()) == [link, real]
    with pytest.raises(OSError, match="No space left"), written(Path("/dev/full")) as file:
        file.write("three")
    assert Path("/dev/full").is_char_device()


# -- whole processes


@needs_proc
def test_pipes_and_devices(here: Place, good: Sample, dump: Path, server: Server) -> None:
    """From a pipe to one; to a full device; to one whose reader has gone."""
    options = ("--dump", str(dump), "--scratch", server.dsn(), "--strategy", "baseline", "--jobs", "1")
    arguments = ("optimize", str(good.stream), *options)
    with good.stream.open("rb") as stream:
        piped = here.start("optimize", "-", *options, stdin=stream)
        script, summary = piped.communicate(timeout=120)
    assert piped.returncode == 0, summary
    assert script.count("COMMIT;\n") == 3
    assert "total" in summary

    with open("/dev/full", "w") as full:
        stuck = here.start(*arguments, stdout=full)
        _, complaint = stuck.communicate(timeout=120)
    assert (stuck.returncode, complaint) == (1, "tersql: output: No space left on device\n")

    reading, writing = os.pipe()
    os.close(reading)
    unread = here.start(*arguments, stdout=writing)
    os.close(writing)
    assert (unread.communicate(timeout=120)[1], unread.returncode) == ("", 1)


@needs_proc
@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM, signal.SIGKILL]
)
def test_a_run_that_is_stopped_leaves_nothing(here: Place, good: Sample, dump: Path, number: signal.Signals) -> None:
    output = here.folder / "out"
    output.mkdir()
    started = here.start(
        "optimize", str(good.stream), "--dump", str(dump), "--jobs", "2", "-o", str(output / "out.sql")
    )
    wait_for(lambda: here.matching("tersql_worker_"))  # the title of a backend that serves a worker
    started.send_signal(number)
    told = started.communicate(timeout=60)
    assert started.returncode == (-number if number is signal.SIGKILL else 128 + number)
    assert told == ("", "")
    assert os.listdir(output) == []
    output.rmdir()


@needs_proc
def test_workers_run_without_a_main_module(here: Place, good: Sample, dump: Path) -> None:
    """A script on standard input, without a main guard, in a folder whose files have the names of our modules."""
    (here.folder / "stream.py").write_text("raise SystemExit('imported')")
    script = (
        f"import tersql;print(len(tersql.optimize({str(good.stream)!r},dump={str(dump)!r},"
        "options=tersql.Options(tersql.Strategy.BASELINE,jobs=2)).transactions))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-"],
        input=script,
        capture_output=True,
        text=True,
        cwd=here.folder,
        env=os.environ | {"TMPDIR": str(here.folder)},
        timeout=120,
        check=False,
    )
    (here.folder / "stream.py").unlink()
    assert (done.stdout, done.stderr) == ("3\n", "")

"""Databases of a scratch server: restore a dump or a source, clone, drop."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

from scratch.errors import ScratchError
from scratch.locales import Locale
from scratch.server import binaries
from scratch.session import connect

_MISSING_ROLE = re.compile(r'role "(?P<role>(?:[^"]|"")+)" does not exist')
_PSQL_ERROR = re.compile(r"^psql:[^:]*:(?P<line>\d+): (?:ERROR|error|FATAL):\s*(?P<text>.*)$")


def with_database(dsn: str, database: str) -> str:
    """`dsn` with another database name."""
    return psycopg.conninfo.make_conninfo(dsn, dbname=database)


def create_database(admin_dsn: str, name: str, template: str = "template0", locale: Locale | None = None) -> None:
    """A copy of `template`, of the server's own `locale` or of another.

    Raises ScratchError where the server does not have that.
    """
    command = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
    with connect(admin_dsn) as session:
        try:
            session.execute(command if locale is None else sql.SQL(" ").join((command, *locale.options())))
        except psycopg.OperationalError:
            raise
        except psycopg.DatabaseError as error:
            if locale is None:
                raise
            raise ScratchError(
                f"the scratch server cannot make a database with the source's {locale}: "
                f"{error.diag.message_primary} (--scratch DSN names a server to use that can)"
            ) from error


def drop_database(admin_dsn: str, name: str) -> None:
    with connect(admin_dsn) as session:
        session.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def cloned(admin_dsn: str, template: str, name: str) -> Iterator[str]:
    """A copy of the database `template` under `name`, dropped at the end; yields its DSN."""
    create_database(admin_dsn, name, template)
    try:
        yield with_database(admin_dsn, name)
    finally:
        drop_database(admin_dsn, name)


def dump_source(dsn: str, target: Path) -> None:
    """Dump the database behind `dsn` into the plain SQL file `target`.

    Reading is all that happens to the source; a role with SELECT on tables and sequences is enough.
    """
    command = [
        str(binaries() / "pg_dump"),
        "--no-owner",
        "--no-privileges",
        "--no-publications",
        "--no-subscriptions",
        "--no-comments",
        "--no-security-labels",
        "--no-tablespaces",
        "--file",
        str(target),
        "--dbname",
        dsn,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ScratchError(f"cannot dump the source database: {_first_error(done.stderr)}")


def restore(dsn: str, dump: Path) -> None:
    """Run the plain SQL dump (or its .gz) in the empty database behind `dsn`, without statistics.

    Roles that the dump names (owners, grants) are made as they turn up missing.
    Raises ScratchError with the line of the dump where the server refuses it.
    """
    with _plain(dump) as plain:
        for _ in range(50):
            error = _run_psql(dsn, plain)
            if error is None:
                break
            missing = _MISSING_ROLE.search(error)
            if missing is None:
                raise ScratchError(
                    f"the scratch server cannot restore {dump.name}: {error} "
                    "(--scratch DSN names another server to use)"
                )
            with connect(dsn) as session:
                role = missing["role"].replace('""', '"')
                session.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(role)))


def analyze(dsn: str) -> None:
    """Gather the planner's statistics of the database behind `dsn`."""
    with connect(dsn) as session:
        session.execute("ANALYZE")


@contextmanager
def _plain(dump: Path) -> Iterator[Path]:
    try:
        with dump.open("rb") as file:
            magic = file.read(5)
    except OSError as error:
        raise ScratchError(f"cannot read the dump {dump}: {error.strerror}") from error
    if magic == b"PGDMP":
        raise ScratchError(f"{dump} is a custom-format dump; a plain one is needed (pg_dump -Fp)")
    if magic[:2] != b"\x1f\x8b":
        yield dump
        return
    handle, name = tempfile.mkstemp(prefix="tersql-", suffix=".sql")
    try:
        with os.fdopen(handle, "wb") as out, gzip.open(dump, "rb") as packed:
            shutil.copyfileobj(packed, out)
        yield Path(name)
    except (OSError, EOFError) as error:
        raise ScratchError(f"cannot unpack the dump {dump}: {error}") from error
    finally:
        os.unlink(name)


def _run_psql(dsn: str, plain: Path) -> str | None:
    """None when all of it ran; else the first error, and nothing of it stays."""
    command = [
        str(binaries() / "psql"),
        "--no-psqlrc",
        "--quiet",
        "--single-transaction",
        "--set=ON_ERROR_STOP=1",
        "--output=/dev/null",
        f"--file={plain}",
        dsn,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return None if done.returncode == 0 else _first_error(done.stderr)


def _first_error(stderr: str) -> str:
    lines = [line for line in stderr.splitlines() if line.strip()]
    for line in lines:
        match = _PSQL_ERROR.match(line)
        if match:
            return f"line {match['line']}: {match['text']}"
        if "error:" in line.lower():
            return line.split(": ", 1)[-1]
    return lines[-1] if lines else "no message"

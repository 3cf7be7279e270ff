"""What the restricted role may and may not do."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from replay.role import restricted_role
from scratch.database import create_database, drop_database, with_database
from scratch.server import Server
from scratch.session import Session, connect, rows

DATABASE = "role_test"


@pytest.fixture(scope="module")
def session(server: Server) -> Iterator[Session]:
    """A session of the role."""
    create_database(server.dsn(), DATABASE)
    dsn = with_database(server.dsn(), DATABASE)
    with connect(dsn) as admin:
        admin.execute('CREATE SCHEMA "Other"; CREATE TABLE "Other".t (id serial)')
        with restricted_role(admin) as role, connect(role.dsn(dsn)) as opened:
            yield opened
        assert rows(admin, "SELECT FROM pg_roles WHERE rolname = %s", [role.name]) == []
    drop_database(server.dsn(), DATABASE)


@pytest.mark.parametrize(
    "statement",
    [
        'INSERT INTO "Other".t DEFAULT VALUES',
        'UPDATE "Other".t SET id = id',
        'DELETE FROM "Other".t',
        """SELECT nextval('"Other".t_id_seq')""",
    ],
)
def test_allowed(session: Session, statement: str) -> None:
    session.execute(statement.encode())


@pytest.mark.parametrize(
    "statement",
    [
        'TRUNCATE "Other".t',
        "CREATE TABLE mine ()",
        'ALTER TABLE "Other".t DISABLE TRIGGER ALL',
        """SELECT setval('"Other".t_id_seq', 5)""",
        "SET session_replication_role = replica",
        "SELECT pg_read_file('postgresql.conf')",
        "CREATE ROLE another",
        "RESET SESSION AUTHORIZATION; CREATE ROLE another",
    ],
)
def test_forbidden(session: Session, statement: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        session.execute(statement.encode())


def test_its_statements_end_after_a_minute(session: Session) -> None:
    assert rows(session, "SHOW statement_timeout") == [("1min",)]

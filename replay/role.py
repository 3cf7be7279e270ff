"""The role that a script runs as: it may read and write rows and use sequences, and nothing more."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import sql

from scratch.session import Session, rows

STATEMENT_TIMEOUT = "60s"

_USER_SCHEMAS = """
SELECT nspname FROM pg_catalog.pg_namespace
WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' ORDER BY nspname COLLATE "C" """


@dataclass(frozen=True, slots=True)
class Role:
    name: str
    password: str

    def dsn(self, dsn: str) -> str:
        """`dsn` as this role."""
        return psycopg.conninfo.make_conninfo(dsn, user=self.name, password=self.password)


def fresh_role() -> Role:
    """A role that is yet to be made, with a name that is in nobody's rows."""
    return Role(f"tersql_replay_{secrets.token_hex(6)}", secrets.token_hex(16))


def make_role(session: Session, role: Role) -> None:
    """Make `role` for the database behind `session` (a superuser's) and for copies that are made of it later.

    It is no superuser, has SELECT, INSERT, UPDATE and DELETE on all tables, USAGE on all schemas and
    sequences, and EXECUTE on what everybody may execute.  Its statements end after 60 s.  Row security
    does not hide rows from it: a script owes all of them.
    """
    name = sql.Identifier(role.name)
    session.execute(
        sql.SQL("CREATE ROLE {} LOGIN NOSUPERUSER BYPASSRLS PASSWORD {}").format(name, sql.Literal(role.password))
    )
    session.execute(sql.SQL("ALTER ROLE {} SET statement_timeout={}").format(name, sql.Literal(STATEMENT_TIMEOUT)))
    for (schema,) in rows(session, _USER_SCHEMAS):
        _grant(session, sql.Identifier(schema or ""), name)


def drop_role(session: Session, role: Role) -> None:
    """Drop `role` where it is there; databases with grants for it have to be gone."""
    session.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(role.name)))


@contextmanager
def restricted_role(session: Session) -> Iterator[Role]:
    """A fresh role for the database behind `session`, see `make_role`, dropped at the end."""
    role = fresh_role()
    try:
        make_role(session, role)
        yield role
    finally:
        if rows(session, "SELECT FROM pg_catalog.pg_roles WHERE rolname = %s", [role.name]):
            session.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(role.name)))
        drop_role(session, role)


def _grant(session: Session, schema: sql.Identifier, role: sql.Identifier) -> None:
    for what in (
        "USAGE ON SCHEMA {}",
        "SELECT,INSERT,UPDATE,DELETE ON ALL TABLES IN SCHEMA {}",
        "USAGE ON ALL SEQUENCES IN SCHEMA {}",
    ):
        session.execute(sql.SQL("GRANT " + what + " TO {}").format(schema, role))

"""Whatever statements do to the source, their stream does to a copy."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scratch.catalog import read_catalog
from scratch.changes import apply_changes, complete
from scratch.database import cloned, create_database, drop_database, with_database
from scratch.server import Server
from scratch.session import connect, rows
from stream.capture import capture_script

TEMPLATE = "roundtrip_test"

SCHEMA = """
CREATE TABLE keyed (id int PRIMARY KEY, place int UNIQUE, v text, big text,
    twice int GENERATED ALWAYS AS (place * 2) STORED);
CREATE TABLE permuted (id int PRIMARY KEY, place int UNIQUE DEFERRABLE, v text);
ALTER TABLE permuted REPLICA IDENTITY FULL;
CREATE TABLE keyless (v text, doc json, f float8);
ALTER TABLE keyless REPLICA IDENTITY FULL;
ALTER TABLE keyed ALTER big SET STORAGE EXTERNAL;
INSERT INTO keyed SELECT g, g, 'v' || g, repeat(g::text, 3000) FROM generate_series(1, 12) g;
INSERT INTO permuted SELECT g, g, 'v' || g FROM generate_series(1, 12) g;
INSERT INTO keyless SELECT 'v' || g % 3, '{"a": 1}', g % 2 FROM generate_series(1, 12) g;
"""

# Each is valid in any state; {0} and {1} are small numbers.
STATEMENTS = [
    "UPDATE keyed SET v = v || '{0}' WHERE id % 4 = {1}",
    "UPDATE keyed SET id = id + 100, place = -place WHERE id % 5 = {0} AND id < 1000 AND NOT EXISTS"
    "(SELECT FROM keyed k WHERE k.id = keyed.id + 100 OR k.place = -keyed.place)",
    "DELETE FROM keyed WHERE id % 6 = {0}",
    "INSERT INTO keyed SELECT max(id) + 1, max(abs(place)) + 1, 'new', repeat('z', 9000) FROM keyed HAVING max(id) > 0",
    "UPDATE keyed SET big = NULL, place = NULL WHERE id % 7 = {1}",
    "UPDATE permuted SET place = (SELECT min(place) + max(place) FROM permuted) - place",
    "UPDATE permuted SET place = place + {0}",
    "DELETE FROM permuted WHERE id % 5 = {0}",
    "INSERT INTO permuted SELECT max(id) + 1, max(place) + 1, NULL FROM permuted HAVING max(id) > 0",
    "INSERT INTO keyless SELECT v, doc, -f FROM keyless LIMIT {0}",
    "DELETE FROM keyless WHERE ctid IN (SELECT ctid FROM keyless ORDER BY ctid LIMIT {1})",
    "UPDATE keyless SET doc = '{{\"a\":{0}}}', f = 'NaN' WHERE ctid IN (SELECT ctid FROM keyless LIMIT {1})",
]
STATEMENT = st.builds(str.format, st.sampled_from(STATEMENTS), st.integers(0, 4), st.integers(0, 3))


@pytest.fixture(scope="module")
def dsns(server: Server) -> Iterator[tuple[str, str]]:
    """The server's, and that of a database which the tests may only copy."""
    create_database(server.dsn(), TEMPLATE)
    with connect(with_database(server.dsn(), TEMPLATE)) as session:
        session.execute(SCHEMA.encode())
    yield server.dsn(), TEMPLATE
    drop_database(server.dsn(), TEMPLATE)


def contents(dsn: str) -> list[list[tuple[str | None, ...]]]:
    with connect(dsn) as session:
        return [
            rows(session, f"SELECT t.* FROM {table} t ORDER BY t::text") for table in ("keyed", "permuted", "keyless")
        ]


@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(st.lists(STATEMENT, min_size=1, max_size=6), min_size=4, max_size=12))
def test_a_stream_does_what_its_statements_did(dsns: tuple[str, str], transactions: list[list[str]]) -> None:
    admin, template = dsns
    script = "".join(f"BEGIN;{';'.join(statements)};COMMIT;" for statements in transactions)
    with cloned(admin, template, "roundtrip_source") as source, cloned(admin, template, "roundtrip_copy") as copy:
        stream = list(
            capture_script(psycopg.conninfo.make_conninfo(source, options="-c synchronous_commit=on"), script)
        )
        with connect(copy) as session:
            catalog = read_catalog(session)
            for transaction in stream:
                completed = complete(session, catalog, transaction)
                assert all(
                    row is None or len(row) == len(catalog[change.table].stored)
                    for change in completed.changes
                    for row in (change.old, change.new)
                )
                apply_changes(session, catalog, completed.changes)
        assert contents(copy) == contents(source)

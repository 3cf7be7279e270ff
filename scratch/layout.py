"""Where rows lie on disk, the same whatever was tried before.

A statement without ORDER BY meets rows as they lie, and ids that sequences give go to them in that order.  Trials
that are rolled back leave dead rows and free space behind, which later rows would fill; so does a dump restored,
against one whose rows have been rewritten.  Tables that are rewritten whenever they were written hold the same rows in
the same pages, whichever searches went before.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

import psycopg

from scratch.session import Session, TextRow, rows

_log = logging.getLogger("tersql")

_FILLED = """
SELECT c.oid::regclass FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND pg_relation_size(c.oid) > 0
ORDER BY c.oid"""
# FULL keeps dead rows that a transaction anywhere on the server might still see, so these go before.
_STEPS = ("FREEZE, INDEX_CLEANUP OFF, TRUNCATE OFF", "FULL")
# Attempts count, whether they were rolled back or not.
_WRITTEN = "SELECT relid::regclass, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_user_tables ORDER BY relid"


def rewrite_all(session: Session) -> None:
    """Rewrite every table that holds anything."""
    _rewrite(session, (table for (table,) in rows(session, _FILLED)))


class Layout:
    """Keeps the tables of a database as they lie after `rewrite_all`.

    Needs a session in autocommit that no other writes beside; `restore` is for between its transactions.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._written = self._counts()

    def restore(self) -> None:
        """Rewrite the tables written since the last call, the present rows in their present order."""
        before, self._written = self._written, self._counts()
        _rewrite(self._session, (table for table, row in self._written.items() if before.get(table) != row))

    def _counts(self) -> dict[str | None, TextRow]:
        self._session.execute(b"SELECT pg_stat_force_next_flush()")
        return {row[0]: row for row in rows(self._session, _WRITTEN)}


def _rewrite(session: Session, tables: Iterable[str | None]) -> None:
    for table in tables:
        try:
            for options in _STEPS:
                session.execute(f"VACUUM ({options}) {table}".encode())
        except psycopg.OperationalError:
            raise
        except psycopg.Error as error:  # an index on a function that needs its own search_path
            _log.info("%s cannot be rewritten: %s", table, error)

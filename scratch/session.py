"""Connections whose every value is text, exactly as the server prints it.

`::text` is not that text: it turns `t` into `true`, strips the blanks of char(n) and adds /32 to an
inet.  The wire's text format is, so the connections here load every type as str.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from psycopg.adapt import AdaptersMap
from psycopg.types.array import ListDumper
from psycopg.types.none import NoneDumper
from psycopg.types.string import StrDumperUnknown, TextLoader

from stream.canonical import CANONICAL

TextRow = tuple[str | None, ...]
Session = psycopg.Connection[TextRow]


@dataclass(frozen=True)
class _TextContext:
    adapters: AdaptersMap
    connection: None = None


def _text_context() -> _TextContext:
    adapters = AdaptersMap(types=psycopg.adapters.types)
    adapters.register_dumper(str, StrDumperUnknown)
    adapters.register_dumper("builtins.list", ListDumper)
    adapters.register_dumper(None.__class__, NoneDumper)
    adapters.register_loader(0, TextLoader)
    return _TextContext(adapters)


def connect(dsn: str, *, timezone: str | None = None, settings: dict[str, str] | None = None) -> Session:
    """An autocommit connection in which every value is str or None.

    The settings are CANONICAL with `settings` over them; `timezone` is short for that setting.
    """
    wanted = CANONICAL | (settings or {})
    if timezone is not None:
        wanted["TimeZone"] = timezone
    context: Any = _text_context()
    session: Session = psycopg.connect(dsn, autocommit=True, context=context)
    for name, value in wanted.items():
        query = sql.SQL("SELECT pg_catalog.set_config({}, {}, false)")
        session.execute(query.format(sql.Literal(name), sql.Literal(value)))
    session.prepare_threshold = None
    return session


def rows(session: Session, query: str, params: list[str | None] | None = None) -> list[TextRow]:
    """All rows of `query`; every value as the server's text."""
    return session.execute(query.encode(), params).fetchall()


def columns(session: Session, query: str) -> list[list[str | None]]:
    """The rows of `query` turned into columns; one list a column of the result."""
    cursor = session.execute(query.encode())
    width = len(cursor.description or ())
    fetched = cursor.fetchall()
    if not fetched:
        return [[] for _ in range(width)]
    return [list(column) for column in zip(*fetched, strict=True)]


def scalars(session: Session, query: str, params: list[str | None] | None = None) -> Iterator[str | None]:
    """The first column of `query`."""
    return (row[0] for row in rows(session, query, params))

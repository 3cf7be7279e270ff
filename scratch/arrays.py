"""Rows of text values as a FROM item: one array parameter a column, cast on the server."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import sql

from scratch.catalog import Column, Table
from stream.model import TableName, Value


def ident(name: str) -> str:
    """`name` quoted, for a query with parameters (so a % in it is doubled)."""
    return sql.Identifier(name).as_string().replace("%", "%%")


def table_ident(name: TableName) -> str:
    return f"{ident(name.schema)}.{ident(name.name)}"


def own_rows(table: Table) -> str:
    """What holds the rows of `table` itself, as FROM, UPDATE and DELETE name it."""
    return f"{'ONLY ' if table.heirs else ''}{table_ident(table.name)}"


class Given:
    """Rows that the client gives: `source` is the FROM item x with a text column per column and the
    row's number n from 1, `params` its parameters."""

    def __init__(self, columns: Sequence[Column], rows: Sequence[Sequence[Value]]) -> None:
        self.columns = columns
        width = max(len(columns), 1)  # unnest needs an array even where there is no column
        lists: list[list[Value]] = [[row[i] if columns else None for row in rows] for i in range(width)]
        self.params: list[list[Value]] = lists
        arrays = ",".join(["%s::text[]"] * width)
        names = ",".join(f"c{i}" for i in range(width))
        self.source = f"unnest({arrays})WITH ORDINALITY x({names},n)"

    def value(self, place: int) -> str:
        """The value of column number `place` in its own type."""
        return f"x.c{place}::{self.columns[place].type.replace('%', '%%')}"

    def values(self) -> list[str]:
        return [self.value(i) for i in range(len(self.columns))]

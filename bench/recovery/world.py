"""Random choices among the tables, columns, values and foreign keys of a database."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cached_property
from typing import TypeVar

from emit.literal import literal, table_name
from emit.term import Source, SourceKey, Term, raw
from encoder.frame import Coded, Frame, State
from scratch.catalog import ALWAYS, Catalog, Column, ForeignKey, Table
from stream.model import TableName

T = TypeVar("T")

# The sessions that replay are promised to be in UTC, which makes the literals of originals short.
TIMEZONE = "UTC"
# Fewer rows give predicates that mean nothing.
FEW_ROWS = 12


def pick(rng: random.Random, items: Sequence[T]) -> T | None:
    return rng.choice(items) if items else None


def constant(column: Column, value: str | None, *, assign: bool = False) -> Term:
    """The literal of a column's value."""
    return raw(literal(value, column.base, context="assign" if assign else "compare", timezone=TIMEZONE))


class World:
    """A catalog and its data, as the grammars see them."""

    def __init__(self, catalog: Catalog, state: State) -> None:
        self.catalog = catalog
        self.state = state

    def frame(self, table: TableName) -> Frame:
        return self.state.frame(table)

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """Tables with enough rows to select from."""
        return tuple(table for name, table in self.catalog.tables.items() if self.frame(name).size >= FEW_ROWS)

    def table(self, rng: random.Random) -> Table:
        """A table; one of a thousand rows is three times as likely as one of a hundred."""
        weights = [self.frame(table.name).size ** 0.5 for table in self.tables]
        return rng.choices(self.tables, weights)[0]

    def source(self, table: TableName, key: SourceKey = ()) -> Source:
        return Source(key, table_name(*table), tuple(c.name for c in self.catalog[table].columns))

    def coded(self, table: Table, column: Column) -> Coded:
        return self.frame(table.name).coded(column.name)

    def value(self, rng: random.Random, table: Table, column: Column) -> str | None:
        """The value of a random row that is not NULL, so frequent values come often."""
        texts = self.frame(table.name).texts(column.name)
        for _ in range(6):
            if (value := rng.choice(texts)) is not None:
                return value
        return None

    def single_key(self, table: Table) -> Column | None:
        """The one column that names a row, if it is one."""
        return table.by_name[table.row_key[0]] if len(table.row_key) == 1 else None

    def references(self, table: Table) -> list[ForeignKey]:
        """Foreign keys whose target has rows."""
        return [key for key in table.foreign_keys if self.frame(key.target).size > 1]

    def foreign_keys(self, table: Table) -> list[ForeignKey]:
        """Those of one column."""
        return [key for key in self.references(table) if len(key.columns) == 1]

    def children(self, table: Table) -> list[ForeignKey]:
        """Foreign keys of one column by which tables with rows refer to `table`."""
        return [
            key
            for key in self.catalog.referenced_by.get(table.name, ())
            if len(key.columns) == 1 and self.frame(key.table).size >= FEW_ROWS
        ]

    def settable(self, table: Table) -> list[Column]:
        """Columns that an UPDATE may well set: in no key, foreign key or unique index."""
        bound = {name for key in (table.row_key, *table.unique_keys) for name in key}
        bound |= {name for key in table.foreign_keys for name in key.columns}
        return [column for column in table.stored if column.name not in bound and column.identity != ALWAYS]

    @cached_property
    def natural_pairs(self) -> list[tuple[Table, Column, Table, Column]]:
        """A text column and one of another table, of distinct texts, that holds a third of its values or more."""
        texts = [
            (table, column, frozenset(self.coded(table, column).values))
            for table in self.tables
            for column in table.columns
            if column.base in ("text", "character varying")
            and not any(column.name in key.columns for key in table.foreign_keys)
        ]
        return [
            (table, column, far, key)
            for far, key, names in texts
            if len(names) == self.frame(far.name).size
            for table, column, values in texts
            if table is not far and len(values) > 2 and 3 * len(values & names) > len(values)
        ]

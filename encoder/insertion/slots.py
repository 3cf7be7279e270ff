"""The columns of an INSERT: what each must hold, and whether leaving it out gives just that."""

from __future__ import annotations

import re
from dataclasses import dataclass

from psycopg import Error

from emit.literal import quote, table_name
from emit.term import Prec, Term, raw
from encoder.frame import State
from encoder.insertion.model import InsertGoal, Sequences
from encoder.insertion.spell import INTEGERS
from scratch.catalog import ALWAYS, Column, Table
from scratch.session import rows
from stream.model import TableName, Value

_NEXTVAL = re.compile(r"^nextval\('(?P<name>(?:[^']|'')+)'::regclass\)$")
_PATH_PART = re.compile(r'"(?:[^"]|"")*"|[^."]+')
_VOLATILE = re.compile(
    r"\b(now|random|\w*uuid\w*|\w*_timestamp|nextval|timeofday|txid\w*|current_\w+|(\w+_)?user)\b", re.I
)


@dataclass(frozen=True, slots=True)
class Slot:
    """A column with its wanted `values`, one a row.

    `default`: leaving the column out gives them, whatever the sequences hold.  `sequence`: leaving it
    out draws from this sequence; `drawn` is then how far beyond the sequence's next value each row
    is, None where the values do not rise from there.
    """

    column: Column
    values: tuple[Value, ...]
    default: bool = False
    sequence: TableName | None = None
    drawn: tuple[int, ...] | None = None

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def constant(self) -> bool:
        return all(value == self.values[0] for value in self.values)

    @property
    def in_step(self) -> bool:
        """Whether the sequence gives exactly the values, one draw a row."""
        return self.drawn is not None and self.drawn == tuple(range(len(self.drawn)))

    @property
    def counts(self) -> bool:
        """Whether the values are whole numbers that rise by one from row to row."""
        if self.column.base not in INTEGERS or len(self.values) < 2 or None in self.values:
            return False
        first = int(self.values[0] or 0)
        return all(int(value or 0) == first + place for place, value in enumerate(self.values))

    @property
    def explicit(self) -> bool:
        """Whether a statement may give a value at all."""
        return not self.column.generated and self.column.identity != ALWAYS


def make_slots(state: State, goal: InsertGoal, sequences: Sequences) -> list[Slot]:
    """A slot for every column of the table; the values of generated ones are not known."""
    table = state.catalog[goal.table]
    found = []
    for column in table.columns:
        if column.generated:
            found.append(Slot(column, (None,) * len(goal.rows), default=True))
            continue
        values = tuple(row[column.name] for row in goal.rows)
        sequence = sequence_of(table, column)
        if sequence is not None:
            found.append(Slot(column, values, False, sequence, _drawn(values, sequences.next.get(sequence))))
        else:
            found.append(Slot(column, values, _is_default(state, column, values)))
    return found


def sequence_of(table: Table, column: Column) -> TableName | None:
    """The sequence that an omitted `column` draws from."""
    if column.identity:
        return column.sequence
    match = _NEXTVAL.match(column.default or "")
    if match is None:
        return None
    if column.sequence is not None:
        return column.sequence
    *schema, name = map(_unquoted, _PATH_PART.findall(match["name"].replace("''", "'")))
    return TableName(schema[0] if schema else table.name.schema, name)


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def nextval(sequence: TableName) -> Term:
    return raw(f"nextval({quote(table_name(*sequence))})", Prec.ATOM)


def _drawn(values: tuple[Value, ...], start: int | None) -> tuple[int, ...] | None:
    if start is None or any(value is None for value in values):
        return None
    drawn = tuple(int(value or 0) - start for value in values)
    rising = all(a < b for a, b in zip((-1, *drawn), drawn, strict=False))
    return drawn if rising else None


def _is_default(state: State, column: Column, values: tuple[Value, ...]) -> bool:
    if any(value != values[0] for value in values):
        return False
    if column.default is None:
        return not values or values[0] is None
    if _VOLATILE.search(re.sub(r"'(?:[^']|'')*'", "''", column.default)):
        return False
    try:
        with state.session.transaction():
            return rows(state.session, f"SELECT ({column.default})::{column.type}")[0][0] == values[0]
    except Error:
        return False

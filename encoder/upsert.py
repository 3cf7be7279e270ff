"""INSERT … ON CONFLICT DO UPDATE: one statement for the inserted and the updated rows of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from emit.literal import identifier
from emit.term import Statement, Term, raw
from encoder.candidate import Candidate, elements
from encoder.context import Context
from encoder.effect import RowTuple, TableEffect
from encoder.insert import propose
from encoder.insertion.task import CONFLICT
from encoder.literals import changed_places
from encoder.proof import prove
from scratch.catalog import Table

# Beyond so many changed columns an update is hardly the other half of an insert.
_MAX_SET = 6


def upsert_candidates(context: Context, owed: Sequence[TableEffect], effect: TableEffect) -> list[Candidate]:
    """The shortest proved statement that inserts and updates all rows that are to be, if there is one."""
    if not effect.inserts or not effect.updates or context.late:
        return []
    target = frozenset(e for e in elements([effect]) if e[1] != "D")
    found = prove(context, owed, target, _statements(context, effect), "upsert")
    return [found] if found is not None else []


def _statements(context: Context, effect: TableEffect) -> Iterator[Statement]:
    table = effect.table
    changed = sorted({place for before, after in effect.updates for place in changed_places(before, after)})
    columns = [table.stored[place].name for place in changed]
    key = _key(table, columns)
    if key is None or len(columns) > _MAX_SET:
        return
    clause = _clause(key, columns)
    for proposal in propose(context, replace(effect, deletes=(), updates=())):
        # Rows that are there already had been passed over; now they are updated.
        if proposal.statement.conflict == CONFLICT:
            yield replace(proposal.statement, conflict=clause)
    if any(column.sequence is not None for column in table.stored):
        return
    known = {*changed, *(place for place, column in enumerate(table.stored) if column.name in key)}
    updates = tuple(_as_inserted(effect, after, known) for _, after in effect.updates)
    for proposal in propose(context, replace(effect, inserts=(*effect.inserts, *updates), deletes=(), updates=())):
        if proposal.statement.conflict is None:
            yield replace(proposal.statement, conflict=clause)


def _key(table: Table, changed: Sequence[str]) -> tuple[str, ...] | None:
    """The unique key by which rows are the same: none of its columns changes or counts by itself."""
    drawn = {column.name for column in table.stored if column.sequence is not None}
    keys = [key for key in (table.primary_key, *table.unique_keys) if key and not {*changed, *drawn} & {*key}]
    return min(keys, key=lambda key: (len(",".join(key)), key), default=None)


def _clause(key: Sequence[str], columns: Sequence[str]) -> Term:
    names = [identifier(name) for name in columns]
    sets = ",".join(f"{name}=excluded.{name}" for name in names)
    return raw(f"ON CONFLICT({','.join(map(identifier, key))})DO UPDATE SET {sets}")


def _as_inserted(effect: TableEffect, row: RowTuple, known: set[int]) -> RowTuple:
    """`row` as the INSERT would have given it: what neither the key nor SET tells is guessed to be what all inserted
    rows hold, else what the row holds."""
    inserted = [set(column) for column in zip(*effect.inserts, strict=True)]
    return tuple(
        next(iter(inserted[place])) if place not in known and len(inserted[place]) == 1 else value
        for place, value in enumerate(row)
    )

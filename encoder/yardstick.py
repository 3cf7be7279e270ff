"""The starter and the baseline: what the script is measured against.

The starter writes one statement a row.  The baseline groups equal changes, writes one multi-row INSERT a
table and, where a group is all the rows under one foreign-key value, names that value instead of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from emit.render import render
from emit.term import Delete, Statement, Term
from encoder import literals
from encoder.effect import RowTuple, TableEffect, key_of
from encoder.frame import Frame, State
from encoder.segments import changed_columns
from scratch.catalog import Catalog, Table
from stream.model import RowChange


def starter(catalog: Catalog, changes: Sequence[RowChange], timezone: str | None) -> list[str]:
    """One statement a row change, in the order of the stream; changes that change nothing left out."""
    return [render(statement) for change in changes for statement in _one_row(catalog[change.table], change, timezone)]


def _one_row(table: Table, change: RowChange, timezone: str | None) -> Iterator[Statement]:
    old = tuple(change.old[c.name] for c in table.stored) if change.old is not None else None
    new = tuple(change.new[c.name] for c in table.stored) if change.new is not None else None
    if old is None and new is not None:
        yield literals.insert_rows(table, [new], timezone)
    elif old is not None and new is None:
        yield Delete(literals.source_of(table), where=_name_row(table, old, timezone))
    elif old is not None and new is not None and changed_columns(change):
        where = _name_row(table, old, timezone)
        yield literals.set_constants(
            table, [(place, new[place]) for place in literals.changed_places(old, new)], where, timezone
        )


def _name_row(table: Table, row: RowTuple, timezone: str | None) -> Term:
    if table.row_key:
        return literals.by_keys(table, [key_of(table, row)], timezone)
    return literals.whole_row(table, row, timezone)


def baseline(state: State, effects: Sequence[TableEffect], timezone: str | None) -> list[str]:
    """The grouped literal statements for the net effect; deletes, then updates, then inserts."""
    deleted: list[Statement] = []
    updated: list[Statement] = []
    inserted: list[Statement] = []
    for effect in effects:
        table = effect.table
        frame = state.frame(table.name)
        if effect.deletes:
            where = _foreign_value(frame, [key_of(table, row) for row in effect.deletes], timezone)
            if where is not None:
                deleted.append(Delete(literals.source_of(table), where=where))
            else:
                deleted += literals.delete_rows(table, effect.deletes, frame, timezone)
        for statement, members in literals.grouped_updates(table, effect.updates, timezone):
            where = _foreign_value(frame, [key_of(table, before) for before, _ in members], timezone)
            updated.append(
                statement
                if where is None
                else literals.set_constants(
                    table,
                    [(p, members[0][1][p]) for p in literals.changed_places(*members[0])],
                    where,
                    timezone,
                )
            )
        if effect.inserts:
            inserted.append(literals.insert_rows(table, effect.inserts, timezone))
    return [render(statement) for statement in (*deleted, *updated, *inserted)]


def _foreign_value(frame: Frame, keys: Sequence[tuple[str | None, ...]], timezone: str | None) -> Term | None:
    """`fk=v` where the rows are exactly those with that value of a foreign key, and more than one."""
    if len(keys) < 2 or not frame.table.row_key:
        return None
    rows = [frame.index[key] for key in keys]
    best: Term | None = None
    for foreign in frame.table.foreign_keys:
        if len(foreign.columns) != 1:
            continue
        texts = frame.texts(foreign.columns[0])
        value = texts[rows[0]]
        if value is None or any(texts[row] != value for row in rows) or texts.count(value) != len(rows):
            continue
        term = literals.equals(frame.table.by_name[foreign.columns[0]], value, timezone)
        if best is None or len(render_where(frame.table, term)) < len(render_where(frame.table, best)):
            best = term
    return best


def render_where(table: Table, term: Term) -> str:
    return render(Delete(literals.source_of(table), where=term))

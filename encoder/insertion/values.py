"""The plainest INSERT: VALUES, with the columns that need no saying left out."""

from __future__ import annotations

from collections.abc import Sequence

from emit.render import render
from emit.term import Insert, Term, raw, row_values
from encoder.insertion.layout import source_of
from encoder.insertion.model import Proposal
from encoder.insertion.slots import Slot
from encoder.insertion.spell import Speller
from scratch.catalog import Table
from stream.model import TableName

_DEFAULT = raw("DEFAULT")


def values_inserts(table: Table, slots: Sequence[Slot], spell: Speller) -> list[Proposal]:
    """INSERT … VALUES with explicit ids, and with ids from the sequences where they give the same."""
    found = []
    drawing = [slot for slot in slots if slot.sequence is not None]
    for by_sequence in (True, False) if drawing else (False,):
        if by_sequence and not all(slot.in_step for slot in drawing):
            continue
        if not by_sequence and any(not slot.explicit for slot in drawing):
            continue
        uses = frozenset(slot.sequence for slot in drawing if slot.sequence) if by_sequence else frozenset()
        for columns, chosen in (_positional(slots, by_sequence), _listed(slots, by_sequence)):
            if chosen:
                found.append(_statement(table, columns, chosen, by_sequence, spell, uses))
    return found


def _omitted(slot: Slot, by_sequence: bool) -> bool:
    return slot.default or (by_sequence and slot.sequence is not None)


def _positional(slots: Sequence[Slot], by_sequence: bool) -> tuple[tuple[str, ...], list[Slot]]:
    last = max((place for place, slot in enumerate(slots) if not _omitted(slot, by_sequence)), default=0)
    return (), list(slots[: last + 1])


def _listed(slots: Sequence[Slot], by_sequence: bool) -> tuple[tuple[str, ...], list[Slot]]:
    needed = [slot for slot in slots if not _omitted(slot, by_sequence)]
    return tuple(slot.name for slot in needed), needed


def _statement(
    table: Table,
    columns: tuple[str, ...],
    chosen: Sequence[Slot],
    by_sequence: bool,
    spell: Speller,
    uses: frozenset[TableName],
) -> Proposal:
    cells = [_cells(slot, by_sequence, spell) for slot in chosen]
    statement = Insert(source_of(table, ()), columns, row_values(list(zip(*cells, strict=True))))
    return Proposal(statement, uses, "values")


def _cells(slot: Slot, by_sequence: bool, spell: Speller) -> list[Term]:
    if not slot.explicit or (by_sequence and slot.sequence is not None):
        return [_DEFAULT] * len(slot.values)
    spelled: dict[str | None, Term] = {}
    for value in slot.values:
        if value not in spelled:
            text = render(spell.top(value, slot.column))
            spelled[value] = _DEFAULT if slot.default and len(text) > len("DEFAULT") else raw(text)
    return [spelled[value] for value in slot.values]

"""The greatest or least value of a group, of whose rows it is not known which were counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from emit.term import Term, call
from encoder.insertion.cells import Cell
from encoder.insertion.folds import kind_of
from encoder.insertion.model import Indexes
from encoder.insertion.regrouped import Counted
from encoder.insertion.slots import Slot
from encoder.selection.model import Mask


@dataclass(frozen=True, slots=True)
class Extremes:
    """A max() or min() for every column, and the rows that may have been counted."""

    terms: Mapping[str, Term]
    counted: Counted


def extremes(cells: Sequence[Cell], slots: Sequence[Slot], rows: Indexes, numbers: Indexes) -> Extremes | None:
    """Extremes that are the values of all `slots` where some of the `rows` of each group are left out: those beyond.
    `numbers` has the group of every row, -1 and below for none."""
    terms: dict[str, Term] = {}
    mask, sure = np.ones(len(rows), dtype=np.bool_), np.zeros(len(rows), dtype=np.bool_)
    for slot in slots:
        found = next((one for cell in cells for one in _of(cell, slot, rows, numbers)), None)
        if found is None:
            return None
        terms[slot.name], allowed, needed = found
        mask &= allowed
        sure |= needed
    return Extremes(terms, Counted(mask, sure))


def _of(cell: Cell, slot: Slot, rows: Indexes, numbers: Indexes) -> list[tuple[Term, Mask, Mask]]:
    if kind_of(cell.column) != kind_of(slot.column) or None in slot.values:
        return []
    code_of = {value: code for code, value in enumerate(cell.coded.values)}
    wanted = np.array([code_of.get(value or "", -1) for value in slot.values], dtype=np.int64)
    inside = numbers >= 0
    if (wanted < 0).any():
        return []
    codes = cell.coded.codes[rows].astype(np.int64)
    goal = np.where(inside, wanted[np.maximum(numbers, 0)], -1)
    exact = inside & (codes == goal)
    held = np.bincount(numbers[exact], minlength=len(slot.values))
    if (held == 0).any():
        return []
    alone = exact & (held[np.maximum(numbers, 0)] == 1)
    found = []
    for function, beyond in (("max", inside & (codes > goal)), ("min", inside & (codes < goal) & (codes >= 0))):
        # Of single rows alone nothing is an extreme.
        if (inside & ~beyond & ~exact).any():
            found.append((call(function, cell.term), ~beyond, alone))
    return found

"""One function of the source for some of the rows, another for the others."""

from __future__ import annotations

import numpy as np

from encoder.assignment.model import Expression
from encoder.assignment.search import Goal, find_expressions
from encoder.budget import Budget
from encoder.frame import State
from encoder.insertion.evidence import Link
from encoder.insertion.slots import Slot
from encoder.insertion.spell import class_of

# The share of the rows that holds a column's value as it is, and how many values there must be for that to tell.
_LEAST_COPIED, _VARIED = 0.2, 4
_UNITS = 1000


def parted(state: State, link: Link, slot: Slot, *, budget: Budget, timezone: str | None) -> Expression | None:
    """The shortest CASE that gives `slot`, looked for only where a column of the source holds just what a good part of
    the rows got."""
    rows, first = np.unique(link.rows, return_index=True)
    if slot.sequence is not None or len(rows) < len(link.rows) or not _partly_copied(state, link, slot):
        return None
    part = Budget(max(0, min(_UNITS, budget.left)))
    granted = part.left
    goal = Goal(slot.column, rows, [slot.values[place] for place in first.tolist()])
    found = find_expressions(state, link.table.name, goal, budget=part, timezone=timezone)
    budget.spend(granted - max(0, part.left))
    return min(found, key=lambda e: (e.size, str(e.term)), default=None)


def _partly_copied(state: State, link: Link, slot: Slot) -> bool:
    # Rows that no key tells were chosen for what they hold.
    told = (link.equal.get(link.column, ""),) in (link.table.primary_key, *link.table.unique_keys)
    if not told or len(set(slot.values)) < _VARIED or slot.counts:
        return False
    frame, rows = state.frame(link.table.name), link.rows.tolist()
    for column in link.table.columns:
        if class_of(column) == class_of(slot.column):
            texts = frame.texts(column.name)
            same = sum(text is not None and text == texts[row] for row, text in zip(rows, slot.values, strict=True))
            if _LEAST_COPIED * len(rows) <= same:
                return True
    return False

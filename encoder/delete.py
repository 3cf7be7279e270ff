"""Candidates for the deleted rows of one table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from encoder.candidate import Candidate
from encoder.choose import select
from encoder.context import Context
from encoder.drivers import places
from encoder.effect import TableEffect
from encoder.following import is_following
from encoder.proof import prove
from encoder.selection.model import Labels, Selection
from encoder.statements import deletes

# The part of the usual work for rows that go with those of another table, see encoder.sharing.
_FOLLOWING = 0.3


def delete_candidates(context: Context, owed: Sequence[TableEffect], effect: TableEffect) -> list[Candidate]:
    """The shortest proved statement that deletes all of `effect`'s deletes by a condition."""
    if not effect.deletes:
        return []
    target = frozenset((effect.table.name, "D", row, None) for row in effect.deletes)
    share = _FOLLOWING if is_following(context.state, owed, effect) else 1.0
    selections = delete_selections(context, effect, share)
    found = prove(context, owed, target, deletes(context, effect.table, selections), "delete")
    return [found] if found is not None else []


def delete_selections(context: Context, effect: TableEffect, share: float = 1.0) -> list[Selection]:
    """Selections of exactly the deleted rows, cheapest first; `share` is the part of the usual work to find them."""
    table = effect.table
    frame = context.state.frame(table.name)
    rows = places(frame, effect.deletes)
    if rows is None:
        return []
    must = np.zeros(frame.size, dtype=np.bool_)
    must[rows] = True
    return select(context, table.name, Labels(must, ~must), share=share)

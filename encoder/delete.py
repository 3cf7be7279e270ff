"""Candidates for the deleted rows of one table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from emit.render import render
from encoder import literals
from encoder.candidate import Candidate
from encoder.choose import select
from encoder.context import Context
from encoder.effect import TableEffect, key_of
from encoder.proof import prove, try_statements
from encoder.selection.model import Labels, Selection
from encoder.statements import deletes


def delete_candidates(context: Context, owed: Sequence[TableEffect], effect: TableEffect) -> list[Candidate]:
    """Proved candidates for all deletes of `effect`; the literal one is among them."""
    table = effect.table
    if not effect.deletes:
        return []
    target = frozenset((table.name, "D", row, None) for row in effect.deletes)
    frame = context.state.frame(table.name)
    plain = [
        render(statement) for statement in literals.delete_rows(table, effect.deletes, frame, context.timezone)
    ]
    found = [try_statements(context, owed, plain, "literal")[0]]
    selections = delete_selections(context, effect)
    if selections:
        found.append(prove(context, owed, target, deletes(context, table, selections), "delete"))
    return [candidate for candidate in found if candidate is not None]


def delete_selections(context: Context, effect: TableEffect) -> list[Selection]:
    """Selections of exactly the deleted rows, cheapest first."""
    table = effect.table
    frame = context.state.frame(table.name)
    if not table.row_key and len(frame.index) != frame.size:
        return []  # twins cannot be told apart by any condition
    must = np.zeros(frame.size, dtype=np.bool_)
    must[[frame.index[key_of(table, row)] for row in effect.deletes]] = True
    return select(context, table.name, Labels(must, ~must))

"""Candidates for the inserted rows of one table."""

from __future__ import annotations

from collections.abc import Sequence

from encoder.budget import Budget
from encoder.candidate import Candidate, Element
from encoder.context import Context
from encoder.effect import TableEffect
from encoder.insertion.model import DriverRows, InsertGoal, Proposal, Sequences
from encoder.insertion.search import propose_inserts
from encoder.proof import prove

# How much work a search for one table's inserts may do.
_PROPOSALS = 20_000
_GLANCE = 60
# Estimated seconds of it, of each row and of a unit of its work.
_PROPOSAL, _PROPOSAL_ROW, _UNIT = 0.25, 2e-3, 3e-4


def insert_candidates(context: Context, owed: Sequence[TableEffect], effect: TableEffect) -> list[Candidate]:
    """Proved candidates for all inserts of `effect`: the shortest of all, and the shortest that moves no
    sequence."""
    if not effect.inserts:
        return []
    target = insert_elements(effect)
    proposals = propose(context, effect)
    with_sequences = [proposal.statement for proposal in proposals if proposal.uses_sequences]
    without = [proposal.statement for proposal in proposals if not proposal.uses_sequences]
    found = [prove(context, owed, target, statements, "insert") for statements in (with_sequences, without)]
    return [candidate for candidate in found if candidate is not None]


def insert_elements(effect: TableEffect) -> frozenset[Element]:
    return frozenset((effect.table.name, "I", row, None) for row in effect.inserts)


def propose(context: Context, effect: TableEffect, pool: Sequence[DriverRows] = ()) -> list[Proposal]:
    """Proposals for all inserts of `effect`, those that read the rows of `pool` among them."""
    table = effect.table
    names = [column.name for column in table.stored]
    goal = InsertGoal(table.name, tuple(dict(zip(names, row, strict=True)) for row in effect.inserts))
    key = ("inserts", table.name, effect.inserts, tuple((driver.table, driver.rows.tobytes()) for driver in pool))
    return context.state.remember(key, lambda: _proposals(context, goal, len(effect.inserts), pool))


def _proposals(context: Context, goal: InsertGoal, count: int, pool: Sequence[DriverRows]) -> list[Proposal]:
    worth = context.meter.spend(_PROPOSAL + count * _PROPOSAL_ROW)
    budget = Budget(context.effort.units(_PROPOSALS) if worth else _GLANCE, context.lab.deadline)
    granted = budget.left
    sequences = Sequences(context.lab.next_values())
    found = propose_inserts(context.state, goal, sequences, budget=budget, timezone=context.timezone, pool=pool)
    if context.catalog[goal.table].triggers:
        context.lab.settle()
    context.meter.account(granted, budget, _UNIT)
    return found

"""What statements do in the present state, each list of them run once."""

from __future__ import annotations

from collections.abc import Sequence

from encoder.context import Context
from encoder.effect import Effect
from encoder.trial import MAX_PLAN_COST
from stream.model import TableName

# Rough seconds of a trial, and of each row that it writes.
TRIAL, _TRIAL_ROW = 0.006, 6e-5


def observed(context: Context, statements: Sequence[str]) -> tuple[Effect | str, frozenset[TableName]]:
    """The effect of `statements` (or why there is none) and the sequences that they moved, remembered."""
    return context.state.remember(("trial", tuple(statements)), lambda: _run(context, statements))


def _run(context: Context, statements: Sequence[str]) -> tuple[Effect | str, frozenset[TableName]]:
    if any(_explodes(context, statement) for statement in statements):
        return "too dear a plan", frozenset()
    done = context.lab.observe(statements)
    context.meter.charge(TRIAL + (done.weight() * _TRIAL_ROW if isinstance(done, Effect) else 0))
    return done, context.lab.moved


def _explodes(context: Context, statement: str) -> bool:
    """Whether the planner thinks that this would not end; single scans are not asked about."""
    if "SELECT" not in statement and "FROM" not in statement[12:] and "USING" not in statement:
        return False
    return context.lab.plan_cost(statement) > MAX_PLAN_COST

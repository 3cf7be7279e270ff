"""The shortest expressions that give a goal's new values.

Families propose from a sample of the rows; the server proves on all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from emit.literal import literal
from encoder.assignment.bench import bench, measured
from encoder.assignment.engine import Goal, Mask, Rows, Search
from encoder.assignment.families import FAMILIES, NEAR, Tiers
from encoder.assignment.model import Expression, WindowExpression
from encoder.assignment.partial import partials, splits
from encoder.assignment.problem import literal_term
from encoder.assignment.window_sql import sized
from encoder.budget import Budget
from encoder.frame import State
from stream.model import TableName

__all__ = ["Goal", "find_constant", "find_expressions", "find_partial", "find_windows"]

# Proven expressions among which the kept ones are chosen, for each that is kept.
_CHOICE = 3
_OTHERS = 600
# Bytes of an expression past which a split into two is tried.
_LONG = 90
# Rows that are too few to tell more than what is near.
_FEW = 2


def find_expressions(
    state: State,
    table: TableName,
    goal: Goal,
    *,
    budget: Budget,
    timezone: str | None,
    keep: int = 6,
    split: bool = True,
    tiers: Tiers = FAMILIES,
) -> list[Expression]:
    """Expressions over a row of `table` that give `goal.new` on all of `goal.rows`, cheapest first.

    Each is proved on the server, text for text after the assignment cast.  Among those found, ones that
    leave more of the other rows as they are come in even where they are longer.  One unit of `budget` is
    one expression tried.  `timezone` is what the replaying session promises.  With `split`, where there is nothing
    short, the rows are parted too: one expression for some, another for the others.  `tiers` are the families that
    propose.
    """
    if not len(goal.rows):
        return []
    others = _others(state, table, goal)
    with _searching(state, table, goal, others, budget, timezone) as search:
        if len(goal.rows) <= _FEW:
            return search.choose(search.run(NEAR, keep * _CHOICE, range(len(goal.rows))), others, keep)
        proven = search.run(tiers, keep * _CHOICE)
        if split and (not proven or measured(state.catalog, search.table, proven[0]).size > _LONG):
            proven = search.ordered([*proven, *splits(search)])
        return search.choose(proven, others, keep)


def find_constant(state: State, table: TableName, goal: Goal, timezone: str | None) -> list[Expression]:
    """The one value that all rows of the goal get, without any search; [] where there are several."""
    if len(set(goal.new)) != 1:
        return []
    text = literal(goal.new[0], goal.column.type, context="assign", timezone=timezone)
    return [measured(state.catalog, state.catalog[table], literal_term(text))]


def find_partial(
    state: State, table: TableName, goal: Goal, *, budget: Budget, timezone: str | None, keep: int = 6
) -> list[tuple[Expression, Mask]]:
    """Expressions that are right on a part of `goal.rows`, with exactly the rows (places in `goal.rows`)
    on which they are; the largest parts first, then the cheapest."""
    if len(goal.rows) < 2:
        return []
    with _searching(state, table, goal, np.empty(0, dtype=np.intp), budget, timezone) as search:
        found = partials(search)
        return [(measured(state.catalog, search.table, term), mask) for term, mask in found[:keep]]


def find_windows(
    state: State, table: TableName, goal: Goal, *, budget: Budget, timezone: str | None, keep: int = 3
) -> list[WindowExpression]:
    """Window functions over the table itself that give `goal.new` on all of `goal.rows`, cheapest first, each
    proved on the server.  `window_sql.update_from_window` makes a statement of one."""
    found: list[WindowExpression] = []
    if len(goal.rows) < 2 or not state.catalog[table].row_key:
        return found
    with _searching(state, table, goal, np.empty(0, dtype=np.intp), budget, timezone) as search:
        for expression in search.window_candidates():
            if search.window_holds(expression):
                found.append(sized(state.catalog, search.table, expression))
            if len(found) >= keep * _CHOICE:
                break
    return sorted(found, key=lambda expression: expression.size)[:keep]


@contextmanager
def _searching(
    state: State, table: TableName, goal: Goal, others: Rows, budget: Budget, timezone: str | None
) -> Iterator[Search]:
    # Infinities and NaN are values like others here: what comes of them fits nothing, or is tried.
    with np.errstate(all="ignore"), bench(state, table, np.concatenate([goal.rows, others])) as trial:
        yield Search(state, table, goal, budget, timezone, trial)


def _others(state: State, table: TableName, goal: Goal) -> Rows:
    """Rows that the goal leaves alone: an even spread of them."""
    frame = state.frame(table)
    if frame.table.by_name.get(goal.column.name) != goal.column:
        return np.empty(0, dtype=np.intp)
    rest = np.setdiff1d(np.arange(frame.size), goal.rows)
    return rest[:: max(1, len(rest) // _OTHERS)][:_OTHERS]

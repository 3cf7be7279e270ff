"""The values that expressions give, row by row: the server's word."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from encoder.assignment.bench import ABSENT, ERROR, Environment, bench
from encoder.assignment.model import Expression, WindowExpression
from encoder.assignment.window_sql import derived, valued
from encoder.frame import State
from scratch.catalog import Column
from stream.model import TableName, Value

__all__ = ["ABSENT", "ERROR", "evaluate", "window_values"]


def evaluate(
    state: State,
    table: TableName,
    terms: Sequence[Expression],
    column_types: Sequence[Column],
    rows: NDArray[np.intp] | None = None,
    *,
    timezone: str | None = None,
) -> list[list[Value]]:
    """For every expression its values after the assignment cast to the column beside it, in all rows of the
    frame of `table` (or those at `rows`).

    ERROR stands where it raises, ABSENT where one of its joined paths leads to no row.  `timezone` is the
    session's, UTC by default.
    """
    environment = Environment(timezone or "UTC")
    found: list[list[Value]] = []
    with bench(state, table, rows) as trial:
        for expression, column in zip(terms, column_types, strict=True):
            (values,) = trial.values([expression.term], column, environment)
            found.append(trial.every_value(expression.term, column, environment) if values is None else values)
    return found


def window_values(
    state: State, table: TableName, expression: WindowExpression, column: Column, *, timezone: str | None = None
) -> list[Value]:
    """The values of a window over the whole table in all rows, after the assignment cast to `column`; ERROR in every
    row where it raises in one."""
    owner = state.catalog[table]
    source, join = derived(owner, [expression], None)
    with bench(state, table, None) as trial:
        environment = Environment(timezone or "UTC")
        (values,) = trial.values([valued(owner, expression.term)], column, environment, None, (source,), [join])
        return [ERROR] * trial.count if values is None else values

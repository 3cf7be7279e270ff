"""Conditions on a window's value that tell the rows to update from others: set, beyond a bound, beyond a column."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from emit.literal import literal
from emit.term import Term, is_null, op, ref
from encoder.assignment.bench import ABSENT, ERROR
from encoder.assignment.decimals import shortest_between
from encoder.assignment.evaluate import window_values
from encoder.assignment.model import VALUE, WINDOW, WindowExpression
from encoder.assignment.problem import INTEGERS, TIMES, literal_term
from encoder.frame import Frame, State
from scratch.catalog import Column, Table
from stream.model import Value

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]

_TEXT = Column("", "text", "text", "S", False, None, False, "", None)
_NUMBER = ref(WINDOW, VALUE)
_NUMERIC = INTEGERS | {"numeric"}
_MAX_FOUND = 2


def window_conditions(
    state: State, table: Table, expression: WindowExpression, must: Mask, must_not: Mask, timezone: str | None
) -> list[tuple[Term, Mask]]:
    """Conditions over the value of `expression`'s window (and the row's columns) that hold for all rows `must`, with
    the rows for which they hold; those that hold for the fewest `must_not` rows first, none that rules out no row."""
    bare = replace(expression, term=_NUMBER)
    values = window_values(state, table.name, bare, _TEXT, timezone=timezone)
    if any(value is ERROR for value in values):
        return []
    known = np.array([value is not None and value is not ABSENT for value in values])
    absent = np.array([value is ABSENT for value in values])
    if not known[must].all():
        return []
    frame = state.frame(table.name)
    found = [(is_null(_NUMBER, False), known), *_bounds(frame, values, known, must, must_not & ~absent)]
    counted = [(int((holds & must_not & ~absent).sum()), place) for place, (_, holds) in enumerate(found)]
    least = int((must_not & ~absent).sum())
    return [found[place] for count, place in sorted(counted) if count < least][:_MAX_FOUND]


def _bounds(
    frame: Frame, values: Sequence[Value], known: Mask, must: Mask, must_not: Mask
) -> Iterator[tuple[Term, Mask]]:
    numbers = _numbers(values, known)
    if numbers is None:
        yield from _beside_times(frame, values, known, must)
        return
    yield from _cuts(numbers, must, must_not & known, lambda sign, cut: op(_NUMBER, sign, cut))
    for column in frame.table.columns:
        if column.base in _NUMERIC:
            own = ref((), column.name)
            with np.errstate(all="ignore"):
                ratio = frame.numbers(column.name) / numbers
            if np.nanmin(numbers) > 0 and np.isfinite(ratio[must]).all():
                yield from _cuts(ratio, must, must_not & known, partial(_beyond, own))


def _beyond(own: Term, sign: str, cut: Term) -> Term:
    return op(own, sign, _NUMBER if cut.parts == ("1",) else op(cut, "*", _NUMBER))


def _numbers(values: Sequence[Value], known: Mask) -> Floats | None:
    try:
        return np.array([float(value or "") if yes else math.nan for value, yes in zip(values, known, strict=True)])
    except ValueError:
        return None


def _cuts(
    numbers: Floats, must: Mask, must_not: Mask, build: Callable[[str, Term], Term]
) -> Iterator[tuple[Term, Mask]]:
    """The roundest bound between the rows `must` and as many others as lie beyond them all."""
    least, most = float(numbers[must].min()), float(numbers[must].max())
    below, above = numbers[must_not & (numbers < least)], numbers[must_not & (numbers > most)]
    if len(below):
        text = shortest_between(float(below.max()), np.nextafter(least, -math.inf))
        if text is not None:
            yield build(">", literal_term(literal(text, "numeric", context="compare"))), numbers > float(text)
    if len(above):
        text = shortest_between(np.nextafter(most, math.inf), float(above.min()))
        if text is not None:
            yield build("<", literal_term(literal(text, "numeric", context="compare"))), numbers < float(text)


def _beside_times(frame: Frame, values: Sequence[Value], known: Mask, must: Mask) -> Iterator[tuple[Term, Mask]]:
    """The value before or after a time of the row."""
    for column in frame.table.columns:
        if column.base not in TIMES:
            continue
        own = frame.texts(column.name)
        pairs = [(a, b) if yes and a and b else None for a, b, yes in zip(own, values, known, strict=True)]
        for sign, later in ((">", True), ("<", False)):
            holds = np.array(
                [pair is not None and (pair[0] > pair[1] if later else pair[0] < pair[1]) for pair in pairs]
            )
            if holds[must].all():
                yield op(ref((), column.name), sign, _NUMBER), holds

"""Ages: the whole days between a time and a constant or between two times, as numbers and inside texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

import numpy as np

from emit.literal import literal
from emit.term import Term, call, op
from encoder.assignment.problem import Floats, Input, Problem, literal_term, quoted

_DAY = 86_400_000_000
# A constant moment is looked for among round ones, the coarsest first.
_ROUND = (_DAY, _DAY // 4, 3_600_000_000, 600_000_000, 60_000_000, 1_000_000)
_NUMBER = re.compile(r"\d+")
_MAX_NUMBERS = 6
_MAX_DAYS = 10**6
_MAX_TIMES = 8


def days_apart(problem: Problem, wanted: Floats) -> Iterator[Term]:
    """Terms whose value is `wanted`, a whole number of days a row of the sample, NaN for NULL."""
    known = ~np.isnan(wanted)
    days = wanted[known]
    if len(days) < 2 or np.ptp(days) == 0 or (days < 0).any() or (days > _MAX_DAYS).any():
        return
    times = [item for item in problem.inputs if item.is_time and bool((np.isnan(item.numbers) != known).all())]
    for item in times:
        yield from _from_constant(problem, item, item.numbers[known], days)
    own = [item for item in times if item.own][:_MAX_TIMES]
    for late in own:
        for early in own:
            if late is not early and np.array_equal(_whole(late, early)[known], days):
                apart = op(late.term, "-", early.term)
                yield apart if late.base == early.base == "date" else call("date_part", quoted("d"), apart)


def _whole(late: Input, early: Input) -> Floats:
    return np.trunc((late.numbers - early.numbers) / _DAY)


def _from_constant(problem: Problem, item: Input, times: Floats, days: Floats) -> Iterator[Term]:
    """The days from `item` to a moment that the interval of what is possible holds, or from there to `item`."""
    span = 0 if item.base == "date" else _DAY - 1
    for later in (True, False):
        near = times + days * _DAY if later else times - days * _DAY
        low, high = (near.max(), near.min() + span) if later else (near.max() - span, near.min())
        for moment in _round_between(low, high):
            text = _spelled(moment, item.base)
            if text is None:
                continue
            constant = literal_term(literal(text, item.base, context="compare", timezone=problem.timezone))
            apart = op(constant, "-", item.term) if later else op(item.term, "-", constant)
            yield apart if item.base == "date" else call("date_part", quoted("d"), apart)


def _round_between(low: float, high: float) -> list[int]:
    """The first and the last of the roundest moments from `low` to `high`."""
    for unit in _ROUND:
        first, last = -int(-low // unit), int(high // unit)
        if first <= last:
            return [place * unit for place in dict.fromkeys((first, last))]
    return []


def _spelled(microseconds: int, base: str) -> str | None:
    try:
        moment = datetime(2000, 1, 1) + timedelta(microseconds=microseconds)
    except OverflowError:
        return None
    if base == "date":
        return moment.date().isoformat()
    return moment.isoformat(" ") + ("+00" if base == "timestamp with time zone" else "")


def numbers_in(texts: Sequence[str | None]) -> Iterator[Floats]:
    """The numbers that stand in all of `texts` at one place, counted from the front or from behind, and vary; NaN
    for NULL."""
    found = [None if text is None else [int(part[:9]) for part in _NUMBER.findall(text)] for text in texts]
    least = min((len(line) for line in found if line is not None), default=0)
    most = max((len(line) for line in found if line is not None), default=0)
    places = [*range(least), *(range(-least, 0) if most > least else ())]
    for place in places[:_MAX_NUMBERS]:
        line = np.array([np.nan if numbers is None else numbers[place] for numbers in found], dtype=np.float64)
        if np.nanmin(line) < np.nanmax(line):
            yield line

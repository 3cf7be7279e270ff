"""Dates and times: shifts by a constant or by a column, truncation, casts, differences."""

from __future__ import annotations

import calendar
from collections.abc import Callable, Iterator
from datetime import datetime, time, timedelta

import numpy as np

from emit.literal import literal
from emit.term import Term, call, cast, op, raw
from encoder.assignment.ages import days_apart
from encoder.assignment.problem import TIMES, Floats, Input, Problem, quoted, short_type

_DAY = 86_400_000_000
_CLOCK = "time without time zone"


def shifts(problem: Problem) -> Iterator[Term]:
    """A time plus a constant, in days, clock time or months; also after truncation."""
    if problem.base not in TIMES:
        return
    for item in problem.inputs:
        if item.is_time and _same_nulls(problem, item):
            yield from _shifted(problem, item.term, item.base, item.numbers)
            for term, base, values in _truncated(item):
                if np.array_equal(values, item.numbers, equal_nan=True):
                    continue
                yield from _shifted(problem, term, base, values)
                if problem.base == "timestamp with time zone" and base == problem.base:
                    yield Term((*term.parts[:-1], ",'utc')"))
    for item in problem.inputs:
        if item.is_text:
            yield from _read(problem, item)


def _same_nulls(problem: Problem, item: Input) -> bool:
    return bool((np.isnan(item.numbers) == np.isnan(problem.numbers)).all() and not np.isnan(item.numbers).all())


def _shifted(problem: Problem, term: Term, base: str, values: Floats) -> Iterator[Term]:
    known = ~np.isnan(values)
    if problem.base == "date" and base != "date":
        values = np.floor(values / _DAY) * _DAY
    difference = (problem.numbers - values)[known]
    if not difference.any():
        yield term
        if base != problem.base:
            yield cast(term, short_type(problem.base))
        return
    if np.ptp(difference) == 0:
        yield from _plus(term, base, int(difference[0]))
    months = {_months(a, b) for a, b in zip(values[known].tolist(), problem.numbers[known].tolist(), strict=True)}
    if len(months) == 1 and (count := months.pop()):
        text = f"{abs(count) // 12} years" if count % 12 == 0 else f"{abs(count)} mons"
        yield _moved(term, base, count > 0, text)
        if base == "timestamp with time zone":
            # The days of a month are those of some zone; so it is UTC under any session.
            local = _moved(call("timezone", quoted("utc"), term), base, count > 0, text)
            yield call("timezone", quoted("utc"), local)


def _plus(term: Term, base: str, shift: int) -> Iterator[Term]:
    sign = "+" if shift > 0 else "-"
    days, rest = divmod(abs(shift), _DAY)
    if base == "date" and not rest:
        yield op(term, sign, raw(str(days)))
        return
    for text in _spelled(abs(shift)):
        yield _moved(term, base, shift > 0, text)


def _spelled(length: int) -> list[str]:
    """A length of time in microseconds as days and as clock time, what there is of both."""
    hours, rest = divmod(length, 3_600_000_000)
    minutes, rest = divmod(rest, 60_000_000)
    seconds = rest / 1_000_000
    clock = f"{hours:02}:{minutes:02}:{seconds:09.6f}".rstrip("0").rstrip(".")
    return [clock] if length % _DAY else [f"{length // _DAY} days", clock]


def _moved(term: Term, base: str, later: bool, text: str) -> Term:
    """`term` and the interval `text` after or before it."""
    if base != "date":
        # Behind a minus an untyped literal would be read as another time.
        return op(term, "+", _interval(text if later else "-" + text, False))
    if later:
        return op(_interval(text, True), "+", term)
    return op(term, "-", cast(_interval(text, False), "interval"))


def _interval(text: str, typed: bool) -> Term:
    """A literal of an interval; beside a date it has to tell its type."""
    if not typed:
        return raw(literal(text, "interval", context="compare"))
    # The word after such a literal would be read as its unit by sqlglot, so an operator has to follow.
    return raw("interval" + literal(text, "interval", context="compare"))


def _months(before: float, after: float) -> int | None:
    """The months between, if adding them (clipped to the month's end) gives exactly `after`."""
    a, b = _moment(before), _moment(after)
    if a is None or b is None:
        return None
    count = (b.year - a.year) * 12 + b.month - a.month
    day = min(a.day, calendar.monthrange(b.year, b.month)[1])
    return count if a.replace(year=b.year, month=b.month, day=day) == b else None


def _moment(value: float) -> datetime | None:
    try:
        return datetime(2000, 1, 1) + timedelta(microseconds=value)
    except (OverflowError, ValueError):
        return None


def _truncated(item: Input) -> Iterator[tuple[Term, str, Floats]]:
    moments = [None if np.isnan(value) else _moment(value) for value in item.numbers.tolist()]
    if any(moment is None and text is not None for moment, text in zip(moments, item.texts, strict=True)):
        return

    def line(function: Callable[[datetime], datetime]) -> Floats:
        origin = datetime(2000, 1, 1)
        return np.array([np.nan if m is None else (function(m) - origin) / timedelta(microseconds=1) for m in moments])

    def day(moment: datetime) -> datetime:
        return moment.replace(hour=0, minute=0, second=0, microsecond=0)

    base = "timestamp with time zone" if item.base == "date" else item.base
    if item.base != "date":
        yield cast(item.term, "date"), "date", line(day)
    for unit, function in (
        ("d", day),
        ("mon", lambda m: day(m).replace(day=1)),
        ("y", lambda m: day(m).replace(day=1, month=1)),
        ("h", lambda m: m.replace(minute=0, second=0, microsecond=0)),
        ("m", lambda m: m.replace(second=0, microsecond=0)),
        ("s", lambda m: m.replace(microsecond=0)),
        ("w", lambda m: day(m) - timedelta(days=m.weekday())),
        ("qtr", lambda m: day(m).replace(day=1, month=(m.month - 1) // 3 * 3 + 1)),
    ):
        if item.base != "date" or unit in ("mon", "y", "w", "qtr"):
            yield call("date_trunc", quoted(unit), item.term), base, line(function)


# Lengths that times are cut to multiples of, in seconds.
_BINS = tuple(
    unit * count
    for unit, counts in (
        (1, (5, 10, 15, 20, 30)),
        (60, (1, 2, 3, 5, 6, 10, 12, 15, 20, 30)),
        (3600, (1, 2, 3, 4, 6, 8, 12)),
        (86400, (1, 2, 3, 4, 5, 7, 10, 14, 15, 28, 30)),
    )
    for count in counts
)
# Round dates that the multiples are counted from, and how many days these are after 2000-01-01: that, and a Monday.
_ORIGINS = (("2000-1-1", 0), ("2000-1-3", 2))


def binned(problem: Problem) -> Iterator[Term]:
    """Times cut to multiples of a number of minutes, hours or days, down, up or to the nearest."""
    if problem.base not in TIMES - {"date"}:
        return
    for item in problem.inputs:
        if item.base == problem.base and _same_nulls(problem, item):
            yield from _binned(problem, item)


def _binned(problem: Problem, item: Input) -> Iterator[Term]:
    known = ~np.isnan(problem.numbers)
    wanted = problem.numbers[known]
    shift = wanted - item.numbers[known]
    low, high = shift.min(), shift.max()
    for origin, days in _ORIGINS:
        for seconds in _BINS:
            length = seconds * 1_000_000
            same = days and days * _DAY % length == 0
            if same or high - low >= length or ((wanted - days * _DAY) % length).any():
                continue
            for forward in (0, length, length // 2):
                if -length + forward < low and high <= forward:
                    yield from _bin(problem, item, length, forward, origin)


def _bin(problem: Problem, item: Input, length: int, forward: int, origin: str) -> Iterator[Term]:
    moved = _moved(item.term, item.base, True, _spelled(forward)[0]) if forward else item.term
    # Without a zone the origin is midnight in the session's, which is what the multiples may be counted from as well.
    for zone in ("", "z") if problem.base == "timestamp with time zone" and problem.timezone != "UTC" else ("",):
        yield call("date_bin", _interval(_spelled(length)[0], False), moved, quoted(origin + zone))


def scaled_shifts(problem: Problem) -> Iterator[Term]:
    """A time plus a number of units that another column tells."""
    if problem.base not in TIMES:
        return
    times = [item for item in problem.inputs if item.is_time and _same_nulls(problem, item)]
    numbers = [item for item in problem.inputs if item.is_number]
    for item in times:
        shift = problem.numbers - item.numbers
        for other in numbers:
            with np.errstate(all="ignore"):
                ratio = shift / other.numbers
            usable = ratio[np.isfinite(ratio)]
            still = np.nan_to_num(shift[~np.isfinite(ratio)])
            if len(usable) < 2 or still.any() or abs(np.ptp(usable)) > 1 or abs(usable[0]) < 1:
                continue
            sign = "+" if usable[0] > 0 else "-"
            if item.base == "date" and round(abs(usable[0])) == _DAY:
                yield op(item.term, sign, other.term)
                continue
            for text in _spelled(abs(round(usable[0])))[:1]:
                yield op(item.term, sign, op(_interval(text, True), "*", other.term))
    for i, a in enumerate(times):
        for b in times[:i]:
            for name, function in (("greatest", np.fmax), ("least", np.fmin)):
                if np.array_equal(function(a.numbers, b.numbers), problem.numbers, equal_nan=True):
                    yield call(name, b.term, a.term)


def _read(problem: Problem, item: Input) -> Iterator[Term]:
    """A text column that spells the time."""
    texts = [(text, new) for text, new in zip(item.texts, problem.new, strict=True) if text is not None]
    if texts and all(new is not None and text[:10] == new[:10] for text, new in texts):
        yield cast(item.term, short_type(problem.base))


def differences(problem: Problem) -> Iterator[Term]:
    """The days or the interval between two times."""
    number = problem.base in ("integer", "bigint", "smallint", "numeric")
    if not number and problem.base != "interval":
        return
    if number:
        yield from days_apart(problem, problem.numbers)
    times = [item for item in problem.inputs if item.is_time]
    for a in times:
        for b in times:
            if a is b:
                continue
            if not number:
                yield op(a.term, "-", b.term)
                continue
            days = np.floor(a.numbers / _DAY) - np.floor(b.numbers / _DAY)
            if np.array_equal(days, problem.numbers, equal_nan=True):
                left = a.term if a.base == "date" else cast(a.term, "date")
                right = b.term if b.base == "date" else cast(b.term, "date")
                yield op(left, "-", right)


def parts(problem: Problem) -> Iterator[Term]:
    """Times of day: out of timestamps, and moved by a constant round the clock; texts of times are the
    concatenations' work."""
    if problem.base == _CLOCK:
        for item in problem.inputs:
            if item.is_time:
                yield item.term
            elif item.base == _CLOCK:
                yield from _clock_moved(problem, item)


def _clock_moved(problem: Problem, item: Input) -> Iterator[Term]:
    pairs = [pair for pair in zip(item.texts, problem.new, strict=True) if pair != (None, None)]
    steps = {None if a is None or b is None else (_clock(b) - _clock(a)) % _DAY for a, b in pairs}
    if len(steps) == 1 and (step := steps.pop()):
        for later, length in ((True, step), (False, _DAY - step)):
            for text in _spelled(length):
                yield _moved(item.term, _CLOCK, later, text)


def _clock(text: str) -> int:
    moment = time.fromisoformat(text if text != "24:00:00" else "00:00:00")
    return ((moment.hour * 60 + moment.minute) * 60 + moment.second) * 1_000_000 + moment.microsecond

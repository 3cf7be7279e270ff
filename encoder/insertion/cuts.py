"""Times cut to a unit, and the cut a unit later or earlier: date_trunc('month',start)+'1month'."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from emit.literal import quote
from emit.term import Prec, Term, call, cast, raw, ref
from encoder.insertion.slots import Slot
from scratch.catalog import Column
from stream.model import Value

TIMES = frozenset({"date", "timestamp without time zone", "timestamp with time zone"})

_Cut = Callable[[datetime.datetime], datetime.datetime]


@dataclass(frozen=True, slots=True)
class Cut:
    """`term`: a time column cut, perhaps shifted; `values`: what it is for each of the column's values, in UTC."""

    term: Term
    values: list[Value]


def _day(t: datetime.datetime) -> datetime.datetime:
    return t.replace(hour=0, minute=0, second=0, microsecond=0)


def _months(t: datetime.datetime, count: int) -> datetime.datetime:
    """The first day of a month, `count` months later."""
    total = t.year * 12 + t.month - 1 + count
    return t.replace(year=total // 12, month=total % 12 + 1)


def _fixed(**step: int) -> _Cut:
    return lambda t: t + datetime.timedelta(**step)


# Units, how a time is cut to each, the next one, and how an interval of one is spelled.
_UNITS: tuple[tuple[str, _Cut, _Cut, str], ...] = (
    ("day", _day, _fixed(days=1), "1d"),
    ("hour", lambda t: t.replace(minute=0, second=0, microsecond=0), _fixed(hours=1), "1h"),
    ("week", lambda t: _day(t) - datetime.timedelta(days=t.weekday()), _fixed(days=7), "7d"),
    ("month", lambda t: _day(t).replace(day=1), lambda t: _months(t, 1), "1month"),
    ("quarter", lambda t: _day(t).replace(day=1, month=t.month - (t.month - 1) % 3), lambda t: _months(t, 3), "3month"),
    ("year", lambda t: _day(t).replace(day=1, month=1), lambda t: _months(t, 12), "1y"),
)


def cuts(slot: Slot, column: Column, texts: Sequence[Value], timezone: str | None) -> Iterator[Cut]:
    """Ways to make the values of `slot` of the time column `column`, which holds `texts`."""
    try:
        named = {_moment(value): value for value in slot.values if value is not None}
        # What was cut to a unit is not changed by doing it again.
        units = [unit for unit in _UNITS if all(unit[1](moment) == moment for moment in named)]
        moments = {text: _moment(text) for text in set(texts) if text is not None} if units else {}
    except ValueError:  # infinity, or before the year 1
        return
    for unit, cut, following, interval in units:
        cut_once = {text: cut(moment) for text, moment in moments.items()}
        for shifted in (False, True):
            made = {text: following(moment) for text, moment in cut_once.items()} if shifted else cut_once
            if named.keys() <= set(made.values()):
                values = [None if text is None else named.get(made[text], str(made[text])) for text in texts]
                term = _term(slot, column, unit, timezone)
                yield Cut(_later(term, interval) if shifted else term, values)


def _moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=None)


def _term(slot: Slot, column: Column, unit: str, timezone: str | None) -> Term:
    own = ref((), column.name)
    zoned = column.base == "timestamp with time zone" and timezone != "UTC"
    if slot.column.base == "date" and unit == "day":
        local = Term(("(", *own.parts, "AT TIME ZONE", "'UTC'", ")")) if zoned else own
        return cast(local, "date")
    return call("date_trunc", raw(quote(unit)), own, *([raw("'UTC'")] if zoned else []))


def _later(term: Term, interval: str) -> Term:
    return Term((*term.parts, "+", f"'{interval}'"), Prec.ADD)

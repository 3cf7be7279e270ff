"""Dates, times and intervals in the fewest characters.

Input is the text that PostgreSQL prints under ISO DateStyle, IntervalStyle postgres and time zone UTC; the
result is input text for the same type that means the same under every DateStyle and IntervalStyle.
Whatever a function does not know (infinity, other offsets) it gives back as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_DATE = re.compile(r"(\d{4,})-(\d\d)-(\d\d)( BC)?")
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d+))?")
_OFFSET = re.compile(r"([+-])(\d\d)(?::(\d\d))?")
_INTERVAL = re.compile(
    r"(?:(-?\+?\d+) years? ?)?(?:([-+]?\d+) mons? ?)?(?:([-+]?\d+) days? ?)?"
    r"(?:([-+]?)(\d+):(\d\d):(\d\d)(?:\.(\d+))?)?"
)
_EPOCH = "1970-01-01"
_MIDNIGHT = "00:00:00"


def date(text: str) -> str:
    """`240301` for 2024-03-01: six digits are YYMMDD of 1970 to 2069, more are YYYYMMDD."""
    if text == _EPOCH:
        return "epoch"
    match = _DATE.fullmatch(text)
    if match is None:
        return text
    year = int(match[1])
    era = "BC" if match[4] else ""
    if 1970 <= year < 2070 and not era:
        return f"{year % 100:02}" + match[2] + match[3]
    # At least seven digits: six would have a year of two.
    return (str(year) if year >= 100 else f"{year:04}") + match[2] + match[3] + era


def time(text: str) -> str:
    """`9:` for 09:00:00, `0::.5` for 00:00:00.5, `1214` for 12:14:00."""
    match = _TIME.fullmatch(text)
    if match is None:
        return text
    return min(_times(int(match[1]), int(match[2]), int(match[3]), match[4] or ""), key=len)


def timetz(text: str) -> str:
    """A time as in `time`, with its offset from UTC: `9:Z`, `9:+2`, `9:-330`."""
    place = max(text.rfind("+"), text.rfind("-"))
    offset = _OFFSET.fullmatch(text[place:]) if place > 0 else None
    if offset is None:
        return text
    sign, hours, minutes = offset.groups()
    zone = f"{sign}{int(hours)}" if minutes is None else f"{sign}{int(hours)}:{int(minutes)}"
    clock = time(text[:place])
    if sign == "-" and ":" not in clock:
        # Digits and a minus would be read as a date.
        clock = f"{int(clock[:2])}:{int(clock[2:4])}" + (f":{clock[4:].lstrip('0') or ''}" if clock[4:] else "")
    return clock + ("Z" if zone in ("+0", "-0") else zone)


def timestamp(text: str) -> str:
    """`240301 9:14:2.5` for 2024-03-01 09:14:02.5; midnight is left out."""
    day, _, rest = text.partition(" ")
    clock, _, era = rest.partition(" ")
    if _DATE.fullmatch(day) is None or _TIME.fullmatch(clock) is None or era:
        return text
    if clock == _MIDNIGHT:
        return date(day)
    shown = date(day) if day != _EPOCH else "700101"
    return f"{shown} {time(clock)}"


def timestamptz(text: str, *, session_is_utc: bool) -> str:
    """A timestamp as in `timestamp`, with a final Z unless the session's time zone is UTC."""
    if not text.endswith("+00"):
        return text
    local = timestamp(text[:-3])
    if local == text[:-3]:
        return text
    return local if session_is_utc or local == "epoch" else local + "Z"


def interval(text: str) -> str:
    """`7d`, `15m`, `P2M`, `1d-1:30`: the same months, days and microseconds as `text`."""
    match = _INTERVAL.fullmatch(text)
    if match is None or not text:
        return text
    years, months, days, sign, hours, minutes, seconds, fraction = match.groups()
    month_count = int(years or 0) * 12 + int(months or 0)
    clock = None
    if hours is not None:
        clock = (sign == "-", int(hours), int(minutes), int(seconds), fraction or "")
        if not any(clock[1:]):
            clock = None
    return min(_intervals(month_count, int(days or 0), clock), key=len)


_Clock = tuple[bool, int, int, int, str]


def _times(hours: int, minutes: int, seconds: int, fraction: str) -> Iterator[str]:
    """Spellings of a time of day; an empty field after a colon is zero."""
    if fraction:
        yield f"{hours}:{minutes or ''}:{seconds or ''}.{fraction}"
        yield f"{hours:02}{minutes:02}{seconds:02}.{fraction}"
    elif seconds:
        yield f"{hours}:{minutes or ''}:{seconds}"
        yield f"{hours:02}{minutes:02}{seconds:02}"
    else:
        yield f"{hours}:{minutes or ''}"
        yield f"{hours:02}{minutes:02}"


def _intervals(months: int, days: int, clock: _Clock | None) -> Iterator[str]:
    if not days and clock is None:
        if not months:
            yield "0"
            return
        yield f"P{months}M"
        sign, count = ("-" if months < 0 else ""), abs(months)
        yield f"{sign}{count // 12}-{count % 12}"
    fields = [list(_months(months))] if months else []
    if days:
        fields.append([f"{days}d"])
        if days % 7 == 0 and clock is None:
            fields[-1].append(f"{days // 7}w")
    if clock is not None:
        fields.append(list(_clocks(clock, alone=not fields)))
    mixed = months < 0 or days < 0 or (clock is not None and clock[0])
    shown = ""
    for options in fields:
        part = min(options, key=len)
        if shown and part[0] == "-":
            shown += " "
        elif shown and mixed:
            shown += "+"
        shown += part
    yield shown


def _months(months: int) -> Iterator[str]:
    yield f"{months}mon"
    if months % 12 == 0:
        yield f"{months // 12}y"


def _clocks(clock: _Clock, *, alone: bool) -> Iterator[str]:
    """Spellings of the hours, minutes and seconds of an interval; a number without unit is seconds."""
    negative, hours, minutes, seconds, fraction = clock
    sign = "-" if negative else ""
    point = f".{fraction}" if fraction else ""
    total = hours * 3600 + minutes * 60 + seconds
    if total < 2**31:
        yield f"{sign}{total if total or not point or negative or not alone else ''}{point}"
    if not point and not seconds:
        yield f"{sign}{hours}:{minutes or ''}"
        if not minutes:
            yield f"{sign}{hours}h"
        if hours * 60 < 2**31:
            yield f"{sign}{hours * 60 + minutes}m"
    yield f"{sign}{hours}:{minutes or ''}:{seconds or ''}{point}"

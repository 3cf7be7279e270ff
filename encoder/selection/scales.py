"""Short literals between values: for a bound, every length of literal and how tight it can be.

A scale knows the distinct values of a feature in ascending order.  For a bound below value i it gives, for each
granularity (digits of a number, units of a time, letters of a text), the greatest literal that is not above the
value; for a bound above it the least that is not below.  Which of them to write is the caller's choice: the
coarser, the shorter, and the more other values it lets through.
"""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, InvalidOperation
from functools import cached_property
from typing import Any

from emit import times
from emit.literal import literal
from emit.numbers import shortest
from emit.strings import quote
from emit.term import Prec, Term, raw

INTEGERS = frozenset({"smallint", "integer", "bigint", "oid"})
NUMBERS = INTEGERS | {"numeric", "real", "double precision"}
TIMES = frozenset({"date", "timestamp without time zone", "timestamp with time zone"})
TEXTS = frozenset({"text", "character varying", "character", "name"})
# Types of derived terms that only this package knows: jsonb whose values are all numbers, and intervals whose
# values are given in microseconds.
JSON_NUMBERS = "jsonb of numbers"
MICROSECONDS = "interval in microseconds"

# A session's time zone is at most this far from UTC.
_ZONES = (datetime.timedelta(hours=-13), datetime.timedelta(hours=15))


@dataclass(frozen=True, slots=True)
class Bound:
    """A literal and how many values are surely below it, and at most below or equal to it.

    `less` values are below the literal and `least` are below or equal, except that a literal whose meaning
    depends on the session (`blurred`) may stand anywhere between: no row that matters may lie there.
    """

    literal: Term
    less: int
    least: int
    blurred: bool = False


class Scale(ABC):
    """The distinct values of a feature, ascending, as keys that Python can compare."""

    keys: Sequence[Any]

    def below(self, place: int, timezone: str | None) -> list[Bound]:
        """Literals not above value `place`, the tightest of every length."""
        return self._bounds(place, False, timezone)

    def above(self, place: int, timezone: str | None) -> list[Bound]:
        """Literals not below value `place`, the tightest of every length."""
        return self._bounds(place, True, timezone)

    @cached_property
    def _known(self) -> dict[tuple[int, bool, str | None], list[Bound]]:
        return {}

    def _bounds(self, place: int, up: bool, timezone: str | None) -> list[Bound]:
        asked = (place, up, timezone)
        if asked not in self._known:
            near = self._near(self.keys[place], up, timezone)
            self._known[asked] = [self._bound(key, text, blur) for key, text, blur in near]
        return self._known[asked]

    def _bound(self, key: Any, literal: Term, blur: tuple[Any, Any] | None) -> Bound:
        if blur is None:
            return Bound(literal, bisect_left(self.keys, key), bisect_right(self.keys, key))
        return Bound(literal, bisect_left(self.keys, blur[0]), bisect_right(self.keys, blur[1]), True)

    @abstractmethod
    def _near(self, key: Any, up: bool, timezone: str | None) -> Iterator[tuple[Any, Term, tuple[Any, Any] | None]]:
        """Keys near `key` with their literals, and the interval in which the literal may really stand."""


def scale_of(base: str, values: Sequence[str]) -> Scale | None:
    if base in NUMBERS:
        return NumberScale.of(values)
    if base in TIMES:
        return TimeScale.of(base, values)
    if base in TEXTS:
        return TextScale.of(values)
    if base == JSON_NUMBERS:
        return NumberScale.of(values, quoted=True)
    if base == MICROSECONDS:
        return SecondScale([int(value) for value in values])
    return None


def number(value: Decimal, quoted: bool = False) -> Term:
    """The shortest spelling of `value`."""
    text = format(value, "f")
    spelled = shortest(text, keep_scale=False) or text
    if quoted:
        return raw(quote(spelled))
    return raw(spelled, Prec.UNARY if spelled.startswith("-") else Prec.ATOM)


class NumberScale(Scale):
    def __init__(self, keys: Sequence[Decimal], quoted: bool = False) -> None:
        self.keys = keys
        self._quoted = quoted
        self._finest = max((-int(key.as_tuple().exponent) for key in keys), default=0)

    @classmethod
    def of(cls, values: Sequence[str], quoted: bool = False) -> NumberScale | None:
        try:
            keys = [Decimal(value) for value in values]
        except InvalidOperation:
            return None
        return cls(keys, quoted) if all(key.is_finite() for key in keys) else None

    def _near(
        self, key: Decimal, up: bool, timezone: str | None
    ) -> Iterator[tuple[Decimal, Term, tuple[Any, Any] | None]]:
        rounding = ROUND_CEILING if up else ROUND_FLOOR
        seen: set[Decimal] = set()
        top = max(key.adjusted(), 0) + 1
        for digit in range(top, -min(max(self._finest, 0), 12) - 1, -1):
            unit = Decimal((0, (1,), digit))
            rounded = (key / unit).to_integral_value(rounding) * unit
            steps = [rounded]
            if rounded == key:
                steps.append(key + unit if up else key - unit)
            for step in steps:
                if step not in seen:
                    seen.add(step)
                    yield step, number(step, self._quoted), None


class TimeScale(Scale):
    _UNITS = (86_400_000_000, 3_600_000_000, 600_000_000, 60_000_000, 1_000_000, 1_000, 1)

    def __init__(self, base: str, keys: Sequence[datetime.datetime]) -> None:
        self.base = base
        self.keys = keys

    @classmethod
    def of(cls, base: str, values: Sequence[str]) -> TimeScale | None:
        try:
            keys = [datetime.datetime.fromisoformat(value).replace(tzinfo=None) for value in values]
        except ValueError:  # infinity, BC, five-digit years
            return None
        return cls(base, keys)

    def _near(
        self, key: datetime.datetime, up: bool, timezone: str | None
    ) -> Iterator[tuple[datetime.datetime, Term, tuple[Any, Any] | None]]:
        start = datetime.datetime(1, 1, 1)
        if self.base == "timestamp with time zone" and timezone != "UTC":
            # Without its Z the literal is read in the session's zone: good enough where no row is near.
            day = self._round(key + (-_ZONES[0] if up else -_ZONES[1]), self._UNITS[0], up)
            if day is not None:
                yield day, self._spell(day, "UTC"), (day + _ZONES[0], day + _ZONES[1])
        units = self._UNITS[:1] if self.base == "date" else self._UNITS
        for unit in units:
            rounded = self._round(key, unit, up)
            if rounded is None or rounded == start:
                continue
            yield rounded, self._spell(rounded, timezone), None
            if rounded == key:
                further = self._round(key + datetime.timedelta(microseconds=unit if up else -unit), unit, up)
                if further is not None:
                    yield further, self._spell(further, timezone), None

    @staticmethod
    def _round(moment: datetime.datetime, unit: int, up: bool) -> datetime.datetime | None:
        start = datetime.datetime(1, 1, 1)
        units = (moment - start) // datetime.timedelta(microseconds=unit)
        try:
            rounded = start + units * datetime.timedelta(microseconds=unit)
            if up and rounded < moment:
                rounded += datetime.timedelta(microseconds=unit)
        except OverflowError:
            return None
        return rounded

    def _spell(self, moment: datetime.datetime, timezone: str | None) -> Term:
        if self.base == "date":
            return raw(literal(moment.date().isoformat(), self.base, context="compare"))
        zone = "+00" if self.base == "timestamp with time zone" else ""
        return raw(literal(moment.isoformat(sep=" ") + zone, self.base, context="compare", timezone=timezone))


class SecondScale(Scale):
    """Differences of two moments, in microseconds."""

    _UNITS = (30 * 86_400_000_000, 86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000, 1)

    def __init__(self, keys: Sequence[int]) -> None:
        self.keys = keys

    def _near(self, key: int, up: bool, timezone: str | None) -> Iterator[tuple[int, Term, tuple[Any, Any] | None]]:
        seen = set()
        for unit in self._UNITS:
            rounded = -(-key // unit) * unit if up else key // unit * unit
            for step in (rounded, rounded + (unit if up else -unit)) if rounded == key else (rounded,):
                if step not in seen and abs(step) < 10**17:
                    seen.add(step)
                    yield step, raw(quote(spell_interval(step))), None


def spell_interval(microseconds: int) -> str:
    sign = "-" if microseconds < 0 else ""
    seconds, fraction = divmod(abs(microseconds), 1_000_000)
    if fraction:
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:06}".rstrip("0")
        return times.interval(sign + clock)
    days, rest = divmod(seconds, 86400)
    shown = f"{sign}{days} days" if not rest else f"{sign}{seconds // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return times.interval(shown)


def fold(text: str) -> tuple[str, str]:
    """Nearly the order of words of a dictionary: letters and digits first, whatever their case."""
    small = text.casefold()
    return "".join(letter for letter in small if letter.isalnum()), small


class TextScale(Scale):
    _LETTERS = 20

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = keys
        self._folded: dict[int, tuple[str, str]] = {}

    def folded(self, place: int) -> tuple[str, str]:
        """What value `place` is ordered by in a dictionary."""
        if place not in self._folded:
            self._folded[place] = fold(self.keys[place])
        return self._folded[place]

    @classmethod
    def of(cls, values: Sequence[str]) -> TextScale | None:
        """None where the server's order is not that of code points, since literals cannot be placed then."""
        return cls(values) if list(values) == sorted(values) else None

    def _near(self, key: str, up: bool, timezone: str | None) -> Iterator[tuple[str, Term, tuple[Any, Any] | None]]:
        for length in range(1 if up else 0, min(len(key), self._LETTERS) + 1):
            head = key[:length]
            if (up and length < len(key)) or up:
                last = ord(head[-1])
                if last >= 0x7E:
                    continue
                head = head[:-1] + chr(last + 1)
                if head[-1] in "'\\":
                    head = head[:-1] + chr(last + 2)
            yield head, raw(quote(head)), None
        if len(key) <= 2 * self._LETTERS:
            yield key, raw(quote(key)), None

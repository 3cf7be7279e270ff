"""Where a column of numbers can be cut so that one set of rows is parted from another.

A *scale* gives every value of a column its place on a line of floats and spells the shortest constant
between two neighbours; `cuts` finds the comparisons.
"""

from __future__ import annotations

import bisect
import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import NamedTuple, Protocol

import numpy as np

from emit.term import Term
from encoder.frame import Coded, Floats, to_numbers
from encoder.selection.masks import constant
from encoder.selection.model import Mask
from scratch.catalog import Column

_INTEGERS = frozenset({"smallint", "integer", "bigint", "oid"})
_NUMBERS = _INTEGERS | {"numeric", "real", "double precision"}
_TIMES = frozenset({"date", "timestamp without time zone", "timestamp with time zone"})
# Equal up to what summing floats in another order may change.
_TOLERANCE = 1e-9


class Place(NamedTuple):
    """A constant and its place on the scale."""

    constant: Term
    at: float


class Scale(Protocol):
    def above(self, low: float, high: float) -> Place:
        """A short constant c with low <= c < high."""

    def upto(self, low: float, high: float) -> Place:
        """A short constant c with low < c <= high."""

    def exact(self, at: float) -> Place:
        """The constant at `at`, which is a value of the column."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The comparison of a column with a constant at the place `at`, and the rows for which it holds."""

    operator: str
    constant: Term
    at: float
    holds: Mask


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers as themselves; `type_name` says how a constant is spelled."""

    type_name: str = "numeric"

    def above(self, low: float, high: float) -> Place:
        for step in _steps(self.type_name):
            number = (Decimal(repr(low)) / step).to_integral_value(ROUND_CEILING) * step
            if low <= number < high:
                return self._place(number)
        return self.exact(low)

    def upto(self, low: float, high: float) -> Place:
        for step in _steps(self.type_name):
            number = (Decimal(repr(high)) / step).to_integral_value(ROUND_FLOOR) * step
            if low < number <= high:
                return self._place(number)
        return self.exact(high)

    def exact(self, at: float) -> Place:
        return self._place(Decimal(repr(at)))

    def _place(self, number: Decimal) -> Place:
        text = format(number, "f")
        if "." in text:
            text = text.rstrip("0").rstrip(".")
        type_name = self.type_name if self.type_name not in _INTEGERS else "integer"
        return Place(constant(text, type_name, None), float(number))


def _steps(type_name: str) -> Iterator[Decimal]:
    last = 0 if type_name in _INTEGERS else -9
    return (Decimal(1).scaleb(exponent) for exponent in range(12, last - 1, -1))


@dataclass(frozen=True, slots=True)
class Times:
    """Dates and timestamps as seconds from 1970; constants are as round as can be."""

    column: Column
    timezone: str | None

    def above(self, low: float, high: float) -> Place:
        for start in _round_times(low, high):
            if low <= start < high:
                return self._place(start)
        return self.exact(low)

    def upto(self, low: float, high: float) -> Place:
        for start in _round_times(low, high):
            if low < start <= high:
                return self._place(start)
        return self.exact(high)

    def exact(self, at: float) -> Place:
        return self._place(at)

    def _place(self, at: float) -> Place:
        moment = _EPOCH + datetime.timedelta(microseconds=round(at * 1e6))
        text = moment.strftime("%Y-%m-%d").rjust(10, "0")
        if self.column.base != "date":
            text += moment.strftime(" %H:%M:%S")
            if moment.microsecond:
                text += f".{moment.microsecond:06}".rstrip("0")
            if self.column.base == "timestamp with time zone":
                text += "+00"
        return Place(constant(text, self.column.base, self.timezone), at)


_EPOCH = datetime.datetime(1970, 1, 1)


def _round_times(low: float, high: float) -> Iterator[float]:
    """The starts of the year, month, day, hour, minute and second of `high`, and of those after `low`."""
    first = _EPOCH + datetime.timedelta(seconds=low)
    last = _EPOCH + datetime.timedelta(seconds=high)
    fields = ("month", "day", "hour", "minute", "second")
    for kept in range(len(fields) + 1):
        zero = {name: (1 if name in ("month", "day") else 0) for name in fields[kept:]} | {"microsecond": 0}
        for moment in (last, first):
            start = moment.replace(**zero)  # type: ignore[arg-type]
            yield (start - _EPOCH).total_seconds()


@dataclass(frozen=True, slots=True)
class Ordered:
    """Values of any other type at their codes.  `texts`: whether the server orders them by code points,
    so that constants between two values may be made up."""

    column: Column
    values: tuple[str, ...]
    texts: bool
    timezone: str | None

    def above(self, low: float, high: float) -> Place:
        if not self.texts:
            return self.exact(low)
        a, b = self.values[round(low)], self.values[round(high)]
        return self._between([text for text in _texts_between(a, b) if a <= text < b] or [a])

    def upto(self, low: float, high: float) -> Place:
        if not self.texts:
            return self.exact(high)
        a, b = self.values[round(low)], self.values[round(high)]
        return self._between([text for text in _texts_between(a, b) if a < text <= b] or [b])

    def exact(self, at: float) -> Place:
        return Place(constant(self.values[round(at)], self.column.base, self.timezone), at)

    def _between(self, texts: list[str]) -> Place:
        text = min(texts, key=len)
        at = bisect.bisect_left(self.values, text)
        exact = at < len(self.values) and self.values[at] == text
        return Place(constant(text, self.column.base, self.timezone), at if exact else at - 0.5)


def _texts_between(low: str, high: str) -> Iterator[str]:
    """Candidates of few characters about the gap from `low` to `high`: `high` cut short, and `low` cut
    short with its last character raised.  Lower case letters and digits only, whose order no server doubts."""
    yield high
    yield low
    for length in range(1, min(len(high), 12) + 1):
        yield high[:length]
    for length in range(1, min(len(low), 12) + 1):
        head, last = low[: length - 1], low[length - 1]
        if "a" <= last < "z" or "A" <= last < "Z" or "0" <= last < "9":
            yield head + chr(ord(last) + 1)


def scale_of(column: Column, coded: Coded, timezone: str | None) -> tuple[Scale, Floats]:
    """The scale of a column, and the place of each of its values; NaN at the end stands for NULL (code -1)."""
    if column.base in _NUMBERS or column.base in _TIMES:
        places = to_numbers(column.base, Coded(np.arange(len(coded.values), dtype=np.int32), coded.values))
        scale: Scale = Numbers(column.base) if column.base in _NUMBERS else Times(column, timezone)
        return scale, np.append(places, np.nan)
    texts = column.base in ("text", "character varying") and list(coded.values) == sorted(coded.values)
    places = np.arange(len(coded.values), dtype=np.float64)
    return Ordered(column, coded.values, texts, timezone), np.append(places, np.nan)


def cuts(
    values: Floats, good: Mask, bad: Mask, scale: Scale, *, cover: bool, avoid: bool, operators: str = "<>=!"
) -> Iterator[Cut]:
    """Comparisons of `values` (NaN for NULL) with a constant.

    With `cover` those that hold for every good row and fail on some bad ones; with `avoid` those that hold for no
    bad row and for some good ones.  `operators` names those wanted; "!" stands for <>.
    """
    right, wrong = values[good], values[bad]
    known = wrong[~np.isnan(wrong)]
    if cover and right.size and not np.isnan(right).any():
        yield from _covering(values, right, wrong, known, scale, operators)
    right = right[~np.isnan(right)]
    if avoid and right.size and wrong.size:
        yield from _avoiding(values, right, known, scale, operators)


def _covering(
    values: Floats, right: Floats, wrong: Floats, known: Floats, scale: Scale, operators: str
) -> Iterator[Cut]:
    low, high = float(right.min()), float(right.max())
    below, above = known[known < low], known[known > high]
    if ">" in operators and below.size:
        yield _above(values, scale.above(float(below.max()), low))
    if "<" in operators and above.size:
        yield _below(values, scale.upto(high, float(above.min())))
    if "=" in operators and low == high:
        yield Cut("=", *scale.exact(low), values == low)
    other = _most_frequent(known[~np.isin(known, right)]) if "!" in operators else None
    if other is not None:
        yield Cut("<>", *scale.exact(other), (values != other) & ~np.isnan(values))


def _avoiding(values: Floats, right: Floats, known: Floats, scale: Scale, operators: str) -> Iterator[Cut]:
    if known.size:
        above, below = right[right > known.max()], right[right < known.min()]
        if ">" in operators and above.size:
            yield _above(values, scale.above(float(known.max()), float(above.min())))
        if "<" in operators and below.size:
            yield _below(values, scale.upto(float(below.max()), float(known.min())))
    if "=" in operators:
        only = _most_frequent(right[~np.isin(right, known)])
        if only is not None:
            yield Cut("=", *scale.exact(only), values == only)


def _above(values: Floats, place: Place) -> Cut:
    return Cut(">", *place, values > place.at)


def _below(values: Floats, place: Place) -> Cut:
    return Cut("<", *place, values < place.at)


def _most_frequent(values: Floats) -> float | None:
    if not values.size:
        return None
    distinct, counts = np.unique(values, return_counts=True)
    return float(distinct[counts.argmax()])


def differ(left: Floats, right: Floats, *, rounded: bool) -> tuple[Mask, Mask, Mask]:
    """Where left < right, left = right and left > right, with `rounded` up to rounding; nowhere for NaN."""
    if not rounded:
        return left < right, left == right, left > right
    equal = np.abs(left - right) <= _TOLERANCE * np.maximum(1.0, np.abs(left))
    return (left < right) & ~equal, equal, (left > right) & ~equal

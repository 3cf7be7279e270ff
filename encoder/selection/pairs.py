"""Conditions on two columns at once: equal, less, and how far apart."""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from emit.term import op
from encoder.frame import Coded, Codes, Floats
from encoder.selection.booleans import measure
from encoder.selection.features import Feature
from encoder.selection.ground import Ground, Held
from encoder.selection.model import Mask, Path
from encoder.selection.paths import join_cost
from encoder.selection.scales import INTEGERS, MICROSECONDS, NUMBERS, TEXTS, TIMES, NumberScale, TimeScale
from encoder.selection.spelling import make_atom

_MAX_OWN = 24
_MAX_OTHER = 72
_MAX_DISTANCES, _MAX_FURTHER = 12, 4
_NAN = float("nan")
# Rows not to select that are looked at before all of them.
_GLANCE = 200

Signs: TypeAlias = NDArray[np.uint8]
# How two values compare, as a set of bits, and for which of them an operator holds.
_LESS, _EQUAL, _MORE, _BOTH_NULL, _ONE_NULL = 1, 2, 4, 8, 16
_OPERATORS = {
    "<": _LESS,
    ">": _MORE,
    "=": _EQUAL,
    "<>": _LESS | _MORE,
    "<=": _LESS | _EQUAL,
    ">=": _MORE | _EQUAL,
    "IS DISTINCT FROM": _LESS | _MORE | _ONE_NULL,
    "IS NOT DISTINCT FROM": _EQUAL | _BOTH_NULL,
}


@dataclass(frozen=True, eq=False)
class Couple(ABC):
    """Two columns that can be compared; `nullable` where one of them may be NULL."""

    left: Feature
    right: Feature
    nullable: bool

    @property
    def paths(self) -> frozenset[Path]:
        return self.left.paths | self.right.paths

    @cached_property
    def least(self) -> int:
        """The bytes of the shortest comparison with its joins."""
        return join_cost(self.paths) + measure(op(self.left.term, "=", self.right.term))

    @abstractmethod
    def signs(self, ground: Ground, must: bool, chosen: slice) -> Signs:
        """How the columns compare in the `chosen` of the rows to select, or of those not to."""

    def atoms(self, ground: Ground, part: Mask, partial: bool) -> Iterator[Held]:
        """The comparisons that hold for all rows of `part` and not for all of those not to select; with `partial`
        those that hold for some of the rows to select and for none of the others."""
        everything = slice(None)
        if partial:
            glance = self.signs(ground, False, slice(None, None, max(1, len(ground.must_not) // _GLANCE)))
            avoided = int(np.bitwise_or.reduce(glance, initial=0))
            usable = [(text, bits) for text, bits in _OPERATORS.items() if not bits & avoided]
            wanted = self.signs(ground, True, everything) if usable else np.zeros(0, dtype=np.uint8)
            present = int(np.bitwise_or.reduce(wanted, initial=0))
            usable = [(text, bits) for text, bits in usable if bits & present and _needed(text, bits, present)]
        else:
            wanted = self.signs(ground, True, everything)
            present = int(np.bitwise_or.reduce(wanted[part], initial=0))
            usable = [(t, bits) for t, bits in _OPERATORS.items() if not present & ~bits and _needed(t, bits, present)]
        if not usable:
            return
        others = self.signs(ground, False, everything)
        for text, bits in usable:
            refused = others & bits == 0
            if refused.all() if partial else refused.any():
                atom = make_atom(op(self.left.term, text, self.right.term), self.paths)
                yield Held((atom,), wanted & bits > 0, ~refused)


def _needed(text: str, bits: int, present: int) -> bool:
    """Whether no shorter operator accepts the same of what is present."""
    return not any(
        len(shorter) < len(text) and not other & ~bits and present & bits == present & other
        for shorter, other in _OPERATORS.items()
    )


@dataclass(frozen=True, eq=False)
class _Ordered(Couple):
    a: Floats
    b: Floats

    def signs(self, ground: Ground, must: bool, chosen: slice) -> Signs:
        a, b = ground.numbers(self.a, must)[chosen], ground.numbers(self.b, must)[chosen]
        with np.errstate(invalid="ignore"):
            signs: Signs = (a < b).view(np.uint8) | (a == b).view(np.uint8) << 1 | (a > b).view(np.uint8) << 2
        if self.nullable:
            signs |= _nulls(np.isnan(a), np.isnan(b))
        return signs


@dataclass(frozen=True, eq=False)
class _Unordered(Couple):
    """`moved` gives for every value of the right column, and then for NULL, the code that it has on the left."""

    moved: Codes

    def signs(self, ground: Ground, must: bool, chosen: slice) -> Signs:
        mine, theirs = ground.sight(self.left), ground.sight(self.right)
        left = (mine.must if must else mine.must_not)[chosen]
        right = self.moved[(theirs.must if must else theirs.must_not)[chosen]]
        signs = np.where(left == right, np.uint8(_EQUAL), np.uint8(_LESS | _MORE))
        if self.nullable:
            nulls = _nulls(left < 0, right == -1)
            signs[nulls > 0] = nulls[nulls > 0]
        return signs


def _nulls(left: Mask, right: Mask) -> Signs:
    nulls: Signs = (left & right).view(np.uint8) * np.uint8(_BOTH_NULL)
    return nulls | (left ^ right).view(np.uint8) * np.uint8(_ONE_NULL)


@dataclass(frozen=True, eq=False)
class Numeric:
    """A column of numbers or times; NaN for NULL.  Only those of one family compare."""

    feature: Feature
    family: str
    numbers: Floats

    @property
    def amount(self) -> bool:
        """Whether it looks like an amount and not like a reference."""
        return self.feature.base not in INTEGERS or not (self.feature.column or "").endswith("id")


def numeric(feature: Feature) -> Numeric | None:
    """None for other types."""
    scale = feature.scale
    if feature.base in NUMBERS and isinstance(scale, NumberScale):
        keys = [float(key) for key in scale.keys]
        family = "number"
    elif feature.base in TIMES and isinstance(scale, TimeScale):
        keys = [float(_microseconds(key)) for key in scale.keys]
        family = "zoned" if feature.base == "timestamp with time zone" else "time"
    else:
        return None
    return Numeric(feature, family, np.array([*keys, _NAN])[feature.coded.codes])


def _microseconds(moment: object) -> int:
    assert isinstance(moment, datetime.datetime)
    return (moment - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)


def couples(features: list[Feature]) -> list[Couple]:
    """Own columns among themselves and with those of direct parents."""
    plain = [feature for feature in features if feature.column is not None and len(feature.path) <= 1]
    ordered = [known for feature in plain if (known := numeric(feature)) is not None]
    found: list[Couple] = []
    for left, right in _couples([n.feature for n in ordered]):
        a, b = ordered[left], ordered[right]
        if a.family == b.family:
            found.append(_Ordered(a.feature, b.feature, a.feature.nullable or b.feature.nullable, a.numbers, b.numbers))
    others = [feature for feature in plain if feature.base in TEXTS or feature.base in ("uuid", "boolean", "inet")]
    places = [{value: code for code, value in enumerate(feature.coded.values)} for feature in others]
    for left, right in _couples(others):
        one, two = others[left], others[right]
        if one.base != two.base and not (one.base in TEXTS and two.base in TEXTS):
            continue
        if one.base != "boolean" and places[left].keys().isdisjoint(two.coded.values):
            continue
        moved = np.array([places[left].get(value, -2) for value in two.coded.values] + [-1], dtype=np.int32)
        found.append(_Unordered(one, two, one.nullable or two.nullable, moved))
    return found


def _couples(features: list[Feature]) -> Iterator[tuple[int, int]]:
    own = [place for place, feature in enumerate(features) if not feature.path][:_MAX_OWN]
    other = [place for place, feature in enumerate(features) if feature.path][:_MAX_OTHER]
    yield from combinations(own, 2)
    yield from ((left, right) for left in own for right in other)


def distances(features: list[Feature]) -> Iterator[Feature]:
    """The difference of two columns of one row, own or of a direct parent, as a feature of its own."""
    rows: dict[Path, list[Feature]] = {}
    for feature in features:
        if feature.column is not None and len(feature.path) <= 1:
            rows.setdefault(feature.path, []).append(feature)
    for path, columns in rows.items():
        yield from _distances(columns, _MAX_FURTHER if path else _MAX_DISTANCES)


def _distances(own: list[Feature], most: int) -> Iterator[Feature]:
    amounts = [found for feature in own if (found := numeric(feature)) is not None and found.amount]
    made = 0
    for left, right in combinations(amounts, 2):
        if left.family != right.family or (left.feature.base == "date") != (right.feature.base == "date"):
            continue
        if left.family == "number" and made >= most:
            continue
        known = ~np.isnan(left.numbers) & ~np.isnan(right.numbers)
        if not known.any():
            continue
        made += 1
        if np.median(left.numbers[known]) < np.median(right.numbers[known]):
            left, right = right, left
        yield _distance(left, right, known)


def _distance(left: Numeric, right: Numeric, known: Mask) -> Feature:
    difference = left.numbers - right.numbers
    if left.family == "number":
        base, rounded = "numeric", np.round(difference[known], 6)
    else:
        dates = left.feature.base == "date"
        base = "integer" if dates else MICROSECONDS
        rounded = np.rint(difference[known] / 86_400e6) if dates else difference[known]
    values, codes = np.unique(rounded, return_inverse=True)
    texts = tuple(repr(value).removesuffix(".0") if value % 1 else str(int(value)) for value in values.tolist())
    all_codes = np.full(len(known), -1, dtype=np.int32)
    all_codes[known] = codes
    term = op(left.feature.term, "-", right.feature.term)
    return Feature(term, left.feature.path, base, Coded(all_codes, texts))

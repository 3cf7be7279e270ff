"""Conditions on two columns at once: equal, less, and how far apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from emit.term import Term, op
from encoder.frame import Coded
from encoder.selection.features import Feature
from encoder.selection.model import Mask, Path
from encoder.selection.scales import INTEGERS, MICROSECONDS, NUMBERS, TEXTS, TIMES, NumberScale, TimeScale

_MAX_OWN = 24
_MAX_OTHER = 72
_MAX_DISTANCES, _MAX_FURTHER = 12, 4
_NAN = float("nan")


@dataclass(frozen=True, eq=False)
class PairAtom:
    term: Term
    paths: frozenset[Path]
    holds: Mask


@dataclass(frozen=True, eq=False)
class _Numeric:
    feature: Feature
    family: str
    numbers: NDArray[np.float64]


def _numeric(feature: Feature) -> _Numeric | None:
    scale = feature.scale
    if feature.base in NUMBERS and isinstance(scale, NumberScale):
        keys = [float(key) for key in scale.keys]
        family = "number"
    elif feature.base in TIMES and isinstance(scale, TimeScale):
        keys = [float(_microseconds(key)) for key in scale.keys]
        family = "zoned" if feature.base == "timestamp with time zone" else "time"
    else:
        return None
    return _Numeric(feature, family, np.array([*keys, _NAN])[feature.coded.codes])


def _microseconds(moment: object) -> int:
    import datetime

    assert isinstance(moment, datetime.datetime)
    return (moment - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)


def compared(features: list[Feature]) -> Iterator[PairAtom]:
    """a=b, a<b, … for own columns among themselves and with those of direct parents."""
    plain = [feature for feature in features if feature.column is not None and len(feature.path) <= 1]
    numeric = [found for feature in plain if (found := _numeric(feature)) is not None]
    for left, right in _couples([n.feature for n in numeric]):
        yield from _ordered(numeric[left], numeric[right])
    texts = [feature for feature in plain if feature.base in TEXTS or feature.base in ("uuid", "boolean", "inet")]
    for left, right in _couples(texts):
        yield from _equal(texts[left], texts[right])


def _couples(features: list[Feature]) -> Iterator[tuple[int, int]]:
    own = [place for place, feature in enumerate(features) if not feature.path][:_MAX_OWN]
    other = [place for place, feature in enumerate(features) if feature.path][:_MAX_OTHER]
    yield from combinations(own, 2)
    yield from ((left, right) for left in own for right in other)


def _ordered(left: _Numeric, right: _Numeric) -> Iterator[PairAtom]:
    if left.family != right.family:
        return
    a, b = left.numbers, right.numbers
    with np.errstate(invalid="ignore"):
        less, equal = a < b, a == b
        more = a > b
    paths = left.feature.paths | right.feature.paths
    for operator, holds in (("<", less), (">", more), ("=", equal)):
        if holds.any():
            yield PairAtom(op(left.feature.term, operator, right.feature.term), paths, holds)
    if equal.any():
        for operator, holds in (("<>", less | more), ("<=", less | equal), (">=", more | equal)):
            if holds.any():
                yield PairAtom(op(left.feature.term, operator, right.feature.term), paths, holds)


def _equal(left: Feature, right: Feature) -> Iterator[PairAtom]:
    if left.base != right.base and not (left.base in TEXTS and right.base in TEXTS):
        return
    place = {value: code for code, value in enumerate(left.coded.values)}
    if left.base != "boolean" and place.keys().isdisjoint(right.coded.values):
        return
    table = np.array([place.get(value, -2) for value in right.coded.values] + [-1], dtype=np.int32)
    other = table[right.coded.codes]
    known = (left.coded.codes >= 0) & (right.coded.codes >= 0)
    equal = left.coded.codes == other
    paths = left.paths | right.paths
    for operator, holds in (("=", equal & known), ("<>", ~equal & known)):
        if holds.any():
            yield PairAtom(op(left.term, operator, right.term), paths, holds)
    if not known.all():
        for words, holds in (
            ("IS DISTINCT FROM", ~equal),
            ("IS NOT DISTINCT FROM", equal),
        ):
            if holds.any():
                yield PairAtom(op(left.term, words, right.term), paths, holds)


def distances(features: list[Feature]) -> Iterator[Feature]:
    """The difference of two columns of one row, own or of a direct parent, as a feature of its own."""
    rows: dict[Path, list[Feature]] = {}
    for feature in features:
        if feature.column is not None and len(feature.path) <= 1:
            rows.setdefault(feature.path, []).append(feature)
    for path, columns in rows.items():
        yield from _distances(columns, _MAX_FURTHER if path else _MAX_DISTANCES)


def _distances(own: list[Feature], most: int) -> Iterator[Feature]:
    numeric = [found for feature in own if (found := _numeric(feature)) is not None]
    numeric = [n for n in numeric if n.family != "number" or n.feature.base not in INTEGERS or _counts(n)]
    made = 0
    for left, right in combinations(numeric, 2):
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


def _counts(numeric: _Numeric) -> bool:
    """Whether an integer column looks like an amount and not like a reference."""
    return not (numeric.feature.column or "").endswith("id")


def _distance(left: _Numeric, right: _Numeric, known: Mask) -> Feature:
    difference = left.numbers - right.numbers
    if left.family == "number":
        base, rounded = "numeric", np.round(difference[known], 6)
        spelled = [repr(float(value)).removesuffix(".0") if value % 1 else str(int(value)) for value in rounded]
    else:
        dates = left.feature.base == "date"
        base = "integer" if dates else MICROSECONDS
        rounded = np.rint(difference[known] / 86_400e6) if dates else difference[known]
        spelled = [str(int(value)) for value in rounded]
    values, codes = np.unique(rounded, return_inverse=True)
    texts = [""] * len(values)
    for code, text in zip(codes.tolist(), spelled, strict=True):
        texts[code] = text
    all_codes = np.full(len(known), -1, dtype=np.int32)
    all_codes[known] = codes
    term = op(left.feature.term, "-", right.feature.term)
    return Feature(term, left.feature.path, base, Coded(all_codes, tuple(texts)))

"""Constants inferred from intervals: the shortest number that fits all rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

_MAX_DIGITS = 9
_RELATIVE = 1e-11


def shortest_between(low: float, high: float) -> str | None:
    """The decimal with the fewest digits in [low, high], as plain text; None if it needs too many.

    >>> shortest_between(1.0999, 1.1001)
    '1.1'
    >>> shortest_between(14.2, 37.5)
    '20'
    """
    if not (math.isfinite(low) and math.isfinite(high)) or low > high:
        return None
    for digits in range(-4, _MAX_DIGITS):
        step = Decimal(10) ** -digits
        first = math.ceil(Decimal(low) / step)
        if first * step <= Decimal(high):
            found = first * step
            if found == 0 and not low <= 0 <= high:
                continue
            return format(found.normalize(), "f")
    return None


@dataclass(frozen=True, slots=True)
class Band:
    """What each row's exact value may be, so that rounding gives the wanted one: [low, high], NaN for NULL."""

    low: Floats
    high: Floats

    @classmethod
    def rounding(cls, wanted: Floats, digits: int | None) -> Band:
        """Round half away from zero at `digits` after the point; None: the value itself."""
        slack = np.abs(wanted) * _RELATIVE + 1e-12
        half = slack if digits is None else np.full_like(wanted, 0.5 * 10.0**-digits) + slack
        return cls(wanted - half, wanted + half)

    @classmethod
    def floor(cls, wanted: Floats) -> Band:
        return cls(wanted, wanted + 1 - 1e-9)

    @classmethod
    def ceiling(cls, wanted: Floats) -> Band:
        return cls(wanted - 1 + 1e-9, wanted)

    def holds(self, values: Floats) -> NDArray[np.bool_]:
        """For every line of `values` (… × rows) whether all rows are inside, NULL exactly where NULL is wanted."""
        inside: NDArray[np.bool_] = ((values >= self.low) & (values <= self.high)) | (
            np.isnan(values) & np.isnan(self.low)
        )
        return np.asarray(inside.all(axis=-1))

    def offsets(self, values: Floats) -> tuple[Floats, Floats]:
        """For every line the interval of c with value + c inside in all rows (low > high: none)."""
        return _meet(self.low - values, self.high - values, np.isnan(values) != np.isnan(self.low))

    def factors(self, values: Floats) -> tuple[Floats, Floats]:
        """For every line the interval of k with value * k inside in all rows."""
        with np.errstate(divide="ignore", invalid="ignore"):
            a, b = self.low / values, self.high / values
        zero = values == 0
        low = np.where(zero, -np.inf, np.minimum(a, b))
        high = np.where(zero, np.inf, np.maximum(a, b))
        wrong = (np.isnan(values) != np.isnan(self.low)) | (zero & ((self.low > 0) | (self.high < 0)))
        return _meet(low, high, wrong)


def _meet(low: Floats, high: Floats, wrong: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    least = np.where(np.isnan(low), -np.inf, low).max(axis=-1)
    most = np.where(np.isnan(high), np.inf, high).min(axis=-1)
    bad = wrong.any(axis=-1)
    return np.where(bad, np.inf, least), np.where(bad, -np.inf, most)

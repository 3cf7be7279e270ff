"""Decimal numbers in the fewest characters."""

from __future__ import annotations

import re
from collections.abc import Iterator

_DECIMAL = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?(?:e([+-]?[0-9]+))?")
# Longer numbers are written as they are: the server's limits on digits are far away from this one.
_MAX_DIGITS = 400


def is_negative_zero(text: str) -> bool:
    """Whether `text` is a minus and zeros only: a float that a bare number cannot spell."""
    match = _DECIMAL.fullmatch(text)
    return match is not None and match[1] == "-" and not (match[2] + (match[3] or "")).strip("0")


def shortest(text: str, *, keep_scale: bool) -> str | None:
    """The shortest spelling of the decimal number `text`, or None if it is none (NaN, infinities).

    With `keep_scale` PostgreSQL's numeric, given the spelling, prints exactly `text` again, trailing zeros
    included; otherwise only the value stays.
    """
    match = _DECIMAL.fullmatch(text)
    if match is None or len(text) > _MAX_DIGITS or abs(int(match[4] or 0)) > _MAX_DIGITS:
        return None
    sign, whole, fraction = match[1], match[2], match[3] or ""
    exponent = int(match[4] or 0) - len(fraction)
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return _zero(exponent) if keep_scale else "0"
    if exponent >= 0 or not keep_scale:
        stripped = digits.rstrip("0")
        exponent += len(digits) - len(stripped)
        digits = stripped
    return sign + min(_spellings(digits, exponent), key=len)


def _zero(exponent: int) -> str:
    return "0" if exponent >= 0 else min("." + "0" * -exponent, f"0e{exponent}", key=len)


def _spellings(digits: str, exponent: int) -> Iterator[str]:
    """Spellings of digits * 10**exponent, all with the scale max(0, -exponent) in numeric."""
    if exponent >= 0:
        yield digits + "0" * exponent
        yield f"{digits}e{exponent}"
        return
    point = len(digits) + exponent
    yield f"{digits[:point]}.{digits[point:]}" if point > 0 else "." + "0" * -point + digits
    yield f"{digits}e{exponent}"
    # One digit before the point can save a digit of the exponent: 15e-10, 1.5e-9.
    if len(digits) > 1:
        yield f"{digits[0]}.{digits[1:]}e{exponent + len(digits) - 1}"

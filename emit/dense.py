"""Numbers and bits packed into string constants, as densely as a UTF-8 script can carry them.

A script is text, so a byte of it carries at most seven bits: code points above 127 take more bytes than they
add bits.  Some bytes cost more than themselves: a NUL cannot be written, a quote is doubled (or the constant
written between dollars), a backslash is doubled where the constant is a bytea, and a carriage return must be
escaped, since programs that pass a script on may turn it into a line feed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emit.strings import quote

Bits = NDArray[np.bool_]

BITS = 7
# Digits of the entropy coder: the bytes 1 to 127, less one.
BASE = 127
# As many digits as fit an integer of 64 bits.
_WORD = 9
_MOST_EARLIER = 20
_COSTLY = frozenset((0, 13, ord("'"), ord("\\")))
_SURROGATES = (0xD800, 0xDFFF)
_LAST_CODE_POINT = 0x10FFFF


def bytea(values: Sequence[int]) -> str:
    """A string constant that bytea's input function reads as the bytes `values`, each below 128."""
    table = {0: "\\000", 13: "\\015", ord("\\"): "\\\\"}
    return quote("".join(table.get(value, chr(value)) for value in values))


def alike(values: NDArray[np.int64], modulus: int) -> list[int]:
    """Bytes with the same remainders as `values` that `bytea` writes in fewer bytes, where there are such."""
    choices = [
        next((v for v in range(value, 1 << BITS, modulus) if v not in _COSTLY), value) for value in range(modulus)
    ]
    return [choices[value] for value in values.tolist()]


def bitmap(bits: Bits, free: Bits) -> str:
    """A bytea constant `b` with get_bit(b,i*8/7) = bits[i] for every i that is not free.

    i*8/7 is i plus the number of whole sevens in it, so the highest bit of every byte is passed over.
    What is behind the last bit, and every free bit, has the value that makes the constant shortest.
    """
    places = 1 << np.arange(BITS)
    padding = -len(bits) % BITS
    wild = np.concatenate([free, np.ones(padding, dtype=np.bool_)]).reshape(-1, BITS)
    filled = np.concatenate([bits | free, np.ones(padding, dtype=np.bool_)]).reshape(-1, BITS)
    values = (filled @ places).tolist()
    for row, value in enumerate(values):
        if value in _COSTLY:
            choices = (value ^ int(place) for place in places[wild[row]])
            values[row] = next((choice for choice in choices if choice not in _COSTLY), value)
    return bytea(values)


def code_points(values: Sequence[int] | NDArray[np.int64]) -> str | None:
    """A string constant whose characters have these code points; None if one of them is none."""
    numbers = np.asarray(values, dtype=np.int64)
    if not are_code_points(numbers):
        return None
    return quote("".join(map(chr, numbers.tolist())))


def are_code_points(numbers: NDArray[np.int64]) -> bool:
    """Whether PostgreSQL's chr() has a character for each of them."""
    surrogates = (numbers >= _SURROGATES[0]) & (numbers <= _SURROGATES[1])
    return not ((numbers <= 0) | (numbers > _LAST_CODE_POINT) | surrogates).any()


def utf8_bytes(values: NDArray[np.int64]) -> int:
    """The bytes of characters with these code points."""
    return int((1 + (values > 0x7F) + (values > 0x7FF) + (values > 0xFFFF)).sum())


@dataclass(frozen=True, slots=True)
class Coded:
    """Bits as digits of an entropy coder.

    A decoder with the state y = `start` does for every bit: with q, r = divmod(y, `total`) the bit is r < `ones`,
    and z is q*ones + r if it is, else y - q*ones - ones; then y is z, or 127 z + the next digit if z < `low`.
    """

    start: int
    low: int
    total: int
    ones: int
    digits: tuple[int, ...]


def entropy_coded(bits: Bits) -> Coded | None:
    """`bits` coded within a percent or so of their entropy if each is one with the same chance.

    Range asymmetric numeral systems (Duda, "Asymmetric numeral systems", 2013) with the digits of base 127 and
    states that fit an integer.  The decoder reads at most one digit a bit, so that chances under 1 in 99 are
    coded as that.  None where all bits are equal.
    """
    fraction = _fraction(int(bits.sum()), len(bits))
    if fraction is None:
        return None
    ones, total = fraction
    zeros = total - ones
    low = 9999 // total * total
    limits = (low // total * BASE * zeros, low // total * BASE * ones)
    state = low
    digits: list[int] = []
    for bit in bits[::-1].tolist():
        if state >= limits[bit]:
            state, digit = divmod(state, BASE)
            digits.append(digit)
        share, least = (ones, 0) if bit else (zeros, ones)
        state = state // share * total + least + state % share
    return Coded(state, low, total, ones, tuple(reversed(digits)))


@dataclass(frozen=True, slots=True)
class Numbered:
    """Bits as the digits, from 1 to `BASE`, of one number y, the lowest digit first.

    Bit after bit, the first of them `earlier` places before the first of those coded, is whether y is a multiple of
    `total`; then y is y / `total` if it is, else y - floor(y / `total`); where y is 1, all bits that follow are zero.
    """

    earlier: int
    total: int
    digits: tuple[int, ...]


def numbered_size(ones: int, count: int) -> tuple[float, int]:
    """The digits that `numbered` needs for so many ones among `count` bits, and the `total` that it takes."""
    chances = sorted({max(2, count // ones + more) for more in (0, 1)})
    return min((_numbered_bits(ones, count, total) / math.log2(BASE), total) for total in chances)


def _numbered_bits(ones: int, count: int, total: int) -> float:
    return ones * math.log2(total) + (count - ones) * math.log2(total / (total - 1))


def numbered(bits: Bits) -> Numbered | None:
    """`bits` with at most half of them ones coded within about a percent of their entropy if each is one with the
    same chance: the uniform asymmetric binary system (Duda, "Asymmetric numeral systems", 2013) for the chance 1 /
    `total`, on a number of any length.  Zeros before the first bit are coded with it as makes the digits cheapest.
    None for no ones.
    """
    ones = int(bits.sum())
    if not ones:
        return None
    total = numbered_size(ones, len(bits))[1]
    number = 1
    for bit in bits[::-1].tolist():
        number = number * total if bit else _before_zero(number, total)
    choices = []
    for earlier in range(_MOST_EARLIER):
        digits = _digits(number)
        cost = len(bytea(digits).encode())
        choices.append((cost, earlier, digits))
        number = _before_zero(number, total)
    _, earlier, digits = min(choices)
    return Numbered(earlier, total, tuple(digits))


def _before_zero(number: int, total: int) -> int:
    """The state from which decoding a zero leads to `number`."""
    return number + (number - 1) // (total - 1)


def _digits(number: int) -> list[int]:
    """The digits of `number` from 1 to `BASE`, the lowest first."""
    # A digit d of this system is d - 1 in the usual one, for a number that is less by that of all ones.
    count, ones = 0, 0
    while ones * BASE + 1 <= number:
        ones = ones * BASE + 1
        count += 1
    number -= ones
    words = []
    for _ in range(0, count, _WORD):
        number, word = divmod(number, BASE**_WORD)
        words.append(word)
    digits = np.array(words, dtype=np.int64)[:, None] // BASE ** np.arange(_WORD) % BASE + 1
    found: list[int] = digits.ravel()[:count].tolist()
    return found


def _fraction(ones: int, count: int) -> tuple[int, int] | None:
    """The share of ones to code for: where a better fraction needs another digit, it must save more than that."""
    if not 0 < ones < count:
        return None
    choices = [
        (part, total) for total in range(2, 100) for part in range(1, total) if min(part, total - part) * BASE >= total
    ]
    return min(choices, key=lambda choice: (_coded_size(ones, count, *choice), choice))


def _coded_size(ones: int, count: int, part: int, total: int) -> float:
    """About the bytes of digits, and of the fraction's numbers in the statement (each stands there four times)."""
    bits = -ones * math.log2(part / total) - (count - ones) * math.log2(1 - part / total)
    return bits / math.log2(BASE) + 4 * (len(str(part)) + len(str(total)))

"""Values of few kinds as small numbers, and strings that pack such numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from emit import dense
from emit.term import Prec, Term, call, op, raw, ref
from encoder.keyset import Numbers, shifted
from encoder.listing import INTEGERS, dictionary, element
from encoder.selection.booleans import measure
from scratch.catalog import Column
from stream.model import Value

# Numbers that stand beside a gap in one character, and words that are worth a dictionary.
_MAX_COUNT = 20_000
_MAX_WORDS = 400
# A base, and how many of its digits fit below 128.
_SHARED = ((3, 4), (4, 3), (5, 3), (8, 2), (11, 2))


@dataclass(frozen=True, slots=True)
class Codes:
    """A number from 0 to `count` - 1 for each value; `back` makes the value of such a number."""

    numbers: Numbers
    count: int
    back: Callable[[Term], Term]

    @property
    def size(self) -> float:
        """About the bytes of all."""
        return measure(self.back(raw("v"))) + len(self.numbers) * float(np.log2(self.count)) / 6


def codes(values: Sequence[Value], olds: Sequence[Value], column: Column, timezone: str | None) -> list[Codes]:
    """Ways to number `values` of `column`, the shortest first; `olds` are the rows' old values of it."""
    return sorted(_ways(values, olds, column, timezone), key=lambda way: way.size)


def _ways(values: Sequence[Value], olds: Sequence[Value], column: Column, timezone: str | None) -> Iterator[Codes]:
    full = [value for value in values if value is not None]
    if len(full) == len(values) and column.base in INTEGERS:
        numbers = np.array([int(value) for value in full], dtype=np.int64)
        yield from _integers(numbers, lambda term: term)
        if all(old is not None for old in olds):
            own = ref((), column.name)
            differences = numbers - np.array([int(old or 0) for old in olds], dtype=np.int64)
            yield from _integers(differences, lambda term: op(own, "+", term))
    if len(full) == len(values) and column.base == "boolean":
        yield Codes(np.array([value == "t" for value in full], dtype=np.int64), 2, lambda term: op(term, ">", raw("0")))
        return
    words = list(dict.fromkeys(values))
    if 1 < len(words) <= _MAX_WORDS and 2 * len(words) <= len(values) and not column.type.endswith("[]"):
        table = dictionary(words, column, timezone)
        places = {value: place for place, value in enumerate(words)}
        numbers = np.array([places[value] for value in values], dtype=np.int64)
        yield Codes(numbers, len(words), lambda term: element(table, shifted(term, 1)))


def _integers(numbers: Numbers, back: Callable[[Term], Term]) -> Iterator[Codes]:
    lowest, highest = int(numbers.min()), int(numbers.max())
    if lowest < highest < lowest + _MAX_COUNT:
        # Few numbers more may spare the shift.
        base = 0 if 0 <= lowest <= (highest - lowest) // 10 else lowest
        yield Codes(numbers - base, highest - base + 1, lambda term: back(shifted(term, base)))


def packed(way: Codes, first: int, place: Term) -> Iterator[Term]:
    """The value of row number `place`, an integer; the rows are numbered from `first` on, which is no less than 0.

    As many numbers as fit below 128 share a byte: get_byte('…',n/3)/(5^(n%3))::int%5, get_byte('…',n/3)>>n%3*2&3.
    """
    for base, each in _SHARED:
        if base < way.count:
            continue
        skipped, before = divmod(first, each)
        numbers = np.zeros(-(-(before + len(way.numbers)) // each) * each, dtype=np.int64)
        numbers[before : before + len(way.numbers)] = way.numbers
        words = (numbers.reshape(-1, each) * base ** np.arange(each)).sum(axis=1)
        shown = raw(dense.bytea(dense.alike(words, base**each)))
        byte = call("get_byte", shown, shifted(op(place, "/", raw(str(each))), -skipped))
        yield way.back(_digit(byte, base, op(place, "%", raw(str(each))), each))


def _digit(byte: Term, base: int, rest: Term, each: int) -> Term:
    """Digit number `rest` of `byte`."""
    width = base.bit_length() - 1
    if base == 1 << width:
        moved = op(byte, ">>", rest if width == 1 else op(rest, "*", raw(str(width))))
        return op(moved, "&", raw(str(base - 1)))
    if each == 2:
        divisor = shifted(op(rest, "*", raw(str(base - 1))), 1)
    else:
        divisor = Term(("(", *op(raw(str(base)), "^", rest).parts, ")", "::", "int"), Prec.CAST)
    return op(op(byte, "/", divisor), "%", raw(str(base)))


def bits(way: Codes, first: int, place: Term) -> Iterator[Term]:
    """The same for numbers that are 0 and 1, by get_bit."""
    if way.count > 2:
        return
    skipped, before = divmod(first, dense.BITS)
    shown = np.zeros(before + len(way.numbers), dtype=np.bool_)
    shown[before:] = way.numbers == 1
    bit = op(op(place, "*", raw("8")), "/", raw("7::int8", Prec.CAST))
    text = dense.bitmap(shown, np.arange(len(shown)) < before)
    yield way.back(call("get_bit", raw(text), shifted(bit, -8 * skipped)))

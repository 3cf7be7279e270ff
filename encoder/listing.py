"""Lists of values, one for each row, as arrays of few bytes and the way back from an element to the value.

Values without a rule are listed in the type of their column, as text, or as single characters; before that they
may be made shorter: few distinct values by their place in a dictionary, texts by what is between a common
beginning and end, numbers and texts by what they add to the row's old value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from emit import dense
from emit.literal import literal, quote
from emit.term import Prec, Term, call, cast, op, raw, ref
from encoder.keyset import Numbers, shifted
from encoder.selection.booleans import measure
from scratch.catalog import Column
from stream.model import Value

Back = Callable[[Term], Term]

INTEGERS = frozenset({"smallint", "integer", "bigint"})
TEXTS = frozenset({"text", "character varying"})
# Types whose input is worth a common beginning: their texts are long and much alike.
_TEMPLATES = TEXTS | {"date", "timestamp with time zone", "timestamp without time zone", "uuid", "inet"}
_SEPARATORS = ",;|/ ~^_-:.ab"
_MAX_WORDS = 90
# Quotes and operators cost more than a template of fewer characters can save in a few rows.
_LEAST_TEMPLATE = 3
# What a quoted element of an array escapes.
_ESCAPED = re.compile(r'["\\]')
_DIGITS = "123456789"


@dataclass(frozen=True, slots=True)
class Listing:
    """`array` is an SQL array of one element a row; `back` makes the value of an element.

    Where the elements are parts of one string, `parts` has the constants of that string and of what parts them
    (None: nothing, each is one character).  `initial` if `back` reads no more of an element than its first
    character.
    """

    array: Term
    back: Back
    parts: tuple[str, str | None] | None = None
    initial: bool = False

    @property
    def size(self) -> int:
        return measure(self.array) + measure(self.back(raw("v")))


def listings(values: Sequence[Value], olds: Sequence[Value], column: Column, timezone: str | None) -> list[Listing]:
    """Ways to list `values` of `column`, the shortest first; `olds` are the rows' old values of it."""
    found = [*_direct(values, column, timezone), *_by_dictionary(values, column, timezone)]
    full = [value for value in values if value is not None]
    if len(full) == len(values):
        if column.base in _TEMPLATES:
            found += _by_template(full, column)
        if column.base in TEXTS and all(old and value.startswith(old) for old, value in zip(olds, full, strict=True)):
            tails = [value[len(old or "") :] for old, value in zip(olds, full, strict=True)]
            found += [_behind(listing, ref((), column.name), "||") for listing in _texts(tails)]
        if column.base in INTEGERS and all(old is not None for old in olds):
            found += _by_difference(full, olds, column, timezone)
    return sorted(found, key=lambda listing: listing.size)


def keys(values: Sequence[Value], column: Column, timezone: str | None) -> Listing:
    """The shortest way to list keys so that the way back fails for none."""
    return min(_direct(values, column, timezone), key=lambda listing: listing.size)


def dictionary(words: Sequence[Value], column: Column, timezone: str | None) -> Term:
    """An array of values of `column`, which is no array itself."""
    return next(_direct(words, column, timezone)).array


def _direct(values: Sequence[Value], column: Column, timezone: str | None) -> Iterator[Listing]:
    if not column.type.endswith("[]"):
        base = "text" if column.base in TEXTS else column.type if column.base in ("bit", "character") else column.base
        yield Listing(_array(values, base, timezone), _same)
    full = [value for value in values if value is not None]
    if column.base not in TEXTS:
        yield Listing(_array(values, "text", timezone), lambda term: cast(term, type_name(column)))
    if len(full) < len(values):
        return
    if column.base in TEXTS:
        yield from _split(full, _same)
    elif column.base in INTEGERS:
        numbers = np.array([int(value) for value in full], dtype=np.int64)
        yield from _numbers(numbers)
    else:
        yield from _split(full, lambda term: cast(term, type_name(column)))


def _same(term: Term) -> Term:
    return term


def type_name(column: Column) -> str:
    """The shortest name of the column's type in a cast."""
    shown = column.type if column.base in ("bit", "character") else column.base
    return literal(None, shown, context="bare").removeprefix("NULL::") if column.base not in TEXTS else "text"


def _array(values: Sequence[Value], base: str, timezone: str | None) -> Term:
    elements = ",".join("NULL" if value is None else '"' + _ESCAPED.sub(r"\\\g<0>", value) + '"' for value in values)
    text = literal("{" + elements + "}", base + "[]", context="bare", timezone=timezone)
    return raw(text, Prec.CAST)


def _split(texts: Sequence[str], back: Back) -> Iterator[Listing]:
    """One string of all `texts` with a separator that none of them has, or none if each is one character."""
    if all(len(text) == 1 for text in texts):
        yield _of_parts("".join(texts), None, back)
    separator = next((mark for mark in _SEPARATORS if not any(mark in text for text in texts)), None)
    if separator is not None and (len(texts) > 1 or texts[0]):
        yield _of_parts(separator.join(texts), separator, back)


def _of_parts(whole: str, separator: str | None, back: Back, initial: bool = False) -> Listing:
    mark = None if separator is None else quote(separator)
    array = call("string_to_array", raw(quote(whole)), raw(mark or "null"))
    return Listing(array, back, (quote(whole), mark), initial)


def _numbers(numbers: Numbers) -> Iterator[Listing]:
    """Integers as code points."""
    lowest = int(numbers.min())
    shifts = sorted({0, -(lowest // 100 * 100), *(edge - lowest for edge in (1, 14, 40, 48, 93, 128))})
    ways = [
        _of_parts("".join(map(chr, (numbers + shift).tolist())), None, _from_character(shift), True)
        for shift in shifts
        if dense.are_code_points(numbers + shift)
    ]
    yield from sorted(ways, key=lambda listing: listing.size)[:1]


def _from_character(shift: int) -> Back:
    return lambda term: shifted(call("ascii", term), -shift)


def _texts(texts: Sequence[str]) -> Iterator[Listing]:
    yield Listing(_array(texts, "text", None), _same)
    yield from _split(texts, _same)


def _then(listing: Listing, more: Back) -> Listing:
    """`listing` with `more` done to each element that it gives back."""
    return replace(listing, back=lambda term: more(listing.back(term)))


def _behind(listing: Listing, before: Term, operator: str) -> Listing:
    return _then(listing, lambda term: op(before, operator, term))


def _by_template(texts: Sequence[str], column: Column) -> Iterator[Listing]:
    """Without the common beginning and end."""
    head = _common_beginning(texts)
    rest = [text[len(head) :] for text in texts]
    tail = _common_beginning([text[::-1] for text in rest])[::-1]
    cores = [text[: len(text) - len(tail)] for text in rest]
    if len(head) + len(tail) < _LEAST_TEMPLATE or not any(cores):
        return
    for listing in _texts(cores):
        if head:
            listing = _behind(listing, raw(quote(head)), "||")
        if tail:
            listing = _then(listing, lambda term: op(term, "||", raw(quote(tail))))
        yield listing if column.base in TEXTS else _then(listing, lambda term: cast(term, type_name(column)))


def _common_beginning(texts: Sequence[str]) -> str:
    low, high = min(texts), max(texts)
    differing = (place for place, pair in enumerate(zip(low, high, strict=False)) if pair[0] != pair[1])
    return low[: next(differing, len(low))]


def _by_difference(
    values: Sequence[str], olds: Sequence[Value], column: Column, timezone: str | None
) -> Iterator[Listing]:
    differences = [str(int(value) - int(old or 0)) for value, old in zip(values, olds, strict=True)]
    own = ref((), column.name)
    for listing in (*_direct(differences, column, timezone), *_by_dictionary(differences, column, timezone)):
        yield _behind(listing, own, "+")


def _by_dictionary(values: Sequence[Value], column: Column, timezone: str | None) -> Iterator[Listing]:
    """A character a row: the place of its value among the distinct ones."""
    words = list(dict.fromkeys(values))
    if not 1 < len(words) <= _MAX_WORDS or 2 * len(words) > len(values) or column.type.endswith("[]"):
        return
    few = len(words) <= len(_DIGITS)
    first = ord(_DIGITS[0] if few else "(")
    places = {value: chr(first + place) for place, value in enumerate(words)}
    table = dictionary(words, column, timezone)

    def back(term: Term) -> Term:
        place = cast(term, "int") if few else shifted(call("ascii", term), 1 - first)
        return element(table, place)

    yield _of_parts("".join(places[value] for value in values), None, back, not few)


def element(array: Term, place: Term) -> Term:
    """array[place]"""
    return Term(("(", *array.parts, ")", "[", *place.parts, "]"), Prec.CAST)

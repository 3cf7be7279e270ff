"""Functions from text to text, each with what it does in Python and how SQL spells it.

Python stands in for the server only to propose; where the two differ (case of exotic letters), the proof
on the server drops the proposal.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal

from emit.term import Term, call, cast, raw
from encoder.assignment.problem import quoted

Line = tuple[str | None, ...]

_DELIMITERS = " -_/.@,:;|()#+&\n"
_MAX_CUT = 10
_MAX_REMOVED = 8
_LEAST_MIDDLE = 3
_WORD = re.compile(r"[^\W_]+")
_PUNCTUATION = re.compile(r"[\W_]")
_DECIMAL = re.compile(r"-?\d{1,15}(\.\d{1,15})?")


@dataclass(frozen=True, slots=True)
class TextOp:
    """`cost` is the bytes that it adds."""

    apply: Callable[[str], str | None]
    build: Callable[[Term], Term]
    cost: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A text term with its values, spelled when it is wanted."""

    values: Line
    build: Callable[[], Term]
    cost: int

    def then(self, step: TextOp) -> Piece:
        values = tuple(None if value is None else step.apply(value) for value in self.values)
        return Piece(values, lambda: step.build(self.build()), self.cost + step.cost)


def initcap(text: str) -> str:
    return _WORD.sub(lambda match: match[0][:1].upper() + match[0][1:].lower(), text)


def _function(name: str, apply: Callable[[str], str | None]) -> TextOp:
    return TextOp(apply, lambda term: call(name, term), len(name) + 2)


LOWER = _function("lower", str.lower)
UPPER = _function("upper", str.upper)
INITCAP = _function("initcap", initcap)
CASES = (LOWER, UPPER, INITCAP)
TRIM = _function("trim", lambda text: text.strip(" "))
WHOLE = (
    *CASES,
    TRIM,
    _function("ltrim", lambda text: text.lstrip(" ")),
    _function("rtrim", lambda text: text.rstrip(" ")),
    _function("reverse", lambda text: text[::-1]),
)
HASHES = (
    _function("md5", lambda text: hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()),
    TextOp(
        lambda text: hashlib.sha256(text.encode()).hexdigest(),
        lambda term: call("encode", call("sha256", cast(term, "bytea")), raw("'hex'")),
        29,
    ),
)


def left(length: int) -> TextOp:
    return TextOp(lambda text: text[:length], lambda term: call("left", term, raw(str(length))), 7 + len(str(length)))


def right(length: int) -> TextOp:
    return TextOp(lambda text: text[-length:], lambda term: call("right", term, raw(str(length))), 8 + len(str(length)))


def from_place(place: int) -> TextOp:
    """substr from the character number `place`, counted from 1."""
    return TextOp(
        lambda text: text[place - 1 :], lambda term: call("substr", term, raw(str(place))), 9 + len(str(place))
    )


def slice_of(place: int, length: int) -> TextOp:
    return TextOp(
        lambda text: text[place - 1 : place - 1 + length],
        lambda term: call("substr", term, raw(str(place)), raw(str(length))),
        11 + len(str(place)),
    )


def split(delimiter: str, number: int) -> TextOp:
    """split_part; a negative number counts from the end."""

    def apply(text: str) -> str:
        parts = text.split(delimiter)
        place = number - 1 if number > 0 else len(parts) + number
        return parts[place] if 0 <= place < len(parts) else ""

    def build(term: Term) -> Term:
        return call("split_part", term, quoted(delimiter), raw(str(number)))

    return TextOp(apply, build, 17 + len(str(number)) + len(delimiter))


def replacing(old: str, new: str) -> TextOp:
    return TextOp(
        lambda text: text.replace(old, new),
        lambda term: call("replace", term, quoted(old), quoted(new)),
        15 + len(old) + len(new),
    )


def cuts(values: Line, wanted: Sequence[str]) -> Iterator[TextOp]:
    """Cuts that could matter: short ones, those that the wanted texts suggest, and splits at delimiters."""
    present = [value for value in values if value]
    if not present:
        return
    longest = max(map(len, present))
    lengths = set(range(1, min(_MAX_CUT, longest) + 1)) | {len(text) for text in wanted if len(text) < longest}
    paired = [(value, text) for value, text in zip(values, wanted, strict=False) if value is not None]
    lengths |= {_common_prefix(a, b) for a, b in paired[:3]} | {_common_prefix(a[::-1], b[::-1]) for a, b in paired[:3]}
    drops = {len(a) - length for a, _ in paired[:2] for length in lengths}
    for length in sorted(lengths - {0}):
        yield left(length)
        yield right(length)
    for drop in sorted(drop for drop in drops | set(range(1, _MAX_CUT)) if 0 < drop < longest):
        yield left(-drop)
        yield from_place(drop + 1)
    for place in range(2, min(longest, 8)):
        for length in range(1, min(longest - place, 8) + 1):
            yield slice_of(place, length)
    for delimiter in _DELIMITERS:
        most = max(value.count(delimiter) for value in present)
        if most:
            for number in (*range(1, min(most, 4) + 2), -1, -2):
                yield split(delimiter, number)
    if any(", " in value for value in present):
        yield split(", ", 1)
        yield split(", ", 2)
    yield from _middles(paired)


def _middles(pairs: Sequence[tuple[str, str]]) -> Iterator[TextOp]:
    """A constant number of characters dropped at either end, where what is left is the wanted text but for case and
    punctuation."""
    found: set[tuple[int, int]] | None = None
    for value, text in pairs:
        whole, part = _plain(value), _plain(text)
        places = {m.start() for m in re.finditer(f"(?={re.escape(part)})", whole)} if len(part) >= _LEAST_MIDDLE else ()
        here = {(place, len(whole) - place - len(part)) for place in places}
        found = here if found is None else found & here
        if not found:
            return
    for head, tail in sorted(found or ()):
        if head and tail:
            yield TextOp(
                lambda text, head=head, tail=tail: text[head:-tail],  # type: ignore[misc]
                lambda term, head=head, tail=tail: call(  # type: ignore[misc]
                    "left", call("substr", term, raw(str(head + 1))), raw(str(-tail))
                ),
                18,
            )


def _plain(text: str) -> str:
    return _PUNCTUATION.sub(" ", text.lower())


def rounding(digits: int) -> TextOp:
    """The number that a text spells, with so many digits after the point."""

    def apply(text: str) -> str | None:
        if not _DECIMAL.fullmatch(text):
            return None
        return format(Decimal(text).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP), "f")

    def build(term: Term) -> Term:
        return call("round", cast(term, "numeric"), *((raw(str(digits)),) if digits else ()))

    return TextOp(apply, build, 16 + 2 * (digits > 0))


ROUNDINGS = tuple(rounding(digits) for digits in range(5))


def removals(values: Line, wanted: Sequence[str]) -> Iterator[TextOp]:
    """Every character gone that stands in no wanted text."""
    kept = set().union(*map(set, wanted))
    gone = "".join(sorted({character for value in values for character in value or ""} - kept))
    if len(gone) == 1:
        yield replacing(gone, "")
    elif 1 < len(gone) <= _MAX_REMOVED:
        table = str.maketrans("", "", gone)
        yield TextOp(
            lambda text: text.translate(table),
            lambda term: call("translate", term, quoted(gone), quoted("")),
            17 + len(gone),
        )


def _common_prefix(a: str, b: str) -> int:
    length = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        length += 1
    return length


_DATE_FORMATS = {
    "YYYY": "%Y",
    "MM": "%m",
    "DD": "%d",
    "YY": "%y",
    "HH24": "%H",
    "MI": "%M",
    "SS": "%S",
    "Mon": "%b",
    "FMMonth": "%B",
    "FMDay": "%A",
    "Dy": "%a",
    "IW": "%V",
}


def date_formats(moment: datetime) -> Iterator[tuple[str, str]]:
    """Patterns of to_char and what they give."""
    for pattern, directive in _DATE_FORMATS.items():
        yield pattern, moment.strftime(directive)
    yield "FMMM", str(moment.month)
    yield "FMDD", str(moment.day)
    yield "Q", str((moment.month + 2) // 3)

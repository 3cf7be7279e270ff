"""How one column of the inserted rows follows from another one, or from the row's number."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from emit.literal import quote
from emit.term import Prec, Term, call, cast, op, raw
from encoder.insertion.hashes import hash_term, hashed
from encoder.insertion.slots import Slot
from encoder.insertion.spell import BOOL, INT, NUMBER, TEXT, Speller, class_of, read, short_type
from scratch.catalog import Column
from stream.model import Value

Build = Callable[[Term], Term]
Function = tuple[Callable[[str], str], Build]


@dataclass(frozen=True, slots=True)
class Derived:
    """`build` makes the term from a reference to the base; `cost` is the term's bytes."""

    build: Build
    cost: int


def size_of(term: Term) -> int:
    """The bytes of a term whose references are one letter each."""
    return sum(len(part.encode()) if isinstance(part, str) else 1 for part in term.parts)


def derive(base: Sequence[Value], kind: str, slot: Slot, spell: Speller) -> Derived | None:
    """The shortest known term for `slot` over a base of class `kind`; an empty base is none at all."""
    finders = (_same, _linear, _dates, _choice, _template, _padded, _hashed) if base else (_numbered, _constant)
    found = [build for finder in finders if (build := finder(base, kind, slot, spell)) is not None]
    if not found:
        return None
    letter = Term(("a",))
    return min((Derived(build, size_of(build(letter))) for build in found), key=lambda derived: derived.cost)


def _numbered(base: Sequence[Value], kind: str, slot: Slot, spell: Speller) -> Build | None:
    """row_number()OVER()+k"""
    if class_of(slot.column) != INT or len(slot.values) < 2 or None in slot.values:
        return None
    first = int(slot.values[0] or 0)
    if any(int(value or 0) != first + place for place, value in enumerate(slot.values)):
        return None
    return lambda _: plus(raw("row_number()OVER()"), first - 1)


def _constant(base: Sequence[Value], kind: str, slot: Slot, spell: Speller) -> Build | None:
    if not slot.constant:
        return None
    term = spell.top(slot.values[0], slot.column)
    return lambda _: term


def _same(base: Sequence[Value], kind: str, slot: Slot, spell: Speller) -> Build | None:
    column = slot.column
    if tuple(base) != slot.values:
        return None
    if kind not in (class_of(column), column.base, INT, TEXT):
        return None
    return lambda a: read(a, kind, column)


def plus(term: Term, offset: int) -> Term:
    """term+offset"""
    return op(term, "+" if offset > 0 else "-", raw(str(abs(offset)))) if offset else term


def _linear(base: Sequence[Value], kind: str, slot: Slot, spell: Speller) -> Build | None:
    """a*k+c over integers."""
    if kind != INT or class_of(slot.column) != INT or None in base or None in slot.values:
        return None
    found = _line([int(v or 0) for v in base], [int(v or 0) for v in slot.values])
    return None if found is None else lambda a: _scaled(a, *found)


def _line(xs: list[int], ys: list[int]) -> tuple[int, int] | None:
    """Factor and offset of y over x, where the factor is a whole number other than 0."""
    other = next((i for i in range(len(xs)) if xs[i] != xs[0]), None)
    if other is None:
        return None
    factor, rest = divmod(ys[other] - ys[0], xs[other] - xs[0])
    offset = ys[0] - factor * xs[0]
    if rest or not factor or any(factor * x + offset != y for x, y in zip(xs, ys, strict=True)):
        return None
    return factor, offset


def _scaled(a: Term, factor: int, offset: int) -> Term:
    if factor == -1:
        return op(raw(str(offset)), "-", a)
    return plus(a if factor == 1 else op(a, "*", raw(str(factor))), offset)


def _dates(base: Sequence[Value], kind: str, slot: Slot, spell: Speller) -> Build | None:
    """A date or timestamp that moves by a fixed step per unit of an integer base."""
    column = slot.column
    if kind != INT or None in base or None in slot.values:
        return None
    seconds = [_seconds(value or "", column.base) for value in slot.values]
    if any(second is None for second in seconds):
        return None
    numbers = [int(v or 0) for v in base]
    unit = 86_400_000_000 if column.base == "date" else 1
    found = _line(numbers, [(second or 0) // unit for second in seconds])
    if found is None or not -_EPOCH <= unit * found[1] < _LAST:
        return None
    factor, offset = found
    sign = "+" if factor > 0 else "-"
    start = spell.typed(_moment(offset * unit, column.base), column)
    if column.base == "date":
        return lambda a: op(start, sign, a if abs(factor) == 1 else op(a, "*", raw(str(abs(factor)))))
    step = raw(f"{quote(_interval(abs(factor)))}::interval", Prec.CAST)
    return lambda a: op(start, sign, op(a, "*", step))


_EPOCH = 62_135_596_800_000_000  # microseconds from year 1 to 1970
_LAST = 253_402_300_800_000_000  # and from 1970 to the end of year 9999


def _seconds(text: str, base: str) -> int | None:
    """Microseconds from 1970 of a date or timestamp, None for anything else."""
    if base not in ("date", "timestamp without time zone", "timestamp with time zone"):
        return None
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    moment = moment.replace(tzinfo=moment.tzinfo or datetime.UTC)
    return (moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(microseconds=1)


def _moment(microseconds: int, base: str) -> str:
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=microseconds)
    if base == "date":
        return moment.date().isoformat()
    text = moment.isoformat(" ")
    text = text.rstrip("0") if "." in text else text
    return text + "+00" if base == "timestamp with time zone" else text


def _interval(microseconds: int) -> str:
    for unit, size in (("d", 86_400_000_000), ("h", 3_600_000_000), ("m", 60_000_000)):
        if microseconds % size == 0:
            return f"{microseconds // size}{unit}"
    return f"{microseconds / 1_000_000:.6f}".rstrip("0").rstrip(".") + "s"


def _choice(base: Sequence[Value], kind: str, slot: Slot, spell: Speller) -> Build | None:
    """A column of two values by a comparison of the base with a constant."""
    distinct = sorted(set(slot.values), key=lambda value: (value is None, value or ""))
    if len(distinct) != 2 or None in base:
        return None
    found: list[Build] = []
    for high, low in (distinct, distinct[::-1]):
        test = _test([b or "" for b in base], kind, [value == high for value in slot.values])
        if test is not None and high is not None:
            found += _chosen(_comparison(*test), high, low, slot.column, spell)
    letter = raw("a")
    return min(found, key=lambda build: size_of(build(letter)), default=None)


def _chosen(condition: Build, high: str, low: Value, column: Column, spell: Speller) -> list[Build]:
    """`high` where the condition holds, else `low`."""
    if column.base == "boolean" and low is not None:
        return [condition] if high == "t" else []
    if class_of(column) == INT and (high, low) == ("1", "0"):
        return [lambda a: cast(condition(a), "int")]
    # One typed literal gives CASE its type, which would be text otherwise.
    quoted = any(value is not None and str(spell.top(value, column).parts[0])[0] == "'" for value in (high, low))
    yes = spell.typed(high, column) if quoted and column.kind != "S" else spell.top(high, column)
    other = () if low is None else ("ELSE", *spell.top(low, column).parts)
    return [lambda a: Term(("CASE WHEN", *condition(a).parts, "THEN", *yes.parts, *other, "END"))]


def _comparison(sign: str, text: str) -> Build:
    return lambda a: op(a, sign, raw(text))


def _test(base: Sequence[str], kind: str, wanted: Sequence[bool]) -> tuple[str, str] | None:
    """A comparison with a constant that holds exactly where `wanted`."""
    inside = {value for value, yes in zip(base, wanted, strict=True) if yes}
    outside = {value for value, yes in zip(base, wanted, strict=True) if not yes}
    if inside & outside or kind == BOOL:
        return None
    spelled = str if kind in (INT, NUMBER) else quote
    found: list[tuple[str, str]] = []
    if len(inside) == 1:
        found.append(("=", spelled(min(inside))))
    if len(outside) == 1:
        found.append(("<>", spelled(min(outside))))
    if kind == INT:
        above, below = sorted(map(int, inside)), sorted(map(int, outside))
        if above[0] > below[-1]:
            found.append((">", str(below[-1])))
        if above[-1] < below[0]:
            found.append(("<", str(below[0])))
    return min(found, key=lambda pair: len(pair[0] + pair[1]), default=None)


# Zeros before the longest number.
_MAX_ZEROS = 7

# Functions of a text that slugs, codes and file names are made with; Python's and PostgreSQL's agree on ASCII.
_FUNCTIONS: tuple[Function, ...] = (
    (lambda text: text, lambda a: a),
    (str.lower, lambda a: call("lower", a)),
    (str.upper, lambda a: call("upper", a)),
    (lambda text: text.lower().replace(" ", "-"), lambda a: _replace(call("lower", a), " ", "-")),
    (lambda text: text.lower().replace(" ", "_"), lambda a: _replace(call("lower", a), " ", "_")),
    (lambda text: text.replace(" ", "-"), lambda a: _replace(a, " ", "-")),
    (lambda text: text.replace("-", " "), lambda a: _replace(a, "-", " ")),
    (lambda text: text.replace("_", " "), lambda a: _replace(a, "_", " ")),
    (lambda text: text.replace("-", " ").title(), lambda a: call("initcap", _replace(a, "-", " "))),
    (str.title, lambda a: call("initcap", a)),
    (lambda text: text[:1], lambda a: call("left", a, raw("1"))),
    (lambda text: text.lower()[:1], lambda a: call("lower", call("left", a, raw("1")))),
)


def _replace(a: Term, old: str, new: str) -> Term:
    return call("replace", a, raw(quote(old)), raw(quote(new)))


def _template(base: Sequence[Value], kind: str, slot: Slot, spell: Speller) -> Build | None:
    """Constant texts around a function of the base."""
    column = slot.column
    if kind not in (INT, TEXT) or class_of(column) != TEXT or None in base or None in slot.values:
        return None
    texts = [value or "" for value in base]
    wanted = [value or "" for value in slot.values]
    for apply, build in _FUNCTIONS if kind == TEXT else _FUNCTIONS[:1]:
        parts = [apply(text) for text in texts]
        pieces = _pieces(parts, wanted)
        if pieces is not None:
            return _joined(pieces, build, column.base if column.kind != "S" else None)
    return None


def _padded(base: Sequence[Value], kind: str, slot: Slot, spell: Speller) -> Build | None:
    """Constant texts around a number that is filled up with zeros."""
    column = slot.column
    if kind != INT or class_of(column) != TEXT or None in base or None in slot.values:
        return None
    texts = [value or "" for value in base]
    wanted = [value or "" for value in slot.values]
    least, most = min(map(len, texts)), max(map(len, texts))
    if any(not text.isdecimal() for text in texts):
        return None
    for width in range(max(2, most), most + _MAX_ZEROS):
        pieces = _pieces([text.rjust(width, "0") for text in texts], wanted) if width > least else None
        if pieces is not None:
            return _joined(pieces, _filled(width, width - least), column.base if column.kind != "S" else None)
    return None


def _filled(width: int, zeros: int) -> Build:
    return lambda a: call("right", op(raw(quote("0" * zeros)), "||", a), raw(str(width)))


def _hashed(base: Sequence[Value], kind: str, slot: Slot, spell: Speller) -> Build | None:
    found = hashed(base, kind, slot, spell.words) if kind in (INT, TEXT) else None
    return None if found is None else lambda a: hash_term(a, *found, slot)


def _pieces(parts: Sequence[str], wanted: Sequence[str]) -> list[str] | None:
    """The constant texts between the occurrences of the parts."""
    if not parts[0] or not all(part and part in text for part, text in zip(parts, wanted, strict=True)):
        return None
    pieces = wanted[0].split(parts[0])
    if all(part.join(pieces) == text for part, text in zip(parts, wanted, strict=True)):
        return pieces
    # A short part may occur in a constant by chance: try each place of it alone.
    first, text = parts[0], wanted[0]
    at = text.find(first)
    while at >= 0:
        ends = [text[:at], text[at + len(first) :]]
        if all(part.join(ends) == other for part, other in zip(parts, wanted, strict=True)):
            return ends
        at = text.find(first, at + 1)
    return None


def _joined(pieces: Sequence[str], build: Build, base: str | None) -> Build:
    def term(a: Term) -> Term:
        found: Term | None = None
        for place, piece in enumerate(pieces):
            for part in ((build(a),) if place else ()) + ((raw(quote(piece)),) if piece else ()):
                found = part if found is None else op(found, "||", part)
        assert found is not None
        return found if base is None else cast(found, short_type(base))

    return term

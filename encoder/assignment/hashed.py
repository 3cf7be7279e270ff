"""Hashes of what is put together, perhaps cut and between constants: 'a.'||left(md5(id||'-'||n),8).

A hash tells nothing of its argument, so that short concatenations are simply tried, on one row first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from emit.term import Term, call, cast, op, raw
from encoder.assignment.derived import json_fields
from encoder.assignment.problem import STRINGS, Input, Problem, quoted
from encoder.assignment.text_concat import common_prefix
from stream.model import Value

_SEPARATORS = ("", "-", ":", "_", "/", " ", ".", ",", "|", "#")
_SHOWN = STRINGS | {"smallint", "integer", "bigint", "numeric", "uuid"}
# Types that are read from the digits alone: what stands between these when they are shown.
_PUNCTUATED = {"uuid": "-", "macaddr": ":"}
_LENGTH, _LEAST = 32, 6
_HEX = frozenset("0123456789abcdef")
# So many different values hardly begin alike by chance.
_MANY = 4
# So many columns are put together by two, and so many by three.
_PAIRED, _TRIPLED = 40, 8
# Before or behind a column stand words of the table's and columns' names, or so short texts of these characters.
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789-:_/."
_MAX_WORDS = 40


@dataclass(frozen=True, slots=True)
class _Frame:
    """The wanted texts as `before`, so many `digits` of a hash, and `behind`."""

    before: str
    digits: tuple[str, ...]
    behind: str

    @property
    def length(self) -> int:
        return len(self.digits[0])

    def build(self, end: str, argument: Term, base: str) -> Term:
        """The digits at one end of the md5 of a text, between the constants, as a text or what is read from one."""
        term = call("md5", argument)
        if self.length < _LENGTH:
            term = call(end, term, raw(str(self.length)))
        if self.before:
            term = op(quoted(self.before), "||", term)
        if self.behind:
            term = op(term, "||", quoted(self.behind))
        return cast(term, base) if base in _PUNCTUATED else term


@dataclass(frozen=True, slots=True)
class _Argument:
    """Columns with one separator between, or a column between constants."""

    columns: tuple[Input, ...]
    separator: str = ""
    before: str = ""
    behind: str = ""

    def text(self, place: int) -> str:
        return self.before + self.separator.join(str(item.texts[place]) for item in self.columns) + self.behind

    @property
    def term(self) -> Term:
        if self.before or self.behind:
            return _between(self.columns[0], self.before, self.behind)
        if len(self.columns) > 1:
            return _joined(self.columns, self.separator)
        only = self.columns[0]
        return only.term if only.is_text else op(only.term, "||", quoted(""))


def hashed(problem: Problem) -> Iterator[Term]:
    """md5 of a column, of two or three with one separator between, or of one and a short constant; whole or cut, and
    between constants."""
    if problem.base not in STRINGS | _PUNCTUATED.keys() or None in problem.new:
        return
    mark = _PUNCTUATED.get(problem.base, "")
    wanted = [text.replace(mark, "") if mark else text for text in problem.new if text is not None]
    frames = list(_frames(wanted))
    if not frames:
        return
    for argument in _arguments(problem):
        # The first row's hash refutes nearly all.
        digits = _md5(argument.text(0))
        for frame in frames:
            if frame.digits[0] not in (digits[: frame.length], digits[-frame.length :]):
                continue
            yield from (frame.build(end, argument.term, problem.base) for end in _ends(argument, frame))


def _frames(wanted: Sequence[str]) -> Iterator[_Frame]:
    """The ways to read the texts as digits of hashes between constants."""
    if len(set(wanted)) < 2:
        return
    head = len(common_prefix(wanted))
    tail = min(len(common_prefix([text[::-1] for text in wanted])), min(map(len, wanted)) - head)
    chance = 1 if len(set(wanted)) < _MANY else 0
    for start in sorted({0, *range(max(0, head - chance), head + 1)}, reverse=True):
        for rest in sorted({0, *range(max(0, tail - chance), tail + 1)}, reverse=True):
            digits = tuple(text[start : len(text) - rest] for text in wanted)
            lengths = {*map(len, digits)}
            if len(lengths) == 1 and _LEAST <= min(lengths) <= _LENGTH and _HEX.issuperset("".join(digits)):
                yield _Frame(wanted[0][:start], digits, wanted[0][len(wanted[0]) - rest :])


def _arguments(problem: Problem) -> Iterator[_Argument]:
    """What may have been hashed, the likeliest first."""
    lines: dict[tuple[Value, ...], Input] = {}
    for item in sorted(
        (*problem.inputs, *json_fields(problem)), key=lambda item: (not (item.own and item.is_key), item.cost)
    ):
        if item.base in _SHOWN and None not in item.texts:
            lines.setdefault(item.texts, item)
    # What all rows share is put together with others last.
    inputs = sorted(lines.values(), key=lambda item: len(set(item.texts)) == 1)
    yield from (_Argument((item,)) for item in inputs)
    yield from (_Argument((folded,)) for item in inputs if item.is_text for folded in _folded(item))
    for count, most in ((2, _PAIRED), (3, _TRIPLED)):
        for chosen in permutations(inputs[:most], count):
            yield from (_Argument(chosen, separator) for separator in _SEPARATORS)
    for before, behind in _affixes(problem):
        yield from (_Argument((item,), "", before, behind) for item in inputs[:_TRIPLED])


def _folded(item: Input) -> Iterator[Input]:
    """A text in lower and in upper case, where that is another: addresses are hashed so."""
    for name, fold in (("lower", str.lower), ("upper", str.upper)):
        texts = tuple(fold(text or "") for text in item.texts)
        if texts != item.texts:
            yield replace(item, term=call(name, item.term), texts=texts)


def _ends(argument: _Argument, frame: _Frame) -> Iterator[str]:
    """The ends of the hashes that are what is wanted in all rows; where one is not, no other is made."""
    ends = {"left", "right"} if frame.length < _LENGTH else {"left"}
    for place, wanted in enumerate(frame.digits):
        digits = _md5(argument.text(place))
        ends = {end for end in ends if (digits.startswith if end == "left" else digits.endswith)(wanted)}
        if not ends:
            return
    yield from sorted(ends)


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _affixes(problem: Problem) -> Iterator[tuple[str, str]]:
    names = [problem.table.name.name, problem.column.name, *(column.name for column in problem.table.columns)]
    words = dict.fromkeys(word for name in names for word in (name, *name.split("_")))
    short = [*_ALPHABET, *(a + b for a in _ALPHABET for b in _ALPHABET)]
    long = [word + separator for word in [*words][:_MAX_WORDS] for separator in _SEPARATORS]
    for text in (*long, *short):
        yield text, ""
        yield "", text


def _joined(chosen: Sequence[Input], separator: str) -> Term:
    term = chosen[0].term
    # || needs one text among its first two operands.
    for item in chosen[1:]:
        term = op(op(term, "||", quoted(separator)), "||", item.term) if separator else op(term, "||", item.term)
    if not separator and not any(item.is_text for item in chosen[:2]):
        term = op(op(chosen[0].term, "||", quoted("")), "||", chosen[1].term)
        for item in chosen[2:]:
            term = op(term, "||", item.term)
    return term


def _between(item: Input, before: str, behind: str) -> Term:
    return op(quoted(before), "||", item.term) if before else op(item.term, "||", quoted(behind))

"""Hashes of what is put together: md5(id||'-'||n).

A hash tells nothing of its argument, so that short concatenations are simply tried, on one row first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import permutations

from emit.term import Term, call, cast, op, raw
from encoder.assignment.problem import STRINGS, Input, Problem, quoted
from stream.model import Value

_SEPARATORS = ("", "-", ":", "_", "/", " ", ".", ",", "|", "#")
_SHOWN = STRINGS | {"smallint", "integer", "bigint", "numeric", "uuid"}
_LENGTH, _LEAST = 32, 6
_HEX = frozenset("0123456789abcdef")
# So many columns are put together by two, and so many by three.
_PAIRED, _TRIPLED = 40, 8
# Before or behind a column stand words of the table's and columns' names, or so short texts of these characters.
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789-:_/."
_MAX_WORDS = 40


def hashed(problem: Problem) -> Iterator[Term]:
    """md5 of two or three columns with one separator between, or of a column and a short constant; whole or cut."""
    wanted = [text.replace("-", "") if problem.base == "uuid" else text for text in problem.new if text is not None]
    if problem.base not in STRINGS | {"uuid"} or len(wanted) < len(problem.new) or len(set(map(len, wanted))) != 1:
        return
    length = len(wanted[0])
    if not _LEAST <= length <= _LENGTH or len(set(wanted)) < 2 or not all(_HEX.issuperset(text) for text in wanted):
        return
    inputs = [item for item in problem.inputs if item.base in _SHOWN and None not in item.texts]
    inputs.sort(key=lambda item: (not item.is_key, item.cost))
    cut = _cut_of(length, problem.base)
    # Whole hashes of one column as texts are those of the family of texts.
    for item in inputs[:_PAIRED] if length < _LENGTH or problem.base == "uuid" else ():
        yield from (
            cut(end, item.term if item.is_text else cast(item.term, "text")) for end in _ends(item.texts, wanted)
        )
    for count, most in ((2, _PAIRED), (3, _TRIPLED)):
        for chosen in permutations(inputs[:most], count):
            for separator in _SEPARATORS:
                lines = (separator.join(map(str, line)) for line in zip(*(i.texts for i in chosen), strict=True))
                yield from (cut(end, _joined(chosen, separator)) for end in _ends(lines, wanted))
    for item in inputs[:_TRIPLED]:
        for before, behind in _affixes(problem):
            texts = (f"{before}{text}{behind}" for text in item.texts)
            yield from (cut(end, _between(item, before, behind)) for end in _ends(texts, wanted))


def _cut_of(length: int, base: str) -> Callable[[str, Term], Term]:
    """md5 of a term as a text or uuid, or so many characters at one of its ends."""

    def build(end: str, term: Term) -> Term:
        whole = call("md5", term)
        if base == "uuid":
            return cast(whole, base)
        return whole if length == _LENGTH else call(end, whole, raw(str(length)))

    return build


def _ends(texts: Iterable[Value], wanted: Sequence[str]) -> Iterator[str]:
    """The ends of the hashes of `texts` that are what is wanted; where the first is not, no other is made."""
    ends = {"left", "right"} if len(wanted[0]) < _LENGTH else {"left"}
    for text, value in zip(texts, wanted, strict=True):
        digits = hashlib.md5((text or "").encode(), usedforsecurity=False).hexdigest()
        ends = {end for end in ends if (digits.startswith if end == "left" else digits.endswith)(value)}
        if not ends:
            return
    yield from sorted(ends)


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

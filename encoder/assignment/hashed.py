"""Hashes of what is put together: md5(id||'-'||n).

A hash tells nothing of its argument, so that short concatenations are simply tried, on one row first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations

from emit.term import Term, call, op
from encoder.assignment.problem import STRINGS, Input, Problem, quoted
from stream.model import Value

_SEPARATORS = ("", "-", ":", "_", "/", " ", ".", ",", "|", "#")
_SHOWN = STRINGS | {"smallint", "integer", "bigint", "numeric", "uuid"}
_LENGTH = 32
# So many columns are put together by two, and so many by three.
_PAIRED, _TRIPLED = 40, 8
# Before or behind a column stand words of the table's and columns' names, or so short texts of these characters.
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789-:_/."
_MAX_WORDS = 40


def hashed(problem: Problem) -> Iterator[Term]:
    """md5 of two or three columns with one separator between, or of a column and a short constant."""
    wanted = problem.new
    if problem.base not in STRINGS or not all(text is not None and len(text) == _LENGTH for text in wanted):
        return
    inputs = [item for item in problem.inputs if item.base in _SHOWN and None not in item.texts]
    inputs.sort(key=lambda item: (not item.is_key, item.cost))
    for count, most in ((2, _PAIRED), (3, _TRIPLED)):
        for chosen in permutations(inputs[:most], count):
            for separator in _SEPARATORS:
                lines = (separator.join(map(str, line)) for line in zip(*(i.texts for i in chosen), strict=True))
                if _all_hash(lines, wanted):
                    yield call("md5", _joined(chosen, separator))
    for item in inputs[:_TRIPLED]:
        for before, behind in _affixes(problem):
            if _all_hash((f"{before}{text}{behind}" for text in item.texts), wanted):
                yield call("md5", _between(item, before, behind))


def _all_hash(texts: Iterable[str], wanted: Sequence[Value]) -> bool:
    return all(
        hashlib.md5(text.encode(), usedforsecurity=False).hexdigest() == value
        for text, value in zip(texts, wanted, strict=True)
    )


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

"""Search vectors: to_tsvector of a text or of two."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import permutations

from emit.term import Term, call, op
from encoder.assignment.problem import Input, Problem, quoted

_LEXEME = re.compile(r"'((?:[^']|'')*)'")
# The configurations of most users: words as they are, and their stems.
_CONFIGURATIONS = ("simple", "english")
# As many letters of a word are left by stemming.
_STEM = 3
# Rows that are looked at before a text is tried, and texts that are put together.
_EXAMPLES, _PAIRED = 8, 12


def vectors(problem: Problem) -> Iterator[Term]:
    """The words of texts whose beginnings all stand in them."""
    if problem.base != "tsvector":
        return
    wanted = [_LEXEME.findall(vector or "") for vector in problem.new]
    rows = sorted(range(len(wanted)), key=lambda row: -len(wanted[row]))[:_EXAMPLES]
    texts = [item for item in problem.inputs if item.is_text]
    for item in texts:
        if _holds((item,), rows, wanted):
            yield from _made(item.term)
    some = [item for item in texts if any(_shares(item.texts[row], wanted[row]) for row in rows)][:_PAIRED]
    for pair in permutations(some, 2):
        if _holds(pair, rows, wanted):
            yield from _made(op(op(pair[0].term, "||", quoted(" ")), "||", pair[1].term))


def _made(term: Term) -> Iterator[Term]:
    return (call("to_tsvector", quoted(name), term) for name in _CONFIGURATIONS)


def _holds(items: Sequence[Input], rows: Sequence[int], wanted: Sequence[Sequence[str]]) -> bool:
    """Whether all words of the vectors begin somewhere in the texts."""
    return all(
        all(word[:_STEM] in text for word in wanted[row])
        for row in rows
        for text in (" ".join(item.texts[row] or "" for item in items).lower(),)
    )


def _shares(text: str | None, words: Sequence[str]) -> bool:
    return text is not None and any(word[:_STEM] in text.lower() for word in words)

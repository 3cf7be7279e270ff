"""Constants, copies of columns, casts."""

from __future__ import annotations

from collections.abc import Iterator

from emit.term import Term, call, cast, ref
from encoder.assignment.derived import json_fields
from encoder.assignment.problem import INTEGERS, STRINGS, TIMES, Input, Problem, quoted, short_type, to_decimal

_NUMERIC = INTEGERS | {"numeric", "real", "double precision"}
# Foreign keys on the way to a value that is only copied.
_DISTANT = 3


def constants(problem: Problem) -> Iterator[Term]:
    """One value for all rows."""
    if len(set(problem.new)) == 1:
        yield problem.constant(problem.new[0])


def copies(problem: Problem) -> Iterator[Term]:
    """A column's value, cast where it must be."""
    for item in (*problem.inputs, *json_fields(problem)):
        if equal(problem, item):
            yield item.term
            if item.base != problem.base:
                yield cast(item.term, short_type(problem.base))
                yield cast(cast(item.term, "text"), short_type(problem.base))


def distant_copies(problem: Problem) -> Iterator[Term]:
    """A value farther up the foreign keys than other expressions look."""
    known = {item.term for item in problem.joined}
    for path, rows in problem.reached(_DISTANT):
        for column in problem.state.catalog[path[-1].target].columns:
            if column.base == problem.base and ref(path, column.name) not in known:
                texts = problem.state.frame(path[-1].target).texts(column.name)
                if all((texts[row] if row >= 0 else None) == new for row, new in zip(rows, problem.new, strict=True)):
                    yield ref(path, column.name)


def equal(problem: Problem, item: Input) -> bool:
    """Whether the input is the goal, but perhaps for a cast."""
    base = problem.base
    if item.texts == problem.new:
        return True
    if item.base in _NUMERIC and base in _NUMERIC:
        return all(
            (a is None) == (b is None) and (a is None or b is None or _close(a, b))
            for a, b in zip(item.texts, problem.new, strict=True)
        )
    if item.base == "boolean" and base in STRINGS:
        names = {"t": "true", "f": "false", None: None}
        return tuple(names.get(text, text) for text in item.texts) == problem.new
    if base == "boolean" and item.base in STRINGS:
        names = {"true": "t", "false": "f", "yes": "t", "no": "f", "1": "t", "0": "f", None: None}
        return tuple(names.get(text, text) for text in item.texts) == problem.new
    if item.base in TIMES and base in TIMES | {"time without time zone"}:
        return all(
            (a is None) == (b is None) and (a is None or b is None or a[: len(b)] == b or b.startswith(a) or b in a)
            for a, b in zip(item.texts, problem.new, strict=True)
        )
    return False


def _close(a: str, b: str) -> bool:
    x, y = to_decimal(a), to_decimal(b)
    return x is not None and y is not None and abs(x - y) <= abs(x) / 1000 + 1


def _reads(base: str, other: str) -> bool:
    """Whether a value of type `other` can be spelled as one of `base`."""
    return base == other or base in STRINGS or (base in _NUMERIC and other in _NUMERIC)


def filled(problem: Problem) -> Iterator[Term]:
    """coalesce and nullif of columns with each other and with constants."""
    new = problem.new
    for item in problem.inputs:
        gaps = [place for place, text in enumerate(item.texts) if text is None and new[place] is not None]
        if gaps and all(item.texts[i] in (None, new[i]) for i in range(len(new))):
            values = {new[i] for i in gaps}
            if len(values) == 1 and _reads(item.base, problem.base):
                yield call("coalesce", item.term, problem.constant(values.pop(), item.base))
            for other in problem.inputs:
                if all(other.texts[i] == new[i] for i in gaps):
                    yield call("coalesce", item.term, other.term)
        lost = [place for place, text in enumerate(new) if text is None and item.texts[place] is not None]
        if lost and len({item.texts[i] for i in lost}) == 1 and item.base not in ("json", "jsonb"):
            gone = item.texts[lost[0]]
            if all(text == new[i] or text == gone for i, text in enumerate(item.texts)):
                yield call("nullif", item.term, problem.constant(gone, item.base))
        if problem.base in STRINGS and item.is_text:
            yield from _instead_of_empty(problem, item)


def _instead_of_empty(problem: Problem, item: Input) -> Iterator[Term]:
    new = problem.new
    empty = [place for place, text in enumerate(item.texts) if not text and new[place]]
    if not empty or any(item.texts[i] != new[i] for i in range(len(new)) if i not in set(empty)):
        return
    missing = call("nullif", item.term, quoted(""))
    if len({new[i] for i in empty}) == 1:
        yield call("coalesce", missing, quoted(new[empty[0]] or ""))
    for other in problem.inputs:
        if other.is_text and other.term != item.term and all(other.texts[i] == new[i] for i in empty):
            yield call("coalesce", missing, other.term)

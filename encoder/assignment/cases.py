"""CASE: maps of few values, bands of an ordered column, splits by a condition."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from emit.literal import input_text, literal, quote
from emit.term import Part, Prec, Term, call, cast, op, raw
from encoder.assignment.conditions import conditions
from encoder.assignment.decimals import shortest_between
from encoder.assignment.derived import json_fields
from encoder.assignment.layout import NUMERIC
from encoder.assignment.problem import STRINGS, Input, Problem, literal_term
from stream.model import Value

_MAX_BRANCHES = 12
_MAX_BANDS = 8
# Elements of a list by number.
_MAX_ELEMENTS = 12
_CONDITIONS = 6


def case(branches: Sequence[tuple[Term, Term]], otherwise: Term | None, subject: Term | None = None) -> Term:
    parts: list[Part] = ["CASE"]
    if subject is not None:
        parts += subject.parts
    for condition, value in branches:
        parts += ["WHEN", *condition.parts, "THEN", *value.parts]
    if otherwise is not None:
        parts += ["ELSE", *otherwise.parts]
    return Term((*parts, "END"))


def maps(problem: Problem) -> Iterator[Term]:
    """CASE c WHEN … over a column of few values, bands over an ordered one, two values by a condition."""
    values = set(problem.new)
    if len(values) < 2 or len(problem.new) < 4:
        return
    if len(values) == 2:
        yield from _two(problem)
    if len(values) > _MAX_BRANCHES:
        return
    for item in (*problem.inputs, *json_fields(problem)):
        if item.base not in ("json", "jsonb"):
            yield from _map(problem, item)
            if item.is_number or item.is_time:
                yield from _bands(problem, item)


def indexed(problem: Problem) -> Iterator[Term]:
    """An element of a list by a small whole number: a column, or what a division of it leaves."""
    values = set(problem.new)
    if not 1 < len(values) <= _MAX_ELEMENTS or None in values or problem.base not in STRINGS | NUMERIC:
        return
    for item in problem.inputs:
        if item.is_integer and None not in item.texts:
            numbers = [int(text or 0) for text in item.texts]
            for divisor in (None, *range(2, _MAX_ELEMENTS + 1)) if min(numbers) >= 0 else (None,):
                found = _elements(numbers if divisor is None else [n % divisor for n in numbers], problem.new)
                if found is not None:
                    first, elements = found
                    index = item.term if divisor is None else op(item.term, "%", raw(str(divisor)))
                    shifted = op(index, "+" if first < 1 else "-", raw(str(abs(1 - first)))) if first != 1 else index
                    yield _picked(problem, elements, shifted)
                    break


def _elements(places: Sequence[int], new: Sequence[Value]) -> tuple[int, list[str]] | None:
    """The least place and the value at every one from there on; None where they are too many or do not tell."""
    first, last = min(places), max(places)
    if last - first >= _MAX_ELEMENTS or (last - first + 1) * 2 > len(places):
        return None
    meaning: dict[int, str] = {}
    for place, value in zip(places, new, strict=True):
        if meaning.setdefault(place, value or "") != value:
            return None
    spare = min(meaning.values(), key=len)
    return first, [meaning.get(place, spare) for place in range(first, last + 1)]


def _picked(problem: Problem, values: Sequence[str], index: Term) -> Term:
    """The value at place `index`, which is always one of theirs, the first under 1."""
    if any(len(value) != 1 for value in values):
        return subscript(problem, values, index)
    character = call("substr", raw(quote("".join(values))), index, raw("1"))
    return character if problem.base in STRINGS else cast(character, problem.base)


def subscript(problem: Problem, values: Sequence[str], index: Term) -> Term:
    """`values[index]`, the first under 1; NULL beyond them."""
    listed = "{" + ",".join(map(_element, values)) + "}"
    base = problem.base if problem.base in NUMERIC else "text"
    array = raw(literal(listed, f"{base}[]", context="bare"), Prec.CAST)
    return Term(("(", *array.parts, ")[", *index.parts, "]"))


def _element(value: str) -> str:
    plain = re.fullmatch(r"[\w#.:/+@-]+", value) and value.lower() != "null"
    return value if plain else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _two(problem: Problem) -> Iterator[Term]:
    for first in sorted(set(problem.new), key=str):
        second = next(value for value in problem.new if value != first)
        for condition in islice(conditions(problem, [text == first for text in problem.new], True), _CONDITIONS):
            one, other = _values(problem, (first, second))
            yield case([(condition, one)], other)


def _values(problem: Problem, values: Sequence[Value]) -> list[Term]:
    """Constants as the branches of one CASE: untyped ones make it text, which only some columns take, so the first
    tells the type of all."""
    if problem.base in ("boolean", "numeric", "integer", "bigint", "smallint", "text", "character varying"):
        return [problem.constant(value) for value in values]
    shown: list[Term] = []
    typed = False
    for value in values:
        if value is None:
            shown.append(raw("null"))
        elif typed:
            shown.append(raw(quote(input_text(value, problem.base, timezone=problem.timezone))))
        else:
            shown.append(literal_term(literal(value, problem.base, context="bare", timezone=problem.timezone)))
            typed = True
    return shown


def _map(problem: Problem, item: Input) -> Iterator[Term]:
    meaning: dict[Value, Value] = {}
    for text, value in zip(item.texts, problem.new, strict=True):
        if meaning.setdefault(text, value) != value:
            return
    if not 2 <= len(meaning) <= _MAX_BRANCHES or len(meaning) > len(problem.new) // 2:
        return
    weights: Counter[Value] = Counter()
    for text, value in meaning.items():
        weights[value] += len(text or "") + len(value or "") + 14
    otherwise = meaning[None] if None in meaning else max(sorted(weights, key=str), key=weights.__getitem__)
    named = [
        (text, value)
        for text, value in sorted(meaning.items(), key=lambda pair: str(pair[0]))
        if value != otherwise and text is not None
    ]
    if named:
        *shown, last = _values(problem, [*(value for _, value in named), otherwise])
        keys = [
            literal_term(literal(text, item.base, context="compare", timezone=problem.timezone)) for text, _ in named
        ]
        yield case(list(zip(keys, shown, strict=True)), None if otherwise is None else last, item.term)


def _bands(problem: Problem, item: Input) -> Iterator[Term]:
    """New values that change only a few times along the order of a column."""
    if None in item.texts:
        return
    order = sorted(range(len(item.texts)), key=lambda place: item.numbers[place])
    runs: list[tuple[Value, float, float, Value]] = []  # value, least, most, text of the least
    for place in order:
        number = float(item.numbers[place])
        if runs and runs[-1][0] == problem.new[place]:
            runs[-1] = (runs[-1][0], runs[-1][1], number, runs[-1][3])
        else:
            runs.append((problem.new[place], number, number, item.texts[place]))
    if not 2 <= len(runs) <= _MAX_BANDS or len(runs) > len(order) // 2:
        return
    if any(a[2] >= b[1] for a, b in pairwise(runs)):
        return
    branches = []
    *shown, last = _values(problem, [run[0] for run in runs])
    for (a, b), value in zip(pairwise(runs), shown, strict=True):
        if item.is_time:
            cut = literal_term(literal(b[3], item.base, context="compare", timezone=problem.timezone))
        else:
            text = shortest_between(a[2] + 1e-9, b[1])
            if text is None:
                return
            cut = literal_term(literal(text, "numeric", context="compare"))
        branches.append((Term((*item.term.parts, "<", *cut.parts)), value))
    yield case(branches, last)


def split(condition: Term, first: Term, second: Term) -> Iterator[Term]:
    """`first` where the condition holds, `second` elsewhere; what they share stands once."""
    yield case([(condition, first)], second)
    if len(first.parts) == len(second.parts) and first.prec == second.prec:
        different = [i for i, (a, b) in enumerate(zip(first.parts, second.parts, strict=True)) if a != b]
        if len(different) == 1:
            i = different[0]
            a, b = first.parts[i], second.parts[i]
            if isinstance(a, str) and isinstance(b, str) and _is_literal(a) and _is_literal(b):
                inner = case([(condition, literal_term(a))], literal_term(b))
                yield Term((*first.parts[:i], *inner.parts, *first.parts[i + 1 :]), first.prec)


def _is_literal(text: str) -> bool:
    return text[0] in "'.-0123456789"

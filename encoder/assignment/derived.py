"""Inputs that follow from columns: lengths, parts of dates, jsonb fields, filled NULLs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from emit.term import Prec, Term, call, cast, op, raw, wrap
from encoder.assignment.children import child_aggregates
from encoder.assignment.problem import Input, Problem, quoted

_MAX_KEYS = 12
_MAX_NESTING = 2
# What may stand before a number.
_LETTERS = "".join(chr(code) for code in range(32, 127) if not chr(code).isdigit())

Path: TypeAlias = tuple[str, ...]


@lru_cache(maxsize=8)
def numeric_inputs(problem: Problem) -> tuple[Input, ...]:
    """Numbers of the row and of those it refers to, cheapest first."""
    found: list[Input] = []
    for item in (*problem.inputs, *json_fields(problem)):
        if item.is_number:
            found.append(item)
            found.extend(_filled(problem, item))
        elif item.own:
            found.extend(_numbers_of(problem, item))
    usable = [item for item in found if not np.isnan(item.numbers).all()]
    return tuple(sorted(usable, key=lambda item: item.cost))


@lru_cache(maxsize=8)
def counted_inputs(problem: Problem) -> tuple[Input, ...]:
    """Numbers that a row and its related rows give, cheapest first."""
    related = [item for item in child_aggregates(problem) if not np.isnan(item.numbers).all()]
    return tuple(sorted((*numeric_inputs(problem), *related), key=lambda item: item.cost))


def _filled(problem: Problem, item: Input) -> Iterator[Input]:
    gap = np.isnan(item.numbers)
    if (gap & ~np.isnan(problem.numbers)).any():
        texts = tuple("0" if text is None else text for text in item.texts)
        term = call("coalesce", item.term, raw("0"))
        yield Input(term, item.base, "N", texts, item.cost + 12)


def _numbers_of(problem: Problem, item: Input) -> Iterator[Input]:
    def made(term: Term, texts: tuple[str | None, ...]) -> Input:
        return Input(term, "integer", "N", texts, problem.cost(term))

    if item.is_text:
        yield made(call("length", item.term), tuple(None if t is None else str(len(t)) for t in item.texts))
        if _all_digits(item.texts):
            yield made(cast(item.term, "int"), item.texts)
        elif (cut := _behind_letters(item.texts)) is not None:
            digits = tuple(None if t is None else str(int(t[cut:])) for t in item.texts)
            yield made(cast(call("substr", item.term, raw(str(cut + 1))), "int"), digits)
    elif item.base == "boolean":
        texts = tuple(None if t is None else str(int(t == "t")) for t in item.texts)
        yield made(cast(item.term, "int"), texts)
    elif item.is_time and all(t is None or (t[:4].isdigit() and t[4] == "-") for t in item.texts):
        for field, part in (("year", slice(0, 4)), ("month", slice(5, 7)), ("day", slice(8, 10))):
            texts = tuple(None if t is None else str(int(t[part])) for t in item.texts)
            yield made(call("date_part", quoted(field), item.term), texts)
    elif item.kind == "A":
        texts = tuple(None if t is None else str(_members(t)) for t in item.texts)
        yield made(call("cardinality", item.term), texts)


def _behind_letters(texts: Sequence[str | None]) -> int | None:
    """How many characters other than digits stand before a number that ends every text."""
    known = [text for text in texts if text is not None]
    starts = {len(text) - len(text.lstrip(_LETTERS)) for text in known if text}
    cut = starts.pop() if len(starts) == 1 else 0
    return cut if cut and _all_digits([text[cut:] or "-" for text in known]) else None


def _all_digits(texts: Sequence[str | None]) -> bool:
    known = [text for text in texts if text is not None]
    return bool(known) and all(text.strip().lstrip("-").isdigit() and len(text) < 10 for text in known)


def _members(text: str) -> int:
    return 0 if text == "{}" else text.count(",") + 1


@lru_cache(maxsize=8)
def json_fields(problem: Problem) -> tuple[Input, ...]:
    """Fields of the row's own json documents, as text and (where they are) as numbers."""
    found: list[Input] = []
    for item in problem.own:
        parsed = _documents(item)
        if parsed is None:
            continue
        document = cast(item.term, "json") if item.is_text else item.term
        for path, values in _fields(parsed):
            term = op(document, "->>", quoted(path[0]))
            if len(path) > 1:
                term = op(document, "#>>", quoted("{" + ",".join(path) + "}"))
            texts = tuple(_as_text(value) for value in values)
            found.append(Input(term, "text", "S", texts, problem.cost(term)))
            if all(value is None or type(value) in (int, float) for value in values):
                whole = all(value is None or type(value) is int for value in values)
                number = cast(term, "int" if whole else "numeric")
                found.append(Input(number, "integer" if whole else "numeric", "N", texts, problem.cost(number)))
            elif _all_digits(texts):
                number = cast(term, "int")
                found.append(Input(number, "integer", "N", texts, problem.cost(number)))
    return tuple(found)


def _fields(documents: Sequence[dict[str, object] | None], depth: int = 1) -> Iterator[tuple[Path, list[object]]]:
    """Paths of the commonest scalar fields, with their values document by document."""
    counts = Counter(key for document in documents if document is not None for key in document)
    for key, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_MAX_KEYS]:
        values = [None if document is None else document.get(key) for document in documents]
        if not any(isinstance(value, dict | list) for value in values):
            yield (key,), values
        elif depth < _MAX_NESTING:
            inner = [value if isinstance(value, dict) else None for value in values]
            yield from (((key, *path), found) for path, found in _fields(inner, depth + 1))


def _documents(item: Input) -> list[dict[str, object] | None] | None:
    """What a column's documents say, None for what is no object; None for a column of something else."""
    if item.is_text and not all(text is None or text.startswith("{") for text in item.texts):
        return None
    if not item.is_text and item.base not in ("jsonb", "json"):
        return None
    try:
        values = [None if text is None else json.loads(text) for text in item.texts]
    except ValueError:
        return None
    return [value if isinstance(value, dict) else None for value in values]


def _as_text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)


def negative(term: Term) -> Term:
    return Term(("-", *wrap(term, Prec.UNARY)), Prec.UNARY)

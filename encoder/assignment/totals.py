"""Sums and counts of what json documents hold under one path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from emit.term import Prec, Ref, Term, call, op
from encoder.assignment.problem import quoted

_MAX_DEPTH = 3
_MAX_PATHS = 40
# What functions name the columns that they give.
_TAKEN = frozenset({"key", "value"})


def totals(documents: Sequence[Any], own: Term, wanted: Sequence[int | float]) -> Iterator[Term]:
    """Terms over the document `own` that give `wanted`, row by row: the sum of the numbers in an object or a list, or
    how many members it has."""
    if any(isinstance(part, Ref) and part.column in _TAKEN for part in own.parts):
        return
    for path in _paths(documents):
        held = [_at(document, path) for document in documents]
        if not all(isinstance(value, type(held[0])) for value in held):
            continue
        place = _reach(own, path)
        if [len(value) for value in held] == list(wanted):
            yield _count(place, held[0])
        members = [list(value.values()) if isinstance(value, dict) else value for value in held]
        if all(_is_number(member) for line in members for member in line) and list(map(sum, members)) == list(wanted):
            whole = all(isinstance(member, int) for line in members for member in line)
            function = "jsonb_each_text" if isinstance(held[0], dict) else "jsonb_array_elements_text"
            kind = "int" if whole else "numeric"
            yield Term((f"(SELECT sum(value::{kind})FROM {function}(", *place.parts, "))"), Prec.ATOM)


def _paths(documents: Sequence[Any]) -> list[tuple[str, ...]]:
    """The paths under which the first document holds objects and lists, short ones first."""
    found: list[tuple[str, ...]] = []
    level: list[tuple[tuple[str, ...], Any]] = [((), documents[0])] if documents else []
    while level and len(found) < _MAX_PATHS:
        found += [path for path, _ in level]
        level = [
            ((*path, key), inner)
            for path, value in level
            if isinstance(value, dict) and len(path) < _MAX_DEPTH
            for key, inner in sorted(value.items())
            if isinstance(inner, dict | list)
        ]
    return found[:_MAX_PATHS]


def _at(document: Any, path: Sequence[str]) -> Any:
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _reach(own: Term, path: Sequence[str]) -> Term:
    if not path:
        return own
    return op(own, "->", quoted(path[0])) if len(path) == 1 else op(own, "#>", quoted("{" + ",".join(path) + "}"))


def _count(place: Term, held: object) -> Term:
    if isinstance(held, list):
        return call("jsonb_array_length", place)
    return Term(("(SELECT count(*)FROM jsonb_each(", *place.parts, "))"), Prec.ATOM)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)

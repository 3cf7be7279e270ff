"""Values of the one related row that a condition leaves (the other end, the only child), and texts made with values of
related rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

import numpy as np

from emit.term import Query, Term, cast, op, ref
from encoder.assignment import numeric, text
from encoder.assignment.basic import equal
from encoder.assignment.children import child_aggregates
from encoder.assignment.documents import documents
from encoder.assignment.filters import simple_conditions
from encoder.assignment.problem import INTEGERS, STRINGS, TIMES, Input, Problem, short_type
from encoder.assignment.related import far_relations, near_relations
from encoder.assignment.relations import Member, Relation

_COMPARED = INTEGERS | STRINGS | TIMES | {"uuid", "boolean"}
_MAX_CONDITIONS = 40
_MAX_WAYS = 6
_MAX_INPUTS = 12
# Related rows for each of which conditions are held against the row itself.
_MAX_ROWS = 6_000
# Digits after the point of sums and extremes in texts.
_MAX_DIGITS, _EXACT = 3, 1e-9
# Conditions under which numbers are scaled, kinds of rounding, and so many different numbers tell a scale.
_MAX_SCALED, _ROUNDINGS, _LEAST_SCALED = 12, 3, 4
_NUMBERS = INTEGERS | {"numeric"}
# Characters of a value that is part of a text.
_LEAST_PIECE = 2
_PUNCTUATION = re.compile(r"[\W_]")


@dataclass(frozen=True, slots=True)
class _Way:
    """A condition under which every row of the sample has at most one related row: its place, -1 for none."""

    condition: Term | None
    members: tuple[Member, ...]
    places: tuple[int, ...]


def reached(problem: Problem) -> Iterator[Term]:
    """A copy of a value of the one row, or a text made with such values."""
    pieces: list[Input] = []
    for relation in (*near_relations(problem), *far_relations(problem)):
        members = [member for member in relation.every_member if _promising(problem, relation, member)]
        ways = (way for way in _ways(problem, relation) if _covers(problem, way)) if members else ()
        for way in islice(ways, _MAX_WAYS):
            for member in members:
                item = _input(problem, relation, way, member)
                if item is None:
                    continue
                if equal(problem, item):
                    yield item.term
                    if item.base != problem.base:
                        yield cast(item.term, short_type(problem.base))
                elif problem.base in STRINGS and _inside(problem, item):
                    pieces.append(item)
    yield from _concatenated(problem, pieces)


def _covers(problem: Problem, way: _Way) -> bool:
    """Whether every row with a value has a related row left that may give it."""
    return all(place >= 0 or new is None for place, new in zip(way.places, problem.new, strict=True))


def combined(problem: Problem) -> Iterator[Term]:
    """Arithmetic with a number of the one related row."""
    if not np.isfinite(problem.numbers).all() or problem.base not in _NUMBERS:
        return
    items: list[Input] = []
    for relation in (*near_relations(problem), *far_relations(problem)):
        if len(items) < _MAX_INPUTS and all(len(group) == 1 for group in relation.groups):
            way = next(_ways(problem, relation))
            for member in relation.members:
                numeric_member = member.own and not member.is_key and member.column.base in _NUMBERS
                item = _input(problem, relation, way, member) if numeric_member else None
                if item is not None and len(set(item.texts)) > 1:
                    items.append(item)
    if items:
        near = replace(problem, light=True, extra=tuple(items[:_MAX_INPUTS]))
        yield from (term for term in numeric.pairs(near) if any(isinstance(part, Query) for part in term.parts))


def scaled(problem: Problem) -> Iterator[Term]:
    """One number of the one related row that a condition leaves, moved or scaled by a constant: the price elsewhere."""
    if not np.isfinite(problem.numbers).all() or problem.base not in _NUMBERS or len(set(problem.new)) < _LEAST_SCALED:
        return
    for relation in (*near_relations(problem), *far_relations(problem)):
        members = [
            member
            for member in relation.members
            if member.column.base in _NUMBERS
            and not member.is_key
            and (relation.other == problem.table or member.column.name == problem.column.name)
        ]
        for way in islice(_ways(problem, relation), _MAX_SCALED) if members else ():
            if way.condition is None or -1 in way.places:
                continue
            for member in members:
                item = _input(problem, relation, way, member)
                if item is not None and None not in item.texts and len(set(item.texts)) >= _LEAST_SCALED:
                    yield from numeric.of_input(problem, item, _ROUNDINGS)


def documented(problem: Problem) -> Iterator[Term]:
    """A document with fields made of columns of the one row that refers to this one."""
    if problem.base not in ("json", "jsonb"):
        return
    for relation in near_relations(problem):
        if relation.child and all(len(group) == 1 for group in relation.groups):
            way = next(_ways(problem, relation))
            found = (_input(problem, relation, way, member) for member in relation.every_member if member.own)
            items = [item for item in found if item is not None]
            yield from documents(problem.with_inputs(items))


def counted(problem: Problem) -> Iterator[Term]:
    """A text made with counts, sums and extremes of related rows."""
    if problem.base not in STRINGS or None in problem.new:
        return
    pieces: list[Input] = []
    for item in child_aggregates(problem):
        # What is cast to int is rounded.
        numbers = np.sign(item.numbers) * np.floor(np.abs(item.numbers) + 0.5)
        if np.isfinite(numbers).all() and len(np.unique(numbers)) > 1:
            term = item.term if item.is_integer else cast(item.term, "int")
            texts = tuple(str(int(number)) for number in numbers.tolist())
            whole = Input(term, "bigint", "N", texts, problem.cost(term))
            if _inside(problem, whole):
                pieces.append(whole)
        if not item.is_integer:
            pieces += [shown for shown in _shown(item) if _inside(problem, shown)]
    yield from _concatenated(problem, pieces)


def _shown(item: Input) -> Iterator[Input]:
    """The number as text, with as many digits as its column may have."""
    for digits in range(1, _MAX_DIGITS + 1):
        if np.isfinite(item.numbers).all() and (np.abs(item.numbers - item.numbers.round(digits)) < _EXACT).all():
            texts = tuple(f"{number:.{digits}f}" for number in item.numbers.tolist())
            if len(set(texts)) > 1:
                yield Input(item.term, "numeric", "N", texts, item.cost)


def _concatenated(problem: Problem, pieces: list[Input]) -> Iterator[Term]:
    if pieces:
        pieces.sort(key=lambda item: item.cost)
        yield from text.concatenated(problem.with_inputs(pieces[:_MAX_INPUTS]))


def _promising(problem: Problem, relation: Relation, member: Member) -> bool:
    """Whether every goal stands in, or is spelled with, the member's value in some related row, and not the same value
    everywhere."""
    inside = problem.base in STRINGS and member.column.base in STRINGS | INTEGERS
    if not inside and not _same_kind(problem.base, member.column.base):
        return False
    times = problem.base in TIMES
    seen: set[str] = set()
    for new, group in zip(problem.new, relation.groups, strict=True):
        if new is None or (not group and not times):
            if new is not None:
                return False
            continue
        # An empty text stands in every other, which says nothing.
        empty = False
        for place in group:
            value = member.value(place)
            empty |= inside and value == ""
            if value and (value == new or times or (inside and len(value) >= _LEAST_PIECE and _stands(value, new))):
                seen.add(value)
                break
        else:
            if not empty:
                return False
    return len(seen) > 1


def _same_kind(a: str, b: str) -> bool:
    return a == b or any(a in kind and b in kind for kind in (STRINGS, INTEGERS | {"numeric"}, TIMES))


def _inside(problem: Problem, item: Input) -> bool:
    return any(item.texts) and all(
        value is not None and new is not None and _stands(value, new)
        for value, new in zip(item.texts, problem.new, strict=True)
    )


def _stands(value: str, new: str) -> bool:
    """Whether a text stands in another but for case and punctuation."""
    return value in new or _plain(value) in _plain(new)


@lru_cache(maxsize=50_000)
def _plain(text: str) -> str:
    return _PUNCTUATION.sub("-", text.lower())


def _input(problem: Problem, relation: Relation, way: _Way, member: Member) -> Input | None:
    texts = tuple(member.value(place) if place >= 0 else None for place in way.places)
    if not any(text is not None for text in texts):
        return None
    term = relation.scalar(member.term, (member, *way.members), way.condition)
    return Input(term, member.column.base, member.column.kind, texts, problem.cost(term))


def _ways(problem: Problem, relation: Relation) -> Iterator[_Way]:
    if all(len(group) <= 1 for group in relation.groups):
        yield _Way(None, (), tuple(group[0] if group else -1 for group in relation.groups))
        return
    if len(relation.flat) > _MAX_ROWS:
        return
    for item in problem.own:
        for member in relation.every_member:
            if item.base in _COMPARED and member.column.base == item.base and _likely(item, member):
                yield from _beside(relation, item, member)
    for member, condition, keep in islice(simple_conditions(relation), _MAX_CONDITIONS):
        places = _one_each(relation, keep)
        if places is not None:
            yield _Way(condition, (member,), places)


def _likely(item: Input, member: Member) -> bool:
    """Whether somebody would compare the two: columns of one name, or references."""
    return (item.is_key and member.is_key) or item.term.parts[-1:] == (ref((), member.column.name).parts[-1],)


def _beside(relation: Relation, item: Input, member: Member) -> Iterator[_Way]:
    """The related rows that have the same in a column as the row itself, or something else."""
    for operator, same in (("=", True), ("<>", False)):
        places: list[int] = []
        for own, group in zip(item.texts, relation.groups, strict=True):
            kept = [
                place
                for place in group
                if own is not None and (value := member.value(place)) is not None and (own == value) == same
            ]
            if len(kept) > 1:
                break
            places.append(kept[0] if kept else -1)
        else:
            if any(place >= 0 for place in places):
                yield _Way(op(member.term, operator, item.term), (member,), tuple(places))


def _one_each(relation: Relation, keep: Sequence[bool]) -> tuple[int, ...] | None:
    """The related row that is left for each row, if none has several and some have one."""
    places: list[int] = []
    for group in relation.groups:
        kept = [place for place in group if keep[place]]
        if len(kept) > 1:
            return None
        places.append(kept[0] if kept else -1)
    return tuple(places) if any(place >= 0 for place in places) else None

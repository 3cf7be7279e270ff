"""Counts, sums and extremes of the related rows that satisfy a condition, and of rows farther away."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np

from emit.literal import literal
from emit.term import Term, call, is_null, negate, op, raw
from encoder.assignment.children import (
    EXTREMES,
    STAR,
    aggregates,
    assigned,
    holds_all,
    in_order,
    numeric_members,
    picked_from,
    sort_key,
)
from encoder.assignment.conditions import on_input
from encoder.assignment.decimals import Band
from encoder.assignment.probe import Probe
from encoder.assignment.problem import INTEGERS, STRINGS, TIMES, Input, Problem
from encoder.assignment.related import far_relations, relations
from encoder.assignment.relations import Member, Relation

_NUMERIC = INTEGERS | {"numeric"}
_MAX_FILTER_VALUES = 6
_MAX_CONDITIONS = 40
# Conditions on one column that may filter an extreme.
_PER_FILTER = 2
# Related rows among which filtered extremes are looked for.
_MAX_EXTREMES = 20_000


def filtered(problem: Problem) -> Iterator[Term]:
    """Counts, sums and extremes of the related rows that satisfy one simple condition."""
    for relation in relations(problem):
        yield from _filtered(problem, relation)


def _filtered(problem: Problem, relation: Relation) -> Iterator[Term]:
    if problem.base in _NUMERIC:
        band = Band.rounding(problem.numbers, problem.scale)
        numeric, probe = numeric_members(relation), Probe.into(relation, band)
        for member, condition, keep in islice(simple_conditions(relation), _MAX_CONDITIONS):
            likely = probe.likely(numeric, keep)
            if likely or probe.counts(keep):
                for item in aggregates(relation, (member,), condition, np.array(keep, dtype=np.bool_), likely):
                    if band.holds(item.numbers):
                        yield item.term
        yield from _counted_beyond(problem, relation)
    if problem.base in STRINGS | TIMES | _NUMERIC:
        yield from _filtered_extremes(problem, relation)


def _filtered_extremes(problem: Problem, relation: Relation) -> Iterator[Term]:
    """The greatest or least of the rows that pass a filter: the rows beyond it must not pass, the row itself must."""
    values = [member for member in relation.members if holds_all(problem, relation, member)]
    if len(relation.flat) > _MAX_EXTREMES:
        return
    for member in values:
        for name, function in EXTREMES:
            labels = _labels(problem, relation, member, function)
            wanted = [yes for _, yes in labels]
            if all(wanted) or not any(wanted):
                continue
            for by in relation.members:
                texts = tuple(by.values[place] for place, _ in labels)
                item = Input(by.term, by.column.base, by.column.kind, texts, 0)
                for condition in islice(on_input(item, wanted, True, problem.timezone), _PER_FILTER):
                    yield relation.scalar(call(name, member.term), (member, by), condition)


def _labels(
    problem: Problem, relation: Relation, member: Member, function: Callable[..., str | None]
) -> list[tuple[int, bool]]:
    """Related rows that a filter must let through, and must not, so that the extreme is what is wanted."""
    key = sort_key(member.column.base)
    labels: list[tuple[int, bool]] = []
    for new, group in zip(problem.new, relation.groups, strict=True):
        for place in group:
            text = member.values[place]
            if text is None:
                continue
            shown = assigned(problem, member, text)
            if new is not None and shown == new:
                labels.append((place, True))
            elif new is None or function((text, new), key=key) == text:
                labels.append((place, False))
    return labels


def _counted_beyond(problem: Problem, relation: Relation) -> Iterator[Term]:
    """How many related rows lie before or after some bound: each count tells between which of its rows that is."""
    wanted = problem.numbers
    sizes = [len(group) for group in relation.groups]
    if not np.isfinite(wanted).all() or (wanted < 0).any() or (wanted > sizes).any():
        return
    for member in relation.members:
        if member.column.base not in _NUMERIC | TIMES or member.is_key or np.isnan(member.numbers).any():
            continue
        for sign in ("<", ">"):
            wanted_bound = _bound(member, relation.groups, wanted.astype(int).tolist(), sign)
            if wanted_bound is not None:
                shown = raw(literal(wanted_bound, member.column.base, context="compare", timezone=problem.timezone))
                condition = op(member.term, sign if sign == "<" else ">=", shown)
                yield relation.scalar(call("count", STAR), (member,), condition)


def _bound(member: Member, groups: Sequence[Sequence[int]], counts: Sequence[int], sign: str) -> str | None:
    """The least value of a related row that parts the groups into so many rows before it (or from it on)."""
    inner, outer, shown = -math.inf, math.inf, None
    for group, count in zip(groups, counts, strict=True):
        line = in_order(member, group)
        split = count if sign == "<" else len(line) - count
        if split > 0:
            inner = max(inner, float(member.numbers[line[split - 1]]))
        if split < len(line) and member.numbers[line[split]] < outer:
            outer, shown = float(member.numbers[line[split]]), member.values[line[split]]
    return shown if -math.inf < inner < outer < math.inf else None


def distant(problem: Problem) -> Iterator[Term]:
    """The same over rows that are farther away."""
    for relation in far_relations(problem):
        if problem.base in _NUMERIC:
            band = Band.rounding(problem.numbers, problem.scale)
            for item in aggregates(relation, (), None, None, numeric_members(relation)):
                if band.holds(item.numbers):
                    yield item.term
        yield from picked_from(problem, relation)
        yield from _filtered(problem, relation)


def simple_conditions(relation: Relation) -> Iterator[tuple[Member, Term, list[bool]]]:
    """Simple conditions that some of the related rows satisfy and some do not."""
    for member in relation.members:
        values, base = member.values, member.column.base
        if base == "boolean":
            yield member, member.term, [value == "t" for value in values]
            yield member, negate(member.term), [value == "f" for value in values]
            continue
        if any(value is None for value in values):
            yield member, is_null(member.term), [value is None for value in values]
            yield member, is_null(member.term, False), [value is not None for value in values]
        distinct = sorted({value for value in values if value is not None})
        if base in (STRINGS | INTEGERS) and len(distinct) <= _MAX_FILTER_VALUES:
            for value in distinct if len(distinct) > 1 else ():
                shown = raw(literal(value, base, context="compare"))
                yield member, op(member.term, "=", shown), [v == value for v in values]
                yield member, op(member.term, "<>", shown), [v is not None and v != value for v in values]
        if base in _NUMERIC and any(value is not None and value.startswith("-") for value in values):
            yield member, op(member.term, "<", raw("0")), [v is not None and v.startswith("-") for v in values]
        if base in _NUMERIC and "0" in distinct:
            positive = [v is not None and float(v) > 0 for v in values]
            yield member, op(member.term, ">", raw("0")), positive

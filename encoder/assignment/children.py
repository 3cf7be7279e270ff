"""Aggregates and picks over related rows: counts, sums, extremes, first and last, lists."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from emit.term import Part, Query, Term, call, in_query, negate, op, raw, ref, separate
from encoder.assignment.problem import INTEGERS, STRINGS, TIMES, Floats, Input, Problem, quoted
from encoder.assignment.related import relations
from encoder.assignment.relations import Member, Relation
from encoder.literals import source_of

_NUMERIC = INTEGERS | {"numeric"}
_MAX_NUMERIC = 16
_MAX_FACTORS = 7
_SEPARATORS = (",", ", ", " ", ";", "; ", "|", "/", " / ", "-", "\n", "")
_WIDEST = max(map(len, _SEPARATORS))
Mask = NDArray[np.bool_]
STAR = raw("*")
EXTREMES: tuple[tuple[str, Callable[..., str | None]], ...] = (("max", max), ("min", min))
_DOCUMENTS = frozenset({"json", "jsonb"})
_LISTED = STRINGS | _NUMERIC | {"boolean"}


@dataclass(frozen=True, slots=True)
class _Aggregate:
    """An aggregate of `value` over related rows, spelled when it is wanted."""

    relation: Relation
    function: str
    value: Term
    members: tuple[Member, ...]
    numbers: Floats
    whole: bool
    where: Term | None
    filled: bool

    @property
    def term(self) -> Term:
        inner = call(self.function, self.value)
        if self.filled:
            inner = call("coalesce", inner, raw("0"))
        return self.relation.scalar(inner, self.members, self.where)


@lru_cache(maxsize=8)
def child_aggregates(problem: Problem) -> tuple[Input, ...]:
    """Numbers over related rows, without filters."""
    found: list[Input] = []
    for relation in relations(problem):
        for item in aggregates(relation, (), None, None, numeric_members(relation), products=True):
            texts = tuple(None if math.isnan(x) else repr(x) for x in item.numbers.tolist())
            term = item.term
            found.append(Input(term, "bigint" if item.whole else "numeric", "N", texts, problem.cost(term)))
    return tuple(found)


def numeric_members(relation: Relation) -> list[Member]:
    """The numbers of the related rows that are worth an aggregate."""
    numeric = [member for member in relation.members if member.column.base in _NUMERIC and not member.is_key]
    # A column that holds nothing tells nothing.
    return [member for member in numeric if np.nan_to_num(member.numbers).any()][:_MAX_NUMERIC]


def aggregates(
    relation: Relation,
    also: tuple[Member, ...],
    where: Term | None,
    keep: Mask | None,
    numeric: Sequence[Member],
    products: bool = False,
) -> Iterator[_Aggregate]:
    """How many related rows `keep` marks, by the condition `where` on `also`, and aggregates of `numeric` over them."""
    groups, size = relation.group_of, len(relation.groups)
    every = np.ones(len(groups), dtype=np.bool_) if keep is None else keep
    counts = np.bincount(groups[every], minlength=size).astype(np.float64)
    yield _Aggregate(relation, "count", STAR, also, counts, True, where, False)
    values: list[tuple[Term, tuple[Member, ...], Floats, bool]] = [
        (member.term, (member,), member.numbers, member.column.base in INTEGERS) for member in numeric
    ]
    if products and relation.child:
        values += [(term, members, found, False) for term, members, found in _products(numeric[:_MAX_FACTORS])]
    for value, members, numbers, whole in values:
        used = every & ~np.isnan(numbers)
        for function, aggregated in _reduced(numbers[used], groups[used], size, len(members) > 1):
            exact = whole and function != "avg"
            yield _Aggregate(relation, function, value, (*members, *also), aggregated, exact, where, False)
            gaps = np.isnan(aggregated)
            if gaps.any():
                zeros = np.where(gaps, 0, aggregated)
                yield _Aggregate(relation, function, value, (*members, *also), zeros, exact, where, True)


def _products(members: Sequence[Member]) -> Iterator[tuple[Term, tuple[Member, ...], Floats]]:
    """Products of two numbers, and amounts less a percentage or a share, as they are and in cents."""
    amounts: list[tuple[Term, tuple[Member, ...], Floats]] = [(a.term, (a,), a.numbers) for a in members]
    for a, b in combinations(members, 2):
        if a.own or b.own:
            pair = (op(a.term, "*", b.term), (a, b), a.numbers * b.numbers)
            amounts.append(pair)
            yield pair
    for rate in members:
        for factor, remaining in _reductions(rate):
            for term, used, values in amounts:
                if rate in used or not any(member.own for member in (rate, *used)):
                    continue
                left = op(term, "*", factor)
                yield left, (*used, rate), values * remaining
                cents = np.floor(values * remaining * 100 + 0.5 + 1e-7) / 100
                yield call("round", left, raw("2")), (*used, rate), cents


def _reductions(rate: Member) -> Iterator[tuple[Term, Floats]]:
    """1-r/100 or 1-r for a column that looks like a rate; what NULL counts for may be nothing."""
    known = rate.numbers[~np.isnan(rate.numbers)]
    if not len(known) or known.min() < 0 or known.max() > 100 or len(np.unique(known)) < 2:
        return
    gaps = len(known) < len(rate.numbers)
    for filled in (True, False) if gaps else (False,):
        term = call("coalesce", rate.term, raw("0")) if filled else rate.term
        numbers = np.nan_to_num(rate.numbers) if filled else rate.numbers
        hundred = raw("100." if rate.column.base in INTEGERS else "100")
        yield op(raw("1"), "-", op(term, "/", hundred)), 1 - numbers / 100
        if known.max() <= 1:
            yield op(raw("1"), "-", term), 1 - numbers


def _reduced(numbers: Floats, groups: NDArray[np.intp], size: int, only_sum: bool) -> Iterator[tuple[str, Floats]]:
    counts = np.bincount(groups, minlength=size)
    sums = np.bincount(groups, weights=numbers, minlength=size)
    empty = counts == 0
    yield "sum", np.where(empty, np.nan, np.round(sums, 9))
    if only_sum:
        return
    most, least = np.full(size, -np.inf), np.full(size, np.inf)
    np.maximum.at(most, groups, numbers)
    np.minimum.at(least, groups, numbers)
    yield "max", np.where(empty, np.nan, most)
    yield "min", np.where(empty, np.nan, least)
    yield "avg", np.where(empty, np.nan, sums / np.maximum(counts, 1))


def picked(problem: Problem) -> Iterator[Term]:
    """The least, greatest, first or last value among the related rows."""
    for relation in relations(problem):
        yield from picked_from(problem, relation)


def picked_from(problem: Problem, relation: Relation) -> Iterator[Term]:
    for member in relation.members:
        if not _same_class(problem.base, member.column.base):
            continue
        if member.column.base in STRINGS | TIMES and holds_all(problem, relation, member):
            for name, function in EXTREMES:
                if _gives(problem, member, [extreme(member, group, function) for group in relation.groups]):
                    yield relation.scalar(call(name, member.term), (member,))
        if _could_pick(problem, relation, member):
            yield from _edges(problem, relation, member)


def _gives(problem: Problem, member: Member, texts: Sequence[str | None]) -> bool:
    return tuple(assigned(problem, member, text) for text in texts) == problem.new


def assigned(problem: Problem, member: Member, text: str | None) -> str | None:
    """A time as a column of the goal's type takes it."""
    if text is None or member.column.base == problem.base:
        return text
    if problem.base == "date":
        return text[:10]
    return f"{text} 00:00:00" if member.column.base == "date" else text


def extreme(member: Member, group: Sequence[int], function: Callable[..., str | None]) -> str | None:
    present = [text for i in group if (text := member.values[i]) is not None]
    return function(present, key=sort_key(member.column.base), default=None)


def holds_all(problem: Problem, relation: Relation, member: Member) -> bool:
    """Whether every wanted value stands in a related row."""
    return _same_class(problem.base, member.column.base) and all(
        text is None or any(assigned(problem, member, member.values[i]) == text for i in group)
        for text, group in zip(problem.new, relation.groups, strict=True)
    )


def _could_pick(problem: Problem, relation: Relation, member: Member) -> bool:
    for text, group in zip(problem.new, relation.groups, strict=True):
        if text is None and not group:
            continue
        if not any(member.values[i] == text for i in group):
            return False
    return True


def _edges(problem: Problem, relation: Relation, member: Member) -> Iterator[Term]:
    for order in relation.members:
        base = order.column.base
        if base not in _NUMERIC | TIMES | STRINGS or order is member:
            continue
        for descending in (False, True):
            picks = [
                next(iter(in_order(order, group, descending)), None)
                if all(order.values[i] is not None for i in group)
                else None
                for group in relation.groups
            ]
            if tuple(None if i is None else member.values[i] for i in picks) == problem.new:
                parts = ("ORDER BY", *order.term.parts, *(("DESC",) if descending else ()), "LIMIT", "1")
                yield relation.scalar(member.term, (member, order), tail=Term(parts))


def sort_key(base: str) -> Callable[[str], float | str]:
    return float if base in _NUMERIC else str


def in_order(order: Member, group: Sequence[int], descending: bool = False) -> list[int]:
    """The places of a group in the order of a member's values."""
    number = order.column.base in _NUMERIC
    if number:
        return sorted(group, key=lambda i: float(order.numbers[i]), reverse=descending)
    return sorted(group, key=lambda i: order.values[i] or "", reverse=descending)


def _same_class(a: str, b: str) -> bool:
    return a == b or any(a in alike and b in alike for alike in (STRINGS, _NUMERIC, TIMES))


def lists(problem: Problem) -> Iterator[Term]:
    """string_agg, jsonb_agg and ARRAY over the related rows, in some order."""
    base = problem.base
    if not base.endswith("[]") and base not in STRINGS | _DOCUMENTS:
        return
    for relation in relations(problem):
        for member in relation.members:
            if member.column.base not in _LISTED or None in member.values:
                continue
            if not _contains_all(problem, relation, member):
                continue
            for order in (member, *(m for m in relation.members if m is not member)):
                if order.column.base in _NUMERIC | TIMES | STRINGS and None not in order.values:
                    yield from _list(problem, relation, member, order)


def _contains_all(problem: Problem, relation: Relation, member: Member) -> bool:
    shown = member.values if problem.base not in _DOCUMENTS else tuple(map(_in_json(member), member.values))
    if not all(
        map(partial(_has_room, problem.base), problem.new, ([shown[i] or "" for i in g] for g in relation.groups))
    ):
        return False
    return all(
        text is None or all((shown[i] or "") in text for i in group)
        for text, group in zip(problem.new, relation.groups, strict=True)
    ) and any(len(group) > 0 for group in relation.groups)


def _has_room(base: str, text: str | None, line: Sequence[str]) -> bool:
    """Whether `text` is long enough for all of the line, and not longer than with the longest separator."""
    if text is None:
        return True
    length = sum(map(len, line))
    return length <= len(text) and (base not in STRINGS or len(text) <= length + _WIDEST * max(0, len(line) - 1))


def _in_json(member: Member) -> Callable[[str | None], str]:
    base = member.column.base
    if base == "boolean":
        return lambda text: "true" if text == "t" else "false"
    if base in STRINGS:
        return lambda text: json.dumps(text, ensure_ascii=False)
    return lambda text: text or ""


def _list(problem: Problem, relation: Relation, member: Member, order: Member) -> Iterator[Term]:
    used = (member, order)
    for descending in (False, True):
        lines = [[member.values[i] or "" for i in in_order(order, group, descending)] for group in relation.groups]
        tail = ("ORDER BY", *order.term.parts, *(("DESC",) if descending else ()))
        if problem.base.endswith("[]"):
            if all(text == "{" + ",".join(line) + "}" for text, line in zip(problem.new, lines, strict=True) if line):
                query = relation.select(member.term, used, tail=Term(tail))
                yield Term(("ARRAY(", query, ")"))
                yield relation.scalar(Term(("array_agg(", *member.term.parts, *tail, ")")), used)
        elif problem.base in _DOCUMENTS:
            shown = [[_in_json(member)(text) for text in line] for line in lines]
            texts = tuple("[" + ", ".join(line) + "]" if line else None for line in shown)
            yield from _aggregated(problem, relation, used, f"{problem.base}_agg", member.term, tail, texts, "[]")
        else:
            inner = member.term if member.column.base in STRINGS else op(member.term, "::", raw("text"))
            for separator in _SEPARATORS:
                texts = tuple(separator.join(line) if line else None for line in lines)
                arguments = Term(separate((inner, quoted(separator))))
                yield from _aggregated(problem, relation, used, "string_agg", arguments, tail, texts, "")


def _aggregated(
    problem: Problem,
    relation: Relation,
    members: tuple[Member, ...],
    function: str,
    arguments: Term,
    tail: tuple[Part, ...],
    texts: tuple[str | None, ...],
    empty: str,
) -> Iterator[Term]:
    """The list as it is or with `empty` for no rows, where that gives the goal."""
    term = Term((f"{function}(", *arguments.parts, *tail, ")"))
    if problem.new == texts:
        yield relation.scalar(term, members)
    elif problem.new == tuple(empty if text is None else text for text in texts):
        yield relation.scalar(call("coalesce", term, quoted(empty)), members)


def existence(problem: Problem) -> Iterator[Term]:
    """Whether there are related rows."""
    if problem.base != "boolean":
        return
    for relation in relations(problem):
        has = [bool(group) for group in relation.groups]
        wanted = [text == "t" for text in problem.new]
        for yes in (True, False):
            if [flag == yes for flag in has] == wanted:
                yield from _exists(relation, yes)


def _exists(relation: Relation, yes: bool) -> Iterator[Term]:
    inner = relation.select(raw("1"))
    exists = Term(("EXISTS(", Query((), inner.sources, inner.where), ")"))
    yield exists if yes else negate(exists)
    if len(relation.ours) == 1:
        source = source_of(relation.other, relation.key)
        query = Query((ref(relation.key, relation.theirs[0]),), (source,))
        yield in_query(ref((), relation.ours[0]), query, yes)

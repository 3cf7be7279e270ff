"""Aggregates and picks over related rows: counts, sums, extremes, first and last, lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import combinations

from emit.literal import literal
from emit.term import Query, Term, call, in_query, is_null, negate, op, raw, ref, separate
from encoder.assignment.decimals import Band
from encoder.assignment.problem import INTEGERS, STRINGS, TIMES, Input, Problem, quoted
from encoder.assignment.relations import Member, Relation, as_input, relations
from encoder.literals import source_of

_NUMERIC = INTEGERS | {"numeric"}
_MAX_FILTER_VALUES = 6
_SEPARATORS = (",", ", ", " ", ";", "; ", "|", "/", " / ", "-", "\n", "")
_STAR = raw("*")


@lru_cache(maxsize=8)
def child_aggregates(problem: Problem) -> tuple[Input, ...]:
    """Numbers over related rows, without filters."""
    found: list[Input] = []
    for relation in relations(problem):
        found.append(_count(problem, relation))
        numeric = [member for member in relation.members if member.column.base in _NUMERIC]
        for member in numeric:
            if not _is_link(relation, member):
                found.extend(_numeric(problem, relation, member.term, (member,), _decimals(member)))
        plain = [member for member in numeric if not _is_link(relation, member)][:8]
        for a, b in combinations(plain, 2):
            if not (a.own or b.own):
                continue
            values = [
                None if x is None or y is None else x * y for x, y in zip(_decimals(a), _decimals(b), strict=True)
            ]
            found.extend(_numeric(problem, relation, op(a.term, "*", b.term), (a, b), values, only_sum=True))
    return tuple(found)


def _is_link(relation: Relation, member: Member) -> bool:
    """Whether a column is a key, which nobody adds up."""
    table = relation.problem.state.catalog
    owner = relation.other if member.own else table[next(iter(_owner(relation, member)))]
    keys = {name for key in owner.foreign_keys for name in key.columns} | set(owner.primary_key)
    return member.column.name in keys


def _owner(relation: Relation, member: Member) -> Iterator[object]:
    for link in relation.other.foreign_keys:
        if member.sources[0].key == f"{relation.key}:{link.name}":
            yield link.target


def _decimals(member: Member) -> list[Decimal | None]:
    return [None if text is None or text == "NaN" else Decimal(text) for text in member.values]


def _count(problem: Problem, relation: Relation) -> Input:
    term = relation.scalar(call("count", _STAR))
    return as_input(problem, term, "bigint", "N", [str(len(group)) for group in relation.groups])


def _numeric(
    problem: Problem,
    relation: Relation,
    value: Term,
    members: tuple[Member, ...],
    numbers: Sequence[Decimal | None],
    where: Term | None = None,
    keep: Sequence[bool] | None = None,
    only_sum: bool = False,
) -> Iterator[Input]:
    kept = [
        [x for i in group if (keep is None or keep[i]) and (x := numbers[i]) is not None] for group in relation.groups
    ]
    functions: tuple[tuple[str, Callable[[list[Decimal]], Decimal]], ...] = (
        ("sum", lambda xs: sum(xs, Decimal(0))),
        ("max", max),
        ("min", min),
        ("avg", lambda xs: sum(xs, Decimal(0)) / len(xs)),
    )
    for name, function in functions[: 1 if only_sum else None]:
        texts = [str(function(xs)) if xs else None for xs in kept]
        whole = all(member.column.base in INTEGERS for member in members) and name != "avg"
        base = "bigint" if whole else "numeric"
        yield as_input(problem, relation.scalar(call(name, value), members, where), base, "N", texts)
        if None in texts:
            filled = call("coalesce", call(name, value), raw("0"))
            zeros = [text or "0" for text in texts]
            yield as_input(problem, relation.scalar(filled, members, where), base, "N", zeros)


def filtered(problem: Problem) -> Iterator[Term]:
    """Counts and sums of the related rows that satisfy one simple condition."""
    if problem.base not in _NUMERIC:
        return
    band = Band.rounding(problem.numbers, problem.scale)
    for relation in relations(problem):
        for member, condition, keep in conditions(relation):
            counts = [sum(keep[i] for i in group) for group in relation.groups]
            if all(a == b for a, b in zip(counts, problem.numbers.tolist(), strict=True)):
                yield relation.scalar(call("count", _STAR), (member,), condition)
            for other in relation.members:
                if other.column.base in _NUMERIC and not _is_link(relation, other):
                    for item in _numeric(
                        problem, relation, other.term, (other, member), _decimals(other), condition, keep
                    ):
                        if band.holds(item.numbers):
                            yield item.term


def conditions(relation: Relation) -> Iterator[tuple[Member, Term, list[bool]]]:
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
            positive = [v is not None and not v.startswith("-") and Decimal(v) > 0 for v in values]
            yield member, op(member.term, ">", raw("0")), positive


def picked(problem: Problem) -> Iterator[Term]:
    """The least, greatest, first or last value among the related rows."""
    for relation in relations(problem):
        for member in relation.members:
            if not _same_class(problem.base, member.column.base):
                continue
            for name, function in (("max", max), ("min", min)):
                texts = [_extreme(member, group, function) for group in relation.groups]
                if tuple(texts) == problem.new and member.column.base in STRINGS | TIMES:
                    yield relation.scalar(call(name, member.term), (member,))
            if _could_pick(problem, relation, member):
                yield from _edges(problem, relation, member)


def _extreme(member: Member, group: Sequence[int], function: Callable[..., str | None]) -> str | None:
    present = [text for i in group if (text := member.values[i]) is not None]
    return function(present, key=_sort_key(member.column.base), default=None)


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
        key = _sort_key(base)
        for descending in (False, True):
            picks = [
                (max if descending else min)(group, key=lambda i: key(order.values[i] or ""), default=None)
                if all(order.values[i] is not None for i in group)
                else None
                for group in relation.groups
            ]
            if tuple(None if i is None else member.values[i] for i in picks) == problem.new:
                parts = ("ORDER BY", *order.term.parts, *(("DESC",) if descending else ()), "LIMIT", "1")
                yield relation.scalar(member.term, (member, order), tail=Term(parts))


def _sort_key(base: str) -> Callable[[str], object]:
    if base in _NUMERIC:
        return lambda text: Decimal(text or "0")
    return lambda text: text


def _same_class(a: str, b: str) -> bool:
    return a == b or (a in STRINGS and b in STRINGS) or (a in _NUMERIC and b in _NUMERIC)


def lists(problem: Problem) -> Iterator[Term]:
    """string_agg and ARRAY over the related rows, in some order."""
    array = problem.base.endswith("[]")
    if not array and problem.base not in STRINGS:
        return
    for relation in relations(problem):
        for member in relation.members:
            if member.column.base not in STRINGS | INTEGERS or None in member.values:
                continue
            if not _contains_all(problem, relation, member):
                continue
            for order in (member, *(m for m in relation.members if m is not member)):
                if order.column.base in _NUMERIC | TIMES | STRINGS and None not in order.values:
                    yield from _list(problem, relation, member, order, array)


def _contains_all(problem: Problem, relation: Relation, member: Member) -> bool:
    return all(
        text is None or all((member.values[i] or "") in text for i in group)
        for text, group in zip(problem.new, relation.groups, strict=True)
    ) and any(len(group) > 0 for group in relation.groups)


def _list(problem: Problem, relation: Relation, member: Member, order: Member, array: bool) -> Iterator[Term]:
    key = _sort_key(order.column.base)
    for descending in (False, True):
        lines = [
            [member.values[i] or "" for i in sorted(group, key=lambda i: key(order.values[i] or ""), reverse=descending)]
            for group in relation.groups
        ]
        tail = ("ORDER BY", *order.term.parts, *(("DESC",) if descending else ()))
        if array:
            if all(text == "{" + ",".join(line) + "}" for text, line in zip(problem.new, lines, strict=True) if line):
                query = relation.select(member.term, (member, order), tail=Term(tail))
                yield Term(("ARRAY(", query, ")"))
                yield relation.scalar(Term(("array_agg(", *member.term.parts, *tail, ")")), (member, order))
            continue
        for separator in _SEPARATORS:
            texts = tuple(separator.join(line) if line else None for line in lines)
            filled = tuple(text or "" for text in texts)
            if problem.new not in (texts, filled):
                continue
            inner = member.term if member.column.base in STRINGS else op(member.term, "::", raw("text"))
            term = Term(("string_agg(", *separate((inner, quoted(separator))), *tail, ")"))
            if problem.new != texts:
                term = call("coalesce", term, raw("''"))
            yield relation.scalar(term, (member, order))


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

"""Simple conditions that hold on some rows of a sample and not on the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from emit.literal import literal
from emit.term import Term, in_values, is_null, negate, op, raw
from encoder.assignment.decimals import shortest_between
from encoder.assignment.derived import json_fields
from encoder.assignment.problem import Input, Problem, literal_term, quoted, to_moment

_MAX_LISTED = 4
_MAX_INFIX = 4
_MAX_BITS = 12
_COMPARISONS = (
    (">", np.greater),
    ("<", np.less),
    ("=", np.equal),
    ("<>", np.not_equal),
    (">=", np.greater_equal),
    ("<=", np.less_equal),
)


def conditions(problem: Problem, wanted: Sequence[bool], null_is_false: bool) -> Iterator[Term]:
    """Conditions true exactly where `wanted`; where they are NULL counts as false, or rules them out."""
    if all(wanted) or not any(wanted):
        return
    for item in (*problem.inputs, *json_fields(problem)):
        if item.base not in ("json", "jsonb"):
            yield from on_input(item, wanted, null_is_false, problem.timezone)
    yield from _between_columns(problem, wanted, null_is_false)


def on_input(item: Input, wanted: Sequence[bool], null_is_false: bool, timezone: str | None) -> Iterator[Term]:
    """Conditions on one input that are true exactly where `wanted`."""
    nulls = [text is None for text in item.texts]
    if list(wanted) == nulls:
        yield is_null(item.term)
    if [not flag for flag in wanted] == nulls:
        yield is_null(item.term, False)
    if (any(nulls) and not null_is_false) or any(n and w for n, w in zip(nulls, wanted, strict=True)):
        return
    true = {text for text, yes in zip(item.texts, wanted, strict=True) if yes and text is not None}
    false = {text for text, yes in zip(item.texts, wanted, strict=True) if not yes and text is not None}
    if true & false:
        return
    if item.base == "boolean":
        yield item.term if "t" in true else negate(item.term)
        return
    if len(true) == 1 or (len(true) <= _MAX_LISTED and false):
        yield in_values(item.term, [_shown(item, text, timezone) for text in sorted(true)])
    if len(false) == 1 or (1 < len(false) <= _MAX_LISTED and true):
        yield in_values(item.term, [_shown(item, text, timezone) for text in sorted(false)], False)
    if not true or not false:
        return
    if item.is_number:
        yield from _number_cuts(item, wanted)
        if item.is_integer:
            yield from _bit_tests(item, wanted)
    elif item.is_time:
        yield from _time_cuts(item, sorted(true), sorted(false), timezone)
    elif item.is_text:
        yield from _text_cuts(item, sorted(true), sorted(false))


def _shown(item: Input, text: str, timezone: str | None) -> Term:
    return literal_term(literal(text, item.base, context="compare", timezone=timezone))


def _number_cuts(item: Input, wanted: Sequence[bool]) -> Iterator[Term]:
    mask = np.array(wanted)
    true, false = item.numbers[mask], item.numbers[~mask & ~np.isnan(item.numbers)]
    for sign, low, high in ((">", false.max(), true.min()), ("<", true.max(), false.min())):
        if low < high:
            # c>k may equal the low side, c<k the high one.
            least, most = (low, np.nextafter(high, low)) if sign == ">" else (np.nextafter(low, high), high)
            text = shortest_between(least, most)
            if text is not None:
                yield op(item.term, sign, literal_term(literal(text, "numeric", context="compare")))


def _bit_tests(item: Input, wanted: Sequence[bool]) -> Iterator[Term]:
    """One bit set or not: odd and even first."""
    numbers = [int(text) if text is not None else None for text in item.texts]
    if any(number is not None and number < 0 for number in numbers):
        return
    for bit in range(_MAX_BITS):
        have = {(number >> bit) & 1 == yes for number, yes in zip(numbers, wanted, strict=True) if number is not None}
        if len(have) == 1:
            masked = op(item.term, "%", raw("2")) if not bit else op(item.term, "&", raw(str(1 << bit)))
            yield op(masked, ">" if have.pop() else "=", raw("0"))


def _time_cuts(item: Input, true: list[str], false: list[str], timezone: str | None) -> Iterator[Term]:
    for above, low, high in ((True, false[-1], true[0]), (False, true[-1], false[0])):
        if low < high:
            yield op(item.term, ">=" if above else "<", _shown(item, _rounded(low, high), timezone))


def _rounded(low: str, high: str) -> str:
    """The roundest time in (low, high], in the text form of `high`."""
    moment, least = to_moment(high), to_moment(low)
    if moment is None or least is None:
        return high
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    for candidate in (
        day.replace(month=1, day=1),
        day.replace(day=1),
        day,
        moment.replace(minute=0, second=0, microsecond=0),
        moment.replace(second=0, microsecond=0),
        moment,
    ):
        if candidate > least:
            break
    if len(high) <= 10:
        return candidate.date().isoformat()
    shown = candidate.replace(tzinfo=None).isoformat(" ")
    return shown + high[19 + len(high[19:].partition("+")[0]) :] if "+" in high else shown


def _text_cuts(item: Input, true: list[str], false: list[str]) -> Iterator[Term]:
    for sign, low, high in ((">", false[-1], true[0]), ("<", true[-1], false[0])):
        if low < high:
            length = next(i for i in range(1, len(high) + 1) if high[:i] > low)
            yield op(item.term, sign if high[:length] != true[0] else ">=", quoted(high[:length]))
    shortest = min(true, key=len)
    found = 0
    for length in range(1, _MAX_INFIX + 1):
        for place in range(len(shortest) - length + 1):
            part = shortest[place : place + length]
            if part.isalnum() and all(part in text for text in true) and not any(part in text for text in false):
                yield op(item.term, "~", quoted(part))
                found += 1
                if found >= 2:
                    return


def _between_columns(problem: Problem, wanted: Sequence[bool], null_is_false: bool) -> Iterator[Term]:
    items = [item for item in problem.inputs if item.is_number or item.is_time or item.is_text]
    mask = np.array(wanted)
    yes, no = np.flatnonzero(mask)[[0, -1]].tolist(), np.flatnonzero(~mask)[[0, -1]].tolist()
    for i, a in enumerate(items):
        for b in items[:i]:
            if a.is_number != b.is_number or a.is_time != b.is_time or not _may_part(a, b, yes, no):
                continue
            if a.is_text:
                known = [x is not None and y is not None for x, y in zip(a.texts, b.texts, strict=True)]
                equal = np.array([x == y for x, y in zip(a.texts, b.texts, strict=True)])
                results = [("=", equal), ("<>", ~equal)]
            else:
                known = (~np.isnan(a.numbers) & ~np.isnan(b.numbers)).tolist()
                with np.errstate(invalid="ignore"):
                    results = [(sign, compare(b.numbers, a.numbers)) for sign, compare in _COMPARISONS]
            seen = np.array(known)
            if not null_is_false and not seen.all():
                continue
            for sign, values in results:
                if np.array_equal(values & seen, mask):
                    yield op(b.term, sign, a.term)
                    break


def _may_part(a: Input, b: Input, yes: Sequence[int], no: Sequence[int]) -> bool:
    """Whether a comparison of two columns may hold at the places `yes` and not at `no`."""
    inside = {_order(a, b, place) for place in yes}
    return None not in inside and all(_order(a, b, place) not in inside for place in no)


def _order(a: Input, b: Input, place: int) -> int | None:
    """Which of two values is greater, as a sign (or for texts whether they differ); None where one is missing."""
    if a.is_text:
        x, y = a.texts[place], b.texts[place]
        return None if x is None or y is None else int(x != y)
    u, v = a.numbers[place], b.numbers[place]
    return None if u != u or v != v else int(u > v) - int(u < v)


def booleans(problem: Problem) -> Iterator[Term]:
    """A boolean from conditions and from other booleans."""
    if problem.base != "boolean":
        return
    for item in problem.inputs:
        opposite = tuple({"t": "f", "f": "t"}.get(text or "") for text in item.texts)
        if item.base == "boolean" and None not in opposite and opposite == problem.new:
            yield negate(item.term)
    if None not in problem.new:
        yield from conditions(problem, [text == "t" for text in problem.new], False)


def flags(problem: Problem) -> Iterator[Term]:
    """0 and 1 from a condition."""
    if set(problem.new) == {"0", "1"} and problem.base in ("integer", "smallint"):
        for term in conditions(problem, [text == "1" for text in problem.new], False):
            yield op(term, "::", raw("int"))

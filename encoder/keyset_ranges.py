"""Conditions on an integer key by listing, by ranges and by arithmetic."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from emit import dense
from emit.term import Prec, Term, call, disjoin, in_values, op, raw
from encoder.keyset import KeySet, Numbers, Run, numeral, numerals
from encoder.selection.booleans import measure

_MAX_LISTED = 5_000
_MAX_RANGES = 60
_MAX_DIVISOR = 1_000
_MAX_CELLS = 4_000_000
_SAMPLE = 20
_LARGE_SAMPLE = 1_000
_POWERS = 10 ** np.arange(1, 19)


def lists(rows: KeySet, yes: bool) -> Iterator[Term]:
    """id IN(1,2), id-90000 IN(1,2)."""
    if len(rows.listed) > _MAX_LISTED:
        return
    yield in_values(rows.key, numerals(rows.listed), yes)
    lowest = int(rows.listed[0])
    for power in range(1, len(str(lowest))):
        base = lowest // 10**power * 10**power
        if base > 0:
            yield in_values(op(rows.key, "-", raw(str(base))), numerals(rows.listed - base), yes)


def ranges(rows: KeySet, yes: bool) -> Iterator[Term]:
    """Ranges, and a list of what stands alone."""
    if len(rows.runs) > _MAX_RANGES:
        return
    if len(rows.runs) == 1:
        yield between(rows, rows.runs[0], yes)
        return
    alone: list[int] = []
    spans: list[Term] = []
    for run in rows.runs:
        span = between(rows, run)
        inside = rows.listed[(rows.listed >= run.first) & (rows.listed <= run.last)].tolist()
        if sum(len(str(number)) + 1 for number in inside) <= measure(span) + 2:
            alone += inside
        else:
            spans.append(span)
    whole = disjoin([*spans, *([in_values(rows.key, numerals(alone))] if alone else [])])
    assert whole is not None
    if spans:
        yield whole if yes else Term(("NOT(", *whole.parts, ")"), Prec.NOT)


def between(rows: KeySet, run: Run, yes: bool = True) -> Term:
    """The numbers of the run, none of those that end it, and between these whatever is the shortest."""
    if run.low is None:
        assert run.high is not None
        edge = _shortest(run.last + 1, run.high)
        return op(rows.key, "<" if yes else ">=", numeral(edge)) if yes or edge < run.high else _above(rows, edge - 1)
    if run.high is None:
        edge = _shortest(run.low, run.first - 1)
        return _above(rows, edge) if yes else op(rows.key, "<", numeral(_shortest(run.low + 1, run.first)))
    first, last = _shortest(run.low + 1, run.first), _shortest(run.last, run.high - 1)
    if run.first == run.last:
        return op(rows.key, "=" if yes else "<>", numeral(run.first))
    words = "BETWEEN" if yes else "NOT BETWEEN"
    return Term((*rows.key.parts, words, *numeral(first).parts, "AND", *numeral(last).parts), Prec.LIKE)


def _above(rows: KeySet, edge: int) -> Term:
    return op(rows.key, ">", numeral(edge))


def boundaries(rows: KeySet) -> Iterator[Term]:
    """A sorted array of the numbers that turn selection on and off: width_bucket(id,'{3,7}')%2=1.

    The parser knows width_bucket with four arguments only, unless its schema is named.
    """
    if len(rows.runs) < 2:
        return
    edges: list[int] = []
    for run in rows.runs:
        if run.low is not None:
            edges.append(_shortest(run.low + 1, run.first))
        if run.high is not None:
            edges.append(_shortest(run.last + 1, run.high))
    parity = raw("0" if rows.runs[0].low is None else "1")
    arrays = ["'{" + ",".join(map(str, edges)) + "}'"]
    characters = dense.code_points(edges)
    if characters is not None:
        arrays.append(f"array(SELECT ascii(string_to_table({characters},null)))")
    for array in arrays:
        yield op(op(call("pg_catalog.width_bucket", rows.key, raw(array)), "%", raw("2")), "=", parity)


def remainders(rows: KeySet, yes: bool) -> Iterator[Term]:
    """id%7=3, id%7 IN(1,3), id/100 IN(4,7): of each operator the divisor with the shortest list."""
    if rows.lowest < 0:
        return
    for operator, function in (("%", np.remainder), ("/", np.floor_divide)):
        best: tuple[int, int, Numbers] | None = None
        for divisor in _possible(rows, function):
            values = _apart(function(rows.listed, divisor), function(rows.others, divisor))
            if values is None:
                continue
            length = len(str(divisor)) + _list_bytes(values)
            if best is None or length < best[0]:
                best = (length, divisor, values)
        if best is not None:
            yield in_values(op(rows.key, operator, raw(str(best[1]))), numerals(best[2]), yes)


def _possible(rows: KeySet, function: np.ufunc) -> list[int]:
    """Divisors that tell at least some of the rows apart."""
    divisors = np.arange(2, min(_MAX_DIVISOR, rows.highest) + 1)
    listed = function(_sample(rows.listed, _SAMPLE)[:, None], divisors)
    for others in np.array_split(_sample(rows.others, 4 * _SAMPLE), 8):
        met = (function(others[:, None], divisors)[:, None] == listed).any(axis=(0, 1))
        divisors, listed = divisors[~met], listed[:, ~met]
    if len(rows.numbers) * len(divisors) <= _MAX_CELLS:
        return divisors.tolist()
    listed, others = _sample(rows.listed, _LARGE_SAMPLE), _sample(rows.others, _LARGE_SAMPLE)
    apart = [d for d in divisors.tolist() if _apart(function(listed, d), function(others, d)) is not None]
    return apart[: max(1, _MAX_CELLS // len(rows.numbers))]


def _apart(listed: Numbers, others: Numbers) -> Numbers | None:
    """The distinct values of `listed` (none negative), ascending; None where `others` has one of them."""
    highest = int(listed.max())
    if highest > _MAX_CELLS:
        values = np.unique(listed)
        return None if np.isin(others, values).any() else values
    marks = np.zeros(highest + 1, dtype=np.bool_)
    marks[listed] = True
    if marks[others[others <= highest]].any():
        return None
    return np.flatnonzero(marks)


def _sample(numbers: Numbers, count: int) -> Numbers:
    """The first few of `numbers`, and as many evenly from all of them."""
    return np.concatenate([numbers[:count], numbers[:: len(numbers) // count + 1]])


def _list_bytes(values: Numbers) -> int:
    digits = np.searchsorted(_POWERS, values, side="right") + 1
    return int(digits.sum()) + (len(values) + 5 if len(values) > 1 else 0)


def _shortest(low: int, high: int) -> int:
    """A number from `low` to `high` with the fewest digits."""
    if low <= 0 <= high:
        return 0
    return low if len(str(low)) <= len(str(high)) else high

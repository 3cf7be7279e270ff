"""Numbers: arithmetic over columns with constants inferred from intervals, rounding, clamps, bits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from emit.literal import literal
from emit.term import Prec, Term, call, op, raw
from encoder.assignment.decimals import Band, Floats, shortest_between
from encoder.assignment.derived import negative, numeric_inputs
from encoder.assignment.problem import FLOATS, INTEGERS, Input, Problem, digits_after_point, literal_term

_MAX_PAIRED = 40
_MAX_TRIPLE = 14


@dataclass(frozen=True, slots=True)
class _Line:
    """A numeric term with its values in the sample."""

    term: Term
    values: Floats
    integer: bool


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The goal as seen through the last function of an expression."""

    band: Band
    close: str  # round, ceil, floor, or "" where the column itself rounds
    digits: int
    shift: str = ""  # added after that function

    def finish(self, term: Term) -> Term:
        if self.close:
            inner = (term, raw(str(self.digits))) if self.digits else (term,)
            term = call(self.close, *inner)
        if self.shift:
            return plus(term, self.shift)
        return term


def number(text: str) -> Term:
    return literal_term(literal(text, "numeric", context="compare"))


def plus(term: Term, text: str) -> Term:
    if text.startswith("-"):
        return op(term, "-", number(text[1:]))
    return op(term, "+", number(text))


def arithmetic(problem: Problem) -> Iterator[Term]:
    """One, two or three columns, with a constant where needed."""
    if problem.base not in INTEGERS | FLOATS | {"numeric", "money"} or np.isnan(problem.numbers).all():
        return
    inputs = numeric_inputs(problem)
    goals = list(_wanted(problem))
    singles = [_Line(item.term, item.numbers, item.is_integer) for item in inputs]
    yield from _fit_all(singles, goals, problem)
    for line in singles:
        yield from _integer_steps(line, problem)
    yield from _clamps(problem, inputs)
    paired = singles[:_MAX_PAIRED]
    yield from _fit_all(list(_pairs(paired)), goals, problem)
    few = singles[:_MAX_TRIPLE]
    yield from _fit_all(list(_triples(few)), goals[:2], problem)
    yield from _linear(singles, goals[:1])
    yield from _bits(problem, inputs)


def _wanted(problem: Problem) -> Iterator[_Wanted]:
    scale, wanted = problem.scale, problem.numbers
    yield _Wanted(Band.rounding(wanted, scale), "", 0)
    texts = [text for text in problem.new if text is not None and "e" not in text]
    if len(texts) < 2:
        return
    used = max(len(text.partition(".")[2].rstrip("0")) for text in texts)
    shown = {digits_after_point(text) for text in texts}
    if scale is None and len(shown) == 1:
        used = max(used, *shown)
    if scale is None or used < scale:
        yield _Wanted(Band.rounding(wanted, used), "round", used)
    if used == 0 and problem.base not in INTEGERS:
        for negative in (1, 2, 3):
            if all(float(text) % 10**negative == 0 for text in texts):
                yield _Wanted(Band.rounding(wanted, -negative), "round", -negative)
    if used == 0:
        yield _Wanted(Band.floor(wanted), "floor", 0)
        yield _Wanted(Band.ceiling(wanted), "ceil", 0)
    fractions = {round(float(text) % 1, 6) for text in texts}
    if len(fractions) == 1 and used and not any(text.startswith("-") for text in texts):
        part = fractions.pop()
        for close, band, shift in (
            ("floor", Band.floor, part),
            ("ceil", Band.ceiling, part - 1),
            ("round", lambda w: Band.rounding(w, 0), part),
        ):
            yield _Wanted(band(wanted - shift), close, 0, format(round(shift, 6), "g"))


def _fit_all(lines: Sequence[_Line], goals: Sequence[_Wanted], problem: Problem) -> Iterator[Term]:
    if not lines:
        return
    matrix = np.array([line.values for line in lines])
    for goal in goals:
        exact = goal.band.holds(matrix)
        low, high = goal.band.offsets(matrix)
        least, most = goal.band.factors(matrix)
        for place in np.flatnonzero(exact | (low <= high) | (least <= most)).tolist():
            line = lines[place]
            if exact[place]:
                yield goal.finish(line.term)
                continue
            if low[place] <= high[place]:
                yield from _offset(line, goal, low[place], high[place])
            if least[place] <= most[place]:
                yield from _factor(line, goal, least[place], most[place])


def _offset(line: _Line, goal: _Wanted, low: float, high: float) -> Iterator[Term]:
    text = shortest_between(low, high)
    if text is not None and text != "0":
        yield goal.finish(plus(line.term, text))


def _factor(line: _Line, goal: _Wanted, low: float, high: float) -> Iterator[Term]:
    if low <= -1 <= high:
        yield goal.finish(negative(line.term))
        return
    found = []
    text = shortest_between(low, high)
    if text is not None and text not in ("0", "1"):
        found.append(op(line.term, "*", number(text)))
    if low > 0 or high < 0:
        divisor = shortest_between(1 / high, 1 / low)
        if divisor is not None and divisor not in ("0", "1"):
            shown = number(divisor)
            if line.integer and "." not in divisor:
                shown = raw(divisor + ".")
            found.append(op(line.term, "/", shown))
    for term in sorted(found, key=lambda t: len(t.parts[-1]) if isinstance(t.parts[-1], str) else 0):
        yield goal.finish(term)


def _pairs(lines: Sequence[_Line]) -> Iterator[_Line]:
    with np.errstate(all="ignore"):
        for i, a in enumerate(lines):
            for b in lines[:i]:
                whole = a.integer and b.integer
                yield _Line(op(b.term, "+", a.term), a.values + b.values, whole)
                yield _Line(op(b.term, "-", a.term), b.values - a.values, whole)
                yield _Line(op(a.term, "-", b.term), a.values - b.values, whole)
                yield _Line(op(b.term, "*", a.term), a.values * b.values, whole)
                for x, y in ((a, b), (b, a)):
                    if (y.values != 0).all():
                        ratio = x.values / y.values
                        yield _Line(op(x.term, "/", y.term), np.trunc(ratio) if whole else ratio, whole)
                        if whole:
                            yield _Line(op(op(x.term, "*", raw("1.")), "/", y.term), ratio, False)
                            yield _Line(op(x.term, "%", y.term), np.fmod(x.values, y.values), True)
                    hundred = op(raw("100"), "-", y.term)
                    yield _Line(op(x.term, "*", hundred), x.values * (100 - y.values), whole)
                    yield _Line(op(x.term, "*", op(raw("1"), "-", y.term)), x.values * (1 - y.values), whole)
                    yield _Line(op(x.term, "*", op(raw("1"), "+", y.term)), x.values * (1 + y.values), whole)
                    yield _Line(op(x.term, "*", op(raw("100"), "+", y.term)), x.values * (100 + y.values), whole)


def _triples(lines: Sequence[_Line]) -> Iterator[_Line]:
    with np.errstate(all="ignore"):
        for i, a in enumerate(lines):
            for j, b in enumerate(lines[:i]):
                yield from (
                    _Line(op(op(c.term, "*", b.term), "*", a.term), a.values * b.values * c.values, False)
                    for c in lines[:j]
                )
                yield from (
                    _Line(op(op(c.term, "+", b.term), "+", a.term), a.values + b.values + c.values, False)
                    for c in lines[:j]
                )
                product = op(b.term, "*", a.term)
                for c in lines:
                    if c is not a and c is not b:
                        yield _Line(op(product, "+", c.term), a.values * b.values + c.values, False)
                        yield _Line(op(product, "-", c.term), a.values * b.values - c.values, False)
                        yield _Line(op(c.term, "-", product), c.values - a.values * b.values, False)


def _linear(lines: Sequence[_Line], goals: Sequence[_Wanted]) -> Iterator[Term]:
    """k*x+c from the two rows that are farthest apart (as in ChARLES, Naous et al. 2021)."""
    for goal in goals:
        middle = (goal.band.low + goal.band.high) / 2
        for line in lines:
            known = ~np.isnan(line.values) & ~np.isnan(middle)
            if known.sum() < 3 or (np.isnan(line.values) != np.isnan(middle)).any():
                continue
            x, low, high = line.values[known], goal.band.low[known], goal.band.high[known]
            first, last = int(np.argmin(x)), int(np.argmax(x))
            spread = x[last] - x[first]
            if spread <= 0:
                continue
            k = shortest_between((low[last] - high[first]) / spread, (high[last] - low[first]) / spread)
            if k is None or k in ("0", "1"):
                continue
            least, most = (low - float(k) * x).max(), (high - float(k) * x).min()
            c = shortest_between(least, most)
            if c is None or c == "0":
                continue
            if k == "-1":
                yield goal.finish(op(number(c), "-", line.term))
            elif k.startswith("-"):
                yield goal.finish(op(number(c), "-", op(line.term, "*", number(k[1:]))))
            else:
                yield goal.finish(plus(op(line.term, "*", number(k)), c))


def _integer_steps(line: _Line, problem: Problem) -> Iterator[Term]:
    """Integer division and remainder."""
    x, new = line.values, problem.numbers
    if not line.integer or (np.isnan(x) != np.isnan(new)).any():
        return
    known = ~np.isnan(x)
    x, new = x[known], new[known]
    if len(x) < 2 or (new != np.trunc(new)).any() or (x < 0).any() or (new < 0).any():
        return
    with np.errstate(divide="ignore"):
        divisor = math.floor((x / (new + 1)).max()) + 1
        most = np.where(new > 0, x / np.maximum(new, 1), np.inf).min()
    if 1 < divisor <= most:
        rounder = shortest_between(divisor, min(most, divisor * 10))
        yield op(line.term, "/", raw(rounder or str(divisor)))
        yield op(line.term, "/", raw(str(divisor)))
    common = reduce(math.gcd, (int(v) for v in x - new), 0)
    above = int(new.max())
    if common > above:
        for candidate in range(above + 1, min(common, above + 2000) + 1):
            if common % candidate == 0:
                yield op(line.term, "%", raw(str(candidate)))
                break


def _clamps(problem: Problem, inputs: Sequence[Input]) -> Iterator[Term]:
    """greatest, least, coalesce, nullif, abs with what is left of the rows after one value is set apart."""
    new = problem.numbers
    known = new[~np.isnan(new)]
    for item in inputs:
        if (np.abs(item.numbers) == new).any() and (item.numbers < 0).any():
            yield call("abs", item.term)
    if not len(known):
        return
    values, counts = np.unique(known, return_counts=True)
    edges = {float(values[0]), float(values[-1]), float(values[int(np.argmax(counts))])}
    for edge in sorted(edges):
        edge_text = next(text for text, value in zip(problem.new, new, strict=True) if value == edge)
        if edge_text is None:
            continue
        for item in inputs:
            yield from _clamp(item, new, edge, number(edge_text))
    for i, a in enumerate(inputs[:_MAX_PAIRED]):
        for b in inputs[:i]:
            for name, function in (("greatest", np.fmax), ("least", np.fmin)):
                if np.array_equal(function(a.numbers, b.numbers), new, equal_nan=True):
                    yield call(name, b.term, a.term)


def _clamp(item: Input, new: Floats, edge: float, shown: Term) -> Iterator[Term]:
    rest = new != edge
    x = item.numbers
    if rest.sum() < 2 or np.isnan(x[rest]).any() or np.isnan(new[rest]).any():
        return
    shift = new[rest] - x[rest]
    with np.errstate(all="ignore"):
        factor = new[rest] / x[rest]
    if np.ptp(shift) < 1e-9:
        offset = shortest_between(shift[0] - 1e-9, shift[0] + 1e-9)
        inner = item.term if offset in ("0", None) else plus(item.term, offset)
        values = x + shift[0]
    elif np.isfinite(factor).all() and np.ptp(factor) < 1e-6 * abs(factor[0]):
        k = shortest_between(factor.min() - 1e-9, factor.max() + 1e-9)
        if k is None:
            return
        inner, values = op(item.term, "*", number(k)), x * float(k)
    else:
        return
    at_edge = values[~rest]
    if np.isnan(at_edge).all():
        yield call("coalesce", inner, shown)
        return
    if np.nanmax(at_edge) <= edge:
        yield call("greatest", inner, shown)
    if np.nanmin(at_edge) >= edge:
        yield call("least", inner, shown)


def _bits(problem: Problem, inputs: Sequence[Input]) -> Iterator[Term]:
    """Bits set, cleared or flipped in an integer."""
    if problem.base not in INTEGERS or np.isnan(problem.numbers).any():
        return
    new = [int(value) for value in problem.numbers]
    for item in inputs:
        if not item.is_integer or np.isnan(item.numbers).any():
            continue
        old = [int(value) for value in item.numbers]
        changed = {a ^ b for a, b in zip(old, new, strict=True)}
        if not any(changed) or any(a < 0 for a in old + new):
            continue
        if len(changed) == 1:
            yield op(item.term, "#", raw(str(changed.pop())))
        added = reduce(int.__or__, (b & ~a for a, b in zip(old, new, strict=True)))
        if added and all(a | added == b for a, b in zip(old, new, strict=True)):
            yield op(item.term, "|", raw(str(added)))
        gone = reduce(int.__or__, (a & ~b for a, b in zip(old, new, strict=True)))
        if gone and all(a & ~gone == b for a, b in zip(old, new, strict=True)):
            yield op(item.term, "&", Term(("~", str(gone)), Prec.OTHER))
            kept = reduce(int.__or__, new)
            yield op(item.term, "&", raw(str(kept)))

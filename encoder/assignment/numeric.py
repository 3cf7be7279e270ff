"""Numbers: arithmetic over columns with constants inferred from intervals, rounding, clamps, bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from emit.literal import literal
from emit.term import Prec, Term, call, op, raw, ref
from encoder.assignment.decimals import Band, Floats, shortest_between
from encoder.assignment.derived import counted_inputs, negative, numeric_inputs
from encoder.assignment.problem import FLOATS, INTEGERS, Input, Problem, digits_after_point, literal_term

_MAX_PAIRED = 40
_MAX_TRIPLE = 14
# Zeros at the end of all numbers that rounding may have left.
_MAX_ZEROS = 3


@dataclass(frozen=True, slots=True)
class _Block:
    """Numeric terms with their values in the sample, a line each; terms are built only for those that fit."""

    values: Floats
    whole: NDArray[np.bool_]
    term: Callable[[int], Term]


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


def _is_numeric(problem: Problem) -> bool:
    return problem.base in INTEGERS | FLOATS | {"numeric", "money"} and not np.isnan(problem.numbers).all()


def single(problem: Problem) -> Iterator[Term]:
    """One number and constants."""
    if not _is_numeric(problem):
        return
    inputs = numeric_inputs(problem)
    block = _block(inputs)
    yield from _fit(block, list(_wanted(problem)), set())
    for item in inputs:
        yield from _integer_steps(item, problem)
    near = [item for item in inputs if len(item.term.parts) == 1][:_MAX_PAIRED]
    near.sort(key=lambda item: item.term != ref((), problem.column.name))
    yield from _clamps(problem, near)
    yield from _bits(problem, near)
    yield from _linear(block, next(_wanted(problem)))


def related(problem: Problem) -> Iterator[Term]:
    """One aggregate of related rows and constants."""
    if _is_numeric(problem):
        known = {item.term for item in numeric_inputs(problem)}
        block = _block([item for item in counted_inputs(problem) if item.term not in known])
        yield from _fit(block, list(_wanted(problem))[:2], set())
        yield from _linear(block, next(_wanted(problem)))


def pairs(problem: Problem) -> Iterator[Term]:
    """Two numbers of the row and a constant."""
    if _is_numeric(problem):
        yield from _paired(problem, _combinable(numeric_inputs(problem)))


def related_pairs(problem: Problem) -> Iterator[Term]:
    """Two numbers, aggregates of related rows among them, and a constant."""
    if _is_numeric(problem):
        yield from _paired(problem, _combinable(counted_inputs(problem)))


def _paired(problem: Problem, inputs: Sequence[Input]) -> Iterator[Term]:
    singles = _block(inputs[:_MAX_PAIRED])
    seen = {line.tobytes() for line in singles.values}
    yield from _fit_all(_pairs(singles), list(_wanted(problem)), seen)


def triples(problem: Problem) -> Iterator[Term]:
    """Three numbers and a constant."""
    if _is_numeric(problem):
        singles = _block(_combinable(numeric_inputs(problem))[:_MAX_TRIPLE])
        seen = {line.tobytes() for block in (singles, *_pairs(singles)) for line in block.values}
        yield from _fit_all(_triples(singles), list(_wanted(problem))[:2], seen)


def of_input(problem: Problem, item: Input, roundings: int = 1) -> Iterator[Term]:
    """The goal from the one number `item`, through at most so many kinds of rounding."""
    if _is_numeric(problem):
        block = _block([item])
        yield from _fit(block, list(_wanted(problem))[:roundings], set())
        yield from _linear(block, next(_wanted(problem)))


def _combinable(inputs: Sequence[Input]) -> list[Input]:
    """Numbers worth combining: they differ from row to row and are no keys; plain columns first."""
    found = [item for item in inputs if not item.is_key and np.nanmin(item.numbers) < np.nanmax(item.numbers)]
    return sorted(found, key=lambda item: len(item.term.parts) > 1)


def _block(inputs: Sequence[Input]) -> _Block:
    whole = np.array([item.is_integer for item in inputs], dtype=np.bool_)
    return _Block(np.array([item.numbers for item in inputs]), whole, lambda place: inputs[place].term)


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
    if used == 0:
        zeros = 1
        while zeros <= _MAX_ZEROS and all(float(text) % 10**zeros == 0 for text in texts):
            yield _Wanted(Band.rounding(wanted, -zeros), "round", -zeros)
            zeros += 1
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
            ("round", lambda w: Band.rounding(w, 0), part - 1),
        ):
            yield _Wanted(band(wanted - shift), close, 0, format(round(shift, 6), "g"))


def _fit_all(blocks: Iterable[_Block], goals: Sequence[_Wanted], seen: set[bytes]) -> Iterator[Term]:
    for block in blocks:
        yield from _fit(block, goals, seen)


def _fit(block: _Block, goals: Sequence[_Wanted], seen: set[bytes]) -> Iterator[Term]:
    """The terms of the block that reach a goal with at most one constant; `seen` are values not to repeat."""
    if not len(block.values):
        return
    fresh: dict[int, bool] = {}
    for goal in goals:
        exact = goal.band.holds(block.values)
        low, high = goal.band.offsets(block.values)
        least, most = goal.band.factors(block.values)
        for place in np.flatnonzero(exact | (low <= high) | (least <= most)).tolist():
            if place not in fresh:
                mark = block.values[place].tobytes()
                fresh[place] = mark not in seen
                seen.add(mark)
            if not fresh[place]:
                continue
            term, whole = block.term(place), bool(block.whole[place])
            if exact[place]:
                if not (whole and goal.close):
                    yield goal.finish(term)
                continue
            if low[place] <= high[place]:
                yield from _offset(term, goal, low[place], high[place])
            if least[place] <= most[place]:
                yield from _factor(term, whole, goal, least[place], most[place])


def _offset(line: Term, goal: _Wanted, low: float, high: float) -> Iterator[Term]:
    text = shortest_between(low, high)
    if text is not None and text != "0":
        yield goal.finish(plus(line, text))


def _factor(line: Term, whole: bool, goal: _Wanted, low: float, high: float) -> Iterator[Term]:
    if low <= -1 <= high:
        yield goal.finish(negative(line))
        return
    found = []
    text = shortest_between(low, high)
    if text is not None and text not in ("0", "1"):
        found.append(op(line, "*", number(text)))
        if whole and line.prec == Prec.MUL and all(part == "*" for part in line.parts if isinstance(part, str)):
            # Small integers overflow unless the product starts with something wider.
            found.append(Term((*number(text).parts, "*", *line.parts), Prec.MUL))
    if low > 0 or high < 0:
        divisor = shortest_between(1 / high, 1 / low)
        if divisor is not None and divisor not in ("0", "1"):
            shown = number(divisor)
            if whole and "." not in divisor:
                shown = raw(divisor + ".")
            found.append(op(line, "/", shown))
    for term in sorted(found, key=lambda t: len(t.parts[-1]) if isinstance(t.parts[-1], str) else 0):
        yield goal.finish(term)


_PairForm: TypeAlias = tuple[Callable[[Floats, Floats], Floats], Callable[[Term, Term], Term], bool]


def _times(left: Term, right: Term) -> Term:
    return op(left, "*", right)


# What two numbers may give: the value, the term, and whether it needs both to be integers.
_SYMMETRIC: tuple[_PairForm, ...] = (
    (np.add, lambda a, b: op(a, "+", b), False),
    (np.multiply, _times, False),
)
_DIRECTED: tuple[_PairForm, ...] = (
    (np.subtract, lambda a, b: op(a, "-", b), False),
    (lambda a, b: a * (100 - b), lambda a, b: _times(a, op(raw("100"), "-", b)), False),
    (lambda a, b: a * (1 - b), lambda a, b: _times(a, op(raw("1"), "-", b)), False),
    (lambda a, b: a * (100 + b), lambda a, b: _times(a, op(raw("100"), "+", b)), False),
    (lambda a, b: a * (1 + b), lambda a, b: _times(a, op(raw("1"), "+", b)), False),
    (lambda a, b: a * (1 - b / 100), lambda a, b: _times(a, op(raw("1"), "-", _times(b, raw(".01")))), False),
    (lambda a, b: a * (1 + b / 100), lambda a, b: _times(a, op(raw("1"), "+", _times(b, raw(".01")))), False),
)
_DIVIDED: tuple[_PairForm, ...] = (
    (np.divide, lambda a, b: op(a, "/", b), False),
    (lambda a, b: np.trunc(a / b), lambda a, b: op(a, "/", b), True),
    (np.divide, lambda a, b: op(_times(a, raw("1.")), "/", b), True),
    (np.fmod, lambda a, b: op(a, "%", b), True),
)


def _pairs(singles: _Block) -> Iterator[_Block]:
    count = len(singles.values)
    if count < 2:
        return
    first, second = np.triu_indices(count, 1)
    yield from _pair_blocks(singles, first, second, _SYMMETRIC)
    both = np.concatenate([first, second]), np.concatenate([second, first])
    yield from _pair_blocks(singles, *both, _DIRECTED)
    usable = (singles.values[both[1]] != 0).all(axis=1)
    yield from _pair_blocks(singles, both[0][usable], both[1][usable], _DIVIDED)


def _pair_blocks(
    singles: _Block, first: NDArray[np.intp], second: NDArray[np.intp], forms: Sequence[_PairForm]
) -> Iterator[_Block]:
    a, b = singles.values[first], singles.values[second]
    whole = singles.whole[first] & singles.whole[second]
    for function, build, integers in forms:
        # Two integers divide to an integer: the plain quotient is for the other pairs.
        kept = whole if integers else ~whole if function is np.divide else np.ones_like(whole)
        places = np.flatnonzero(kept)

        def term(place: int, build: Callable[[Term, Term], Term] = build, places: NDArray[np.intp] = places) -> Term:
            i = places[place]
            return build(singles.term(int(first[i])), singles.term(int(second[i])))

        with np.errstate(all="ignore"):
            yield _Block(function(a[places], b[places]), whole[places] & (function is not np.divide), term)


def _triples(singles: _Block) -> Iterator[_Block]:
    count = len(singles.values)
    first, second = np.triu_indices(count, 1)
    values, whole = singles.values, singles.whole
    for c in range(count):
        product, total = values[first] * values[second], values[first] + values[second]
        third = values[c]

        def build(place: int, form: Callable[[Term, Term, Term], Term], c: int = c) -> Term:
            return form(*(singles.term(int(i)) for i in (first[place], second[place], c)))

        flags = whole[first] & whole[second] & whole[c]
        later = np.flatnonzero(second < c)
        forms: tuple[tuple[Floats, Callable[[Term, Term, Term], Term], bool], ...] = (
            (product * third, lambda x, y, z: _times(_times(x, y), z), True),
            (total + third, lambda x, y, z: op(op(x, "+", y), "+", z), True),
            (total - third, lambda x, y, z: op(op(x, "+", y), "-", z), False),
            (total * third, lambda x, y, z: _times(z, op(x, "+", y)), False),
            (product + third, lambda x, y, z: op(_times(x, y), "+", z), False),
            (product - third, lambda x, y, z: op(_times(x, y), "-", z), False),
            (third - product, lambda x, y, z: op(z, "-", _times(x, y)), False),
        )
        for block, form, symmetric in forms:
            places = later if symmetric else np.flatnonzero((first != c) & (second != c))
            yield _Block(
                block[places],
                flags[places],
                lambda place, form=form, places=places, build=build: build(int(places[place]), form),  # type: ignore[misc]
            )


def _linear(block: _Block, goal: _Wanted) -> Iterator[Term]:
    """k*x+c from the two rows that are farthest apart (as in ChARLES, Naous et al. 2021)."""
    for place, line in enumerate(block.values):
        known = ~np.isnan(line)
        if known.sum() < 3 or (known == np.isnan(goal.band.low)).any():
            continue
        x, low, high = line[known], goal.band.low[known], goal.band.high[known]
        first, last = int(np.argmin(x)), int(np.argmax(x))
        spread = x[last] - x[first]
        if spread <= 0:
            continue
        k = shortest_between((low[last] - high[first]) / spread, (high[last] - low[first]) / spread)
        if k is None or k in ("0", "1"):
            continue
        c = shortest_between((low - float(k) * x).max(), (high - float(k) * x).min())
        if c is None or c == "0":
            continue
        term = block.term(place)
        if k == "-1":
            yield goal.finish(op(number(c), "-", term))
        elif k.startswith("-"):
            yield goal.finish(op(number(c), "-", _times(term, number(k[1:]))))
        else:
            yield goal.finish(plus(_times(term, number(k)), c))


def _integer_steps(item: Input, problem: Problem) -> Iterator[Term]:
    """Integer division and remainder."""
    x, new = item.numbers, problem.numbers
    if not item.is_integer or (np.isnan(x) != np.isnan(new)).any():
        return
    known = ~np.isnan(x)
    x, new = x[known], new[known]
    if not np.isfinite(new).all() or not np.isfinite(x).all():
        return
    if len(x) < 2 or (new != np.trunc(new)).any() or (x < 0).any() or (new < 0).any():
        return
    yield from integer_quotients(item.term, x, new)
    steps = [int(v) for v in x - new]
    common = reduce(math.gcd, (step - steps[0] for step in steps), 0)
    above = int(new.max())
    if common > above:
        for candidate in range(above + 1, min(common, above + 2000) + 1):
            if common % candidate == 0:
                shift = -steps[0] % candidate
                inner = plus(item.term, str(shift)) if shift else item.term
                yield op(inner, "%", raw(str(candidate)))
                break


def integer_quotients(term: Term, x: Floats, wanted: Floats) -> Iterator[Term]:
    """`term`/k with the roundest and the least k that give `wanted` from the values `x`; all are whole and
    none is negative."""
    with np.errstate(divide="ignore"):
        divisor = math.floor((x / (wanted + 1)).max()) + 1
        most = np.where(wanted > 0, x / np.maximum(wanted, 1), np.inf).min()
    if 1 < divisor <= most:
        rounder = shortest_between(divisor, min(most, divisor * 10))
        for text in dict.fromkeys((rounder or str(divisor), str(divisor))):
            yield op(term, "/", raw(text))


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
        if len(values) == 1 and inputs:
            # A bound of the column itself leaves the rows alone that keep to it.
            yield call("least" if inputs[0].numbers[0] > edge else "greatest", inputs[0].term, number(edge_text))
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
    if np.nanmin(at_edge) < edge >= np.nanmax(at_edge):
        yield call("greatest", inner, shown)
    if np.nanmax(at_edge) > edge <= np.nanmin(at_edge):
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

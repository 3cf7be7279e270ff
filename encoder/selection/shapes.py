"""Conditions on the values of one feature that hold for all values that must be selected.

Every function gives shapes from a view; each accepts all needed values and rejects some foreign ones.  The
opposite conditions (holding for no such value) come from the same shapes on the swapped view.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from emit.literal import input_text, literal, quote
from emit.term import Prec, Term, in_values, is_null, negate, op, raw, wrap
from encoder.selection.booleans import measure
from encoder.selection.model import Mask
from encoder.selection.scales import JSON_NUMBERS, TEXTS, Bound, NumberScale, TextScale, fold
from encoder.selection.view import Shape, Spell, View

MAX_LIST = 24
_SINGLES = 6
_CHECKED = 500
_GAPS = 3
_LARGE = 9 * 10**9
# Values that are needed to believe in a common divisor, and the least that is no feature of its own.
_ALIKE, _LEAST_DIVISOR = 4, 9
_BARE_ELEMENT = frozenset("abcdefghijklmopqrstvwxyz0123456789_-:/.@+ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def value_term(view: View, code: int, timezone: str | None) -> Term:
    """Value number `code` as the other side of a comparison."""
    return _spelled(view.feature.coded.values[code], view.feature.base, timezone)


@lru_cache(maxsize=1 << 15)
def _spelled(value: str, base: str, timezone: str | None) -> Term:
    text = literal(value, base, context="compare", timezone=timezone)
    return raw(text, Prec.UNARY if text.startswith("-") else Prec.ATOM)


def null_shapes(view: View) -> Iterator[Shape]:
    """ISNULL and NOTNULL."""
    size = len(view.need)
    if view.feature.not_null:
        return
    only = np.zeros(size, dtype=np.bool_)
    only[-1] = True
    term = view.feature.term
    yield Shape(only, lambda yes: is_null(term, yes), total=True)
    yield Shape(~only, lambda yes: is_null(term, not yes), total=True)
    if (trivial := _trivial(view)) is not None:
        yield Shape(~only, lambda yes: trivial if yes else None)


def _trivial(view: View) -> Term | None:
    """A condition that every value meets, as a shorter NOTNULL."""
    feature, scale = view.feature, view.feature.scale
    found = [op(feature.term, "=", feature.term)] if feature.comparable else []
    if feature.base in TEXTS:
        found.append(op(feature.term, "~", raw("''")))
    if isinstance(scale, NumberScale) and feature.base != JSON_NUMBERS and scale.keys:
        if scale.keys[0] > 0:
            found.append(op(feature.term, ">", raw("0")))
        elif scale.keys[-1] < _LARGE:
            found.append(op(feature.term, "<", raw("9e9")))
    return min(found, key=measure, default=None)


def boolean_shapes(view: View) -> Iterator[Shape]:
    """A boolean, or NOT it; with IS NOT where NULLs are to be kept."""
    values, term = view.feature.coded.values, view.feature.term
    for code, value in enumerate(values):
        accept = np.zeros(len(view.need), dtype=np.bool_)
        accept[code] = True
        yield Shape(accept, _boolean(term, value == "t"))
        rest = ~accept
        word = "TRUE" if value == "t" else "FALSE"
        yield Shape(rest, _is(term, word), total=True)


def _boolean(term: Term, truth: bool) -> Spell:
    return lambda yes: term if yes == truth else negate(term)


def _is(term: Term, word: str) -> Spell:
    return lambda yes: raw_after(term, f"IS NOT {word}" if yes else f"IS {word}")


def raw_after(term: Term, words: str) -> Term:
    return Term((*wrap(term, Prec.COMPARE), words), Prec.IS)


def list_shapes(view: View, timezone: str | None) -> Iterator[Shape]:
    """=, IN, <>, NOT IN."""
    if not view.feature.comparable:
        return
    if not len(view.foreign):
        return
    if 0 < len(view.needed) <= MAX_LIST:
        yield _listed(view, view.needed.tolist(), True, timezone)
    foreign = view.foreign
    if len(foreign) <= MAX_LIST:
        yield _listed(view, foreign.tolist(), False, timezone)
    heavy = foreign[np.argsort(-view.bad[foreign], kind="stable")]
    for count in range(1, _SINGLES + 1):
        if count < len(heavy):
            yield _listed(view, [int(heavy[count - 1])], False, timezone)
            if count > 1:
                yield _listed(view, sorted(heavy[:count].tolist()), False, timezone)
    if view.need[-1]:
        for code in heavy[:_SINGLES].tolist():
            yield _distinct(view, code, timezone)


def _distinct(view: View, code: int, timezone: str | None) -> Shape:
    accept = np.ones(len(view.need), dtype=np.bool_)
    accept[code] = False
    words = ("IS NOT DISTINCT FROM", "IS DISTINCT FROM")
    value = value_term(view, code, timezone)
    return Shape(accept, lambda yes: op(view.feature.term, words[yes], value), total=True)


def _listed(view: View, codes: list[int], inside: bool, timezone: str | None) -> Shape:
    accept = np.zeros(len(view.need), dtype=np.bool_)
    accept[codes] = True
    if not inside:
        accept = ~accept
        accept[-1] = False
    return Shape(accept, lambda yes: list_term(view, codes, yes == inside, timezone))


def list_term(view: View, codes: list[int], yes: bool, timezone: str | None) -> Term:
    """The feature is (or is not) one of the values, in the shorter of IN(…) and =ANY('{…}')."""
    feature = view.feature
    listed = in_values(feature.term, [value_term(view, code, timezone) for code in codes], yes)
    if len(codes) < 2 or feature.base.endswith("]"):
        return listed
    texts = [input_text(feature.coded.values[code], feature.base, timezone=timezone) for code in codes]
    if any(not text or not set(text) <= _BARE_ELEMENT or text.lower() == "null" for text in texts):
        return listed
    array = raw(quote("{" + ",".join(texts) + "}"))
    compared = op(feature.term, "=" if yes else "<>", raw(f"{'ANY' if yes else 'ALL'}({array.parts[0]})"))
    return min(listed, compared, key=length)


def length(term: Term) -> int:
    """Bytes of the text parts alone: enough to compare two spellings over the same columns."""
    return sum(len(part) for part in term.parts if isinstance(part, str))


def range_shapes(view: View, timezone: str | None) -> Iterator[Shape]:
    """<, >, <=, >= and BETWEEN with the shortest literals that keep all needed values."""
    scale = view.feature.scale
    if scale is None or not len(view.needed) or not len(view.foreign):
        return
    first, last = int(view.needed[0]), int(view.needed[-1])
    lows = _cuts(view, scale.below(first, timezone), first, True) if (view.foreign < first).any() else []
    highs = _cuts(view, scale.above(last, timezone), last, False) if (view.foreign > last).any() else []
    for _, _, shape in lows + highs:
        yield shape
    if lows and highs:
        yield from _between(view, timezone, first, last)
    yield from _gaps(view, timezone)


def _gaps(view: View, timezone: str | None) -> Iterator[Shape]:
    """NOT BETWEEN around the runs of foreign values of most rows that lie between needed ones."""
    scale = view.feature.scale
    assert scale is not None
    if isinstance(scale, TextScale) or len(view.needed) < 2:
        return
    weights = np.where(view.need[:-1] > 0, 0, view.bad[:-1])
    sums = np.add.reduceat(weights, view.needed[:-1])
    sums[-1] = weights[view.needed[-2] : view.needed[-1]].sum()
    for gap in np.argsort(-sums, kind="stable")[:_GAPS].tolist():
        before, after = int(view.needed[gap]), int(view.needed[gap + 1])
        inside = np.flatnonzero(weights[before:after]) + before
        if len(inside) < 2:
            continue
        lows = [b for b in scale.below(int(inside[0]), timezone) if not b.blurred and before < b.less <= inside[0]]
        highs = [b for b in scale.above(int(inside[-1]), timezone) if not b.blurred and inside[-1] < b.least <= after]
        if lows and highs:
            low, high = (min(bounds, key=lambda b: length(b.literal)) for bounds in (lows, highs))
            accept = np.ones(len(view.need), dtype=np.bool_)
            accept[low.less : high.least] = False
            accept[-1] = False
            yield Shape(accept, _interval(view, low, high, False))


def _interval(view: View, low: Bound, high: Bound, inside: bool) -> Spell:
    sides = wrap(view.feature.term, Prec.OTHER)

    def spell(yes: bool) -> Term:
        words = "BETWEEN" if yes == inside else "NOT BETWEEN"
        return Term((*sides, words, *low.literal.parts, "AND", *high.literal.parts), Prec.LIKE)

    return spell


def _cuts(view: View, bounds: list[Bound], edge: int, lower: bool) -> list[tuple[int, int, Shape]]:
    """(length, foreign rows let through, shape) for every bound that is tighter than all shorter ones.

    A lower cut accepts the values from some place on, an upper one those before some place.
    """
    found = []
    for bound in bounds:
        for strict in (True, False):
            cut = _place(view, bound, strict, lower)
            if cut is None or (cut > edge if lower else cut <= edge):
                continue
            through = int(view.bad[:edge][cut:].sum() if lower else view.bad[edge:cut].sum())
            found.append((length(bound.literal) + (strict == view.flipped), through, bound, strict, cut))
    found.sort(key=lambda entry: entry[:2])
    kept: list[tuple[int, int, Shape]] = []
    for size, through, bound, strict, cut in found:
        if kept and through >= kept[-1][1]:
            continue
        accept = np.zeros(len(view.need), dtype=np.bool_)
        accept[slice(cut, -1) if lower else slice(0, cut)] = True
        if accept[view.foreign].all() or not _robust(view, bound, strict, lower, accept):
            continue
        kept.append((size, through, Shape(accept, _comparison(view.feature.term, bound.literal, strict, lower))))
    return kept


def _place(view: View, bound: Bound, strict: bool, lower: bool) -> int | None:
    """The first value on the upper side of the bound; None where the session would decide."""
    if bound.blurred:
        between = slice(bound.less, bound.least)
        if view.need[:-1][between].any() or view.bad[:-1][between].any():
            return None
        return bound.least
    return bound.least if strict == lower else bound.less


def _comparison(term: Term, literal_: Term, strict: bool, lower: bool) -> Spell:
    operator = (">" if lower else "<") + ("" if strict else "=")
    opposite = {">": "<=", "<": ">=", ">=": "<", "<=": ">"}[operator]
    return lambda yes: op(term, operator if yes else opposite, literal_)


def _robust(view: View, bound: Bound, strict: bool, lower: bool, accept: Mask) -> bool:
    """Whether a text bound cuts at the same place under a collation of words, as far as can be told here."""
    scale = view.feature.scale
    text = bound.literal.parts[0]
    if not isinstance(scale, TextScale) or text == "''":
        return True
    assert isinstance(text, str)
    edge = fold(text[1:-1].replace("''", "'"))
    counted = np.flatnonzero(view.need[:-1] + view.bad[:-1])
    if len(counted) > _CHECKED:
        counted = counted[:: len(counted) // _CHECKED + 1]
    for code in counted.tolist():
        key = scale.folded(code)
        inside = key > edge if lower else key < edge
        if (inside or (key == edge and not strict)) != bool(accept[code]):
            return False
    return True


def _between(view: View, timezone: str | None, first: int, last: int) -> Iterator[Shape]:
    """BETWEEN with the shortest pair of literals that lets no foreign value through."""
    scale = view.feature.scale
    assert scale is not None
    below = view.foreign[view.foreign < first]
    above = view.foreign[view.foreign > last]
    least, most = int(below[-1]), int(above[0])
    lows = [b for b in scale.below(first, timezone) if not b.blurred and least < b.less <= first]
    highs = [b for b in scale.above(last, timezone) if not b.blurred and last < b.least <= most]
    if not lows or not highs or isinstance(scale, TextScale):
        return
    low, high = (min(bounds, key=lambda b: length(b.literal)) for bounds in (lows, highs))
    accept = np.zeros(len(view.need), dtype=np.bool_)
    accept[low.less : high.least] = True
    yield Shape(accept, _interval(view, low, high, True))


def shapes(view: View, timezone: str | None) -> Iterator[Shape]:
    """All conditions on the value itself, but for patterns in texts."""
    yield from null_shapes(view)
    if view.feature.base == "boolean":
        yield from boolean_shapes(view)
        return
    yield from list_shapes(view, timezone)
    yield from range_shapes(view, timezone)
    yield from remainder_shapes(view)


def remainder_shapes(view: View) -> Iterator[Shape]:
    """`a%n=r` for the divisors that all needed values leave the same rest by."""
    feature = view.feature
    if feature.path or feature.column is None or len(view.needed) < _ALIKE or feature.integers is None:
        return
    numbers = feature.integers
    needed = numbers[view.needed]
    common = int(np.gcd.reduce(needed - needed[0]))
    # Small ones are features of their own; of the others those with no needless factor.
    for divisor in dict.fromkeys((common, *(common // part for part in (2, 3, 5) if common % part == 0))):
        if divisor < _LEAST_DIVISOR:
            continue
        rests = np.fmod(numbers, divisor)
        accept = np.append(rests == rests[view.needed[0]], False)
        if accept[:-1][view.needed].all():
            yield Shape(accept, _remainder(feature.term, divisor, int(rests[view.needed[0]])))


def _remainder(term: Term, divisor: int, rest: int) -> Spell:
    left = op(term, "%", raw(str(divisor)))
    return lambda yes: op(left, "=" if yes else "<>", raw(str(rest), Prec.UNARY if rest < 0 else Prec.ATOM))


def is_text(view: View) -> bool:
    return view.feature.base in TEXTS

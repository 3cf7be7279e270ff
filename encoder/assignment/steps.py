"""Steps of a row's number: batches of k, turns of k, quantiles, shares by rank; values of windows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from emit.term import Part, Term, op, raw, ref
from encoder.assignment import numeric
from encoder.assignment.layout import Codes, Partition, layout_of, monotone, order_parts, over, sorted_rows
from encoder.assignment.model import VALUE, WINDOW
from encoder.assignment.problem import FLOATS, INTEGERS, Floats, Input, Problem

_NUMERIC = INTEGERS | FLOATS | {"numeric"}
# How many rows all sorts together may have.
_MAX_SORTED = 400_000
_MAX_TILES = 100
_MAX_FOUND = 12

_NUMBER = ref(WINDOW, VALUE)


def stepped_terms(problem: Problem, chosen: Codes | None) -> Iterator[tuple[Term, Term]]:
    """Terms over a window's value, with the window, whose values rise by steps or go round with a row's
    number.  `chosen` are the rows that the window sees; all by default."""
    wanted = problem.numbers
    if problem.base not in _NUMERIC or not np.isfinite(wanted).all() or len(np.unique(wanted)) < 2 or wanted.min() < 0:
        return
    if not layout_of(problem).table.row_key:
        return
    yield from islice(_found(problem, chosen, wanted), _MAX_FOUND)


def _found(problem: Problem, chosen: Codes | None, wanted: Floats) -> Iterator[tuple[Term, Term]]:
    layout = layout_of(problem)
    members = layout.key if chosen is None else np.sort(chosen)
    rows = np.array(problem.rows)
    whole = bool((wanted == np.trunc(wanted)).all())
    turning = whole and wanted.max() - wanted.min() < len(wanted) / 2
    followed = {order.column for order in layout.sequences}
    left = _MAX_SORTED
    for partition in layout.partitions:
        groups = partition.codes[rows]
        for order in layout.orders:
            rising = monotone(groups, wanted if whole else -wanted, order.codes[rows])
            if not rising and not (turning and order.column in followed):
                continue
            left -= len(members)
            if left < 0:
                return
            line, starts, ties = sorted_rows(partition, [order], members)
            place = np.arange(len(line))
            first = np.maximum.accumulate(np.where(starts, place, 0))
            number, size = np.full((2, layout.frame.size), np.nan)
            number[line] = place - first + 1
            size[line] = np.bincount(first, minlength=len(line))[first]
            parts = order_parts(layout.table, [order], bool(ties.any()))
            window = over(raw("rank()"), partition, parts)
            if not whole:
                yield from ((term, window) for term in _shares(problem, number[rows]))
                continue
            yield from ((term, window) for term in _batches(problem, number[rows]))
            if turning and order.column in followed:
                yield from ((term, window) for term in _turns(number[rows], wanted))
            yield from _tiles(partition, parts, number[rows], size[rows], wanted)


def _batches(problem: Problem, number: Floats) -> Iterator[Term]:
    """n/k and (n-1)/k, with a constant."""
    wanted = problem.numbers
    for shift in (1, 0):
        x = number - shift
        for base in sorted({0, int(wanted.min())}):
            moved = op(_NUMBER, "-", raw("1")) if shift else _NUMBER
            for term in numeric.integer_quotients(moved, x, wanted - base):
                yield numeric.plus(term, str(base)) if base else term


def _turns(number: Floats, wanted: Floats) -> Iterator[Term]:
    """n%k, with constants."""
    least = int(wanted.min())
    count = int(wanted.max()) - least + 1
    shifts = np.unique((wanted - least - number) % count)
    if count < 2 or len(shifts) > 1:
        return
    shift = int(shifts[0])
    inner = _NUMBER
    if shift:
        inner = op(_NUMBER, "-", raw("1")) if shift == count - 1 else op(_NUMBER, "+", raw(str(shift)))
    term = op(inner, "%", raw(str(count)))
    yield numeric.plus(term, str(least)) if least else term


def _tiles(
    partition: Partition, parts: tuple[Part, ...], number: Floats, size: Floats, wanted: Floats
) -> Iterator[tuple[Term, Term]]:
    """ntile(k), with a constant."""
    for least in sorted({1, int(wanted.min())}):
        tile = wanted - least + 1
        count = int(tile.max())
        if 2 <= count <= _MAX_TILES and np.array_equal(_tile(number, size, count), tile):
            term = numeric.plus(_NUMBER, str(least - 1)) if least != 1 else _NUMBER
            yield term, over(raw(f"ntile({count})"), partition, parts)


def _tile(number: Floats, size: Floats, count: int) -> Floats:
    """ntile: the first size % count tiles are larger by one."""
    small, larger = np.divmod(size, count)
    edge = larger * (small + 1)
    with np.errstate(all="ignore"):
        late = larger + np.floor((number - edge - 1) / small) + 1
    return np.asarray(np.where(number <= edge, np.floor((number - 1) / (small + 1)) + 1, late))


def _shares(problem: Problem, number: Floats) -> Iterator[Term]:
    """c/n, rounded."""
    texts = tuple(repr(float(x)) for x in 1 / number)
    item = Input(op(raw("1."), "/", _NUMBER), "numeric", "N", texts, 6)
    yield from islice(numeric.of_input(problem, item, 2), 2)

"""The value of the row before or after in a group's order, or of its first row: lag, lead, first_value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from emit.term import Term, call, ref
from encoder.assignment.layout import NUMERIC, Codes, Layout, Mask, Partition, order_parts, over, sorted_rows
from encoder.assignment.ordering import Pairs, orderings
from encoder.assignment.problem import STRINGS, TIMES
from stream.model import Value

_MAX_FOUND = 12
_NONE = np.empty(0, dtype=np.int64)


def alike(a: str, b: str) -> bool:
    """Whether values of the two types may be each other's."""
    return a == b or any(a in kind and b in kind for kind in (STRINGS, NUMERIC, TIMES))


def found(layout: Layout, base: str, rows: Codes, wanted: Sequence[Value]) -> Iterator[tuple[str, Term, Codes]]:
    """A column whose values in other rows of the group the `wanted` ones of `rows` are, the window that reads it, and
    for every row of the frame the row that it is read in (-1 for none)."""
    yield from islice(_found(layout, base, rows, wanted), _MAX_FOUND)


def _found(layout: Layout, base: str, rows: Codes, wanted: Sequence[Value]) -> Iterator[tuple[str, Term, Codes]]:
    for column in layout.table.columns:
        if not alike(column.base, base):
            continue
        coded = layout.frame.coded(column.name)
        place = {text: code for code, text in enumerate(coded.values)}
        if any(value is not None and value not in place for value in wanted):
            continue
        goal = np.array([-1 if value is None else place[value] for value in wanted], dtype=np.int64)
        codes = coded.codes.astype(np.int64)
        if (goal < 0).all() or np.array_equal(codes[rows], goal):
            continue
        for partition in layout.partitions:
            sources = _sources(partition, codes, rows, goal, len(coded.values))
            if sources is None:
                continue
            for name, pairs in _pairs(partition, rows, sources):
                for chosen in orderings(layout.keys, pairs):
                    line, starts, ties = sorted_rows(partition, chosen, layout.key)
                    near = _near(name, line, starts, layout.frame.size)
                    reached = near[rows]
                    if np.array_equal(np.where(reached >= 0, codes[reached], -1), goal):
                        parts = order_parts(layout.table, chosen, bool(ties.any()))
                        yield column.name, over(call(name, ref((), column.name)), partition, parts), near


def _sources(partition: Partition, codes: Codes, rows: Codes, goal: Codes, count: int) -> Codes | None:
    """For each of `rows` the one row of its group that holds its goal, -1 where the goal is NULL, -2 where several
    rows hold it; None where some goal is held by none."""
    held = partition.codes * (count + 1) + codes
    line = np.argsort(held, kind="stable")
    sought = partition.codes[rows] * (count + 1) + goal
    first = np.searchsorted(held[line], sought, "left")
    last = np.searchsorted(held[line], sought, "right")
    known = goal >= 0
    if (first == last)[known].any():
        return None
    found = np.full(len(rows), -1, dtype=np.int64)
    one = known & (last - first == 1)
    found[one] = line[first[one]]
    found[known & ~one] = -2
    return found


def _pairs(partition: Partition, rows: Codes, sources: Codes) -> Iterator[tuple[str, Pairs]]:
    one = sources >= 0
    if not (sources[one] == rows[one]).any():
        yield "lag", Pairs(sources[one], rows[one], _NONE, _NONE)
        yield "lead", Pairs(rows[one], sources[one], _NONE, _NONE)
    firsts = np.unique(sources[one])
    groups = partition.codes[firsts]
    if partition.terms and len(np.unique(groups)) == len(groups) > 0:
        line = np.argsort(groups)
        place = np.clip(np.searchsorted(groups[line], partition.codes), 0, len(groups) - 1)
        mates = np.flatnonzero(groups[line][place] == partition.codes)
        first = firsts[line][place[mates]]
        other = first != mates
        if other.any():
            yield "first_value", Pairs(first[other], mates[other], _NONE, _NONE)


def _near(name: str, line: Codes, starts: Mask, size: int) -> Codes:
    near = np.full(size, -1, dtype=np.int64)
    if name == "lag":
        near[line[1:]] = np.where(starts[1:], -1, line[:-1])
    elif name == "lead":
        near[line[:-1]] = np.where(starts[1:], -1, line[1:])
    else:
        near[line] = line[np.maximum.accumulate(np.where(starts, np.arange(len(line)), 0))]
    return near

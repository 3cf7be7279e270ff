"""Rows of a source that ON CONFLICT DO NOTHING passes over, and what they tell by the ids they used up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from encoder.frame import State
from encoder.insertion.evidence import Link
from encoder.insertion.model import Indexes
from encoder.insertion.order import Order
from encoder.insertion.slots import Slot
from encoder.selection.model import Labels, Mask
from scratch.catalog import Table
from stream.model import Value


def passed_over(state: State, target: Table, slots: Sequence[Slot], link: Link) -> Mask:
    """For every row of the link's frame whether the row made from it has a unique key that is there already."""
    frame = state.frame(link.table.name)
    found = np.zeros(frame.size, dtype=bool)
    known = {slot.name: slot for slot in slots if slot.explicit and slot.sequence is None}
    for key in (target.primary_key, *target.unique_keys):
        if not key or not all(name in known for name in key):
            continue
        made = _made([known[name] for name in key], link.equal, frame.size, frame.texts)
        if made is None:
            continue
        there = set(zip(*(state.frame(target.name).texts(name) for name in key), strict=True))
        for row, values in enumerate(made):
            found[row] |= None not in values and values in there
    found[link.rows] = False
    return found


def _made(
    slots: Sequence[Slot], equal: Mapping[str, str], size: int, texts: Callable[[str], list[Value]]
) -> list[tuple[Value, ...]] | None:
    """The key that every row of the source would give, where all its columns are constants or read from it."""
    columns: list[list[Value]] = []
    for slot in slots:
        if slot.name in equal and not (slot.constant and len(slot.values) > 1):
            columns.append(texts(equal[slot.name]))
        elif slot.constant:
            columns.append([slot.values[0]] * size)
        else:
            return None
    return list(zip(*columns, strict=True))


def by_gaps(labels: Labels, rows: Indexes, order: Order, ids: Sequence[int], start: int | None) -> Labels | None:
    """`labels` with the free rows settled by the gaps between `ids`: each row passed over has used one up.

    `rows` are the source's rows of the ids, both in order; `start` is the id that the first row of the
    source got, None if unknown.  None where a gap is wider than the free rows that fall into it.
    """
    free = ~labels.must & ~labels.must_not
    must, must_not = labels.must.copy(), labels.must_not.copy()
    ranks = order.rank[rows]
    places = np.flatnonzero(free)
    slot_of = np.searchsorted(ranks, order.rank[places])
    previous = start - 1 if start is not None else None
    for place, number in enumerate(ids):
        inside = places[slot_of == place]
        if previous is not None:
            gap = number - previous - 1
            if gap > len(inside):
                return None
            if gap == 0:
                must_not[inside] = True
            elif gap == len(inside):
                must[inside] = True
        previous = number
    return Labels(must, must_not)

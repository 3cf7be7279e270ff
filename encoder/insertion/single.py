"""INSERT … SELECT over one table: a row each for the rows of a selection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from emit.render import render
from emit.term import Query, Term, ref
from encoder.insertion.conflicts import by_gaps, passed_over
from encoder.insertion.evidence import Link
from encoder.insertion.layout import layouts
from encoder.insertion.model import Proposal
from encoder.insertion.order import Order, orders
from encoder.insertion.slots import Slot
from encoder.insertion.task import CELLS, From, Task, order_by, row_number, sort_keys
from encoder.selection.model import Labels, Mask, Path, Selection
from scratch.session import rows
from stream.model import Value


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to draw the rows: which rows to select, in which order (None for none), with ON CONFLICT
    DO NOTHING or not; `draws` tells whether sequences then give the ids."""

    labels: Labels
    order: Order | None
    conflict: bool
    draws: bool


def single_proposals(task: Task, link: Link) -> list[Proposal]:
    """INSERTs whose rows are read from the rows of `link`, one each; empty where a column stays unexplained."""
    expressed = _express(task, link)
    if expressed is None:
        return []
    terms, paths = expressed
    found: list[Proposal] = []
    known: dict[bytes, list[Selection]] = {}
    for variant in _variants(task, link):
        labels = variant.labels
        key = labels.must.tobytes() + labels.must_not.tobytes()
        if key not in known:
            known[key] = _selections(task, link, labels)
        for selection in known[key]:
            for origin in task.origins(link, [selection], paths):
                found.extend(_statements(task, link, variant, terms, origin))
    return found


def _express(task: Task, link: Link) -> tuple[dict[str, Term], frozenset[Path]] | None:
    """A term for every column but ids that only a sequence or the row's number can give."""
    terms = task.constants() if task.count > 1 else {}
    paths: frozenset[Path] = frozenset()
    for slot in task.slots:
        if not slot.explicit or slot.default:
            terms |= _plain(task, slot)
            continue
        if slot.constant:
            terms[slot.name] = _constant(task, link, slot)
            continue
        if slot.sequence is not None and slot.in_step:
            continue
        expression = task.express(link, slot)
        if expression is None:
            if slot.sequence is not None:
                continue
            return None
        terms[slot.name] = expression.term
        paths |= expression.paths
    return terms, paths


def _plain(task: Task, slot: Slot) -> dict[str, Term]:
    return {slot.name: task.spell.top(slot.values[0], slot.column)} if slot.explicit else {}


def _constant(task: Task, link: Link, slot: Slot) -> Term:
    """The constant, or a column of the source that holds it, whichever is shorter."""
    term = task.spell.top(slot.values[0], slot.column)
    column = link.equal.get(slot.name)
    if column is not None and len(column.encode()) < len(render(term).encode()):
        return ref((), column)
    return term


def _selections(task: Task, link: Link, labels: Labels) -> list[Selection]:
    pool = link.pool
    if pool is not None and pool.selection is not None and pool.cte is None:
        inside = np.zeros(len(labels.must), dtype=bool)
        inside[pool.rows] = True
        if not (inside & labels.must_not).any():
            return [pool.selection, *task.selections(link.table, labels)]
    return task.selections(link.table, labels)


def _variants(task: Task, link: Link) -> Iterator[Variant]:
    frame = task.state.frame(link.table.name)
    must = np.zeros(frame.size, dtype=bool)
    must[link.rows] = True
    inside = np.ones(frame.size, dtype=bool)
    if link.pool is not None and link.pool.cte is not None:
        inside[:] = False
        inside[link.pool.rows] = True
    strict = Labels(must, ~must & inside)
    drawing = task.sequences
    found = orders(task.state, link.table, link.rows) if drawing else []
    in_step = all(slot.in_step for slot in drawing)
    for order in [*found[:3], None] if drawing else [None]:
        yield Variant(strict, order, False, in_step and (order is not None or _in_key_order(link)))
    free = passed_over(task.state, task.target, task.slots, link) & inside
    if free.any():
        yield from _with_conflicts(task, link, strict, free, found)


def _in_key_order(link: Link) -> bool:
    """Whether a scan of a table that was never rewritten gives the order of the stream."""
    return bool((np.diff(link.rows) > 0).all())


def _with_conflicts(task: Task, link: Link, strict: Labels, free: Mask, found: Sequence[Order]) -> Iterator[Variant]:
    loose = Labels(strict.must, strict.must_not & ~free)
    if not task.sequences:
        yield Variant(loose, None, True, True)
        return
    slot = task.sequences[0]
    if len(task.sequences) == 1 and slot.drawn is not None:
        ids = [int(value or 0) for value in slot.values]
        for order in found[:2]:
            for start in (ids[0] - slot.drawn[0], None):
                labels = by_gaps(loose, link.rows, order, ids, start)
                if labels is not None:
                    yield Variant(labels, order, True, start is not None)
    yield Variant(loose, None, True, False)


def _statements(
    task: Task, link: Link, variant: Variant, terms: dict[str, Term], origin: From
) -> Iterator[Proposal]:
    order = variant.order
    keys = sort_keys(order) if order is not None else []
    numbered = dict(terms)
    offset = _offset(task, link, variant, origin)
    for slot in task.sequences:
        if slot.name not in numbered and offset is not None and slot is task.sequences[0]:
            numbered[slot.name] = row_number(keys, offset)
    for layout in layouts(task.slots, numbered, variant.draws):
        tail = order_by(keys, layout.select) if keys and layout.uses else None
        unordered = order is None and bool(task.sequences)
        note = f"from {link.table.name.name}" + (" unordered" if unordered and _takes_turns(layout.select, layout.uses) else "")
        query = Query(layout.select, origin.sources, origin.where, tail)
        yield task.insert(layout, query, conflict=variant.conflict, note=note)


def _takes_turns(select: Sequence[Term], uses: object) -> bool:
    return bool(uses) or any(term.parts[0] == "row_number()OVER(" for term in select)


def _offset(task: Task, link: Link, variant: Variant, origin: From) -> int | None:
    """What to add to the row's number to get the id; None where the ids have other gaps than the selection."""
    if not task.sequences or (task.sequences[0].drawn is None and None in task.sequences[0].values):
        return None
    ids = [int(value or 0) for value in task.sequences[0].values]
    if not variant.conflict:
        order = variant.order
        if order is None and not _in_key_order(link):
            return None
        return ids[0] - 1 if all(b - a == 1 for a, b in zip(ids, ids[1:], strict=False)) else None
    if variant.order is None:
        return None
    chosen = _selected(task, link, origin)
    if chosen is None or not chosen[link.rows].all():
        return None
    ranks = np.sort(variant.order.rank[chosen])
    places = np.searchsorted(ranks, variant.order.rank[link.rows]) + 1
    offsets = set((np.array(ids) - places).tolist())
    return int(offsets.pop()) if len(offsets) == 1 else None


def _selected(task: Task, link: Link, origin: From) -> Mask | None:
    """The rows of the frame that `where` selects, asked of the server."""
    key = link.table.row_key
    if not key or (link.pool is not None and link.pool.cte is not None):
        return None
    frame = task.state.frame(link.table.name)
    query = render(Query(tuple(ref((), name) for name in key), origin.sources, origin.where))
    task.budget.spend(1 + frame.size // CELLS)
    chosen = np.zeros(frame.size, dtype=bool)
    for found in rows(task.state.session, query):
        values: tuple[Value, ...] = found
        chosen[frame.index[values]] = True
    return chosen

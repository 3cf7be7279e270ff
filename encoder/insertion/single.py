"""INSERT … SELECT over one table: a row each for the rows of a selection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from emit.render import render
from emit.term import Query, Term, ref
from encoder.frame import Frame
from encoder.insertion.conflicts import by_gaps, passed_over
from encoder.insertion.counting import Counted, counted
from encoder.insertion.evidence import Link
from encoder.insertion.layout import layouts
from encoder.insertion.missing import missing_atoms
from encoder.insertion.model import UNORDERED, Proposal
from encoder.insertion.order import Order, orders
from encoder.insertion.repeats import Repeated, repeated_of
from encoder.insertion.slots import Slot
from encoder.insertion.task import CELLS, From, Task, order_by, row_number, sort_keys
from encoder.selection.model import Labels, Mask, Path, Selection
from scratch.session import rows
from stream.model import Value

_MAX_ORDERS = 3
# A constant of so many bytes may well be said more shortly by a column of the source.
_LONG = 14


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to draw the rows: which rows to select, in which order (None where it does not matter, no keys for
    that of a plain scan), with ON CONFLICT DO NOTHING or not; `draws` tells whether sequences then give the ids."""

    labels: Labels
    order: Order | None
    conflict: bool
    draws: bool


def single_proposals(task: Task, link: Link) -> list[Proposal]:
    """INSERTs whose rows are read from the rows of `link`, one each; empty where a column stays unexplained,
    or where nothing would be shorter than what is known."""
    frame = task.state.frame(link.table.name)
    reads_all = len(link.rows) == (frame.size if link.pool is None or link.pool.cte is None else len(link.pool.rows))
    known = task.constants() if task.count > 1 else {}
    if not task.may_pay(known, [link.table], not reads_all):
        return []
    expressed = _express(task, link)
    if expressed is None:
        return []
    terms, paths, counting = expressed
    tables = [link.table, *(task.state.catalog[path[-1].target] for path in sorted(paths, key=len))]
    if not task.may_pay(terms, tables, not reads_all):
        return []
    found: list[Proposal] = []
    selections: dict[bytes, list[Selection]] = {}
    for variant in _variants(task, link, terms, bool(counting)):
        labels = variant.labels
        key = labels.must.tobytes() + labels.must_not.tobytes()
        if key not in selections:
            selections[key] = _selections(task, link, labels)
        for origin in task.origins(link, selections[key], paths):
            found.extend(_statements(task, link, variant, terms, counting, origin))
    return found


def needs_synthesis(task: Task, link: Link) -> bool:
    """Whether some column is no simple function of a column of the source."""
    return any(
        task.simple(link, slot) is None
        for slot in task.slots
        if slot.explicit and not slot.default and not slot.constant and slot.sequence is None
    )


def _express(task: Task, link: Link) -> tuple[dict[str, Term], frozenset[Path], dict[str, Counted]] | None:
    """A term for every column but ids that only a sequence or the row's number can give; and what counts instead."""
    counting: dict[str, Counted] = {}
    terms = task.constants() if task.count > 1 else {}
    paths: frozenset[Path] = frozenset()
    repeating: list[Repeated] = []
    for slot in task.doubtful:
        if not slot.explicit or slot.default:
            terms |= _plain(task, slot)
            continue
        if slot.constant:
            terms[slot.name] = _constant(task, link, slot)
            continue
        if slot.sequence is not None and slot.in_step:
            continue
        if (repeated := repeated_of(task, slot)) is not None:
            repeating.append(repeated)
            continue
        number = slot in task.numbered and (slot.counts or slot.drawn is not None)
        counts = counted(slot) if slot not in task.numbered else None
        # What counts is numbered where there is an order to number by; nothing else is likely to give it.
        if (number or counts) and task.simple(link, slot) is None and orders(task.state, link.table, link.rows):
            counting |= {slot.name: counts} if counts is not None else {}
            continue
        expression = task.express(link, slot)
        if expression is None:
            if counts is not None:
                counting[slot.name] = counts
            elif slot not in task.numbered:
                return None
            continue
        terms[slot.name] = expression.term
        paths |= expression.paths
    return (terms, paths, counting) if all(repeated.fill(terms) for repeated in repeating) else None


def _plain(task: Task, slot: Slot) -> dict[str, Term]:
    return {slot.name: task.spell.top(slot.values[0], slot.column)} if slot.explicit else {}


def _constant(task: Task, link: Link, slot: Slot) -> Term:
    """The constant, or what the source says more shortly: a column that holds it, a simple function of one."""
    term = task.spell.top(slot.values[0], slot.column)
    size = len(render(term).encode())
    simple = task.simple(link, slot) if slot.name in link.equal or size > _LONG else None
    return simple.term if simple is not None and not simple.paths and simple.size < size else term


def _selections(task: Task, link: Link, labels: Labels) -> list[Selection]:
    found = task.selections(link.table, labels, extra=missing_atoms(task, link))
    pool = link.pool
    if pool is not None and pool.selection is not None and pool.cte is None:
        inside = np.zeros(len(labels.must), dtype=bool)
        inside[pool.rows] = True
        if not (inside & labels.must_not).any():
            found.insert(0, pool.selection)
    return found


def _variants(task: Task, link: Link, terms: Mapping[str, Term], counting: bool) -> Iterator[Variant]:
    frame = task.state.frame(link.table.name)
    must = np.zeros(frame.size, dtype=bool)
    must[link.rows] = True
    inside = np.ones(frame.size, dtype=bool)
    if link.pool is not None and link.pool.cte is not None:
        inside[:] = False
        inside[link.pool.rows] = True
    strict = Labels(must, ~must & inside)
    free = passed_over(task.state, task.target, task.slots, link) & inside
    drawing = task.numbered
    ranked = [*orders(task.state, link.table, link.rows)[:_MAX_ORDERS], *_as_stored(link, frame)]
    if counting:
        drawn = all(slot.in_step for slot in drawing)
        yield from (Variant(strict, order, False, drawn) for order in ranked)
        return
    if not drawing:
        yield Variant(strict, None, False, True)
        if free.any():
            yield Variant(Labels(must, strict.must_not & ~free), None, True, True)
        return
    explained = all(slot.name in terms for slot in drawing)
    in_step = all(slot.in_step for slot in drawing)
    if in_step or _consecutive(drawing[0]):
        for order in ranked:
            yield Variant(strict, order, False, in_step)
    if explained:
        yield Variant(strict, None, False, False)
    if free.any():
        loose = Labels(must, strict.must_not & ~free)
        yield from _by_gaps(task, link, loose, ranked)
        if explained:
            yield Variant(loose, None, True, False)


def _as_stored(link: Link, frame: Frame) -> list[Order]:
    """The order of a plain scan of the table, or that in which a statement returns its rows, if it is that of the
    stream."""
    scan = frame.scan
    if link.pool is not None and link.pool.cte is not None:
        scan = np.full(frame.size, frame.size, dtype=np.int64)
        scan[link.pool.rows] = np.arange(len(link.pool.rows))
    elif frame.touched:
        return []
    return [Order((), scan)] if bool((np.diff(scan[link.rows]) > 0).all()) else []


def _consecutive(slot: Slot) -> bool:
    if None in slot.values:
        return False
    ids = [int(value or 0) for value in slot.values]
    return ids == list(range(ids[0], ids[0] + len(ids)))


def _by_gaps(task: Task, link: Link, loose: Labels, ranked: Sequence[Order]) -> Iterator[Variant]:
    """Variants with ON CONFLICT whose rows passed over have used up the ids that are missing."""
    slot = task.numbered[0]
    if len(task.numbered) > 1 or None in slot.values:
        return
    ids = [int(value or 0) for value in slot.values]
    start = ids[0] - slot.drawn[0] if slot.drawn is not None else None
    for order in ranked:
        for first in (start, None) if start is not None else (None,):
            labels = by_gaps(loose, link.rows, order, ids, first)
            if labels is not None:
                yield Variant(labels, order, True, first is not None)
                break


def _statements(
    task: Task,
    link: Link,
    variant: Variant,
    terms: Mapping[str, Term],
    counting: Mapping[str, Counted],
    origin: From,
) -> Iterator[Proposal]:
    keys = sort_keys(variant.order) if variant.order is not None else []
    numbered = dict(terms) | {name: counts.term(keys) for name, counts in counting.items()}
    offset = _offset(task, link, variant, origin)
    by_number = offset is not None and task.numbered[0].name not in numbered
    if offset is not None and by_number:
        numbered[task.numbered[0].name] = row_number(keys, offset)
    for layout in layouts(task.slots, numbered, variant.draws):
        tail = order_by(keys, layout.select) if keys and layout.uses else None
        ordered = keys or not (layout.uses or by_number or counting)
        note = f"from {link.table.name.name}" + ("" if ordered else f" {UNORDERED}")
        query = Query(layout.select, origin.sources, origin.where, tail)
        yield task.insert(layout, query, conflict=variant.conflict, note=note)


def _offset(task: Task, link: Link, variant: Variant, origin: From) -> int | None:
    """What to add to the row's number to get the id; None where the ids have other gaps than the selection."""
    order = variant.order
    if order is None or not task.numbered or None in task.numbered[0].values:
        return None
    ids = [int(value or 0) for value in task.numbered[0].values]
    if not variant.conflict:
        return ids[0] - 1 if _consecutive(task.numbered[0]) else None
    chosen = _selected(task, link, origin)
    if chosen is None or not chosen[link.rows].all():
        return None
    ranks = np.sort(order.rank[chosen])
    places = np.searchsorted(ranks, order.rank[link.rows]) + 1
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

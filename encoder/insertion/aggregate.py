"""INSERT … SELECT … GROUP BY: a row for each group of another table's rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import TypeAlias

import numpy as np

from emit.term import Part, Query, Term, call, raw, ref, separate
from encoder.frame import Frame, encode
from encoder.insertion.derive import size_of
from encoder.insertion.evidence import compatible, namesakes
from encoder.insertion.layout import Layout, layouts, source_of
from encoder.insertion.model import Proposal
from encoder.insertion.slots import Slot
from encoder.insertion.spell import INT, NUMBER, class_of
from encoder.insertion.task import CELLS, From, Task, order_by
from encoder.selection.lower import lower
from encoder.selection.model import Labels, Mask
from scratch.catalog import Table
from stream.model import Value

_MAX_TABLES = 2
_Groups: TypeAlias = dict[tuple[Value, ...], list[int]]
_Fold: TypeAlias = Callable[[Iterable[Decimal]], Decimal]


def aggregate_proposals(task: Task) -> Iterator[Proposal]:
    """INSERTs whose varying columns are groups of one table and aggregates over them."""
    varying = [s for s in task.slots if s.explicit and not s.default and not s.constant and s.sequence is None]
    numbers = [s for s in varying if class_of(s.column) in (INT, NUMBER) and not _is_key(task, s)]
    if task.count < 2:
        return
    found: list[_Grouped] = []
    for name in task.state.catalog:
        table = task.state.catalog[name]
        pairs = {s.name: names[0] for s in task.slots if s.explicit and (names := _readable(task, s, table))}
        groups = {s.name: pairs[s.name] for s in varying if s.name in pairs and s not in numbers}
        if len(groups) + len(numbers) == len(varying) and groups:
            grouped = _over(task, table, groups, numbers)
            if grouped is not None and task.may_pay({**task.constants(), **grouped.terms}, [table], grouped.selective):
                found.append(grouped)
    found.sort(key=lambda grouped: (grouped.selective, grouped.table.name))
    for grouped in found[:_MAX_TABLES]:
        labels = Labels(grouped.must, ~grouped.must)
        for selection in task.selections(grouped.table, labels):
            for where in lower(task.state.catalog, grouped.table.name, selection):
                origin = From((source_of(grouped.table, ()), *where.sources), where.where)
                yield from _statements(task, grouped, origin)


def _is_key(task: Task, slot: Slot) -> bool:
    return any(slot.name in key.columns for key in task.target.foreign_keys)


def _readable(task: Task, slot: Slot, table: Table) -> list[str]:
    names = namesakes(task.target, slot, table)
    return [name for name in names if compatible(table.by_name[name], slot.column)]


@dataclass(frozen=True)
class _Grouped:
    """`grouping` maps inserted columns to those of `table` that they are grouped by; `must` are the rows of the
    wanted groups."""

    table: Table
    grouping: dict[str, str]
    terms: dict[str, Term]
    must: Mask

    @property
    def selective(self) -> bool:
        return not bool(self.must.all())


def _over(task: Task, table: Table, grouping: dict[str, str], numbers: list[Slot]) -> _Grouped | None:
    frame = task.state.frame(table.name)
    slots = {slot.name: slot for slot in task.slots}
    if frame.size < task.count or not task.budget.spend(1 + frame.size * len(grouping) // CELLS):
        return None
    groups: _Groups = {}
    for row, key in enumerate(zip(*(frame.texts(column) for column in grouping.values()), strict=True)):
        groups.setdefault(key, []).append(row)
    wanted = list(zip(*(slots[name].values for name in grouping), strict=True))
    if len(set(wanted)) != len(wanted) or not all(key in groups for key in wanted):
        return None
    members = [groups[key] for key in wanted]
    if not numbers and all(len(rows) == 1 for rows in members):
        return None  # plain rows, which are not this module's
    terms: dict[str, Term] = {name: ref((), column) for name, column in grouping.items()}
    for slot in numbers:
        term = _aggregate(frame, slot, members)
        if term is None:
            return None
        terms[slot.name] = term
    must = np.zeros(frame.size, dtype=bool)
    must[[row for rows in members for row in rows]] = True
    return _Grouped(table, grouping, terms, must)


def _statements(
    task: Task, grouped: _Grouped, origin: From
) -> Iterator[Proposal]:
    terms, grouping = grouped.terms, grouped.grouping
    order = _order(task, grouping) if task.sequences else []
    draws = all(slot.in_step for slot in task.sequences) and order is not None
    for layout in layouts(task.slots, {**task.constants(), **terms}, draws):
        keys = [(terms[name], falls) for name, falls in order or ()]
        sort = order_by(keys, layout.select).parts if layout.uses and keys else ()
        query = Query(layout.select, origin.sources, origin.where)
        whole = Term((*_group_by([terms[name] for name in grouping], layout), *sort))
        yield task.insert(layout, replace(query, tail=whole), conflict=False, note="groups")
        if len(terms) == len(grouping) and _keeps_types(task):
            tail = Term(sort) if sort else None
            yield task.insert(layout, replace(query, tail=tail, distinct=True), conflict=False, note="distinct")


def _keeps_types(task: Task) -> bool:
    """Whether the constants are still fit for their columns after DISTINCT, which makes text of untyped literals."""
    return all(
        slot.column.kind == "S" or class_of(slot.column) in (INT, NUMBER) or None in slot.values
        for slot in task.slots
        if slot.constant and not slot.default
    )


def _group_by(terms: Sequence[Term], layout: Layout) -> tuple[Part, ...]:
    places = [raw(str(layout.select.index(term) + 1)) if term in layout.select else term for term in terms]
    return ("GROUP BY", *separate(places))


def _order(task: Task, grouping: dict[str, str]) -> list[tuple[str, bool]] | None:
    """Grouping columns, each with whether it falls, by which the rows stand in the order of the stream."""
    slots = {slot.name: slot for slot in task.slots}
    left = list(grouping)
    found: list[tuple[str, bool]] = []
    ties = np.ones(max(task.count - 1, 0), dtype=bool)
    while ties.any():
        for name in left:
            codes = encode(task.state.session, slots[name].column, slots[name].values).codes.astype(np.int64)
            codes[codes < 0] = len(codes) + 1
            steps = np.diff(codes)
            falls = bool((steps[ties] < 0).any())
            if not (steps[ties] != 0).any() or ((steps[ties] > 0).any() and falls):
                continue
            found.append((name, falls))
            left.remove(name)
            ties &= steps == 0
            break
        else:
            return None
    return found


def _aggregate(frame: Frame, slot: Slot, members: list[list[int]]) -> Term | None:
    """count(*), or sum, min or max of a column."""
    wanted = [_number(value) for value in slot.values]
    if wanted == [Decimal(len(rows)) for rows in members]:
        return call("count", raw("*"))
    found: list[Term] = []
    for column in frame.table.columns:
        if class_of(column) not in (INT, NUMBER):
            continue
        values = [_number(text) for text in frame.texts(column.name)]
        for function, fold in _FOLDS:
            made = (_folded(fold, [values[row] for row in rows]) for rows in members)
            if all(value == want for value, want in zip(made, wanted, strict=True)):
                found.append(call(function, ref((), column.name)))
    return min(found, key=size_of, default=None)


def _folded(fold: _Fold, values: Sequence[Decimal | None]) -> Decimal | None:
    there = [value for value in values if value is not None]
    return fold(there) if there else None


def _sum(values: Iterable[Decimal]) -> Decimal:
    return sum(values, Decimal())


def _number(text: Value) -> Decimal | None:
    try:
        return None if text is None else Decimal(text)
    except InvalidOperation:
        return None


_FOLDS: tuple[tuple[str, _Fold], ...] = (("sum", _sum), ("min", min), ("max", max))

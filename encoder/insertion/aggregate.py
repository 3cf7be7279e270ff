"""INSERT … SELECT … GROUP BY: a row for each group of another table's rows, or of those that a statement returned."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product

import numpy as np

from emit.literal import quote
from emit.term import Part, Query, Term, call, cast, raw, ref, separate
from encoder.frame import encode
from encoder.insertion.evidence import compatible, namesakes
from encoder.insertion.folds import folds
from encoder.insertion.layout import Layout, layouts, source_of
from encoder.insertion.model import DriverRows, Indexes, Proposal
from encoder.insertion.slots import Slot
from encoder.insertion.spell import INT, NUMBER, class_of
from encoder.insertion.task import CELLS, From, Task, order_by
from encoder.selection.lower import lower
from encoder.selection.model import Labels, Mask, Path
from scratch.catalog import Column, Table
from stream.model import Value

_MAX_TABLES = 2
_MAX_READERS = 3
_MAX_GROUPINGS = 8
_TIMES = frozenset({"date", "timestamp without time zone", "timestamp with time zone"})


def aggregate_proposals(task: Task, pool: Sequence[DriverRows] = ()) -> Iterator[Proposal]:
    """INSERTs whose varying columns are groups of one table and aggregates over them; with a `pool`, over its rows."""
    if task.count < 2:
        return
    catalog = task.state.catalog
    sources: list[tuple[Table, DriverRows | None]] = [(catalog[p.table], p) for p in pool if p.cte is not None]
    if not pool:
        sources = [(catalog[name], None) for name in catalog]
    found: list[_Grouped] = []
    for table, rows in sources:
        grouped = _over(task, table, rows)
        if grouped is not None and task.may_pay({**task.constants(), **grouped.terms}, [table], grouped.selective):
            found.append(grouped)
    found.sort(key=lambda grouped: (grouped.selective, grouped.table.name))
    for grouped in found[:_MAX_TABLES]:
        cte = grouped.pool.cte if grouped.pool is not None else None
        for selection in task.selections(grouped.table, Labels(grouped.must, grouped.must_not)):
            for where in lower(catalog, grouped.table.name, selection, needed=grouped.paths):
                origin = From((source_of(grouped.table, (), cte), *where.sources), where.where)
                yield from _statements(task, grouped, origin)


def _is_key(task: Task, slot: Slot) -> bool:
    return any(slot.name in key.columns for key in task.target.foreign_keys)


@dataclass(frozen=True, slots=True)
class _Reader:
    """A term that rows are grouped by, with its value in each of them."""

    term: Term
    values: list[Value]
    paths: frozenset[Path] = frozenset()


def _readers(task: Task, slot: Slot, table: Table, pool: DriverRows | None, rows: list[int]) -> Iterator[_Reader]:
    """What may give `slot` in every group: columns of its name, dates and times cut to a unit, columns one foreign
    key up; of rows that a statement returned any column of its type."""
    frame = task.state.frame(table.name)
    names = [name for name in namesakes(task.target, slot, table) if compatible(table.by_name[name], slot.column)]
    if pool is not None:
        names += [c.name for c in table.columns if compatible(c, slot.column) and c.name not in names]
    for name in names:
        texts = frame.texts(name)
        yield _Reader(ref((), name), [texts[row] for row in rows])
    if slot.column.base in _TIMES:
        for column in table.columns:
            if column.base in _TIMES:
                texts = frame.texts(column.name)
                yield from _cut(task, slot, column, [texts[row] for row in rows])
    for key in table.foreign_keys if pool is None else ():
        far = task.state.catalog[key.target]
        shared = [name for name in namesakes(task.target, slot, far) if compatible(far.by_name[name], slot.column)]
        for name in shared:
            texts = task.state.frame(key.target).texts(name)
            parents = frame.parent(key)[rows].tolist()
            yield _Reader(ref((key,), name), [texts[p] if p >= 0 else None for p in parents], frozenset({(key,)}))


_Cut = Callable[[datetime.datetime], datetime.datetime]
_UNITS: tuple[tuple[str, _Cut], ...] = (
    ("day", lambda t: t.replace(hour=0, minute=0, second=0, microsecond=0)),
    ("hour", lambda t: t.replace(minute=0, second=0, microsecond=0)),
    ("week", lambda t: _day(t) - datetime.timedelta(days=t.weekday())),
    ("month", lambda t: _day(t).replace(day=1)),
    ("quarter", lambda t: _day(t).replace(day=1, month=t.month - (t.month - 1) % 3)),
    ("year", lambda t: _day(t).replace(day=1, month=1)),
)


def _day(t: datetime.datetime) -> datetime.datetime:
    return t.replace(hour=0, minute=0, second=0, microsecond=0)


def _cut(task: Task, slot: Slot, column: Column, texts: list[Value]) -> Iterator[_Reader]:
    """`column` cut to units of time, in UTC."""
    try:
        moments = {text: _moment(text) for text in set(texts) if text is not None}
        wanted = {_moment(value) for value in slot.values if value is not None}
        for unit, cut in _UNITS:
            made = {text: cut(moment) for text, moment in moments.items()}
            if wanted <= set(made.values()):
                named = {_moment(value): value for value in slot.values if value is not None}
                values = [None if text is None else named.get(made[text], text) for text in texts]
                yield _Reader(_cut_term(task, slot, column, unit), values)
    except ValueError:
        return


def _moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=None)


def _cut_term(task: Task, slot: Slot, column: Column, unit: str) -> Term:
    own = ref((), column.name)
    zoned = column.base == "timestamp with time zone" and task.timezone != "UTC"
    if slot.column.base == "date" and unit == "day":
        local = Term(("(", *own.parts, "AT TIME ZONE", "'UTC'", ")")) if zoned else own
        return cast(local, "date")
    return call("date_trunc", raw(quote(unit)), own, *([raw("'UTC'")] if zoned else []))


@dataclass(frozen=True)
class _Grouped:
    """`grouping` are the inserted columns that the rows of `table` are grouped by; `must` are the rows of the wanted
    groups, `must_not` the others."""

    table: Table
    pool: DriverRows | None
    grouping: tuple[str, ...]
    terms: dict[str, Term]
    paths: frozenset[Path]
    must: Mask
    must_not: Mask

    @property
    def selective(self) -> bool:
        return bool(self.must_not.any())


def _over(task: Task, table: Table, pool: DriverRows | None) -> _Grouped | None:
    frame = task.state.frame(table.name)
    rows: Indexes = pool.rows if pool is not None else np.arange(frame.size)
    varying = [s for s in task.slots if s.explicit and not s.default and not s.constant and s.sequence is None]
    if len(rows) < task.count or not task.budget.spend(1 + len(rows) * len(varying) // CELLS):
        return None
    choices: list[list[tuple[Slot, _Reader | None]]] = []
    for slot in varying:
        wanted = set(slot.values)
        fits = [r for r in _readers(task, slot, table, pool, rows.tolist()) if wanted <= set(r.values)]
        # What gives no other group is likelier.
        fits.sort(key=lambda reader: wanted != set(reader.values))
        options: list[tuple[Slot, _Reader | None]] = [(slot, reader) for reader in fits[:_MAX_READERS]]
        if class_of(slot.column) in (INT, NUMBER) and not _is_key(task, slot):
            options.insert(0, (slot, None))
        choices.append(options or [(slot, None)])
    for chosen in islice(product(*choices), _MAX_GROUPINGS):
        groups = {slot.name: reader for slot, reader in chosen if reader is not None}
        folded = [slot for slot, reader in chosen if reader is None]
        grouped = _by(task, table, pool, rows, groups, folded) if groups else None
        if grouped is not None:
            return grouped
    return None


def _by(
    task: Task,
    table: Table,
    pool: DriverRows | None,
    rows: Indexes,
    groups: dict[str, _Reader],
    folded: Sequence[Slot],
) -> _Grouped | None:
    """The grouping by `groups`, if aggregates of them give `folded`."""
    frame = task.state.frame(table.name)
    members = _members(task, groups, rows.tolist())
    if members is None or (not folded and all(len(some) == 1 for some in members)):
        return None  # plain rows are not this module's
    if folded and not task.budget.spend(1 + len(rows) * len(frame.table.columns) // CELLS):
        return None
    terms = folds(frame, folded, members) if folded else {}
    if terms is None:
        return None
    must = np.zeros(frame.size, dtype=bool)
    must[[row for some in members for row in some]] = True
    inside = np.zeros(frame.size, dtype=bool)
    inside[rows] = True
    paths: frozenset[Path] = frozenset().union(*(reader.paths for reader in groups.values()))
    terms |= {name: reader.term for name, reader in groups.items()}
    return _Grouped(table, pool, tuple(groups), terms, paths, must, inside & ~must)


def _members(task: Task, groups: dict[str, _Reader], rows: list[int]) -> list[list[int]] | None:
    """The rows of each inserted row's group; None where there is no group, or one is meant twice."""
    slots = {slot.name: slot for slot in task.slots}
    wanted = list(zip(*(slots[name].values for name in groups), strict=True))
    if len(set(wanted)) != len(wanted):
        return None
    found: dict[tuple[Value, ...], list[int]] = {}
    for row, key in zip(rows, zip(*(reader.values for reader in groups.values()), strict=True), strict=True):
        found.setdefault(key, []).append(row)
    return [found[key] for key in wanted] if all(key in found for key in wanted) else None


def _statements(task: Task, grouped: _Grouped, origin: From) -> Iterator[Proposal]:
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


def _order(task: Task, grouping: Sequence[str]) -> list[tuple[str, bool]] | None:
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

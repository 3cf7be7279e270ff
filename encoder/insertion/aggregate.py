"""INSERT … SELECT … GROUP BY: a row for each group of another table's rows, or of those that a statement returned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from operator import itemgetter

import numpy as np

from emit.term import Part, Query, Term, raw, separate
from encoder.assignment.bench import paths_of
from encoder.frame import encode
from encoder.insertion.cells import Cell, far_cells, own_cells
from encoder.insertion.cousins import with_cousins
from encoder.insertion.cuts import TIMES
from encoder.insertion.extremes import extremes
from encoder.insertion.filters import filters
from encoder.insertion.folds import folds, giving, telling
from encoder.insertion.layout import Layout, layouts, source_of
from encoder.insertion.model import DriverRows, Indexes, Proposal
from encoder.insertion.readers import Option, Reader, far_readers, is_reference, readers, together
from encoder.insertion.regrouped import Choice, Counted, Groups, choices
from encoder.insertion.relation import Given, related
from encoder.insertion.slots import Slot
from encoder.insertion.spell import INT, NUMBER, class_of
from encoder.insertion.task import CELLS, From, Task, order_by
from encoder.selection.lower import lower
from encoder.selection.model import Labels, Path
from scratch.catalog import Table
from stream.model import Value

_MAX_TABLES = 3
# Bytes of a condition after which none for other groupings is looked for.
_PLAIN = 60
_MAX_READERS = 3
_MAX_GROUPINGS = 8
_MAX_FILTERS = 4
_MAX_FOLDS = 30


def aggregate_proposals(task: Task, pool: Sequence[DriverRows] = ()) -> Iterator[Proposal]:
    """INSERTs whose varying columns are groups of one table and aggregates over them; with a `pool`, over its rows."""
    if task.count < 2:
        return
    catalog = task.state.catalog
    sources: list[tuple[Table, DriverRows | None]] = [(catalog[p.table], p) for p in pool if p.cte is not None]
    if not pool:
        sources = [(catalog[name], None) for name in catalog]
    found = [(task, grouped) for table, rows in sources for grouped in _over(task, table, rows)]
    if not found and not pool:
        for name in catalog:
            state = with_cousins(task.state, catalog[name], {key.target for key in task.target.foreign_keys})
            if state is not None:
                other = replace(task, state=state)
                found += [(other, grouped) for grouped in _over(other, state.catalog[name], None)]
    found = [
        (one, grouped)
        for one, grouped in found
        if task.may_pay({**task.constants(), **grouped.terms}, [grouped.table], grouped.selective)
    ]
    found.sort(key=lambda pair: (int(pair[1].choice.must_not.sum()), pair[1].table.name))
    for one, grouped in found[:_MAX_TABLES]:
        cte = grouped.pool.cte if grouped.pool is not None else None
        selections = one.selections(grouped.table, grouped.labels)
        for selection in selections:
            for where in lower(one.state.catalog, grouped.table.name, selection, needed=grouped.paths):
                origin = From((source_of(grouped.table, (), cte), *where.sources), where.where)
                yield from _statements(one, grouped, origin)
        if grouped.choice.least is None and any(selection.size <= _PLAIN for selection in selections):
            return


@dataclass(frozen=True)
class _Grouped:
    """`grouping` are the inserted columns that the rows of `table` are grouped by; `must` are the rows of the wanted
    groups, `must_not` the others."""

    table: Table
    pool: DriverRows | None
    grouping: tuple[str, ...]
    terms: dict[str, Term]
    paths: frozenset[Path]
    choice: Choice
    order: Sequence[tuple[str, bool]] | None

    @property
    def selective(self) -> bool:
        return bool(self.choice.must_not.any())

    @property
    def labels(self) -> Labels:
        return Labels(self.choice.must, self.choice.must_not)

    @property
    def having(self) -> tuple[Part, ...]:
        least = self.choice.least
        return () if least is None else ("HAVING", "count(*)", ">", str(least - 1))


def _over(task: Task, table: Table, pool: DriverRows | None) -> list[_Grouped]:
    frame = task.state.frame(table.name)
    rows: Indexes = pool.rows if pool is not None else np.arange(frame.size)
    varying = [s for s in task.slots if s.explicit and not s.default and not s.constant and s.sequence is None]
    if len(rows) < task.count or not task.budget.spend(1 + len(rows) * len(varying) // CELLS):
        return []
    near = {slot.name: list(readers(task, slot, table, pool, rows.tolist())) for slot in varying}
    cells = list(own_cells(frame))
    found = _grouped(task, table, rows, varying, near, cells)
    # Farther rows are looked at where a nearby column tells which rows those are.
    if found or pool is not None or not any(near.values()) or all(near.values()):
        return [replace(grouped, pool=pool) for grouped in found]
    far = {
        slot.name: [*near[slot.name], *(() if near[slot.name] else far_readers(task, slot, table, rows))]
        for slot in varying
    }
    above = far_cells(task, frame, {way for given in far.values() for reader in given for way in reader.paths})
    return _grouped(task, table, rows, varying, far, [*cells, *above])


def _grouped(
    task: Task,
    table: Table,
    rows: Indexes,
    slots: Sequence[Slot],
    given: Mapping[str, Sequence[Reader]],
    cells: Sequence[Cell],
) -> list[_Grouped]:
    """The first grouping by readers `given` of each slot from which all slots can be said."""
    options: list[list[Option]] = []
    for slot in slots:
        fits: dict[tuple[Value, ...], tuple[int, Reader]] = {}
        for reader in given[slot.name]:
            held = set(reader.values)
            if held.issuperset(slot.values):
                fits.setdefault(tuple(reader.values), (len(held), reader))
        # What gives few other groups is likelier.
        likely = sorted(fits.values(), key=itemgetter(0))[:_MAX_READERS]
        choice: list[Option] = [(slot, reader) for _, reader in likely]
        foldable = class_of(slot.column) in (INT, NUMBER) or slot.column.base in TIMES
        if foldable and not is_reference(task, slot):
            choice.insert(0, (slot, None))
        options.append(choice or [(slot, None)])
    for chosen in together(options, _MAX_GROUPINGS):
        groups = {slot.name: reader for slot, reader in chosen if reader is not None}
        folded = [slot for slot, reader in chosen if reader is None]
        found = _by(task, table, rows, groups, folded, cells)
        if found is not None:
            return found
    return []


def _by(
    task: Task,
    table: Table,
    rows: Indexes,
    groups: Mapping[str, Reader],
    folded: Sequence[Slot],
    cells: Sequence[Cell],
) -> list[_Grouped] | None:
    """The grouping by `groups`, with and without HAVING, if aggregates of all rows or of a part give `folded`."""
    frame = task.state.frame(table.name)
    numbers = _numbers(task, groups)
    if numbers is None or (not folded and len(set(numbers[numbers >= 0].tolist())) == (numbers >= 0).sum()):
        return None  # plain rows are not this module's
    everything = np.ones(len(rows), dtype=bool)
    if not folded:
        return _labelled(task, table, rows, groups, {}, numbers, Counted(everything))
    for mask in chain([everything], islice(filters(frame, rows, numbers, folded), _MAX_FILTERS)):
        if not task.budget.spend(1 + len(rows) * len(frame.table.columns) // CELLS):
            return None
        members: list[list[int]] = [[] for _ in range(task.count)]
        for row, number in zip(rows[mask].tolist(), numbers[mask].tolist(), strict=True):
            if number >= 0:
                members[number].append(row)
        terms = _folded(task, cells, groups, folded, members) if all(members) else None
        if terms is not None:
            return _labelled(task, table, rows, groups, terms, numbers, Counted(mask, mask))
    some = extremes(cells, folded, rows, numbers)
    return None if some is None else _labelled(task, table, rows, groups, some.terms, numbers, some.counted)


def _numbers(task: Task, groups: Mapping[str, Reader]) -> Indexes | None:
    """For every row the inserted row whose group it is in, -1 for none, -2 where a part of the key is NULL; None where
    there is no group, or one is meant twice."""
    slots = {slot.name: slot for slot in task.slots}
    wanted = list(zip(*(slots[name].values for name in groups), strict=True))
    place = {key: number for number, key in enumerate(wanted)}
    keys = zip(*(reader.values for reader in groups.values()), strict=True)
    numbers = np.array([place.get(key, -2 if None in key else -1) for key in keys], dtype=np.int64)
    missing = len(set(numbers[numbers >= 0].tolist())) < len(wanted)
    return None if missing or len(place) < len(wanted) else numbers


def _folded(
    task: Task,
    cells: Sequence[Cell],
    groups: Mapping[str, Reader],
    slots: Sequence[Slot],
    members: Sequence[Sequence[int]],
) -> dict[str, Term] | None:
    """Terms for `slots`: aggregates, or expressions over aggregates and what the rows are grouped by."""
    made = folds(task.state.session, cells, slots, members)
    terms = {slot.name: term for slot in slots if (term := giving(made, slot)) is not None}
    left = [slot for slot in slots if slot.name not in terms]
    if not left:
        return terms
    known = {slot.name: slot for slot in task.slots}
    given = [Given(reader.column, reader.term, known[name].values) for name, reader in groups.items()]
    given += [Given(fold.column, fold.term, fold.values) for fold in sorted(made, key=telling)[:_MAX_FOLDS]]
    with related(task.state, given, ()) as relation:
        for slot in left:
            found = task.express_over(relation, slot) if relation is not None else None
            if found is None:
                return None
            terms[slot.name] = found[0]
    return terms


def _labelled(
    task: Task,
    table: Table,
    rows: Indexes,
    groups: Mapping[str, Reader],
    terms: Mapping[str, Term],
    numbers: Indexes,
    counted: Counted,
) -> list[_Grouped]:
    """The grouping with each way to select its rows."""
    size = task.state.frame(table.name).size
    keys = list(zip(*(reader.values for reader in groups.values()), strict=True))
    order = _order(task, tuple(groups)) if task.sequences else []
    said = {**terms, **{name: reader.term for name, reader in groups.items()}}
    paths = frozenset[Path]().union(*map(paths_of, said.values()))
    found = choices(task, Groups(tuple(groups), rows, keys, numbers, counted, size, order))
    return [_Grouped(table, None, tuple(groups), said, paths, choice, order) for choice in found]


def _statements(task: Task, grouped: _Grouped, origin: From) -> Iterator[Proposal]:
    terms, grouping = grouped.terms, grouped.grouping
    order, choice = grouped.order, grouped.choice
    for layout in layouts(task.slots, {**task.constants(), **terms}, choice.draws):
        keys = [(terms[name], falls) for name, falls in order or ()]
        sort = order_by(keys, layout.select).parts if layout.uses and keys else ()
        query = Query(layout.select, origin.sources, origin.where)
        whole = Term((*_group_by([terms[name] for name in grouping], layout), *grouped.having, *sort))
        yield task.insert(layout, replace(query, tail=whole), conflict=choice.conflict, note="groups")
        if len(terms) == len(grouping) and choice.least is None and _keeps_types(task):
            tail = Term(sort) if sort else None
            single = replace(query, tail=tail, distinct=True)
            yield task.insert(layout, single, conflict=choice.conflict, note="distinct")


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

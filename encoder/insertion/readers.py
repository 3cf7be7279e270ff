"""What rows may be grouped by: terms over a table's rows that hold the values of an inserted column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from emit.term import Term, ref
from encoder.frame import Frame
from encoder.insertion.cuts import TIMES, cuts
from encoder.insertion.evidence import compatible, namesakes
from encoder.insertion.model import DriverRows, Indexes
from encoder.insertion.slots import Slot
from encoder.insertion.spell import INT, class_of
from encoder.insertion.task import Task
from encoder.keyed import keyed
from encoder.selection.features import Feature, look
from encoder.selection.model import Path
from scratch.catalog import Column, ForeignKey, Table
from stream.model import Value

# How far up rows are looked at where nearer ones do not say all.
_DEPTH = 2
# So many different values that all stand in a column are hardly there by chance, whatever it is called.
_TELLING = 4
# Columns farther away that are taken for one inserted column.
_MAX_FAR = 6
# Combinations of readers that are followed up at once.
_MAX_OPEN = 400


@dataclass(frozen=True, slots=True)
class Reader:
    """A term that rows are grouped by, with its value in each of them."""

    term: Term
    column: Column
    values: list[Value]
    paths: frozenset[Path] = frozenset()


def readers(task: Task, slot: Slot, table: Table, pool: DriverRows | None, rows: list[int]) -> Iterator[Reader]:
    """What may give `slot` in every group: columns of its name, dates and times cut to a unit, columns one foreign
    key up; of rows that a statement returned any column of its type."""
    frame = task.state.frame(table.name)
    names = _namesakes(task, slot, table)
    if slot.column.kind == "S" and pool is None:
        names += [column.name for column in table.columns if column.kind == "S" and column.name not in names]
    if pool is not None:
        names += [c.name for c in table.columns if compatible(c, slot.column) and c.name not in names]
    for name in names:
        if _holds(frame, name, slot):
            texts = frame.texts(name)
            yield Reader(ref((), name), table.by_name[name], [texts[row] for row in rows])
    if slot.column.base in TIMES:
        for column in table.columns:
            if column.base in TIMES:
                texts = frame.texts(column.name)
                for cut in cuts(slot, column, [texts[row] for row in rows], task.timezone):
                    yield Reader(cut.term, slot.column, cut.values)
    for key in table.foreign_keys:
        far = task.state.catalog[key.target]
        for name in _namesakes(task, slot, far):
            if name in key.target_columns or not _holds(frame, name, slot, key):
                continue
            texts = task.state.frame(key.target).texts(name)
            parents = frame.parent(key)[rows].tolist()
            values = [texts[p] if p >= 0 else None for p in parents]
            yield Reader(ref((key,), name), far.by_name[name], values, frozenset({(key,)}))


def far_readers(task: Task, slot: Slot, table: Table, rows: Indexes) -> Iterator[Reader]:
    """Columns of the rows referred to that hold all values of `slot`, whatever they are called; none where the values
    are so few that they may stand there by chance."""
    wanted = set(slot.values)
    if len(wanted) < _TELLING and not is_reference(task, slot):
        return
    found = 0
    for feature in look(task.state, table.name, task.budget).features:
        if not 0 < len(feature.path) <= _DEPTH or feature.column is None or found == _MAX_FAR:
            continue
        column = task.state.catalog[feature.path[-1].target].by_name[feature.column]
        if compatible(column, slot.column) and wanted.issubset({*feature.coded.values, *_nothing(feature)}):
            found += 1
            values = feature.coded.texts()
            yield Reader(feature.term, column, [values[row] for row in rows.tolist()], feature.paths)


def is_reference(task: Task, slot: Slot) -> bool:
    return any(slot.name in key.columns for key in task.target.foreign_keys)


def _nothing(feature: Feature) -> tuple[None, ...]:
    return (None,) if feature.nullable else ()


def _holds(frame: Frame, name: str, slot: Slot, via: ForeignKey | None = None) -> bool:
    """Whether all values of `slot` stand in a column, or in that of rows referred to."""
    values = {(value,) for value in slot.values if value is not None}
    return keyed(frame, (name,), via).numbers.keys() >= values


def _namesakes(task: Task, slot: Slot, table: Table) -> list[str]:
    """Columns that may well hold the same; for an id that refers to nothing in particular every key."""
    names = namesakes(task.target, slot, table)
    if class_of(slot.column) == INT and slot.name.endswith("id") and not is_reference(task, slot):
        keys = [key.columns for key in table.foreign_keys] + [table.primary_key]
        names += sorted({key[0] for key in keys if len(key) == 1} - set(names))
    return [name for name in names if compatible(table.by_name[name], slot.column)]


Option = tuple[Slot, Reader | None]


def together(options: Sequence[Sequence[Option]], limit: int) -> list[list[Option]]:
    """At most `limit` ways to take one reader (None: the column is no part of the key) for each slot so that all
    wanted rows of the slots with a reader stand in the rows, in the order of the options.

    Slots with few options come first, and a way is given up as soon as a part of some wanted row stands nowhere.
    """
    if not options:
        return []
    order = sorted(range(len(options)), key=lambda at: len(options[at]))
    open_ways: list[tuple[dict[int, int], _Match | None]] = [({}, None)]
    for at in order:
        wider: list[tuple[dict[int, int], _Match | None]] = []
        own = [None if reader is None else _Match.of(slot, reader) for slot, reader in options[at]]
        for taken, match in open_ways:
            for number, one in enumerate(own):
                after = match if one is None else one.within(match)
                if (one is None or (after is not None and after.complete)) and len(wider) < _MAX_OPEN:
                    wider.append(({**taken, at: number}, after))
        open_ways = wider
    ways = sorted(tuple(taken[at] for at in range(len(options))) for taken, match in open_ways if match is not None)
    return [[options[at][number] for at, number in enumerate(way)] for way in ways[:limit]]


@dataclass(frozen=True)
class _Match:
    """Numbers of the values that each wanted row has, and of those that each row of the table has, -1 for others."""

    wanted: Indexes
    rows: Indexes

    @classmethod
    def of(cls, slot: Slot, reader: Reader) -> _Match:
        numbers: dict[Value, int] = {}
        wanted = np.array([numbers.setdefault(value, len(numbers)) for value in slot.values], dtype=np.int64)
        return cls(wanted, np.array([numbers.get(value, -1) for value in reader.values], dtype=np.int64))

    @property
    def complete(self) -> bool:
        """Whether everything that is wanted stands in some row."""
        return len(np.unique(self.rows[self.rows >= 0])) == int(self.wanted.max()) + 1

    def within(self, before: _Match | None) -> _Match:
        """The pairs of what `before` has and these values."""
        if before is None:
            return self
        width = int(self.wanted.max()) + 1
        pairs, wanted = np.unique(before.wanted * width + self.wanted, return_inverse=True)
        both = np.where((before.rows >= 0) & (self.rows >= 0), before.rows * width + self.rows, -1)
        at = np.minimum(np.searchsorted(pairs, both), len(pairs) - 1)
        return _Match(wanted, np.where(pairs[at] == both, at, -1))

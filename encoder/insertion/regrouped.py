"""Groups beside the wanted ones: those that HAVING leaves out, and those that ON CONFLICT passes over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from encoder.frame import encode
from encoder.insertion.model import Indexes
from encoder.insertion.slots import Slot
from encoder.insertion.task import Task
from encoder.selection.model import Mask
from stream.model import Value

Key = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Rows of a frame that are to be selected, and those that must not be.  With `least`, groups of fewer rows are left
    out by HAVING; `conflict`: rows that are there already are passed over; `draws`: sequences then give the ids."""

    must: Mask
    must_not: Mask
    least: int | None = None
    conflict: bool = False
    draws: bool = True


@dataclass(frozen=True, slots=True)
class Counted:
    """Which rows of the groups may have been counted, and without which of them the aggregates would be others; without
    `sure` there are no aggregates, and any row of a group is enough."""

    mask: Mask
    sure: Mask | None = None

    @property
    def whole(self) -> bool:
        """Whether all rows of a group were counted."""
        return self.sure is not None and bool((self.sure == self.mask).all())


@dataclass(frozen=True)
class Groups:
    """Rows of a frame of `size` rows: `keys` what they are grouped by, the values of the columns `names`; `numbers` the
    inserted row that each goes into, -1 for none, -2 for none because of a NULL.  `order`: the columns that the
    inserted rows are sorted by, None if they are not."""

    names: tuple[str, ...]
    rows: Indexes
    keys: Sequence[Key]
    numbers: Indexes
    counted: Counted
    size: int
    order: Sequence[tuple[str, bool]] | None

    def others(self) -> dict[Key, list[int]]:
        found: dict[Key, list[int]] = {}
        for place in np.flatnonzero(self.counted.mask & (self.numbers == -1)).tolist():
            found.setdefault(self.keys[place], []).append(int(self.rows[place]))
        return found


def choices(task: Task, groups: Groups) -> list[Choice]:
    """What may be selected: the counted rows of the wanted groups alone, or other groups too of which nothing comes."""
    must, must_not = np.zeros(groups.size, dtype=bool), np.zeros(groups.size, dtype=bool)
    counted = groups.counted.mask & (groups.numbers >= 0)
    must[groups.rows[counted]] = True
    must_not[groups.rows] = ~must[groups.rows]
    sure = _sure(groups, counted)
    if sure.any():  # which one of several is not known
        must[groups.rows[counted]] = sure[counted]
    others = groups.others()
    least = int(np.bincount(groups.numbers[counted]).min())
    thin = {key: rows for key, rows in others.items() if len(rows) < least}
    free = must_not.copy()
    free[[row for rows in thin.values() for row in rows]] = False
    in_step = groups.order is not None and all(slot.in_step for slot in task.sequences)
    found = [Choice(must, free, least, False, in_step)] if thin else []
    found.append(Choice(must, must_not, None, False, in_step))
    if in_step and task.sequences:
        return found
    there = _there(task, groups.names, others)
    for fewest, allowed, base in ((least, there.keys() - thin.keys(), free), (None, there.keys(), must_not)):
        if allowed and (fewest is None or thin):
            settled = _settled(task, groups, {key: others[key] for key in others if key in allowed}, must, base)
            if settled is not None:
                found.insert(0, Choice(*settled, fewest, True, bool(task.sequences)))
    return found


def _sure(groups: Groups, counted: Mask) -> Mask:
    """Which of the counted rows must be selected."""
    if groups.counted.sure is not None:
        return groups.counted.sure & counted
    sizes = np.bincount(groups.numbers[counted])
    found: Mask = counted & (sizes[np.maximum(groups.numbers, 0)] == 1)
    return found


def _there(task: Task, names: Sequence[str], others: Mapping[Key, list[int]]) -> dict[Key, list[int]]:
    """Those of `others` that meet a row of the target in a unique key, or, where none is known of these columns
    (indexes may be over expressions), in all that they are grouped by, in texts whatever the case."""
    frame = task.state.frame(task.target.name)
    constants = {slot.name: slot.values[0] for slot in task.slots if slot.constant and slot.explicit}
    known = {*names, *constants}
    unique = next((key for key in task.target.unique_keys if known >= {*key}), None)
    columns = list(unique) if unique is not None else list(names)
    folded = unique is None
    present = set(zip(*(_plain(frame.texts(name), folded) for name in columns), strict=True))
    made = {key: {**constants, **dict(zip(names, key, strict=True))} for key in others}
    return {
        key: rows
        for key, rows in others.items()
        if tuple(_plain([made[key][name] for name in columns], folded)) in present
    }


def _plain(values: Sequence[Value], folded: bool) -> list[Value]:
    return [value.lower() if folded and value is not None else value for value in values]


def _settled(
    task: Task, groups: Groups, allowed: Mapping[Key, list[int]], must: Mask, must_not: Mask
) -> tuple[Mask, Mask] | None:
    """`must` and `must_not` with the rows of the `allowed` groups where the gaps between the ids put them: each group
    passed over has used up one."""
    must, must_not = must.copy(), must_not.copy()
    if not task.sequences:
        must_not[[row for rows in allowed.values() for row in rows]] = False
        return must, must_not
    slot = task.sequences[0]
    if len(task.sequences) > 1 or slot.drawn is None or groups.order is None:
        return None
    needs = np.diff(np.array([-1, *slot.drawn])) - 1
    gaps = _gaps(task, groups, list(allowed))
    for gap, need in enumerate([*needs.tolist(), -1]):
        inside = [rows for rows, place in zip(allowed.values(), gaps, strict=True) if place == gap]
        if need > len(inside):
            return None
        flat = [row for rows in inside for row in rows]
        if need != 0:
            must_not[flat] = False
        if need == len(inside):
            must[[row for rows in inside if groups.counted.whole or len(rows) == 1 for row in rows]] = True
    return must, must_not


def _gaps(task: Task, groups: Groups, keys: Sequence[Key]) -> list[int]:
    """How many inserted rows come before each of `keys` in the order of the groups."""
    slots = {slot.name: slot for slot in task.slots}
    levels = []
    for name, falls in groups.order or ():
        at = groups.names.index(name)
        levels.append(_level(task, slots[name], falls, [key[at] for key in keys]))
    count = task.count
    wanted = [tuple(level[place] for level in levels) for place in range(count)]
    return [
        sum(mine < tuple(level[count + place] for level in levels) for mine in wanted) for place in range(len(keys))
    ]


def _level(task: Task, slot: Slot, falls: bool, more: Sequence[Value]) -> list[int]:
    """Numbers that sort as the inserted values and then `more` do."""
    codes = encode(task.state.session, slot.column, [*slot.values, *more]).codes.astype(np.int64)
    codes[codes < 0] = len(codes) + 1
    directed: list[int] = (-codes if falls else codes).tolist()
    return directed

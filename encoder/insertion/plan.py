"""Products of sides: their combinations, those that the target holds already, and the order in which they come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np

from emit.term import Term
from encoder.insertion.model import Indexes
from encoder.insertion.sides import Key, Side, determined, runs
from encoder.insertion.slots import Slot
from encoder.insertion.task import Task
from stream.model import Value

MAX_KEYS = 3  # sort keys of one side that are tried


@dataclass(frozen=True, slots=True)
class Plan:
    """`sides` whose product, filtered by `join`, has the inserted rows and perhaps others, which are in the
    target already (`holes`; with a join, `joined_holes` names them by the items of the sides).  With
    `keys`, sequences give the ids when the product is sorted by them: the rows passed over have used up the
    values that are missing.  `met`: the value that every row of the first and of the second side's table has of what
    they are joined by."""

    sides: tuple[Side, ...]
    join: Term | None
    holes: bool
    joined_holes: tuple[tuple[int, ...], ...] = ()
    keys: tuple[tuple[Term, bool], ...] | None = None
    met: tuple[Sequence[Value], Sequence[Value]] | None = None


def unique_keys(task: Task) -> list[list[Slot]]:
    """The unique keys that no sequence has a part in."""
    slots = {slot.name: slot for slot in task.slots if slot.explicit and slot.sequence is None}
    keys = (task.target.primary_key, *task.target.unique_keys)
    return [[slots[name] for name in key] for key in keys if key and all(name in slots for name in key)]


def present(task: Task, key: Sequence[Slot]) -> set[tuple[Value, ...]]:
    frame = task.state.frame(task.target.name)
    return set(zip(*(frame.texts(slot.name) for slot in key), strict=True))


def combinations(sides: Sequence[Side]) -> set[tuple[int, ...]]:
    return set(zip(*(side.items.tolist() for side in sides), strict=True))


def holes_of(sides: Sequence[Side]) -> list[tuple[int, ...]]:
    there = combinations(sides)
    return [combined for combined in product(*(range(side.size) for side in sides)) if combined not in there]


def all_there(task: Task, sides: Sequence[Side], holes: Sequence[tuple[int, ...]]) -> bool:
    """Whether the rows that the holes would give meet a unique key of the target."""
    for key in unique_keys(task):
        readers = [reader_of(slot, sides) for slot in key]
        if any(reader is None for reader in readers):
            continue
        there = present(task, key)
        made = (tuple(reader[1][hole[reader[0]]] for reader in readers if reader) for hole in holes)
        if all(values in there for values in made):
            return True
    return False


def reader_of(slot: Slot, sides: Sequence[Side]) -> tuple[int, dict[int, Value]] | None:
    """A side that determines `slot`, and its value for every item of it."""
    for place, side in enumerate(sides):
        if determined(slot, side.items):
            return place, dict(zip(side.items.tolist(), slot.values, strict=True))
    return None


def sort_orders(task: Task, plan: Plan) -> Iterator[tuple[tuple[tuple[Term, bool], ...], Indexes]]:
    """Sort keys that give the order of the stream, each with every row's place in the sorted product."""
    for turn in permutations(plan.sides):
        levels = [level_keys(task, turn[:depth], side)[:MAX_KEYS] for depth, side in enumerate(turn)]
        for keys in product(*levels):
            yield tuple(term for key in keys for term in key.terms), _places(task, plan, turn, keys)


def level_keys(task: Task, before: Sequence[Side], side: Side) -> list[Key]:
    """Keys of `side` that rise within every run of the rows that agree in the sides `before`."""
    found: list[Key] | None = None
    for run in sorted(runs([other.items for other in before], task.count), key=len, reverse=True):
        items = side.items[run]
        steps = items[np.concatenate([[True], np.diff(items) != 0])]
        if found is None:
            found = side.keys(steps)
        found = [key for key in found if (np.diff(key.rank[steps]) > 0).all()]
        if not found:
            break
    return found or []


def _places(task: Task, plan: Plan, turn: Sequence[Side], keys: Sequence[Key]) -> Indexes:
    place, holes = sort_codes(task, plan, turn, keys)
    # In a join only joined combinations count: those of the inserted rows and of the holes.
    return place if plan.join is None else np.searchsorted(np.sort(np.concatenate([place, holes])), place)


def sort_codes(task: Task, plan: Plan, turn: Sequence[Side], keys: Sequence[Key]) -> tuple[Indexes, Indexes]:
    """Numbers that sort as the combinations do, for the inserted rows and for the joined holes."""
    place = np.zeros(task.count, dtype=np.int64)
    holes = np.zeros(len(plan.joined_holes), dtype=np.int64)
    for side, key in zip(turn, keys, strict=True):
        rank = np.argsort(np.argsort(key.rank, kind="stable"), kind="stable")
        at = next(number for number, other in enumerate(plan.sides) if other is side)
        place = place * side.size + rank[side.items]
        holes = holes * side.size + rank[[hole[at] for hole in plan.joined_holes]]
    return place, holes

"""Products of two tables that are filtered by a join."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations, product

import numpy as np

from emit.term import Ref, Term, op
from encoder.insertion.evidence import Link
from encoder.insertion.model import Indexes
from encoder.insertion.plan import MAX_KEYS, Plan, all_there, level_keys, present, reader_of, sort_codes, unique_keys
from encoder.insertion.sides import Side, TableSide
from encoder.insertion.spell import class_of
from encoder.insertion.task import Task
from stream.model import Value


def joined_plans(
    task: Task, sides: Sequence[Side], tables: Sequence[Link], holes: Sequence[tuple[int, ...]]
) -> Iterator[Plan]:
    """The two tables, joined by a column of each that is equal in all inserted rows and in none of the holes."""
    one, other = tables
    left, right = sides[0], sides[1]
    assert isinstance(left, TableSide)
    assert isinstance(right, TableSide)
    frames = [task.state.frame(link.table.name) for link in tables]
    for a in one.table.columns:
        texts = frames[0].texts(a.name)
        for b in other.table.columns:
            if class_of(a) != class_of(b) or a.base == "boolean":
                continue
            others = frames[1].texts(b.name)
            pairs = zip(one.rows.tolist(), other.rows.tolist(), strict=True)
            if not all(texts[i] is not None and texts[i] == others[j] for i, j in pairs):
                continue
            open_holes = [h for h in holes if texts[left.rows[h[0]]] == others[right.rows[h[1]]]]
            if open_holes and not all_there(task, sides, open_holes):
                continue
            join = op(Term((Ref((0, ()), a.name),)), "=", Term((Ref((1, ()), b.name),)))
            met = [{texts[row] for row in left.rows.tolist()}, {others[row] for row in right.rows.tolist()}]
            left.must_not = np.array([text in met[1] for text in texts], dtype=bool)
            right.must_not = np.array([text in met[0] for text in others], dtype=bool)
            plan = Plan(tuple(sides), join, bool(open_holes), tuple(open_holes))
            yield plan
            if len(sides) == 2:
                yield from _joined_passed_over(task, plan, texts, others)
            return


def _joined_passed_over(
    task: Task, plan: Plan, keys: Sequence[Value], others: Sequence[Value]
) -> Iterator[Plan]:
    """The join with rows of the second table added of which nothing came, because all that they give is there."""
    left, right = plan.sides
    assert isinstance(left, TableSide)
    assert isinstance(right, TableSide)
    partners: dict[Value, list[int]] = {}
    for item, row in enumerate(left.rows.tolist()):
        partners.setdefault(keys[row], []).append(item)
    candidates = sorted(set(range(len(others))) - set(right.rows.tolist()))
    joined = {row: partners[others[row]] for row in candidates if others[row] in partners}
    free = [row for row in joined if _gives_nothing(task, left, right, row, joined[row])]
    if not free:
        return
    if not task.sequences:
        mask = np.ones(len(others), dtype=bool) if right.must_not is None else right.must_not.copy()
        mask[free] = False
        yield replace(plan, sides=(left, replace(right, must_not=mask)), holes=True)
        return
    for chosen in _burnt(task, plan, left, right, {row: joined[row] for row in free}):
        more = replace(right, extra=tuple(chosen))
        holes = tuple((item, right.size + at) for at, row in enumerate(chosen) for item in joined[row])
        yield Plan((left, more), plan.join, True, (*plan.joined_holes, *holes))


def _gives_nothing(task: Task, left: TableSide, right: TableSide, row: int, items: Sequence[int]) -> bool:
    """Whether a row of the second table, joined with `items` of the first, makes only rows that are there."""
    for key in unique_keys(task):
        readers = [right.values(slot) or reader_of(slot, (left,)) for slot in key]
        if any(reader is None for reader in readers):
            continue
        there = present(task, key)
        return all(
            tuple(r[row] if isinstance(r, list) else r[1][item] for r in readers if r is not None) in there
            for item in items
        )
    return False


def _burnt(
    task: Task, plan: Plan, left: TableSide, right: TableSide, free: dict[int, list[int]]
) -> Iterator[list[int]]:
    """Sets of free rows whose combinations have used up just the sequence values that are missing."""
    slot = task.sequences[0]
    if slot.drawn is None:
        return
    rows = sorted(free)
    pairs = [(item, at) for at, row in enumerate(rows) for item in free[row]]
    full = Plan(
        (left, replace(right, extra=tuple(rows))),
        plan.join,
        True,
        (*plan.joined_holes, *((item, right.size + at) for item, at in pairs)),
    )
    needs = np.diff(np.array([-1, *slot.drawn])) - 1
    for turn in permutations(full.sides):
        levels = [level_keys(task, turn[:depth], side)[:MAX_KEYS] for depth, side in enumerate(turn)]
        for keys in product(*levels):
            place, holes = sort_codes(task, full, turn, keys)
            gaps = np.searchsorted(place, holes)
            known = np.bincount(gaps[: len(plan.joined_holes)], minlength=task.count + 1)[: task.count]
            chosen = _fitting(needs - known, [at for _, at in pairs], gaps[len(plan.joined_holes) :].tolist())
            if chosen is not None:
                yield [rows[at] for at in sorted(chosen)]


def _fitting(needs: Indexes, owners: Sequence[int], gaps: Sequence[int]) -> set[int] | None:
    """Which owners to take so that gap g holds needs[g] of their places; what lies after the last gap is free."""
    left = set(owners)
    taken: set[int] = set()
    while True:
        open_places: dict[int, set[int]] = {gap: set() for gap in range(len(needs))}
        rest = needs.copy()
        for owner, gap in zip(owners, gaps, strict=True):
            if gap < len(needs):
                if owner in taken:
                    rest[gap] -= 1
                elif owner in left:
                    open_places[gap].add(owner)
        if (rest < 0).any():
            return None
        settled = len(left)
        for gap, choice in open_places.items():
            if choice and rest[gap] == 0:
                left -= choice
            elif choice and rest[gap] == len(choice):
                taken |= choice & left
                left -= choice
        if len(left) == settled:
            return taken if not rest.any() else None

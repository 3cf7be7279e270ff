"""Products of two tables that are filtered by a join."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations, product
from typing import TypeAlias

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
            texts_met = {texts[row] for row in left.rows.tolist()}
            near = (left.but(texts, texts_met), right.but(others, texts_met))
            plan = Plan((*near, *sides[2:]), join, bool(open_holes), tuple(open_holes), met=(texts, others))
            yield plan
            if len(sides) == 2:
                yield from _joined_passed_over(task, plan, texts, others)
                turned = tuple((hole[1], hole[0]) for hole in open_holes)
                swapped = replace(plan, sides=near[::-1], joined_holes=turned, met=(others, texts))
                yield from _joined_passed_over(task, swapped, others, texts)
            return


def _joined_passed_over(task: Task, plan: Plan, keys: Sequence[Value], others: Sequence[Value]) -> Iterator[Plan]:
    """The join with rows of the second table added of which nothing came, because all that they give is there."""
    left, right = plan.sides
    assert isinstance(left, TableSide)
    assert isinstance(right, TableSide)
    partners: dict[Value, list[int]] = {}
    for item, row in enumerate(left.rows.tolist()):
        partners.setdefault(keys[row], []).append(item)
    joined = {row: partners[key] for row, key in enumerate(others) if key in partners}
    yield from passed_over_plans(task, plan, joined)


def passed_over_plans(task: Task, plan: Plan, joined: Mapping[int, Sequence[int]]) -> Iterator[Plan]:
    """`plan` with rows of its second table added of which nothing came, because all that they give is there;
    `joined`: the items of the first table that a row of the second meets."""
    left, right = plan.sides
    assert isinstance(left, TableSide)
    assert isinstance(right, TableSide)
    known = set(right.rows.tolist())
    free = {
        row: list(items)
        for row, items in sorted(joined.items())
        if row not in known and _gives_nothing(task, left, right, row, items)
    }
    if not free:
        return
    mask = np.ones(task.state.frame(right.link.table.name).size, dtype=bool)
    mask = mask if right.must_not is None else right.must_not.copy()
    if not task.sequences:
        mask[list(free)] = False
        yield replace(plan, sides=(left, replace(right, must_not=mask)), holes=True)
        return
    for keys, chosen, undecided in _burnt(task, plan, left, right, free):
        mask[undecided] = False
        more = replace(right, extra=tuple(chosen), must_not=mask.copy())
        mask[undecided] = True
        yield replace(plan, sides=(left, more), holes=True, joined_holes=(), keys=keys)


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


_Keys: TypeAlias = tuple[tuple[Term, bool], ...]


def _burnt(
    task: Task, plan: Plan, left: TableSide, right: TableSide, free: Mapping[int, Sequence[int]]
) -> Iterator[tuple[_Keys, list[int], list[int]]]:
    """Sort keys with the free rows that must have used up the sequence values that are missing, and those that may."""
    slot = task.sequences[0]
    if slot.drawn is None or len(task.sequences) > 1:
        return
    rows = list(free)
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
            fit = _fitting(needs - known, [at for _, at in pairs], gaps[len(plan.joined_holes) :].tolist())
            if fit is not None:
                terms = tuple(term for key in keys for term in key.terms)
                yield terms, [rows[at] for at in sorted(fit[0])], [rows[at] for at in sorted(fit[1])]


def _fitting(needs: Indexes, owners: Sequence[int], gaps: Sequence[int]) -> tuple[set[int], set[int]] | None:
    """Which owners to take, and which perhaps, so that gap g holds needs[g] of their places.

    What lies after the last gap is free.  None where that cannot be.
    """
    left = set(owners)
    taken: set[int] = set()
    while True:
        choices: dict[int, list[int]] = {gap: [] for gap in range(len(needs))}
        rest = needs.copy()
        for owner, gap in zip(owners, gaps, strict=True):
            if gap < len(needs) and owner in taken:
                rest[gap] -= 1
            elif gap < len(needs) and owner in left:
                choices[gap].append(owner)
        if any(rest[gap] < 0 or rest[gap] > len(choice) for gap, choice in choices.items()):
            return None
        settled = len(left)
        for gap, choice in choices.items():
            if rest[gap] == 0:
                left -= set(choice)
            elif rest[gap] == len(choice):
                taken |= left & set(choice)
                left -= set(choice)
        if len(left) == settled:
            return taken, left

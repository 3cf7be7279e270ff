"""INSERT … SELECT over products: tables with tables, tables with lists of values, joined or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, permutations, product

import numpy as np

from emit.term import Prec, Query, Ref, Term, op, separate
from encoder.insertion.evidence import Link
from encoder.insertion.layout import Layout, layouts, source_of
from encoder.insertion.model import Indexes, Proposal
from encoder.insertion.sides import Key, ListSide, Side, TableSide, determined, runs
from encoder.insertion.slots import Slot
from encoder.insertion.spell import class_of
from encoder.insertion.task import From, Task, order_by, row_number, with_join
from encoder.selection.model import Mask
from stream.model import Value

_MAX_PRODUCT = 50_000
_FIRST_SIDES = 4
_SECOND_SIDES = 4
_MAX_TRIES = 6
_MAX_LIST = 40
_MAX_ORIGINS = 2
_MAX_FREE = 300_000
_MAX_ORDERS = 12
_MAX_KEYS = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """`sides` whose product, filtered by `join`, has the inserted rows and perhaps others, which are in the
    target already (`holes`; with a join, `joined_holes` names them by the items of the sides)."""

    sides: tuple[Side, ...]
    join: Term | None
    holes: bool
    joined_holes: tuple[tuple[int, ...], ...] = ()


def cross_proposals(task: Task, hypotheses: Sequence[Link]) -> list[Proposal]:
    found: list[Proposal] = []
    for plan in islice(_plans(task, hypotheses), _MAX_TRIES):
        found.extend(_propose(task, plan))
    return found


def _varying(task: Task) -> list[Slot]:
    wanted = (slot for slot in task.slots if slot.explicit and not slot.default and slot.sequence is None)
    return [slot for slot in wanted if not slot.constant]


def _plans(task: Task, hypotheses: Sequence[Link]) -> Iterator[Plan]:
    varying = _varying(task)
    for link in hypotheses:
        if link.beside is not None:
            both = [link.beside, link]
            rest = [slot for slot in varying if not any(determined(slot, one.rows) for one in both)]
            yield from _product(task, both, rest)
    repeated = _repeating(task, hypotheses)
    for place, first in enumerate(repeated[:_FIRST_SIDES]):
        left = [slot for slot in varying if not determined(slot, first.rows)]
        partners = [
            link
            for link in repeated[place + 1 :]
            if any(slot.name == link.column for slot in left) and not _nested(first, link)
        ]
        for second in partners[:_SECOND_SIDES]:
            rest = [slot for slot in left if not determined(slot, second.rows)]
            yield from _product(task, [first, second], rest)
        if left:
            yield from _product(task, [first], left)


def _repeating(task: Task, hypotheses: Sequence[Link]) -> list[Link]:
    """Links that several rows share, one for each set of rows."""
    found: list[Link] = []
    for link in hypotheses:
        distinct = len(np.unique(link.rows))
        if link.beside is None and 1 < distinct < task.count:
            found.append(link)
    return found


def _nested(one: Link, other: Link) -> bool:
    """Whether one row of either side always comes with the same row of the other."""
    pairs = len(np.unique(np.stack([one.rows, other.rows]), axis=1).T)
    return pairs <= max(len(np.unique(one.rows)), len(np.unique(other.rows)))


def _product(task: Task, tables: Sequence[Link], rest: Sequence[Slot]) -> Iterator[Plan]:
    sides: list[Side] = [TableSide(task, link, place) for place, link in enumerate(tables)]
    if rest:
        listed = ListSide(task, tuple(rest))
        if listed.size > _MAX_LIST:
            return
        sides.append(listed)
    size = int(np.prod([side.size for side in sides]))
    if size > _MAX_PRODUCT or len(_combinations(sides)) != task.count:
        return
    named = [link.table for link in tables]
    selective = any(side.size < task.state.frame(t.name).size for side, t in zip(sides, named, strict=False))
    if not task.may_pay(task.constants(), named, selective):
        return
    holes = _holes(sides)
    if not holes or _all_there(task, sides, holes):
        yield Plan(tuple(sides), None, bool(holes))
        yield from _with_passed_over(task, sides)
    elif len(tables) == 2:
        yield from _joined(task, sides, tables, holes)


def _with_passed_over(task: Task, sides: Sequence[Side]) -> Iterator[Plan]:
    """Plans that also read rows of which nothing came, because all that they give is there already."""
    free = [_free_rows(task, sides, place) for place in range(len(sides))]
    if not any(mask is not None and mask.any() for mask in free):
        return
    masks = list(zip(sides, free, strict=True))
    if not task.sequences:
        yield Plan(tuple(_loosened(side, mask) for side, mask in masks), None, True)
        return
    for chosen in product((True, False), repeat=len(sides)):
        picked = [(side, mask if use else None) for use, (side, mask) in zip(chosen, masks, strict=True)]
        if any(mask is not None and mask.any() for _, mask in picked):
            yield Plan(tuple(_extended(side, mask) for side, mask in picked), None, True)


def _loosened(side: Side, free: Mask | None) -> Side:
    if free is None or not isinstance(side, TableSide):
        return side
    return replace(side, must_not=~free)


def _extended(side: Side, free: Mask | None) -> Side:
    if free is None or not isinstance(side, TableSide):
        return side
    return replace(side, extra=tuple(np.flatnonzero(free).tolist()))


def _free_rows(task: Task, sides: Sequence[Side], place: int) -> Mask | None:
    """The other rows of one side of which every combination with the other sides is in the target already."""
    side = sides[place]
    others = [range(other.size) for at, other in enumerate(sides) if at != place]
    if not isinstance(side, TableSide):
        return None
    size = task.state.frame(side.link.table.name).size
    if size * int(np.prod([len(other) for other in others])) > _MAX_FREE:
        return None
    for key in _unique_keys(task):
        readers = [side.values(slot) or _reader(slot, sides) for slot in key]
        if any(reader is None for reader in readers) or not any(isinstance(reader, list) for reader in readers):
            continue
        there = _present(task, key)
        free = np.zeros(size, dtype=bool)
        for row in sorted(set(range(size)) - set(side.rows.tolist())):
            combinations = product(*(others[:place]), (0,), *(others[place:]))
            free[row] = all(
                tuple(r[row] if isinstance(r, list) else r[1][c[r[0]]] for r in readers if r is not None) in there
                for c in combinations
            )
        return free
    return None


def _unique_keys(task: Task) -> list[list[Slot]]:
    """The unique keys that no sequence has a part in."""
    slots = {slot.name: slot for slot in task.slots if slot.explicit and slot.sequence is None}
    keys = (task.target.primary_key, *task.target.unique_keys)
    return [[slots[name] for name in key] for key in keys if key and all(name in slots for name in key)]


def _present(task: Task, key: Sequence[Slot]) -> set[tuple[Value, ...]]:
    frame = task.state.frame(task.target.name)
    return set(zip(*(frame.texts(slot.name) for slot in key), strict=True))


def _combinations(sides: Sequence[Side]) -> set[tuple[int, ...]]:
    return set(zip(*(side.items.tolist() for side in sides), strict=True))


def _holes(sides: Sequence[Side]) -> list[tuple[int, ...]]:
    there = _combinations(sides)
    return [combined for combined in product(*(range(side.size) for side in sides)) if combined not in there]


def _all_there(task: Task, sides: Sequence[Side], holes: Sequence[tuple[int, ...]]) -> bool:
    """Whether the rows that the holes would give meet a unique key of the target."""
    for key in _unique_keys(task):
        readers = [_reader(slot, sides) for slot in key]
        if any(reader is None for reader in readers):
            continue
        there = _present(task, key)
        made = (tuple(reader[1][hole[reader[0]]] for reader in readers if reader) for hole in holes)
        if all(values in there for values in made):
            return True
    return False


def _reader(slot: Slot, sides: Sequence[Side]) -> tuple[int, dict[int, Value]] | None:
    """A side that determines `slot`, and its value for every item of it."""
    for place, side in enumerate(sides):
        if determined(slot, side.items):
            return place, dict(zip(side.items.tolist(), slot.values, strict=True))
    return None


def _joined(
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
            if open_holes and not _all_there(task, sides, open_holes):
                continue
            join = op(Term((Ref((0, ()), a.name),)), "=", Term((Ref((1, ()), b.name),)))
            met = [{texts[row] for row in left.rows.tolist()}, {others[row] for row in right.rows.tolist()}]
            left.must_not = np.array([text in met[1] for text in texts], dtype=bool)
            right.must_not = np.array([text in met[0] for text in others], dtype=bool)
            yield Plan(tuple(sides), join, bool(open_holes), tuple(open_holes))
            return


def _propose(task: Task, plan: Plan) -> Iterator[Proposal]:
    terms = _terms(task, plan.sides)
    if terms is None:
        return
    ways: list[_Way] = []
    if task.sequences:
        for keys, places in islice(_orders(task, plan), _MAX_ORDERS):
            ways += _numbered(task, plan, terms, keys, places)
    else:
        ways += [_Way(layout, (), False) for layout in layouts(task.slots, terms, True)]
        if plan.holes:
            ways += [_Way(layout, (), True) for layout in layouts(task.slots, terms, True)]
    absent = _absent(task, plan.sides) if any(way.absent for way in ways) else None
    ways = [way for way in dict.fromkeys(ways) if absent is not None or not way.absent]
    if not ways:
        return
    for chosen in product(*(side.origins()[:_MAX_ORIGINS] for side in plan.sides)):
        for way in ways:
            yield _statement(task, plan, chosen, way, absent if way.absent else None)


@dataclass(frozen=True, slots=True)
class _Way:
    """A layout with the sort keys that its ids need; `absent`: rows that are there already are left out by WHERE."""

    layout: Layout
    keys: tuple[tuple[Term, bool], ...]
    absent: bool


def _numbered(
    task: Task, plan: Plan, terms: dict[str, Term], keys: tuple[tuple[Term, bool], ...], places: Indexes
) -> list[_Way]:
    """Ways to give the ids when the product is sorted by `keys` and the rows then stand at `places`."""
    slot = task.sequences[0]
    if len(task.sequences) > 1 or None in slot.values:
        return []
    draws = slot.drawn is not None and slot.drawn == tuple(places.tolist())
    fresh = plan.holes and slot.in_step
    offsets = {int(value or 0) - place for value, place in zip(slot.values, places.tolist(), strict=True)}
    numbered = dict(terms)
    if len(offsets) == 1:
        numbered[slot.name] = row_number(keys, offsets.pop() - 1)
    ways = [_Way(layout, keys, False) for layout in layouts(task.slots, numbered, draws)]
    if fresh:
        ways += [_Way(layout, keys, True) for layout in layouts(task.slots, terms, True)]
    return ways


def _statement(
    task: Task, plan: Plan, chosen: Sequence[From], way: _Way, absent: Term | None
) -> Proposal:
    where: Term | None = plan.join
    for condition in (*(origin.where for origin in chosen), absent):
        if condition is not None:
            where = with_join(where, condition)
    sources = tuple(source for origin in chosen for source in origin.sources)
    layout = way.layout
    tail = order_by(way.keys, layout.select) if layout.uses and way.keys else None
    conflict = plan.holes and absent is None
    return task.insert(layout, Query(layout.select, sources, where, tail), conflict=conflict, note="product")


def _terms(task: Task, sides: Sequence[Side]) -> dict[str, Term] | None:
    terms = task.constants()
    for slot in task.slots:
        if not slot.explicit or slot.default or slot.constant or slot.sequence is not None:
            continue
        found = next((term for side in sides if (term := side.express(slot)) is not None), None)
        if found is None:
            return None
        terms[slot.name] = found
    return terms


def _orders(task: Task, plan: Plan) -> Iterator[tuple[tuple[tuple[Term, bool], ...], Indexes]]:
    """Sort keys that give the order of the stream, each with every row's place in the sorted product."""
    for turn in permutations(plan.sides):
        levels = [_level(task, turn[:depth], side)[:_MAX_KEYS] for depth, side in enumerate(turn)]
        for keys in product(*levels):
            yield tuple(term for key in keys for term in key.terms), _places(task, plan, turn, keys)


def _level(task: Task, before: Sequence[Side], side: Side) -> list[Key]:
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
    ranks = [np.argsort(np.argsort(key.rank, kind="stable"), kind="stable") for key in keys]
    place = np.zeros(task.count, dtype=np.int64)
    for side, rank in zip(turn, ranks, strict=True):
        place = place * side.size + rank[side.items]
    if plan.join is None:
        return place
    # Only joined combinations count: those of the inserted rows and of the holes.
    holes = np.zeros(len(plan.joined_holes), dtype=np.int64)
    for side, rank in zip(turn, ranks, strict=True):
        at = next(number for number, other in enumerate(plan.sides) if other is side)
        holes = holes * side.size + rank[[hole[at] for hole in plan.joined_holes]]
    return np.searchsorted(np.sort(np.concatenate([place, holes])), place)


def _absent(task: Task, sides: Sequence[Side]) -> Term | None:
    """(a,b)NOT IN(SELECT x,y FROM target): only rows whose key is not there yet."""
    slots = {slot.name: slot for slot in task.slots}
    for key in (*task.target.unique_keys, task.target.primary_key):
        if not key or any(slots[name].sequence is not None for name in key):
            continue
        terms = [next((t for side in sides if (t := side.express(slots[name])) is not None), None) for name in key]
        constants = task.constants()
        filled = [constants.get(name) if term is None else term for name, term in zip(key, terms, strict=True)]
        if any(term is None for term in filled):
            continue
        inner = Query(
            tuple(Term((Ref("target", name),)) for name in key), (source_of(task.target, "target"),)
        )
        left = ("(", *separate([term for term in filled if term is not None]), ")")
        return Term((*left, "NOT IN(", inner, ")"), Prec.LIKE)
    return None

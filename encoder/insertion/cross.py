"""INSERT … SELECT over products: tables with tables, tables with lists of values, joined or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product

import numpy as np

from emit.term import Prec, Query, Ref, Term, separate
from encoder.insertion.evidence import Link
from encoder.insertion.joined import joined_plans, passed_over_plans
from encoder.insertion.layout import Layout, layouts, source_of
from encoder.insertion.model import Indexes, Proposal
from encoder.insertion.plan import Plan, all_there, combinations, holes_of, present, reader_of, sort_orders, unique_keys
from encoder.insertion.relation import Given, Upward, related
from encoder.insertion.remainders import remainders
from encoder.insertion.sides import ListSide, Side, TableSide, determined
from encoder.insertion.single import needs_synthesis
from encoder.insertion.slots import Slot
from encoder.insertion.task import From, Task, order_by, row_number, with_join
from encoder.selection.model import Mask

_MAX_PRODUCT = 50_000
_FIRST_SIDES = 4
_SECOND_SIDES = 4
_MAX_TRIES = 6
_MAX_LIST = 40
_MAX_ORIGINS = 2
_MAX_FREE = 300_000
_MAX_ORDERS = 12


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
    yield from _looked_up(task, hypotheses, repeated)


def _looked_up(task: Task, hypotheses: Sequence[Link], repeated: Sequence[Link]) -> Iterator[Plan]:
    """Rows of one table, one each, joined with another table by columns that no foreign key connects."""
    single = [link for link in hypotheses if link.distinct and link.beside is None and link.pool is None]
    for one in [link for link in single[:_FIRST_SIDES] if needs_synthesis(task, link)]:
        for other in (*repeated[:_SECOND_SIDES], *single[:_SECOND_SIDES]):
            if other is not one:
                yield from _product(task, [other, one], [])


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
    fixed: list[Side] = [TableSide(task, link, place) for place, link in enumerate(tables)]
    for listed in _lists(task, tables, rest):
        sides: list[Side] = [*fixed, *listed]
        size = int(np.prod([side.size for side in sides]))
        if size <= _MAX_PRODUCT and len(combinations(sides)) == task.count:
            plans = list(_filled(task, tables, sides))
            yield from plans
            if plans:
                return


def _lists(task: Task, tables: Sequence[Link], rest: Sequence[Slot]) -> Iterator[list[ListSide]]:
    """What may stand beside `tables`, of whose columns `rest` cannot be read alone: nothing, lists of all of
    these values, of one column, or of what is left of texts without those of a table."""
    if not rest:
        yield []
        return
    single = [(slot,) for slot in rest] if len(rest) > 1 else []
    hidden = [(left,) for slot in rest for link in tables for left in remainders(task.state, link, slot)]
    for slots in (tuple(rest), *single, *hidden):
        listed = ListSide(task, slots)
        if 1 < listed.size <= _MAX_LIST:
            yield [listed]


def _filled(task: Task, tables: Sequence[Link], sides: Sequence[Side]) -> Iterator[Plan]:
    named = [link.table for link in tables]
    selective = any(side.size < task.state.frame(t.name).size for side, t in zip(sides, named, strict=False))
    if not task.may_pay(task.constants(), named, selective):
        return
    holes = holes_of(sides)
    if not holes or all_there(task, sides, holes):
        yield Plan(tuple(sides), None, bool(holes))
        yield from _with_passed_over(task, sides)
    elif len(tables) == 2:
        yield from joined_plans(task, sides, tables, holes)


def _with_passed_over(task: Task, sides: Sequence[Side]) -> Iterator[Plan]:
    """Plans that also read rows of which nothing came, because all that they give is there already."""
    free = [_free_rows(task, sides, place) for place in range(len(sides))]
    if not any(mask is not None and mask.any() for mask in free):
        return
    masks = list(zip(sides, free, strict=True))
    if not task.sequences:
        yield Plan(tuple(_loosened(side, mask) for side, mask in masks), None, True)
        return
    for pair in (sides, sides[::-1]) if len(sides) == 2 else ():
        if all(isinstance(side, TableSide) for side in pair):
            plan = Plan(tuple(pair), None, True, tuple(holes_of(pair)))
            mask = free[1] if pair is sides else free[0]
            rows = [] if mask is None else np.flatnonzero(mask).tolist()
            yield from passed_over_plans(task, plan, {row: range(pair[0].size) for row in rows})


def _loosened(side: Side, free: Mask | None) -> Side:
    if free is None or not isinstance(side, TableSide):
        return side
    return replace(side, must_not=~free)


def _free_rows(task: Task, sides: Sequence[Side], place: int) -> Mask | None:
    """The other rows of one side of which every combination with the other sides is in the target already."""
    side = sides[place]
    others = [range(other.size) for at, other in enumerate(sides) if at != place]
    if not isinstance(side, TableSide):
        return None
    size = task.state.frame(side.link.table.name).size
    if size * int(np.prod([len(other) for other in others])) > _MAX_FREE:
        return None
    for key in unique_keys(task):
        readers = [side.values(slot) or reader_of(slot, sides) for slot in key]
        if any(reader is None for reader in readers) or not any(isinstance(reader, list) for reader in readers):
            continue
        there = present(task, key)
        free = np.zeros(size, dtype=bool)
        for row in sorted(set(range(size)) - set(side.rows.tolist())):
            combinations = product(*(others[:place]), (0,), *(others[place:]))
            free[row] = all(
                tuple(r[row] if isinstance(r, list) else r[1][c[r[0]]] for r in readers if r is not None) in there
                for c in combinations
            )
        return free
    return None


def _propose(task: Task, plan: Plan) -> Iterator[Proposal]:
    terms = _terms(task, plan.sides)
    if terms is None:
        return
    ways: list[_Way] = []
    if plan.keys is not None:
        ways += _burnt_ways(task, plan, terms, plan.keys)
    elif task.sequences:
        for keys, places in islice(sort_orders(task, plan), _MAX_ORDERS):
            ways += _numbered(task, plan, terms, keys, places)
    else:
        ways += [_Way(layout, (), False) for layout in layouts(task.slots, terms, True)]
        if plan.holes:
            ways += [_Way(layout, (), True) for layout in layouts(task.slots, terms, True)]
    absent = _absent(task, plan.sides) if any(way.absent for way in ways) else None
    ways = [way for way in dict.fromkeys(ways) if absent is not None or not way.absent]
    if not ways:
        return
    for chosen in _origins(plan):
        for way in ways:
            yield _statement(task, plan, chosen, way, absent if way.absent else None)


def _origins(plan: Plan) -> Iterator[tuple[From, ...]]:
    """What each side reads.  Of two that are joined one may read any rows that the other's rows do not meet."""
    if plan.met is None:
        yield from product(*(side.origins()[:_MAX_ORIGINS] for side in plan.sides))
        return
    others = [side.origins()[:1] for side in plan.sides[2:]]
    for first, second in ((1, 0), (0, 1)):
        near, far = plan.sides[first], plan.sides[second]
        assert isinstance(near, TableSide)
        assert isinstance(far, TableSide)
        for origin in near.origins()[:_MAX_ORIGINS]:
            met = {plan.met[first][row] for row in near.selected(origin)}
            for beside in far.but(plan.met[second], met).origins()[:_MAX_ORIGINS]:
                for rest in product(*others):
                    yield (*((origin, beside) if first < second else (beside, origin)), *rest)


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


def _burnt_ways(task: Task, plan: Plan, terms: dict[str, Term], keys: tuple[tuple[Term, bool], ...]) -> list[_Way]:
    """Ways to give the ids where the plan draws just the sequence's values that the stream shows."""
    slot = task.sequences[0]
    if slot.drawn is None:
        return []
    start = int(slot.values[0] or 0) - slot.drawn[0]
    numbered = {**terms, slot.name: row_number(keys, start - 1)}
    return [_Way(layout, keys, False) for layout in layouts(task.slots, numbered, True)]


def _statement(task: Task, plan: Plan, chosen: Sequence[From], way: _Way, absent: Term | None) -> Proposal:
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
    open_slots: list[Slot] = []
    for slot in task.doubtful:
        if not slot.explicit or slot.default or slot.constant or slot.sequence is not None:
            continue
        found = next((term for side in sides if (term := side.express(slot)) is not None), None)
        if found is None:
            open_slots.append(slot)
        else:
            terms[slot.name] = found
    if open_slots:
        combined = _combined(task, sides, open_slots)
        if combined is None:
            return None
        terms |= combined
    return terms


def _combined(task: Task, sides: Sequence[Side], slots: Sequence[Slot]) -> dict[str, Term] | None:
    """Terms for columns that more than one side has a part in."""
    given: list[Given] = []
    upwards: list[Upward] = []
    for side in sides:
        columns, ways = side.given()
        start = len(given)
        given += columns
        upwards += [replace(way, columns=tuple(start + at for at in way.columns)) for way in ways]
    terms: dict[str, Term] = {}
    with related(task.state, given, upwards) as relation:
        for slot in slots:
            found = task.express_over(relation, slot) if relation is not None else None
            if found is None:
                return None
            terms[slot.name] = found[0]
            for key in found[1]:
                for side in sides:
                    side.reach(key)
    return terms


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
        inner = Query(tuple(Term((Ref("target", name),)) for name in key), (source_of(task.target, "target"),))
        left = ("(", *separate([term for term in filled if term is not None]), ")")
        return Term((*left, "NOT IN(", inner, ")"), Prec.LIKE)
    return None

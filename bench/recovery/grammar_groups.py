"""Conditions relative to the other rows of a table: ranks, extremes, averages, duplicates."""

from __future__ import annotations

import random
from collections.abc import Callable

from bench.recovery.model import Draw
from bench.recovery.selection import Selection, drawn
from bench.recovery.world import World, pick
from emit.term import Query, Source, Term, call, in_query, op, raw, ref, separate, subquery, tuple_of
from scratch.catalog import Column, Table

OTHER = "other"


def groupers(world: World, table: Table) -> list[Column]:
    """Columns that split the rows into groups: at least two, and of more than one row on average."""
    found = []
    for column in table.columns:
        if column.kind in ("N", "S", "E", "B", "D"):
            groups = len(world.coded(table, column).values)
            if 2 <= groups <= world.frame(table.name).size / 2:
                found.append(column)
    return found


def measures(world: World, table: Table) -> list[Column]:
    return [c for c in table.columns if c.kind in ("N", "D") and len(world.coded(table, c).values) > 2]


def _other(world: World, table: Table) -> Source:
    return world.source(table.name, OTHER)


def _ordered(rng: random.Random, order: Column, key: Column) -> Term:
    down = rng.random() < 0.5
    parts: tuple[str, ...] = ("DESC",) if down else ()
    rest = () if order.name == key.name else (",", *ref(OTHER, key.name).parts)
    return Term((*ref(OTHER, order.name).parts, *parts, *rest))


def first_of_all(rng: random.Random, world: World, table: Table, key: Column) -> Term | None:
    """The first n rows of an order."""
    order = pick(rng, measures(world, table))
    if order is None:
        return None
    count = rng.choice((3, 5, 10, 20, 50))
    tail = Term(("ORDER BY", *_ordered(rng, order, key).parts, "LIMIT", str(count)))
    return in_query(ref((), key.name), Query((ref(OTHER, key.name),), (_other(world, table),), tail=tail))


def first_of_group(rng: random.Random, world: World, table: Table, key: Column) -> Term | None:
    """The first n rows of every group, or all but those."""
    order, group = pick(rng, measures(world, table)), pick(rng, groupers(world, table))
    if order is None or group is None or order.name == group.name:
        return None
    over = Term((
        "row_number()over(PARTITION BY", *ref(OTHER, group.name).parts, "ORDER BY", *_ordered(rng, order, key).parts,
        ")", "n",
    ))  # fmt: skip
    ranked = Query((Term((*ref(OTHER, key.name).parts, "i")), over), (_other(world, table),))
    source = Source("ranked", ranked, ("i", "n"))
    test = op(ref("ranked", "n"), rng.choice("<<>"), raw(str(rng.randint(2, 5))))
    return in_query(ref((), key.name), Query((ref("ranked", "i"),), (source,), test))


def extreme_of_group(rng: random.Random, world: World, table: Table, key: Column) -> Term | None:
    measure, group = pick(rng, measures(world, table)), pick(rng, groupers(world, table))
    if measure is None or group is None or measure.name == group.name:
        return None
    names = (group.name, measure.name)
    extreme = call(rng.choice(("min", "max")), ref(OTHER, measure.name))
    inner = Query((ref(OTHER, group.name), extreme), (_other(world, table),), tail=raw("GROUP BY 1"))
    return in_query(tuple_of([ref((), name) for name in names]), inner)


def duplicates(rng: random.Random, world: World, table: Table, key: Column) -> Term | None:
    """All but the first (or last) row of those that agree in one or two columns."""
    columns = [c for c in groupers(world, table) if c.kind != "B"]
    if not columns or key.kind != "N":
        return None
    chosen = rng.sample(columns, min(len(columns), rng.randint(1, 2)))
    kept = call(rng.choice(("min", "min", "max")), ref(OTHER, key.name))
    grouped = Term(("GROUP BY", *separate([ref(OTHER, column.name) for column in chosen])))
    return in_query(ref((), key.name), Query((kept,), (_other(world, table),), tail=grouped), yes=False)


def against_average(rng: random.Random, world: World, table: Table, key: Column) -> Term | None:
    """Above or below the average, of all rows or of the group."""
    measure = pick(rng, [c for c in measures(world, table) if c.kind == "N"])
    group = pick(rng, groupers(world, table))
    if measure is None or group is None or measure.name == group.name:
        return None
    own = op(ref(OTHER, group.name), "=", ref((), group.name)) if rng.random() < 0.7 else None
    average = Query((call("avg", ref(OTHER, measure.name)),), (_other(world, table),), own)
    return op(ref((), measure.name), rng.choice("<>"), subquery(average))


def in_large_group(rng: random.Random, world: World, table: Table, key: Column) -> Term | None:
    group = pick(rng, groupers(world, table))
    if group is None:
        return None
    tail = raw(f"GROUP BY 1 HAVING count(*){rng.choice('<>')}{rng.choice((1, 2, 3, 5, 10, 20))}")
    return in_query(ref((), group.name), Query((ref(OTHER, group.name),), (_other(world, table),), tail=tail))


_SHAPES: tuple[Callable[[random.Random, World, Table, Column], Term | None], ...] = (
    first_of_all,
    first_of_group,
    extreme_of_group,
    duplicates,
    against_average,
    in_large_group,
)


def select(rng: random.Random, world: World, table: Table) -> Selection | None:
    key = world.single_key(table)
    if key is None:
        return None
    shape = rng.choice(_SHAPES)
    test = shape(rng, world, table, key)
    return None if test is None else Selection(table, test, shape.__name__, 1)


def groups(rng: random.Random, world: World) -> Draw | None:
    return drawn(rng, world, select(rng, world, world.table(rng)), "groups")

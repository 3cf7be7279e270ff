"""Conditions on the rows that refer to a row: whether there are any, how many, sums and extremes."""

from __future__ import annotations

import random
from collections.abc import Callable

from bench.recovery import grammar_up
from bench.recovery.atoms import condition
from bench.recovery.model import Draw
from bench.recovery.selection import Selection, change
from bench.recovery.world import World, constant, pick
from emit.term import Prec, Query, Source, Term, call, conjoin, in_query, op, raw, ref, subquery
from scratch.catalog import ForeignKey, Table

CHILD = "child"


def parents(world: World) -> list[Table]:
    return [table for table in world.tables if world.children(table)]


def source(world: World, key: ForeignKey) -> Source:
    return world.source(key.table, CHILD)


def _refers(key: ForeignKey) -> Term:
    """The condition of a correlated query."""
    return op(ref(CHILD, key.columns[0]), "=", ref((), key.target_columns[0]))


def exists(rng: random.Random, world: World, key: ForeignKey) -> Term | None:
    child = world.catalog[key.table]
    found = condition(rng, world, child, CHILD) if rng.random() < 0.75 else None
    return _in(rng, world, key, found.test if found else None)


def _in(rng: random.Random, world: World, key: ForeignKey, test: Term | None) -> Term:
    child = world.catalog[key.table]
    yes = rng.random() < 0.65
    if not yes and not child.by_name[key.columns[0]].not_null:
        test = conjoin([op(ref(CHILD, key.columns[0]), ">", raw("0")), *([test] if test else [])])
        yes = child.by_name[key.columns[0]].kind != "N"
    inner = Query((ref(CHILD, key.columns[0]),), (source(world, key),), test)
    return in_query(ref((), key.target_columns[0]), inner, yes)


def through_link(rng: random.Random, world: World, key: ForeignKey) -> Term | None:
    """A condition on what the child refers to by another of its foreign keys."""
    others = [other for other in world.foreign_keys(world.catalog[key.table]) if other.name != key.name]
    other = pick(rng, others)
    if other is None:
        return None
    found = condition(rng, world, world.catalog[other.target], "far")
    if found is None:
        return None
    on = op(ref("far", other.target_columns[0]), "=", ref(CHILD, other.columns[0]))
    sources = (source(world, key), world.source(other.target, "far"))
    inner = Query((ref(CHILD, key.columns[0]),), sources, op(on, "AND", found.test))
    return in_query(ref((), key.target_columns[0]), inner)


def number(rng: random.Random, world: World, key: ForeignKey) -> Term | None:
    """count(*) of the children, with a condition or without; HAVING where it says the same in less."""
    found = condition(rng, world, world.catalog[key.table], CHILD) if rng.random() < 0.4 else None
    least = rng.randint(0, 3)
    sign = rng.choice(("=", "<", ">", ">"))
    if sign == ">" and least:
        own = ref(CHILD, key.columns[0])
        tail = Term(("GROUP BY", "1", "HAVING", "count(*)", ">", str(least)))
        inner = Query((own,), (source(world, key),), found and found.test, tail)
        return in_query(ref((), key.target_columns[0]), inner)
    return op(_aggregate(world, key, raw("count(*)"), found and found.test), sign, raw(str(least)))


def extreme(rng: random.Random, world: World, key: ForeignKey) -> Term | None:
    child = world.catalog[key.table]
    columns = [
        c for c in child.columns if c.kind in ("N", "D") and c.name not in (*child.row_key, key.columns[0])
    ]
    column = pick(rng, columns)
    value = column and world.value(rng, child, column)
    if column is None or value is None:
        return None
    function = rng.choice(("min", "max") if column.kind == "D" else ("min", "max", "sum", "avg"))
    left = _aggregate(world, key, call(function, ref(CHILD, column.name)))
    return op(left, rng.choice("<>"), constant(column, value))


def all_or_any(rng: random.Random, world: World, key: ForeignKey) -> Term | None:
    flags = [column for column in world.catalog[key.table].columns if column.kind == "B"]
    flag = pick(rng, flags)
    return flag and _aggregate(world, key, call(rng.choice(("bool_and", "bool_or")), ref(CHILD, flag.name)))


def distinct(rng: random.Random, world: World, key: ForeignKey) -> Term | None:
    child = world.catalog[key.table]
    column = pick(rng, [c for c in child.columns if c.name not in (*child.row_key, key.columns[0])])
    if column is None or column.base in ("json", "point"):
        return None
    counted = Term(("count(", "DISTINCT", *ref(CHILD, column.name).parts, ")"))
    return op(_aggregate(world, key, counted), rng.choice((">", "=")), raw(str(rng.randint(1, 3))))


def _aggregate(world: World, key: ForeignKey, value: Term, test: Term | None = None) -> Term:
    where = _refers(key) if test is None else op(_refers(key), "AND", test)
    return subquery(Query((value,), (source(world, key),), where))


def tree_like(key: ForeignKey) -> bool:
    return key.table == key.target


_SHAPES: tuple[Callable[[random.Random, World, ForeignKey], Term | None], ...] = (
    exists, exists, exists, through_link, through_link, number, number, extreme, all_or_any, distinct,
)  # fmt: skip


def select(rng: random.Random, world: World, table: Table) -> Selection | None:
    key = pick(rng, world.children(table))
    if key is None:
        return None
    shape = rng.choice(_SHAPES)
    test = shape(rng, world, key)
    return None if test is None else Selection(table, test, shape.__name__, 1)


def children(rng: random.Random, world: World) -> Draw | None:
    table = pick(rng, parents(world))
    selection = table and select(rng, world, table)
    if not selection:
        return None
    sql = change(rng, world, selection)
    return Draw((sql,), "children", selection.shape, 1) if sql else None


def nephews(rng: random.Random, world: World) -> Draw | None:
    """Rows by a condition on the children of what they refer to."""
    table = world.table(rng)
    steps = grammar_up.path(rng, world, table, 1)
    if not steps:
        return None
    parent = world.catalog[steps[0].target]
    selection = select(rng, world, parent)
    if selection is None:
        return None
    inner = Query((ref((), steps[0].target_columns[0]),), (world.source(parent.name),), selection.nested)
    outer = in_query(ref((), steps[0].columns[0]), inner)
    sql = change(rng, world, Selection(table, outer, f"up1:{selection.shape}", 2))
    return Draw((sql,), "nephews", selection.shape, 2) if sql else None



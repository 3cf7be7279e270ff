"""Conditions on the rows that refer to a row: whether there are any, how many, sums and extremes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from bench.recovery import grammar_up
from bench.recovery.atoms import condition
from bench.recovery.model import Draw
from bench.recovery.selection import Selection, drawn
from bench.recovery.world import World, constant, pick
from emit.term import Query, Source, Term, call, conjoin, in_query, is_null, op, raw, ref, subquery
from scratch.catalog import ForeignKey, Table

CHILD = "child"


@dataclass(frozen=True, slots=True)
class Kin:
    """The rows that refer by `key` to the value `parent`."""

    world: World
    key: ForeignKey
    parent: Term

    @property
    def table(self) -> Table:
        return self.world.catalog[self.key.table]

    @property
    def source(self) -> Source:
        return self.world.source(self.key.table, CHILD)

    @property
    def reference(self) -> Term:
        return ref(CHILD, self.key.columns[0])

    def listed(self, test: Term | None, yes: bool = True, tail: Term | None = None) -> Term:
        """Whether the parent is among those that rows with `test` refer to."""
        return in_query(self.parent, Query((self.reference,), (self.source,), test, tail), yes)

    def aggregate(self, value: Term, test: Term | None = None) -> Term:
        own = op(self.reference, "=", self.parent)
        where = own if test is None else op(own, "AND", test)
        return subquery(Query((value,), (self.source,), where))

    def test(self, rng: random.Random, share: float) -> Term | None:
        """In `share` of all cases a condition on the child."""
        found = condition(rng, self.world, self.table, CHILD) if rng.random() < share else None
        return None if found is None else found.test


def exists(rng: random.Random, kin: Kin) -> Term | None:
    test, yes = kin.test(rng, 0.75), rng.random() < 0.65
    column = kin.table.by_name[kin.key.columns[0]]
    if not yes and not column.not_null:
        # One NULL in its list makes NOT IN true of nothing.
        given = op(kin.reference, ">", raw("0")) if column.kind == "N" else is_null(kin.reference, yes=False)
        test = given if test is None else conjoin([given, test])
    return kin.listed(test, yes)


def through_link(rng: random.Random, kin: Kin) -> Term | None:
    """A condition on what the child refers to by another of its foreign keys."""
    other = pick(rng, [key for key in kin.world.foreign_keys(kin.table) if key.name != kin.key.name])
    if other is None:
        return None
    found = condition(rng, kin.world, kin.world.catalog[other.target], "far")
    if found is None:
        return None
    on = op(ref("far", other.target_columns[0]), "=", ref(CHILD, other.columns[0]))
    sources = (kin.source, kin.world.source(other.target, "far"))
    return in_query(kin.parent, Query((kin.reference,), sources, op(on, "AND", found.test)))


def number(rng: random.Random, kin: Kin) -> Term | None:
    """count(*) of the children, with a condition or without; HAVING where it says the same in less."""
    test, least = kin.test(rng, 0.4), rng.randint(0, 3)
    sign = rng.choice(("=", "<", ">", ">"))
    if sign == ">" and not least:
        return kin.listed(test)
    if sign == ">":
        return kin.listed(test, tail=raw(f"GROUP BY 1 HAVING count(*)>{least}"))
    return op(kin.aggregate(raw("count(*)"), test), sign, raw(str(least + (sign == "<"))))


def extreme(rng: random.Random, kin: Kin) -> Term | None:
    own = (*kin.table.row_key, kin.key.columns[0])
    column = pick(rng, [c for c in kin.table.columns if c.kind in ("N", "D") and c.name not in own])
    value = kin.world.value(rng, kin.table, column) if column is not None else None
    if column is None or value is None:
        return None
    function = rng.choice(("min", "max") if column.kind == "D" else ("min", "max", "sum", "avg"))
    left = kin.aggregate(call(function, ref(CHILD, column.name)))
    return op(left, rng.choice("<>"), constant(column, value))


def all_or_any(rng: random.Random, kin: Kin) -> Term | None:
    flag = pick(rng, [column for column in kin.table.columns if column.kind == "B"])
    if flag is None:
        return None
    return kin.aggregate(call(rng.choice(("bool_and", "bool_or")), ref(CHILD, flag.name)))


def distinct(rng: random.Random, kin: Kin) -> Term | None:
    own = (*kin.table.row_key, kin.key.columns[0])
    column = pick(rng, [c for c in kin.table.columns if c.name not in own and c.base not in ("json", "point")])
    if column is None:
        return None
    counted = Term(("count(", "DISTINCT", *ref(CHILD, column.name).parts, ")"))
    return op(kin.aggregate(counted), rng.choice((">", "=")), raw(str(rng.randint(1, 3))))


_SHAPES: tuple[Callable[[random.Random, Kin], Term | None], ...] = (
    exists,
    exists,
    exists,
    through_link,
    through_link,
    number,
    number,
    extreme,
    all_or_any,
    distinct,
)


def select(rng: random.Random, world: World, table: Table) -> Selection | None:
    """Rows of `table` by a condition on what refers to them."""
    key = pick(rng, world.children(table))
    if key is None:
        return None
    shape = rng.choice(_SHAPES)
    test = shape(rng, Kin(world, key, ref((), key.target_columns[0])))
    return None if test is None else Selection(table, test, shape.__name__, 1)


def children(rng: random.Random, world: World) -> Draw | None:
    table = pick(rng, [table for table in world.tables if world.children(table)])
    return None if table is None else drawn(rng, world, select(rng, world, table), "children")


def nephews(rng: random.Random, world: World) -> Draw | None:
    """Rows by a condition on the others that refer to the same parent."""
    table = world.table(rng)
    steps = [step for step in grammar_up.path(rng, world, table, 1) if len(step.columns) == 1]
    if not steps:
        return None
    key = pick(rng, [k for k in world.children(world.catalog[steps[0].target]) if k.name != steps[0].name])
    if key is None or key.target_columns != steps[0].target_columns:
        return None
    shape = rng.choice(_SHAPES)
    test = shape(rng, Kin(world, key, ref((), steps[0].columns[0])))
    return None if test is None else drawn(rng, world, Selection(table, test, shape.__name__, 2), "nephews")

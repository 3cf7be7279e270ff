"""Conditions on rows that foreign keys lead to, up to three steps away."""

from __future__ import annotations

import random

from bench.recovery.atoms import condition
from bench.recovery.model import Draw
from bench.recovery.selection import Link, Selection, change
from bench.recovery.world import World
from emit.term import Query, SourceKey, Term, in_query, op, ref
from scratch.catalog import ForeignKey, Table

DEEPEST = 3


def path(rng: random.Random, world: World, table: Table, depth: int) -> list[ForeignKey]:
    """A random walk of `depth` foreign keys, or as many as there are."""
    steps: list[ForeignKey] = []
    while len(steps) < depth and (keys := world.foreign_keys(table)):
        steps.append(rng.choice(keys))
        table = world.catalog[steps[-1].target]
    return steps


def key_of(steps: list[ForeignKey]) -> SourceKey:
    return tuple(step.name for step in steps)


def links(world: World, steps: list[ForeignKey]) -> tuple[Link, ...]:
    """One join for each step; its source key is the path so far."""
    found = []
    for count in range(1, len(steps) + 1):
        step, key = steps[count - 1], key_of(steps[:count])
        on = op(ref(key, step.target_columns[0]), "=", ref(key_of(steps[: count - 1]), step.columns[0]))
        found.append(Link(world.source(step.target, key), on))
    return tuple(found)


def nested(world: World, steps: list[ForeignKey], test: Term) -> Term:
    """`test` on the last table as a condition on the first: fk IN (SELECT … WHERE fk IN (SELECT …))."""
    for count in range(len(steps), 0, -1):
        step, key = steps[count - 1], key_of(steps[:count])
        inner = Query((ref(key, step.target_columns[0]),), (world.source(step.target, key),), test)
        test = in_query(ref(key_of(steps[: count - 1]), step.columns[0]), inner)
    return test


def select(rng: random.Random, world: World, table: Table, depth: int | None = None) -> Selection | None:
    """Rows of `table` by a condition on what they refer to."""
    steps = path(rng, world, table, depth or rng.randint(1, DEEPEST))
    if not steps:
        return None
    found = condition(rng, world, world.catalog[steps[-1].target], key_of(steps))
    if found is None:
        return None
    joined = links(world, steps)
    return Selection(table, nested(world, steps, found.test), found.shape, len(steps), joined, found.test)


def up(rng: random.Random, world: World) -> Draw | None:
    selection = select(rng, world, world.table(rng))
    sql = selection and change(rng, world, selection)
    return Draw((sql,), "up", f"up{selection.depth}:{selection.shape}", selection.depth) if selection and sql else None

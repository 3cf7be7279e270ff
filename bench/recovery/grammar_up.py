"""Conditions on rows that foreign keys lead to, up to three steps away."""

from __future__ import annotations

import random

from bench.recovery.atoms import condition
from bench.recovery.model import Draw
from bench.recovery.selection import Link, Selection, drawn
from bench.recovery.world import World
from emit.term import Query, SourceKey, Term, conjoin, in_query, op, ref, tuple_of
from scratch.catalog import ForeignKey, Table

DEEPEST = 3


def path(rng: random.Random, world: World, table: Table, depth: int) -> list[ForeignKey]:
    """A random walk of `depth` foreign keys, or as many as there are."""
    steps: list[ForeignKey] = []
    while len(steps) < depth and (keys := world.references(table)):
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
        near = key_of(steps[: count - 1])
        on = conjoin(
            [op(ref(key, b), "=", ref(near, a)) for a, b in zip(step.columns, step.target_columns, strict=True)]
        )
        assert on is not None
        found.append(Link(world.source(step.target, key), on))
    return tuple(found)


def nested(world: World, steps: list[ForeignKey], test: Term) -> Term:
    """`test` on the last table as a condition on the first: fk IN (SELECT … WHERE fk IN (SELECT …))."""
    for count in range(len(steps), 0, -1):
        step, key = steps[count - 1], key_of(steps[:count])
        found = tuple(ref(key, name) for name in step.target_columns)
        near = tuple_of([ref(key_of(steps[: count - 1]), name) for name in step.columns])
        test = in_query(near, Query(found, (world.source(step.target, key),), test))
    return test


def select(rng: random.Random, world: World, table: Table, depth: int | None = None) -> Selection | None:
    """Rows of `table` by a condition on what they refer to."""
    steps = path(rng, world, table, depth or rng.randint(1, DEEPEST))
    if not steps:
        return None
    found = condition(rng, world, world.catalog[steps[-1].target], key_of(steps), keys=False)
    if found is None:
        return None
    joined = links(world, steps)
    return Selection(table, nested(world, steps, found.test), found.shape, len(steps), joined, found.test)


def up(rng: random.Random, world: World) -> Draw | None:
    return drawn(rng, world, select(rng, world, world.table(rng)), "up")

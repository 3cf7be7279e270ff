"""Conditions on rows that no foreign key leads to, but an equal text."""

from __future__ import annotations

import random

from bench.recovery.atoms import condition
from bench.recovery.model import Draw
from bench.recovery.selection import Link, Selection, drawn
from bench.recovery.world import World, pick
from emit.term import Query, in_query, op, ref

FAR = "far"


def select(rng: random.Random, world: World) -> Selection | None:
    pair = pick(rng, world.natural_pairs)
    if pair is None:
        return None
    table, column, far, key = pair
    found = condition(rng, world, far, FAR, keys=False)
    if found is None:
        return None
    source = world.source(far.name, FAR)
    nested = in_query(ref((), column.name), Query((ref(FAR, key.name),), (source,), found.test))
    link = Link(source, op(ref(FAR, key.name), "=", ref((), column.name)))
    return Selection(table, nested, found.shape, 1, (link,), found.test)


def natural(rng: random.Random, world: World) -> Draw | None:
    return drawn(rng, world, select(rng, world), "natural")

"""Conditions on columns of the table itself."""

from __future__ import annotations

import random

from bench.recovery.atoms import condition
from bench.recovery.model import Draw
from bench.recovery.selection import Selection, drawn
from bench.recovery.world import World
from scratch.catalog import Table


def select(rng: random.Random, world: World, table: Table) -> Selection | None:
    """Rows of `table` by one condition on their own columns."""
    found = condition(rng, world, table)
    return None if found is None else Selection(table, found.test, found.shape)


def own(rng: random.Random, world: World) -> Draw | None:
    return drawn(rng, world, select(rng, world, world.table(rng)), "own")

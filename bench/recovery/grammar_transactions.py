"""Transactions of two to six statements, most of which have to do with each other."""

from __future__ import annotations

import random
from collections.abc import Callable

from bench.recovery import grammar_combined, grammar_insert, grammar_own, grammar_sets, grammar_up
from bench.recovery.grammar_insert import fill, insert
from bench.recovery.model import Draw, Grammar
from bench.recovery.selection import Selection, change, delete
from bench.recovery.world import World, pick
from emit.term import Query, in_query, ref
from scratch.catalog import ForeignKey

_ALONE: tuple[Grammar, ...] = (
    grammar_own.own,
    grammar_own.own,
    grammar_up.up,
    grammar_combined.conjunctions,
    grammar_insert.inserts,
    *(grammar_sets.single(family) for family in grammar_sets.EXPRESSIONS),
)


def of_parents(world: World, key: ForeignKey, parents: Selection) -> Selection:
    """The rows whose parents, by `key`, are selected."""
    inner = Query((ref((), key.target_columns[0]),), (world.source(key.target),), parents.nested)
    nested = in_query(ref((), key.columns[0]), inner)
    return Selection(world.catalog[key.table], nested, parents.shape, parents.depth + 1)


def family_changes(rng: random.Random, world: World) -> list[str] | None:
    """Parents change, and their children by the same rule."""
    table = world.table(rng)
    key = pick(rng, world.children(table))
    parents = grammar_own.select(rng, world, table)
    if key is None or parents is None:
        return None
    first, second = change(rng, world, parents), change(rng, world, of_parents(world, key, parents))
    return None if first is None or second is None else rng.choice(([first, second], [second, first]))


def family_goes(rng: random.Random, world: World) -> list[str] | None:
    """Parents are deleted after all that refers to them."""
    table = world.table(rng)
    keys = world.catalog.referenced_by.get(table.name, ())
    parents = grammar_own.select(rng, world, table)
    if not keys or len(keys) > 3 or parents is None or any(len(key.columns) > 1 for key in keys):
        return None
    return [*(delete(world, of_parents(world, key, parents)) for key in keys), delete(world, parents)]


def same_rows_twice(rng: random.Random, world: World) -> list[str] | None:
    """Two statements, one set of rows, or one part of the other."""
    table = world.table(rng)
    rows, more = grammar_own.select(rng, world, table), grammar_own.select(rng, world, table)
    if rows is None or more is None:
        return None
    first, second = change(rng, world, rows), change(rng, world, rng.choice((rows, more)))
    return None if first is None or second is None else [first, second]


def children_are_added(rng: random.Random, world: World) -> list[str] | None:
    """Parents change, and each gets a child."""
    table = world.table(rng)
    key = pick(rng, world.children(table))
    parents = grammar_own.select(rng, world, table)
    if key is None or parents is None:
        return None
    child = world.catalog[key.table]
    filled = fill(rng, world, child, {(): table})
    first = change(rng, world, parents)
    if filled is None or first is None:
        return None
    added = insert(world, child, filled, [world.source(table.name)], parents.nested)
    return [added, first] if rng.random() < 0.7 else [first, added]


_THEMES: tuple[Callable[[random.Random, World], list[str] | None], ...] = (
    family_changes, family_changes, family_goes, same_rows_twice, children_are_added,
)  # fmt: skip


def transactions(rng: random.Random, world: World) -> Draw | None:
    theme = rng.choice(_THEMES) if rng.random() < 0.7 else None
    found = theme(rng, world) if theme is not None else []
    if found is None:
        return None
    wanted = max(len(found), rng.choice((2, 2, 2, 3, 3, 4, 5, 6)))
    while len(found) < wanted:
        alone = rng.choice(_ALONE)(rng, world)
        if alone is not None:
            found.extend(alone.statements)
    shape = "unrelated" if theme is None else theme.__name__
    return Draw(tuple(found), "transactions", shape, len(found) - 1)

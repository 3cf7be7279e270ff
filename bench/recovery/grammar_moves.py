"""Rows that one statement takes and another puts elsewhere: DELETE, UPDATE, INSERT … RETURNING into INSERT."""

from __future__ import annotations

import random
from collections.abc import Callable

from bench.recovery import grammar_children, grammar_own, grammar_up
from bench.recovery.grammar_insert import fill, receiver
from bench.recovery.model import Draw
from bench.recovery.selection import Selection, new_value, shortest
from bench.recovery.world import World, pick
from emit.term import Cte, Delete, Insert, Query, Source, Statement, Term, Update, raw
from scratch.catalog import Table


def _into(rng: random.Random, world: World, table: Table, taken: Table, body: Statement, order: bool) -> str | None:
    """`body`, whose RETURNING * gives rows of `taken`, feeding an INSERT into `table`."""
    filled = fill(rng, world, table, {"taken": taken})
    if filled is None:
        return None
    names, terms = filled
    source = Source("taken", "d", tuple(column.name for column in taken.columns))
    tail = Term(("ORDER BY", taken.row_key[0])) if order and taken.row_key else None
    rows = Query(tuple(terms), (source,), tail=tail)
    listed = () if names == [column.name for column in table.columns][: len(names)] else tuple(names)
    return shortest([Insert(world.source(table.name, "into"), listed, rows, ctes=(Cte("d", body),))])


def _selection(rng: random.Random, world: World, table: Table) -> Selection | None:
    way = rng.choice((grammar_own.select, grammar_own.select, grammar_up.select, grammar_children.select))
    return way(rng, world, table)


def deleted(rng: random.Random, world: World) -> Draw | None:
    """Rows that leave one table for another."""
    table = world.table(rng)
    selection = _selection(rng, world, table)
    if selection is None:
        return None
    body = Delete(world.source(table.name), where=selection.nested, returning=raw("*"))
    sql = _into(rng, world, receiver(rng, world, table), table, body, rng.random() < 0.5)
    return Draw((sql,), "moves", "deleted", 1) if sql else None


def updated(rng: random.Random, world: World) -> Draw | None:
    """An update that leaves a row of history for each row."""
    table = world.table(rng)
    selection = _selection(rng, world, table)
    column = pick(rng, [column for column in world.settable(table) if column.base != "jsonb"])
    value = new_value(rng, world, table, column) if column is not None else None
    if selection is None or column is None or value is None:
        return None
    sets = (((column.name,), value),)
    body = Update(world.source(table.name), sets, where=selection.nested, returning=raw("*"))
    sql = _into(rng, world, receiver(rng, world, table), table, body, rng.random() < 0.5)
    return Draw((sql,), "moves", "updated", 1) if sql else None


def inserted(rng: random.Random, world: World) -> Draw | None:
    """Rows made from a selection, and for each of them a row that refers to it."""
    table = world.table(rng)
    child = pick(rng, [key for key in world.catalog.referenced_by.get(table.name, ()) if world.frame(key.table).size])
    source = world.table(rng)
    selection = _selection(rng, world, source)
    filled = fill(rng, world, table, {(): source})
    if child is None or selection is None or filled is None:
        return None
    rows = Query(tuple(filled[1]), (world.source(source.name),), selection.nested)
    body = Insert(world.source(table.name, "into"), tuple(filled[0]), rows, returning=raw("*"))
    sql = _into(rng, world, world.catalog[child.table], table, body, rng.random() < 0.5)
    return Draw((sql,), "moves", "inserted", 2) if sql else None


_SHAPES: tuple[Callable[[random.Random, World], Draw | None], ...] = (deleted, deleted, updated, inserted)


def moves(rng: random.Random, world: World) -> Draw | None:
    return rng.choice(_SHAPES)(rng, world)

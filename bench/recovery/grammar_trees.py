"""Conditions on trees: path prefixes, depth, roots and leaves, everything below a row."""

from __future__ import annotations

import random
from collections.abc import Callable

from bench.recovery.atoms import condition
from bench.recovery.model import Draw
from bench.recovery.selection import Selection, drawn
from bench.recovery.world import World, pick
from emit.literal import identifier, quote, table_name
from emit.render import render
from emit.term import Prec, Query, Term, call, in_query, is_null, op, raw, ref
from scratch.catalog import Column, ForeignKey, Table


def self_keys(world: World) -> list[ForeignKey]:
    return [
        key
        for table in world.tables
        for key in world.foreign_keys(table)
        if key.target == key.table and any(world.frame(table.name).texts(key.columns[0]))
    ]


def path_columns(world: World) -> list[tuple[Table, Column]]:
    """Text columns in which most values continue another row's value."""
    return [
        (table, column)
        for table in world.tables
        for column in table.columns
        if column.base in ("text", "character varying") and _is_path(world.coded(table, column).values)
    ]


def _is_path(values: tuple[str, ...]) -> bool:
    if len(values) < 12:
        return False
    known = set(values)
    inner = sum(any(value[:cut] in known for cut in range(2, len(value))) for value in values if len(value) < 200)
    return inner > 0.7 * len(values)


def below_path(rng: random.Random, world: World) -> Selection | None:
    found = pick(rng, path_columns(world))
    if found is None:
        return None
    table, column = found
    value = world.value(rng, table, column)
    parents = [other for other in world.coded(table, column).values if value and value.startswith(other)]
    if not parents:
        return None
    shape = rng.choice(("prefix", "prefix", "length"))
    if shape == "length":
        test = op(call("length", ref((), column.name)), rng.choice("=<>"), raw(str(len(rng.choice(parents)))))
    else:
        top = rng.choice(parents).replace("_", r"\_").replace("%", r"\%")
        test = op(ref((), column.name), "LIKE", raw(quote(top + rng.choice(("%", "%", "_%")))))
    return Selection(table, test, f"path_{shape}")


def root_or_leaf(rng: random.Random, world: World) -> Selection | None:
    key = pick(rng, self_keys(world))
    if key is None:
        return None
    table = world.catalog[key.table]
    parent, own = key.columns[0], key.target_columns[0]
    if rng.random() < 0.3 and not table.by_name[parent].not_null:
        return Selection(table, is_null(ref((), parent)), "root")
    named = Query(
        (ref("child", parent),), (world.source(table.name, "child"),), op(ref("child", parent), ">", raw("0"))
    )
    if table.by_name[parent].kind != "N":
        return None
    yes = rng.random() < 0.5
    return Selection(table, in_query(ref((), own), named, yes), "inner" if yes else "leaf", 1)


def closure(rng: random.Random, world: World) -> Selection | None:
    """A row, or the rows with a condition, and all below."""
    key = pick(rng, self_keys(world))
    if key is None:
        return None
    table = world.catalog[key.table]
    start = condition(rng, world, table, "top")
    if start is None:
        return None
    parent, own = identifier(key.columns[0]), identifier(key.target_columns[0])
    first = render(Query((ref("top", key.target_columns[0]),), (world.source(table.name, "top"),), start.test))
    step = f"SELECT t.{own} FROM {table_name(*table.name)} t,r WHERE t.{parent}=r.i"
    query = f"WITH RECURSIVE r(i)AS({first} UNION {step})SELECT i FROM r"
    return Selection(
        table, Term((*ref((), key.target_columns[0]).parts, "IN(", query, ")"), Prec.LIKE), f"closure:{start.shape}", 1
    )


_SHAPES: tuple[Callable[[random.Random, World], Selection | None], ...] = (
    below_path,
    below_path,
    root_or_leaf,
    closure,
    closure,
)


def trees(rng: random.Random, world: World) -> Draw | None:
    return drawn(rng, world, rng.choice(_SHAPES)(rng, world), "trees")

"""Several conditions at once: and, or, rules with exceptions; and row sets without a rule."""

from __future__ import annotations

import random

from bench.recovery import grammar_children, grammar_groups, grammar_own, grammar_up
from bench.recovery.model import Draw
from bench.recovery.selection import Selection, both, drawn
from bench.recovery.world import World, constant
from emit.term import in_values, negate, op, ref
from scratch.catalog import Table

_PARTS = (
    grammar_own.select,
    grammar_own.select,
    grammar_own.select,
    grammar_up.select,
    grammar_up.select,
    grammar_children.select,
    grammar_groups.select,
)


def part(rng: random.Random, world: World, table: Table) -> Selection | None:
    return rng.choice(_PARTS)(rng, world, table)


def conjunction(rng: random.Random, world: World, table: Table, count: int) -> Selection | None:
    whole = part(rng, world, table)
    for _ in range(count - 1):
        other = part(rng, world, table)
        if whole is None or other is None:
            return None
        whole = both(whole, other)
    return whole


def conjunctions(rng: random.Random, world: World) -> Draw | None:
    """Two or three conditions that all hold; `depth` is their number."""
    count = rng.choice((2, 2, 3))
    return drawn(rng, world, conjunction(rng, world, world.table(rng), count), "conjunctions", count)


def disjunctions(rng: random.Random, world: World) -> Draw | None:
    """Two to four conjunctions, of one condition mostly, of which one holds; `depth` is their number."""
    table, count = world.table(rng), rng.choice((2, 2, 3, 4))
    whole: Selection | None = None
    for _ in range(count):
        one = conjunction(rng, world, table, rng.choice((1, 1, 2)))
        if one is None:
            return None
        if whole is None:
            whole = Selection(table, one.nested, one.shape, one.depth)
        else:
            whole = Selection(table, op(whole.nested, "OR", one.nested), f"{whole.shape}|{one.shape}")
    return drawn(rng, world, whole, "disjunctions", count)


def exceptions(rng: random.Random, world: World) -> Draw | None:
    """A rule but for a few rows, or with a few more, or but for another rule."""
    table = world.table(rng)
    rule, key = part(rng, world, table), world.single_key(table)
    if rule is None or key is None:
        return None
    way = rng.choice(("but", "and", "unless"))
    if way == "unless":
        other = part(rng, world, table)
        if other is None:
            return None
        test = op(rule.nested, "AND", negate(other.nested))
        return drawn(rng, world, Selection(table, test, f"{rule.shape}-{other.shape}"), "exceptions", 1)
    ids = world.coded(table, key).values
    few = [constant(key, value) for value in rng.sample(ids, min(len(ids), rng.randint(1, 4)))]
    own = ref((), key.name)
    if way == "but":
        test = op(rule.nested, "AND", in_values(own, few, yes=False))
    else:
        test = op(rule.nested, "OR", in_values(own, few))
    return drawn(rng, world, Selection(table, test, f"{rule.shape}{way}{len(few)}"), "exceptions", len(few))


def arbitrary(rng: random.Random, world: World) -> Draw | None:
    """Rows without a rule, from the whole table or from a span of it."""
    table = world.table(rng)
    key = world.single_key(table)
    if key is None:
        return None
    ids = world.coded(table, key).values
    start = rng.randrange(len(ids))
    span = ids if rng.random() < 0.4 else ids[start : start + rng.choice((20, 60, 200))]
    chosen = set(rng.sample(span, rng.randint(1, max(1, min(len(span), 150) // 2))))
    listed = [constant(key, value) for value in span if value in chosen]
    test = in_values(ref((), key.name), listed)
    return drawn(rng, world, Selection(table, test, "ids"), "arbitrary", 0)

"""INSERT … SELECT: from one table, a join, a cross product, a series; copies; rows that may be there already."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from bench.recovery import grammar_own, grammar_up
from bench.recovery.atoms import condition
from bench.recovery.model import Draw
from bench.recovery.selection import shortest
from bench.recovery.world import World, constant, pick
from emit.literal import identifier, quote
from emit.term import Insert, Query, Source, SourceKey, Term, cast, conjoin, op, raw, ref, separate
from scratch.catalog import ALWAYS, Column, Table

Sources = Mapping[SourceKey, Table]
_INTEGERS = ("smallint", "integer", "bigint")


def fill(rng: random.Random, world: World, table: Table, sources: Sources) -> tuple[list[str], list[Term]] | None:
    """Columns of `table` and terms over `sources` that may stand in them; None where one finds no value."""
    names: list[str] = []
    terms: list[Term] = []
    for column in table.stored:
        if column.identity == ALWAYS or _left_out(rng, table, column):
            continue
        term = _value(rng, world, table, column, sources)
        if term is None:
            return None
        names.append(column.name)
        terms.append(term)
    return (names, terms) if names else None


def _left_out(rng: random.Random, table: Table, column: Column) -> bool:
    if column.default is not None or column.identity:
        return column.name in table.row_key or rng.random() < 0.8
    return not column.not_null and rng.random() < 0.6


def _value(rng: random.Random, world: World, table: Table, column: Column, sources: Sources) -> Term | None:
    reference = next((key for key in table.foreign_keys if key.columns == (column.name,)), None)
    if reference is not None:
        found = [
            ref(at, reference.target_columns[0]) for at, source in sources.items() if source.name == reference.target
        ]
        found += [
            ref(at, key.columns[0])
            for at, source in sources.items()
            for key in source.foreign_keys
            if key.target == reference.target and len(key.columns) == 1
        ]
        if found and rng.random() < 0.85:
            return rng.choice(found)
        value = world.value(rng, table, column) if world.frame(table.name).size else None
        return None if value is None else constant(column, value, assign=True)
    if column.name in table.row_key and column.base in _INTEGERS:
        return _numbered(world, table, column, sources)
    same = [(at, c) for at, source in sources.items() for c in source.columns if c.base == column.base]
    if same and rng.random() < 0.75:
        by_name = [(at, c) for at, c in same if c.name == column.name]
        at, chosen = rng.choice(by_name or same)
        term = ref(at, chosen.name)
        if column.base in ("text", "character varying") and rng.random() < 0.5:
            return op(term, "||", raw(quote(rng.choice((" 2", "-copy", "/x")))))
        return term
    value = world.value(rng, table, column) if world.frame(table.name).size else None
    return None if value is None else constant(column, value, assign=True)


def _numbered(world: World, table: Table, column: Column, sources: Sources) -> Term | None:
    """The next free numbers, in the order of the first source's key."""
    highest = world.coded(table, column).values
    first = next(iter(sources.items()), None)
    if first is None:
        number = raw("row_number()over()")
    elif first[1].row_key:
        order = ref(first[0], first[1].row_key[0])
        number = Term(("row_number()over(", "ORDER BY", *order.parts, ")"))
    else:
        return None
    return op(number, "+", raw(highest[-1])) if highest else number


def insert(
    world: World, table: Table, filled: tuple[list[str], list[Term]], sources: Sequence[Source],
    where: Term | None, order: Term | None = None, conflict: Term | None = None,
) -> str:  # fmt: skip
    names, terms = filled
    listed = () if names == [column.name for column in table.columns][: len(names)] else tuple(names)
    tail = None if order is None else Term(("ORDER BY", *order.parts))
    rows = Query(tuple(terms), tuple(sources), where, tail)
    return shortest([Insert(world.source(table.name, "into"), listed, rows, conflict)])


def receivers(world: World) -> list[Table]:
    return [table for name, table in world.catalog.tables.items() if world.frame(name).size]


def receiver(rng: random.Random, world: World, source: Table) -> Table:
    """Of a few tables the one whose columns are most like those of `source`."""
    bases = {column.base for column in source.columns}
    few = [rng.choice(receivers(world)) for _ in range(3)]
    return max(few, key=lambda table: sum(column.base in bases for column in table.stored) / len(table.stored))


def one_table(rng: random.Random, world: World) -> Draw | None:
    """From a selection of one table, into another or the same."""
    source = world.table(rng)
    referring = [world.catalog[key.table] for key in world.children(source)]
    table = rng.choice(referring if referring and rng.random() < 0.7 else [receiver(rng, world, source)])
    selection = (grammar_up.select if rng.random() < 0.2 else grammar_own.select)(rng, world, source)
    filled = fill(rng, world, table, {(): source})
    if selection is None or filled is None:
        return None
    sql = insert(world, table, filled, [world.source(source.name)], selection.nested)
    return Draw((sql,), "insert", "one_table", 0)


def join(rng: random.Random, world: World) -> Draw | None:
    """From a table joined to what it refers to, in the order of its key."""
    source = world.table(rng)
    steps = grammar_up.path(rng, world, source, 1)
    table = rng.choice(receivers(world))
    if not steps or not source.row_key:
        return None
    far, key = world.catalog[steps[0].target], grammar_up.key_of(steps)
    links = grammar_up.links(world, steps)
    test = rng.choice((condition(rng, world, source), condition(rng, world, far, key)))
    filled = fill(rng, world, table, {(): source, key: far})
    if test is None or filled is None:
        return None
    where = op(links[0].on, "AND", test.test)
    sql = insert(world, table, filled, [world.source(source.name), links[0].source], where, ref((), source.row_key[0]))
    return Draw((sql,), "insert", "join", 1)


def pairs(world: World) -> list[Table]:
    """Link tables: two foreign keys that are a unique key together."""
    found = []
    for table in world.catalog.tables.values():
        keys = [key for key in world.foreign_keys(table) if key.table != key.target]
        wanted = {tuple(sorted((a.columns[0], b.columns[0]))) for a in keys for b in keys if a.columns != b.columns}
        if any(tuple(sorted(unique)) in wanted for unique in (table.primary_key, *table.unique_keys)):
            found.append(table)
    return found


def cross(rng: random.Random, world: World) -> Draw | None:
    """Pairs of two tables into their link table, leaving out those that are there."""
    table = pick(rng, pairs(world))
    if table is None:
        return None
    first, second = rng.sample(world.foreign_keys(table), 2)
    if first.target == second.target:
        return None
    left, right = world.catalog[first.target], world.catalog[second.target]
    tests = [condition(rng, world, left, "left"), condition(rng, world, right, "right")]
    filled = fill(rng, world, table, {"left": left, "right": right})
    if filled is None:
        return None
    order = Term((*ref("left", first.target_columns[0]).parts, ",", *ref("right", second.target_columns[0]).parts))
    sql = insert(
        world, table, filled, [world.source(left.name, "left"), world.source(right.name, "right")],
        conjoin([found.test for found in tests if found is not None]), order, raw("ON CONFLICT DO NOTHING"),
    )  # fmt: skip
    return Draw((sql,), "insert", "cross", 2)


def one_side(rng: random.Random, world: World) -> Draw | None:
    """A link from every selected row to one fixed row."""
    table = pick(rng, pairs(world))
    if table is None:
        return None
    first = rng.choice(world.foreign_keys(table))
    left = world.catalog[first.target]
    selection = grammar_own.select(rng, world, left)
    filled = fill(rng, world, table, {(): left})
    if selection is None or filled is None:
        return None
    sql = insert(
        world, table, filled, [world.source(left.name)], selection.nested, conflict=raw("ON CONFLICT DO NOTHING")
    )
    return Draw((sql,), "insert", "one_side", 1)


def values_by_table(rng: random.Random, world: World) -> Draw | None:
    """Every selected row with each of a few fixed ones."""
    table = pick(rng, pairs(world))
    if table is None:
        return None
    first, second = rng.sample(world.foreign_keys(table), 2)
    left, column = world.catalog[first.target], table.by_name[second.columns[0]]
    ids = world.coded(world.catalog[second.target], world.catalog[second.target].by_name[second.target_columns[0]])
    few = [constant(column, value) for value in rng.sample(ids.values, min(len(ids.values), rng.randint(2, 4)))]
    listed = Term(("(VALUES", *separate([Term(("(", *value.parts, ")")) for value in few]), ")"))
    selection, filled = grammar_own.select(rng, world, left), fill(rng, world, table, {(): left})
    if selection is None or filled is None or column.name not in filled[0]:
        return None
    filled[1][filled[0].index(column.name)] = Term(("v",))
    order = Term((*ref((), first.target_columns[0]).parts, ",", "v"))
    sources = [world.source(left.name), Source("values", listed, ("v",), "x", ("v",))]
    sql = insert(world, table, filled, sources, selection.nested, order, raw("ON CONFLICT DO NOTHING"))
    return Draw((sql,), "insert", "values_by_table", 2)


def series(rng: random.Random, world: World) -> Draw | None:
    """A run of numbered rows."""
    table = rng.choice(receivers(world))
    numbers = Source("series", raw(f"generate_series(1,{rng.randint(5, 40)})"), ("n",), "n")
    filled = fill(rng, world, table, {})
    if filled is None:
        return None
    n = Term(("n",))
    for place, name in enumerate(filled[0]):
        column = table.by_name[name]
        if any(name in key.columns for key in table.foreign_keys):
            continue
        if column.base in ("text", "character varying"):
            filled[1][place] = op(raw(quote(rng.choice(("row ", "no-", "x")))), "||", n)
        elif column.base in _INTEGERS and rng.random() < 0.6:
            filled[1][place] = n
        elif column.base == "date" and rng.random() < 0.6:
            filled[1][place] = op(Term(("date", *raw("'2024-5-1'").parts)), "+", n)
    sql = insert(world, table, filled, [numbers], None)
    return Draw((sql,), "insert", "series", 0)


def copies(rng: random.Random, world: World) -> Draw | None:
    """The rows of a group again, with one column or two changed."""
    table = world.table(rng)
    names = [c for c in table.stored if c.default is None and not c.identity and c.name not in table.row_key]
    selection = grammar_own.select(rng, world, table)
    if len(names) < 2 or selection is None or (table.row_key and len(names) + len(table.row_key) > len(table.stored)):
        return None
    terms = [ref((), column.name) for column in names]
    for place in rng.sample(range(len(names)), min(2, len(names))):
        column = names[place]
        value = world.value(rng, table, column)
        if column.base in ("text", "character varying"):
            terms[place] = op(terms[place], "||", raw("' (copy)'"))
        elif value is not None:
            terms[place] = constant(column, value, assign=True)
            if rng.random() < 0.3 and column.kind == "D":
                terms[place] = op(ref((), column.name), "+", cast(raw("'7d'"), "interval"))
    filled = [column.name for column in names], terms
    sql = insert(world, table, filled, [world.source(table.name)], selection.nested)
    return Draw((sql,), "insert", "copies", 1)


def upsert(rng: random.Random, world: World) -> Draw | None:
    """Links that are made, or brought up to date where they are."""
    table = pick(rng, [table for table in pairs(world) if world.settable(table)])
    if table is None:
        return None
    first = rng.choice(world.foreign_keys(table))
    left = world.catalog[first.target]
    selection = grammar_own.select(rng, world, left)
    filled = fill(rng, world, table, {(): left})
    column = pick(rng, [c for c in world.settable(table) if filled and c.name in filled[0]])
    key = next((k for k in (table.primary_key, *table.unique_keys) if first.columns[0] in k), None)
    if selection is None or filled is None or column is None or key is None:
        return None
    name = identifier(column.name)
    conflict = raw(f"ON CONFLICT({','.join(map(identifier, key))})DO UPDATE SET {name}=excluded.{name}")
    sql = insert(world, table, filled, [world.source(left.name)], selection.nested, conflict=conflict)
    return Draw((sql,), "insert", "upsert", 1)


_SHAPES: tuple[Callable[[random.Random, World], Draw | None], ...] = (
    one_table, one_table, join, cross, one_side, values_by_table, series, copies, upsert,
)  # fmt: skip


def inserts(rng: random.Random, world: World) -> Draw | None:
    return rng.choice(_SHAPES)(rng, world)

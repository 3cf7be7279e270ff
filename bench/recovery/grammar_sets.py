"""SET expressions by what they are made of; each grammar is a family of its own."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence

from bench.recovery import grammar_groups, grammar_own, grammar_up
from bench.recovery.atoms import condition
from bench.recovery.model import Draw
from bench.recovery.selection import Link, Selection, update
from bench.recovery.world import World, constant, pick
from emit.literal import quote
from emit.term import (
    Prec,
    Query,
    Source,
    Term,
    call,
    cast,
    is_null,
    negate,
    op,
    raw,
    ref,
    separate,
    subquery,
)  # fmt: skip
from scratch.catalog import Column, Table

# A column, its new value, and the joins that the value needs.
Assigned = tuple[Column, Term, tuple[Link, ...]]
Expression = Callable[[random.Random, World, Table], Assigned | None]

_NUMBERS = ("smallint", "integer", "bigint", "numeric", "double precision", "real")
_TEXTS = ("text", "character varying")


def own(column: Column) -> Term:
    return ref((), column.name)


def target(rng: random.Random, world: World, table: Table, bases: Sequence[str]) -> Column | None:
    return pick(rng, [column for column in world.settable(table) if column.base in bases])


def others(table: Table, column: Column, bases: Sequence[str]) -> list[Column]:
    return [other for other in table.columns if other.base in bases and other.name != column.name]


def number(rng: random.Random, world: World, table: Table) -> Assigned | None:
    column = target(rng, world, table, _NUMBERS)
    if column is None:
        return None
    other = pick(rng, others(table, column, _NUMBERS))
    term, by = own(column), raw(str(rng.choice((1, 2, 3, 5, 10, 100))))
    factor = raw(rng.choice(("1.1", ".9", "1.05", ".75", "1.2")))
    ways = [
        op(term, rng.choice("+-"), by),
        op(term, "*", raw(str(rng.randint(2, 5)))),
        op(term, "/", raw(rng.choice("2345"))),
        op(term, "%", raw(rng.choice(("7", "10", "100")))),
        call("round", op(term, "*", factor)),
        call(rng.choice(("greatest", "least")), term, raw(world.value(rng, table, column) or "0")),
        negate_number(term),
    ]
    if column.base == "numeric":
        ways.append(call("round", op(term, "*", factor), raw("2")))
    if other is not None:
        ways += [op(own(other), rng.choice("+-*"), by), op(term, rng.choice("+-"), own(other)), own(other)]
    return column, rng.choice(ways), ()


def negate_number(term: Term) -> Term:
    return Term(("-", *term.parts), Prec.UNARY)


def text(rng: random.Random, world: World, table: Table) -> Assigned | None:
    column = target(rng, world, table, _TEXTS)
    if column is None:
        return None
    source = column if rng.random() < 0.6 else (pick(rng, others(table, column, _TEXTS)) or column)
    other = pick(rng, others(table, source, (*_TEXTS, "integer")))
    value = world.value(rng, table, source) or "a b"
    words = re.findall(r"\w+", value) or ["a"]
    mark = next((c for c in value if not c.isalnum()), "-")
    term, count = own(source), raw(str(rng.randint(2, 8)))
    glue = raw(quote(rng.choice(("-", " ", ": ", "/", " (old)", "_v2"))))
    pattern = rng.choice((r"\d+$", r"^\w+", r"[aeiou]", r"\s.*"))
    ways = [
        call(rng.choice(("upper", "lower", "initcap", "md5", "reverse")), term),
        call(rng.choice(("left", "right")), term, count),
        call("replace", term, raw(quote(rng.choice(words)[:6])), raw(quote(rng.choice(("x", "", "new"))))),
        call("replace", term, raw(quote(mark)), raw(quote(rng.choice(("_", "", "+"))))),
        call("split_part", term, raw(quote(mark)), raw(rng.choice("12"))),
        call("regexp_replace", term, raw(quote(pattern)), raw(quote(rng.choice(("", "#"))))),
        call("substr", term, count),
        call("translate", term, raw("'aei'"), raw("'430'")),
        call("lpad", term, raw(str(rng.randint(5, 12))), raw("'0'")),
        call(rng.choice(("ltrim", "rtrim")), term, raw(quote(value[0] if value else "x"))),
        op(term, "||", glue),
        op(glue, "||", term),
    ]
    if other is not None:
        ways += [op(op(term, "||", glue), "||", own(other))] * 3
        ways.append(op(call("left", term, count), "||", own(other)))
    return column, rng.choice(ways), ()


def time(rng: random.Random, world: World, table: Table) -> Assigned | None:
    column = pick(rng, [column for column in world.settable(table) if column.kind == "D"])
    if column is None:
        return None
    source = pick(rng, [c for c in table.columns if c.kind == "D" and c.base != "time without time zone"])
    if source is None or source.base.startswith("time ") or column.base.startswith("time "):
        return None
    term = own(source)
    step = rng.choice(("1d", "7d", "30d", "1mon", "1y", "1h", "90m"))
    unit = quote(rng.choice(("day", "month", "year", "week")))
    ways = [op(term, "+", raw(quote(rng.choice(("", "-")) + step))), call("date_trunc", raw(unit), term)]
    if source.base == "date":
        ways = [op(term, rng.choice("+-"), raw(str(rng.randint(1, 60))))]
    if source is not column:
        ways.append(term)
    number = pick(rng, others(table, column, ("integer", "smallint")))
    if number is not None and source.base != "date":
        ways.append(op(term, "+", op(own(number), "*", Term(("interval", "'1d'"), Prec.CAST))))
    return column, rng.choice(ways), ()


def json_value(rng: random.Random, world: World, table: Table) -> Assigned | None:
    column = target(rng, world, table, ("jsonb",))
    if column is None:
        return None
    value = json.loads(world.value(rng, table, column) or "{}")
    if not isinstance(value, dict):
        return None
    names = sorted(name for name in value if re.fullmatch(r"\w+", name)) or ["kind"]
    name = rng.choice([*names, "flag", "note"])
    other = pick(rng, [c for c in table.columns if c.base in ("text", "integer", "boolean", "character varying")])
    term = own(column)
    fixed = json.dumps({name: rng.choice((True, False, 1, "x", None, []))}, separators=(",", ":"))
    path = raw(quote(f"{{{name}}}"))
    ways = [
        op(term, "||", raw(quote(fixed))),
        op(term, "-", raw(quote(rng.choice(names)))),
        call("jsonb_set", term, path, raw(quote(rng.choice(("1", "true", '"x"', "[]"))))),
    ]
    if other is not None:
        built = call("jsonb_build_object", raw(quote(name)), own(other))
        ways += [op(term, "||", built), call("jsonb_set", term, path, call("to_jsonb", own(other)))]
    return column, rng.choice(ways), ()


def array(rng: random.Random, world: World, table: Table) -> Assigned | None:
    column = pick(rng, [column for column in world.settable(table) if column.kind == "A"])
    if column is None or "json" in column.base:
        return None
    numeric = column.base.removesuffix("[]") in _NUMBERS
    members = [m for text in world.coded(table, column).values for m in re.findall(r"[^{},\"]+", text)]
    if not members:
        return None
    member = rng.choice(members)
    spelled, new = (raw(member), raw("7")) if numeric else (raw(quote(member)), raw("'new'"))
    term = own(column)
    ways = [
        call("array_append", term, new),
        call("array_remove", term, spelled),
        call("array_replace", term, spelled, new),
        Term((*term.parts, f"[:{rng.randint(1, 2)}]")),
        op(term, "||", term),
    ]
    return column, rng.choice(ways), ()


def logic(rng: random.Random, world: World, table: Table) -> Assigned | None:
    """NOT, comparisons, coalesce, nullif, CASE by values and by bands."""
    column = pick(rng, world.settable(table))
    if column is None or column.base in ("json", "jsonb", "point"):
        return None
    term, rule = own(column), grammar_own.select(rng, world, table)
    drawn = [world.value(rng, table, column) for _ in range(2)]
    values = [constant(column, value) for value in drawn if value is not None]
    ways: list[Term] = []
    if column.kind == "B":
        ways.append(negate(term))
        if rule is not None:
            ways.append(rule.nested)
    other = pick(rng, [c for c in table.columns if c.base == column.base and c.name != column.name])
    replacements = [*([own(other)] if other is not None else []), *values[:1]]
    if not column.not_null:
        ways += [call(name, term, new) for name in ("coalesce", "nullif") for new in replacements]
    if values and rule is not None:
        ways.append(_case([(rule.nested, values[0])], term))
    by = pick(rng, [c for c in table.columns if c.kind in ("E", "S") and len(world.coded(table, c).values) < 9])
    labels = world.coded(table, by).values if by is not None else ()
    if by is not None and labels and len(values) == 2:
        arms = [
            part
            for label in labels[:3]
            for part in ("WHEN", *constant(by, label).parts, "THEN", *rng.choice(values).parts)
        ]
        ways.append(Term(("CASE", *own(by).parts, *arms, "ELSE", *term.parts, "END")))
    measure = pick(rng, grammar_groups.measures(world, table))
    if measure is not None and len(values) == 2:
        cuts = sorted(rng.sample(range(len(world.coded(table, measure).values)), 2))
        low, high = (constant(measure, world.coded(table, measure).values[cut]) for cut in cuts)
        bands = [(op(own(measure), "<", low), values[0]), (op(own(measure), "<", high), values[1])]
        ways.append(_case(bands, term))
    return (column, rng.choice(ways), ()) if ways else None


def _case(arms: Sequence[tuple[Term, Term]], rest: Term) -> Term:
    parts = [part for test, value in arms for part in ("WHEN", *test.parts, "THEN", *value.parts)]
    return Term(("CASE", *parts, "ELSE", *rest.parts, "END"))


def lookup(rng: random.Random, world: World, table: Table) -> Assigned | None:
    """A column of the parent or grandparent, alone or in an expression."""
    steps = grammar_up.path(rng, world, table, rng.choice((1, 1, 2)))
    if not steps:
        return None
    far, key = world.catalog[steps[-1].target], grammar_up.key_of(steps)
    pairs = [(c, o) for c in world.settable(table) for o in far.columns if o.base == c.base and c.kind != "B"]
    pair = pick(rng, pairs)
    if pair is None:
        return None
    column, other = pair
    term = ref(key, other.name)
    if column.base in _TEXTS and rng.random() < 0.5:
        mark = raw(quote(rng.choice((" ", "-", "/"))))
        term = op(op(term, "||", mark), "||", own(column))
    elif column.base in _NUMBERS and rng.random() < 0.5:
        term = op(own(column), rng.choice("+-"), term)
    return column, term, grammar_up.links(world, steps)


def aggregate(rng: random.Random, world: World, table: Table) -> Assigned | None:
    """Count, sum, extremes and lists of the children."""
    key = pick(rng, world.children(table))
    if key is None:
        return None
    child = world.catalog[key.table]
    column = pick(rng, world.settable(table))
    if column is None:
        return None
    on = op(ref("child", key.columns[0]), "=", ref((), key.target_columns[0]))
    extra = condition(rng, world, child, "child") if rng.random() < 0.3 else None
    where = on if extra is None else op(on, "AND", extra.test)
    fitting = [c for c in child.columns if c.base == column.base or (column.base in _NUMBERS and c.base in _NUMBERS)]
    inner = pick(rng, fitting)
    ways: list[Term] = []
    if column.base in _NUMBERS:
        ways += [raw("count(*)")] * 2
    if inner is not None and column.kind in ("N", "D", "S"):
        ways += [call(rng.choice(("min", "max")), ref("child", inner.name))]
        if column.kind == "N":
            ways.append(call(rng.choice(("sum", "avg")), ref("child", inner.name)))
        order = separate([ref("child", name) for name in child.row_key])
        if column.base in _TEXTS and order:
            ways.append(Term(("string_agg(", *ref("child", inner.name).parts, ",", "', '", "ORDER BY", *order, ")")))
    listed = pick(rng, [c for c in child.columns if column.base in ("jsonb", f"{c.base}[]")])
    if listed is not None and child.row_key:
        name = "jsonb_agg(" if column.base == "jsonb" else "array_agg("
        order = separate([ref("child", key_column) for key_column in child.row_key])
        ways.append(Term((name, *ref("child", listed.name).parts, "ORDER BY", *order, ")")))
    if not ways:
        return None
    query = Query((rng.choice(ways),), (world.source(child.name, "child"),), where)
    return column, subquery(query), ()


def window(rng: random.Random, world: World, table: Table) -> Assigned | None:
    """row_number, rank, lag, running sums and ntile over the rows or over groups of them."""
    key, order = world.single_key(table), pick(rng, grammar_groups.measures(world, table))
    column = target(rng, world, table, ("smallint", "integer", "bigint", "numeric"))
    if key is None or order is None or column is None:
        return None
    group = pick(rng, grammar_groups.groupers(world, table)) if rng.random() < 0.6 else None
    by = [ref("all", order.name).parts]
    if order.name != key.name:
        by.append((",", *ref("all", key.name).parts))
    split = ("PARTITION BY", *ref("all", group.name).parts) if group is not None else ()
    over = ("over(", *split, "ORDER BY", *by[0], *(part for more in by[1:] for part in more), ")", "n")
    function = rng.choice(("row_number()", "row_number()", "rank()", "ntile(4)", "lag", "sum"))
    head = (function,) if "(" in function else (f"{function}(", *own_all(column).parts, ")")
    ranked = Query((Term((*ref("all", key.name).parts, "i")), Term((*head, *over))), (world.source(table.name, "all"),))
    source = Source("ranked", ranked, ("i", "n"))
    value = ref("ranked", "n")
    if rng.random() < 0.3:
        value = op(value, *rng.choice((("-", raw("1")), ("*", raw("10")))))
    return column, value, (Link(source, op(ref("ranked", "i"), "=", ref((), key.name))),)


def own_all(column: Column) -> Term:
    return ref("all", column.name)


def cross_type(rng: random.Random, world: World, table: Table) -> Assigned | None:
    """Casts and formats: numbers and dates as text, parts of dates as numbers."""
    column = target(rng, world, table, (*_TEXTS, "integer", "numeric", "boolean"))
    if column is None:
        return None
    day = pick(rng, [c for c in table.columns if c.base in ("date", "timestamp with time zone")])
    count = pick(rng, [c for c in table.columns if c.base in _NUMBERS])
    name = pick(rng, others(table, column, _TEXTS))
    ways: list[Term] = []
    if column.base in _TEXTS:
        if day is not None:
            ways.append(call("to_char", own(day), raw(quote(rng.choice(("YYYY-MM", "DD.MM.YY", "Mon"))))))
        if count is not None:
            ways += [cast(own(count), "text"), op(raw(quote(rng.choice(("#", "no-")))), "||", own(count))]
    elif column.base == "boolean":
        options = [c for c in table.columns if not c.not_null]
        if options:
            ways.append(is_null(own(rng.choice(options)), yes=rng.random() < 0.5))
    else:
        if day is not None:
            ways.append(call("date_part", raw(quote(rng.choice(("year", "month", "day")))), own(day)))
        if name is not None:
            ways.append(call("length", own(name)))
    return (column, rng.choice(ways), ()) if ways else None


EXPRESSIONS: dict[str, Expression] = {
    "set_number": number,
    "set_text": text,
    "set_time": time,
    "set_json": json_value,
    "set_array": array,
    "set_logic": logic,
    "set_lookup": lookup,
    "set_aggregate": aggregate,
    "set_window": window,
    "set_cast": cross_type,
}


def _assign(rng: random.Random, world: World, table: Table, sets: Sequence[Assigned], family: str, shape: str) -> Draw:
    selection: Selection | None = None
    if rng.random() < 0.7:
        selection = (grammar_up.select if rng.random() < 0.25 else grammar_own.select)(rng, world, table)
    links = [link for _, _, more in sets for link in more]
    sql = update(world, selection, table, [(column, term) for column, term, _ in sets], links)
    return Draw((sql,), family, shape, len(sets), table.name if selection else None)


def single(family: str) -> Callable[[random.Random, World], Draw | None]:
    """The grammar of UPDATEs of one column by the expressions of `family`."""
    expression = EXPRESSIONS[family]

    def grammar(rng: random.Random, world: World) -> Draw | None:
        table = world.table(rng)
        found = expression(rng, world, table)
        return None if found is None else _assign(rng, world, table, [found], family, family)

    return grammar


def swap(rng: random.Random, world: World, table: Table) -> Draw | None:
    """Two columns of one type change places."""
    first = pick(rng, world.settable(table))
    second = pick(rng, [c for c in world.settable(table) if first and c.base == first.base and c is not first])
    if first is None or second is None:
        return None
    return _assign(rng, world, table, [(first, own(second), ()), (second, own(first), ())], "set_several", "swap")


def several(rng: random.Random, world: World) -> Draw | None:
    """Two or three columns of one statement, each with its own expression."""
    table = world.table(rng)
    if rng.random() < 0.1:
        return swap(rng, world, table)
    sets: dict[str, Assigned] = {}
    names: list[str] = []
    for _ in range(rng.choice((2, 2, 3))):
        name = rng.choice(sorted(EXPRESSIONS))
        found = EXPRESSIONS[name](rng, world, table)
        if found is not None and found[0].name not in sets:
            sets[found[0].name] = found
            names.append(name.removeprefix("set_"))
    if len(sets) < 2:
        return None
    windows = names.count("window")
    return None if windows > 1 else _assign(rng, world, table, list(sets.values()), "set_several", "+".join(names))

"""Conditions on one or two columns of a table, by the type of the column, with constants from its rows."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from bench.recovery.world import World, constant, pick
from emit.literal import quote
from emit.term import Prec, SourceKey, Term, call, cast, in_values, is_null, negate, op, raw, ref
from scratch.catalog import Column, Table


@dataclass(frozen=True, slots=True)
class Subject:
    """A column under a condition, as a term, and where its values are."""

    world: World
    table: Table
    column: Column
    term: Term
    key: SourceKey

    def value(self, rng: random.Random) -> str | None:
        return self.world.value(rng, self.table, self.column)

    def values(self, rng: random.Random, most: int) -> list[str]:
        """Two to `most` different values."""
        found = {value for _ in range(3 * most) if (value := self.value(rng)) is not None}
        return sorted(found)[: rng.randint(2, most)]

    def others(self) -> list[Column]:
        """Other columns of the same type."""
        return [
            other for other in self.table.columns if other.base == self.column.base and other.name != self.column.name
        ]


Shape: TypeAlias = Callable[[random.Random, Subject], Term | None]


# -- any type with an order


def equal(rng: random.Random, s: Subject) -> Term | None:
    value = s.value(rng)
    return None if value is None else op(s.term, "=", constant(s.column, value))


def unequal(rng: random.Random, s: Subject) -> Term | None:
    value = s.value(rng)
    return None if value is None else op(s.term, "<>", constant(s.column, value))


def among(rng: random.Random, s: Subject) -> Term | None:
    values = s.values(rng, 4)
    return in_values(s.term, [constant(s.column, value) for value in values]) if len(values) > 1 else None


def not_among(rng: random.Random, s: Subject) -> Term | None:
    values = s.values(rng, 3)
    return in_values(s.term, [constant(s.column, value) for value in values], yes=False) if values else None


def null(rng: random.Random, s: Subject) -> Term | None:
    return None if s.column.not_null else is_null(s.term, yes=rng.random() < 0.6)


def above_or_below(rng: random.Random, s: Subject) -> Term | None:
    value = s.value(rng)
    if value is None:
        return None
    return op(s.term, rng.choice("<>"), constant(s.column, rounded(rng, s.column, value)))


def within(rng: random.Random, s: Subject) -> Term | None:
    values = s.values(rng, 2)
    if len(values) < 2:
        return None
    codes = {value: place for place, value in enumerate(s.world.coded(s.table, s.column).values)}
    low, high = sorted(values, key=lambda value: codes.get(value, 0))
    # In the order of conjuncts, which bind looser than BETWEEN.
    bounds = constant(s.column, low), constant(s.column, high)
    return Term((*s.term.parts, "BETWEEN", *bounds[0].parts, "AND", *bounds[1].parts), Prec.LIKE)


def rounded(rng: random.Random, column: Column, value: str) -> str:
    """A boundary as people choose them: the first of a month, a number of two digits."""
    if column.kind == "D" and len(value) >= 10 and value[4:5] == "-":
        day = value[:8] + "01" if rng.random() < 0.6 else value[:10]
        if column.base == "date":
            return day
        return f"{day} 00:00:00" + ("+00" if column.base.endswith("with time zone") else "")
    if column.kind == "N" and re.fullmatch(r"-?\d{3,}(\.\d+)?", value):
        whole = value.lstrip("-").split(".")[0]
        short = whole[:2] + "0" * (len(whole) - 2)
        return ("-" if value[0] == "-" else "") + short
    return value


# -- booleans


def holds(rng: random.Random, s: Subject) -> Term | None:
    return s.term if rng.random() < 0.5 else negate(s.term)


# -- text


def _matching(s: Subject, pattern: str, like: str, yes: bool) -> Term:
    """`~` is shorter than LIKE wherever the text has nothing that a regex takes for itself."""
    plain = re.sub(r"[\^$]", "", pattern)
    if re.fullmatch(r"[\w /:@,;<>='\"&#!-]*", plain):
        return op(s.term, "~" if yes else "!~", raw(quote(pattern)))
    return op(s.term, "LIKE" if yes else "NOT LIKE", raw(quote(like)))


def _escaped(text: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", text)


def prefix(rng: random.Random, s: Subject) -> Term | None:
    value = s.value(rng)
    if not value:
        return None
    part = value[: rng.randint(1, 6)]
    return _matching(s, f"^{part}", f"{_escaped(part)}%", rng.random() < 0.75)


def suffix(rng: random.Random, s: Subject) -> Term | None:
    value = s.value(rng)
    if not value:
        return None
    part = value[-rng.randint(1, 5) :]
    return _matching(s, f"{part}$", f"%{_escaped(part)}", rng.random() < 0.75)


def infix(rng: random.Random, s: Subject) -> Term | None:
    words = re.findall(r"\w{2,}", s.value(rng) or "")
    if not words:
        return None
    word = rng.choice(words)[:8]
    return _matching(s, word, f"%{_escaped(word)}%", rng.random() < 0.75)


def regex_class(rng: random.Random, s: Subject) -> Term | None:
    value = s.value(rng)
    if not value or not value[0].isascii() or not value[0].isalnum():
        return None
    letter = value[0]
    after = chr(min(ord(letter) + rng.randint(1, 4), ord("z")))
    pattern = rng.choice(
        (f"^[{letter}-{after}]" if letter < after else f"^{letter}", r"\d", r"\d$", "^[A-Z]", "^[a-z]+$")
    )
    return op(s.term, rng.choice(("~", "~", "!~")), raw(quote(pattern)))


def text_length(rng: random.Random, s: Subject) -> Term | None:
    value = s.value(rng)
    return None if value is None else op(call("length", s.term), rng.choice("<>="), raw(str(len(value))))


def cut_equals(rng: random.Random, s: Subject) -> Term | None:
    value = s.value(rng)
    if not value:
        return None
    count = rng.randint(1, 4)
    name, part = rng.choice((("left", value[:count]), ("right", value[-count:])))
    return op(call(name, s.term, raw(str(count))), rng.choice(("=", "=", "<>")), raw(quote(part)))


def case_folded(rng: random.Random, s: Subject) -> Term | None:
    value = s.value(rng)
    if not value:
        return None
    name = rng.choice(("lower", "upper"))
    if rng.random() < 0.4:
        return op(call(name, s.term), rng.choice(("=", "<>")), s.term)
    folded = value.lower() if name == "lower" else value.upper()
    return op(call(name, s.term), "=", raw(quote(folded)))


# -- numbers


def modulo(rng: random.Random, s: Subject) -> Term | None:
    by = rng.choice((2, 3, 4, 5, 7, 10))
    return op(op(s.term, "%", raw(str(by))), "=", raw(str(rng.randrange(by))))


def bit(rng: random.Random, s: Subject) -> Term | None:
    return op(op(s.term, "&", raw(str(2 ** rng.randrange(4)))), rng.choice(("=", ">")), raw("0"))


def to_other(rng: random.Random, s: Subject) -> Term | None:
    other = pick(rng, s.others())
    if other is None:
        return None
    return op(s.term, rng.choice(("<", ">", "=", "<>")), ref(s.key, other.name))


def with_arithmetic(rng: random.Random, s: Subject) -> Term | None:
    other = pick(rng, s.others())
    if other is None:
        return None
    right = ref(s.key, other.name)
    if rng.random() < 0.5:
        return op(op(s.term, "*", raw(str(rng.randint(2, 4)))), rng.choice("<>"), right)
    return op(op(s.term, "-", right), rng.choice("<>"), raw(str(rng.choice((0, 1, 2, 5, 10, 50, 100)))))


# -- times

_PARTS = {"month": 12, "dow": 6, "day": 28, "hour": 23, "year": 0, "quarter": 4}


def date_part(rng: random.Random, s: Subject) -> Term | None:
    value = s.value(rng)
    if value is None or not re.match(r"\d{4}-\d\d-\d\d", value):
        return None
    parts = [part for part in _PARTS if part != "hour" or s.column.base != "date"]
    part = rng.choice(parts)
    at = int(value[:4]) if part == "year" else rng.randint(1, _PARTS[part])
    # With date_part the shorter name for the same thing.
    left = call("date_part", raw(quote(part)), s.term)
    return op(left, rng.choice("==<>"), raw(str(at)))


def window(rng: random.Random, s: Subject) -> Term | None:
    value = s.value(rng)
    if value is None or not re.match(r"\d{4}-\d\d-\d\d", value):
        return None
    if s.column.base == "date":
        first, last = f"{value[:7]}-01", f"{value[:7]}-{rng.choice((10, 15, 28))}"
    else:
        zone = "+00" if s.column.base.endswith("with time zone") else ""
        first, last = (f"{value[:7]}-{day} 00:00:00{zone}" for day in ("01", rng.choice(("11", "15", "28"))))
    low, high = constant(s.column, first), constant(s.column, last)
    return op(op(s.term, ">=", low), "AND", op(s.term, "<", high))


def age(rng: random.Random, s: Subject) -> Term | None:
    other = pick(rng, s.others())
    if other is None:
        return None
    days = rng.choice((1, 2, 7, 30, 90))
    limit = str(days) if s.column.base == "date" else f"'{days}d'"
    return op(op(s.term, "-", ref(s.key, other.name)), rng.choice("<>"), raw(limit))


# -- jsonb


def _member(rng: random.Random, s: Subject) -> tuple[str, object] | None:
    value = json.loads(s.value(rng) or "null")
    return rng.choice(sorted(value.items())) if isinstance(value, dict) and value else None


def json_key(rng: random.Random, s: Subject) -> Term | None:
    member = _member(rng, s)
    if member is None:
        return None
    test = op(s.term, "?", raw(quote(member[0])))
    return test if rng.random() < 0.7 else negate(test)


def json_text(rng: random.Random, s: Subject) -> Term | None:
    member = _member(rng, s)
    if member is None or isinstance(member[1], dict | list) or member[1] is None:
        return None
    text = member[1] if isinstance(member[1], str) else json.dumps(member[1])
    return op(op(s.term, "->>", raw(quote(member[0]))), rng.choice(("=", "=", "<>")), raw(quote(text)))


def json_contains(rng: random.Random, s: Subject) -> Term | None:
    member = _member(rng, s)
    if member is None:
        return None
    return op(s.term, "@>", raw(quote(json.dumps(dict([member]), separators=(",", ":"), ensure_ascii=False))))


def json_number(rng: random.Random, s: Subject) -> Term | None:
    member = _member(rng, s)
    if member is None or isinstance(member[1], bool) or not isinstance(member[1], int | float):
        return None
    return op(cast(op(s.term, "->", raw(quote(member[0]))), "float"), rng.choice("<>"), raw(str(member[1])))


def json_path(rng: random.Random, s: Subject) -> Term | None:
    member = _member(rng, s)
    if member is None or not isinstance(member[1], dict) or not member[1]:
        return None
    inner, value = rng.choice(sorted(member[1].items()))
    if isinstance(value, dict | list) or value is None or not re.fullmatch(r"\w+", member[0] + inner):
        return None
    text = value if isinstance(value, str) else json.dumps(value)
    return op(op(s.term, "#>>", raw(quote(f"{{{member[0]},{inner}}}"))), "=", raw(quote(text)))


# -- arrays, networks, ranges


def array_member(rng: random.Random, s: Subject) -> Term | None:
    found = re.findall(r"[^{},\"]+", s.value(rng) or "")
    if not found:
        return None
    value = rng.choice(found)
    element = s.column.base.removesuffix("[]")
    text = value if element in ("integer", "bigint", "smallint") else quote(value)
    test = op(raw(text), "=", call("ANY", s.term))
    return test if rng.random() < 0.8 else negate(test)


def array_length(rng: random.Random, s: Subject) -> Term | None:
    return op(call("cardinality", s.term), rng.choice("<>="), raw(str(rng.randint(0, 3))))


def in_network(rng: random.Random, s: Subject) -> Term | None:
    value = s.value(rng)
    if value is None or ":" in value:
        return None
    net = ".".join(value.split("/")[0].split(".")[:2])
    return op(s.term, "<<", raw(quote(f"{net}.0.0/16")))


def network_family(rng: random.Random, s: Subject) -> Term | None:
    if rng.random() < 0.5:
        return op(call("family", s.term), "=", raw(rng.choice("46")))
    value = s.value(rng)
    bits = (value or "").partition("/")[2]
    return op(call("masklen", s.term), rng.choice("=<>"), raw(bits or "32"))


def range_bound(rng: random.Random, s: Subject) -> Term | None:
    bounds = re.findall(r"[^\[\](),\"]+", s.value(rng) or "")
    if not bounds:
        return None
    bound = rng.choice(bounds)
    test = raw(bound if re.fullmatch(r"-?\d+", bound) else quote(bound))
    return op(call(rng.choice(("upper", "lower")), s.term), rng.choice("<>"), test)


def range_holds(rng: random.Random, s: Subject) -> Term | None:
    bounds = re.findall(r"[^\[\](),\"]+", s.value(rng) or "")
    if not bounds or s.column.base not in ("daterange", "int4range"):
        return None
    element = "date" if s.column.base == "daterange" else "int"
    return op(s.term, "@>", cast(raw(quote(rng.choice(bounds))), element))


_ANY: tuple[Shape, ...] = (equal, unequal, among, not_among, null)
_ORDERED: tuple[Shape, ...] = (*_ANY, above_or_below, above_or_below, within)
_NUMBER: tuple[Shape, ...] = (*_ORDERED, to_other, with_arithmetic)
_INTEGER: tuple[Shape, ...] = (*_NUMBER, modulo, bit)
_TEXT: tuple[Shape, ...] = (
    *_ANY, above_or_below, prefix, suffix, infix, regex_class, text_length, cut_equals, case_folded, to_other,
)  # fmt: skip
_TIME: tuple[Shape, ...] = (*_ORDERED, date_part, window, window, to_other, age)
_JSON: tuple[Shape, ...] = (null, equal, json_key, json_text, json_contains, json_number, json_path)
_ARRAY: tuple[Shape, ...] = (null, equal, array_member, array_member, array_length)
_NETWORK: tuple[Shape, ...] = (null, in_network, network_family, above_or_below)
_BY_KIND: dict[str, tuple[Shape, ...]] = {
    "N": _NUMBER,
    "S": _TEXT,
    "D": _TIME,
    "B": (holds, holds, null),
    "E": (equal, unequal, among, not_among, null, above_or_below),
    "A": _ARRAY,
    "I": _NETWORK,
    "R": (null, range_bound, range_holds, equal),
    "T": (null, above_or_below),
    "V": (null, equal, unequal),
}


def shapes(column: Column) -> tuple[Shape, ...]:
    """The conditions that fit the type of `column`."""
    if column.base == "jsonb":
        return _JSON
    if column.base in ("smallint", "integer", "bigint"):
        return _INTEGER
    return _BY_KIND.get(column.kind, (null,))


@dataclass(frozen=True, slots=True)
class Condition:
    """A test of one row, and the name of its shape."""

    test: Term
    shape: str


def condition(
    rng: random.Random, world: World, table: Table, key: SourceKey = (), *, keys: bool = True
) -> Condition | None:
    """A condition on the columns of the source `key`, which holds rows of `table`.

    Those of its own key are rare, or left out: one who joins by it has it without the join.
    """
    for _ in range(8):
        column = rng.choice(table.columns)
        if column.name in table.row_key and (not keys or rng.random() < 0.8):
            continue
        shape = rng.choice(shapes(column))
        test = shape(rng, Subject(world, table, column, ref(key, column.name), key))
        if test is not None:
            return Condition(test, shape.__name__)
    return None

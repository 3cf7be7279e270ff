"""Values as an INSERT spells them: where the target's type is known, and where it is not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from emit.literal import input_text, literal, quote
from emit.term import Prec, Term, cast, raw
from scratch.catalog import Column
from stream.model import Value

INTEGERS = frozenset({"smallint", "integer", "bigint"})
_NUMBERS = frozenset({"numeric", "real", "double precision"})
# Classes of types that a column of a subquery can hold so that INSERT converts it to the target's type by itself;
# a kind is one of them or the name of a type.
INT, NUMBER, BOOL, TEXT = "int", "number", "bool", "text"

_SHORT = {
    "integer": "int",
    "smallint": "int2",
    "bigint": "int8",
    "double precision": "float",
    "real": "float4",
    "boolean": "bool",
    "character varying": "varchar",
    "character": "bpchar",
    "timestamp with time zone": "timestamptz",
    "timestamp without time zone": "timestamp",
    "time with time zone": "timetz",
    "time without time zone": "time",
    "bit varying": "varbit",
}


@dataclass(frozen=True, slots=True)
class Speller:
    """`timezone`: the session time zone that literals may rely on, if any; `words`: what constants may be made of."""

    timezone: str | None = None
    words: tuple[str, ...] = ()

    def top(self, value: Value, column: Column) -> Term:
        """`value` in the INSERT's own VALUES or select list, where an untyped literal becomes `column`'s type."""
        text = literal(value, _literal_type(column), context="assign", timezone=self.timezone)
        return raw(text, _precedence(text))

    def compared(self, value: str, column: Column) -> Term:
        """`value` on the other side of a comparison with `column`."""
        text = literal(value, _literal_type(column), context="compare", timezone=self.timezone)
        return raw(text, _precedence(text))

    def typed(self, value: Value, column: Column) -> Term:
        """`value` with its type, wherever it stands."""
        text = literal(value, column.base, context="bare", timezone=self.timezone)
        return raw(text, _precedence(text))


def _literal_type(column: Column) -> str:
    """The type with its modifier, which lets a literal drop what the modifier restores; not for a domain."""
    return column.type if re.sub(r"\([^)]*\)", "", column.type) == column.base else column.base


def _precedence(text: str) -> Prec:
    """How tightly a literal binds: `'…'::date` and `-1` are literals too."""
    if "::" in text and text[-1] != "'":
        return Prec.CAST
    return Prec.UNARY if text[0] == "-" else Prec.ATOM


def class_of(column: Column) -> str:
    """The class of a subquery's column that holds values of `column`."""
    if column.base in INTEGERS:
        return INT
    if column.base in _NUMBERS:
        return NUMBER
    return BOOL if column.base == "boolean" else TEXT


def kinds_of(column: Column, values: Sequence[Value]) -> tuple[str, ...]:
    """The kinds under which a source can hold `values` of `column`, the best first."""
    own = class_of(column)
    if own == TEXT:
        return (TEXT,) if column.kind == "S" else (column.base, TEXT)
    # Numbers without a digit, and the negative zero, are lost in a list of bare numbers.
    odd = own == NUMBER and any(value is not None and (value[-1].isalpha() or value == "-0") for value in values)
    return (column.base,) if odd else (own,)


def read(term: Term, kind: str, column: Column) -> Term:
    """`term`, a value of the kind `kind`, made fit for being inserted into `column`."""
    same = kind in (class_of(column), column.base) and kind != TEXT
    if column.kind == "S" or same or (kind == INT and class_of(column) == NUMBER):
        return term
    return cast(term, short_type(column.base))


def short_type(base: str) -> str:
    """The shortest name of a type without modifier."""
    stem = base.removesuffix("[]")
    return _SHORT.get(stem, stem) + base[len(stem) :]


def array(values: Sequence[Value], kind: str) -> str:
    """'{…}'::kind[]"""
    name = "int8" if kind == INT and any(abs(int(value or 0)) >= 1 << 31 for value in values) else short_type(kind)
    return f"{quote('{' + ','.join(_element(value, kind) for value in values) + '}')}::{name}[]"


def _element(value: Value, kind: str) -> str:
    if value is None:
        return "NULL"
    text = value if kind in (INT, NUMBER, BOOL, TEXT) else input_text(value, kind)
    plain = text and text.lower() != "null" and text.strip() == text and not set(text) & set('{},"\\')
    return text if plain else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def cell(value: Value, kind: str, *, first: bool = True) -> str:
    """A value inside FROM(VALUES(…)) whose column shall be of the kind `kind`; the `first` row's gives it."""
    if value is None:
        return "NULL"
    if kind == BOOL:
        return "true" if value == "t" else "false"
    if kind == TEXT:
        return quote(value)
    if kind in (INT, NUMBER):
        return value
    return literal(value, kind, context="bare") if first else quote(input_text(value, kind))


def common_ends(texts: Sequence[str]) -> tuple[int, int]:
    """How many characters all texts share at their start and, beyond those in the shortest, at their end."""
    low, high = min(texts), max(texts)
    shortest = min(map(len, texts))
    start = next((i for i in range(shortest) if low[i] != high[i]), shortest)
    turned = [text[start:][::-1] for text in texts]
    low, high = min(turned), max(turned)
    room = shortest - start
    return start, next((i for i in range(room) if low[i] != high[i]), room)

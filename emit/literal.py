"""The shortest SQL literal of a value.

`literal` spells a value for the place where it stands:

- ``assign``: the direct value of a column in INSERT or UPDATE, where an unknown literal takes the column's
  type and a number is cast by assignment (`1e6` to an integer, `5` to a text);
- ``compare``: the other side of a comparison with an expression of the type;
- ``bare``: where nothing gives it a type, so it must carry its own (text for varchar, and the plain number
  for all integer types: they mix freely);
- ``text``: the value's text as a value of type text.

Every short form is one that PostgreSQL 15 to 18 reads back as exactly the same value.  What is not known to
be safe is the canonical text in quotes.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable
from typing import Literal, TypeAlias

from emit import containers, numbers, times
from emit.names import identifier, table_name
from emit.strings import quote

__all__ = ["Context", "identifier", "input_text", "literal", "quote", "table_name"]

Context: TypeAlias = Literal["assign", "compare", "bare", "text"]

_ALIASES = {
    "int2": "smallint",
    "int": "integer",
    "int4": "integer",
    "int8": "bigint",
    "decimal": "numeric",
    "float4": "real",
    "float8": "double precision",
    "bool": "boolean",
    "varchar": "character varying",
    "char": "character",
    "bpchar": "character",
    "timestamptz": "timestamp with time zone",
    "timestamp": "timestamp without time zone",
    "timetz": "time with time zone",
    "time": "time without time zone",
    "varbit": "bit varying",
}
# The shortest name for a cast.
_CAST_NAMES = {
    "integer": "int",
    "smallint": "int2",
    "bigint": "int8",
    "double precision": "float",
    "numeric": "numeric",
    "boolean": "bool",
    "character": "bpchar",
    "character varying": "varchar",
    "bit varying": "varbit",
    "interval": "interval",
    "timestamp with time zone": "timestamptz",
    "timestamp without time zone": "timestamp",
    "time with time zone": "timetz",
    "time without time zone": "time",
}
# Types that sqlglot 27.29.0 reads in front of a string (not interval: it takes a word after it for a unit).
_PREFIXES = frozenset(
    [
        "bpchar",
        "bytea",
        "date",
        "daterange",
        "float",
        "hstore",
        "inet",
        "int4range",
        "int8range",
        "json",
        "jsonb",
        "money",
        "name",
        "numeric",
        "numrange",
        "real",
        "time",
        "timestamp",
        "timestamptz",
        "timetz",
        "tsrange",
        "tstzrange",
        "uuid",
        "xml",
    ]
)
_INTEGERS = frozenset(("smallint", "integer", "bigint"))
_FLOATS = frozenset(("real", "double precision"))
_STRINGS = frozenset(("text", "character varying", "character", "citext"))
_UTC_NAMES = frozenset(("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Zulu", "Etc/Zulu", "UCT", "Etc/UCT"))
_INTEGER_RANGES = frozenset(("int4range", "int8range"))
_RANGE_BOUNDS = {
    "numrange": "numeric",
    "daterange": "date",
    "tsrange": "timestamp without time zone",
    "tstzrange": "timestamp with time zone",
}
_FORMATS: dict[str, Callable[[str], str]] = {
    "date": times.date,
    "time without time zone": times.time,
    "time with time zone": times.timetz,
    "timestamp without time zone": times.timestamp,
    "interval": times.interval,
    "uuid": lambda text: text.replace("-", ""),
    "macaddr": lambda text: text.replace(":", ""),
    "macaddr8": lambda text: text.replace(":", ""),
    "bytea": containers.bytea,
    "bit": containers.bits,
    "bit varying": containers.bits,
    "inet": containers.network,
    "cidr": containers.network,
    "jsonb": containers.jsonb,
    "tsvector": containers.tsvector,
    "hstore": containers.hstore,
    "money": lambda text: text.replace("$", "").replace(",", "").removesuffix(".00"),
}
_TYPE = re.compile(r"(?P<name>[^(\[]*?) ?(?:\((?P<modifier>[^)]*)\))?(?P<rest>[^\[(]*)(?P<array>(?:\[\])*)")
_MONEY = re.compile(r"-?\$[0-9,]+\.[0-9]{2}")
_PLAIN_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")


def literal(value: str | None, type_name: str, *, context: Context, timezone: str | None = None) -> str:
    """The shortest literal for `value` (its canonical text, or None) of the type `type_name`.

    `type_name` is as `format_type` prints it; give the base type of a domain.  `timezone` is the time zone
    that the replaying session is promised to have.
    """
    if context == "text":
        return "NULL" if value is None else quote(value)
    base, modifier, is_array = _parse_type(type_name)
    if value is None:
        return f"NULL::{_cast_name(type_name)}" if context == "bare" and base not in _STRINGS else "NULL"
    if context == "bare":
        return _bare(value, type_name, timezone)
    unquoted = None if is_array else _unquoted(value, base, modifier, context)
    text = _quoted(value, type_name, timezone)
    return text if unquoted is None else min(unquoted, text, key=len)


def input_text(value: str, type_name: str, *, timezone: str | None = None) -> str:
    """The shortest text that the type's input function reads as `value`."""
    base, modifier, is_array = _parse_type(type_name)
    if is_array:
        element = type_name.replace("[]", "")
        if base in ("box", "json"):
            return value
        return containers.array(value, lambda text: input_text(text, element, timezone=timezone))
    if base == "timestamp with time zone":
        return times.timestamptz(value, session_is_utc=timezone in _UTC_NAMES)
    if base == "boolean":
        return value[:1]
    if base in _INTEGER_RANGES:
        return containers.range_(value, str, of_integers=True)
    if base in _RANGE_BOUNDS:
        bound = _RANGE_BOUNDS[base]
        return containers.range_(value, lambda text: input_text(text, bound, timezone=timezone), of_integers=False)
    if base == "character" and modifier:
        return value.rstrip(" ")
    if base == "numeric" or base in _FLOATS:
        return _float_text(value, keep_scale=base == "numeric" and not modifier)
    if base == "money" and not _MONEY.fullmatch(value):
        return value
    shorten = _FORMATS.get(base)
    return value if shorten is None else shorten(value)


def _quoted(value: str, type_name: str, timezone: str | None) -> str:
    shown = quote(input_text(value, type_name, timezone=timezone))
    # Escapes of two kinds can outweigh what a shorter text saves.
    return min(shown, quote(value), key=len)


def _parse_type(type_name: str) -> tuple[str, str, bool]:
    """The type's full name without modifier, the modifier (or ""), and whether it is an array."""
    match = _TYPE.fullmatch(type_name.removeprefix("pg_catalog."))
    if match is None:
        return type_name, "", False
    name = match["name"] + match["rest"]
    return _ALIASES.get(name, name), match["modifier"] or "", bool(match["array"])


def _unquoted(value: str, base: str, modifier: str, context: Context) -> str | None:
    """A bare number for the value, or a short expression for bytes, if there is one."""
    if base == "bytea" and value.startswith("\\x"):
        return f"decode('{base64.b64encode(bytes.fromhex(value[2:])).decode()}','base64')"
    if base in _INTEGERS:
        return numbers.shortest(value, keep_scale=False)
    if base == "oid":
        return value
    if base == "numeric":
        return numbers.shortest(value, keep_scale=context == "assign" and not modifier)
    if base in _FLOATS and not numbers.is_negative_zero(value):
        if base == "real" and context == "compare" and not _is_exact_real(value):
            # Beside a bare number a real is compared as double precision.
            return None
        return numbers.shortest(value, keep_scale=False)
    if context == "assign" and base == "money" and _MONEY.fullmatch(value):
        return numbers.shortest(input_text(value, base), keep_scale=False)
    if context == "assign" and base in _STRINGS:
        return _text_number(value if base != "character" or not modifier else value.rstrip(" "))
    return None


def _text_number(value: str) -> str | None:
    """The number or truth value whose text is `value`: an assignment casts it to a string type."""
    if value in ("true", "false"):
        return value
    if _PLAIN_DECIMAL.fullmatch(value) and not numbers.is_negative_zero(value):
        return numbers.shortest(value, keep_scale=True)
    return None


def _is_exact_real(value: str) -> bool:
    try:
        number = float(value)
        return bool(struct.unpack("f", struct.pack("f", number))[0] == number)
    except OverflowError:
        return False


def _float_text(value: str, *, keep_scale: bool) -> str:
    shown = numbers.shortest(value, keep_scale=keep_scale)
    if shown is None or numbers.is_negative_zero(value):
        return {"Infinity": "inf", "-Infinity": "-inf"}.get(value, value)
    return min(shown, value, key=len)


def _bare(value: str, type_name: str, timezone: str | None) -> str:
    """A literal that has the type by itself."""
    base, _, is_array = _parse_type(type_name)
    if not is_array:
        if base in ("text", "character varying"):
            return quote(value)
        if base == "boolean":
            return "true" if value.startswith("t") else "false"
        if base in _INTEGERS:
            return value
        if base == "numeric" and _PLAIN_DECIMAL.fullmatch(value):
            shown = numbers.shortest(value, keep_scale=True)
            return shown if shown is not None and not shown.lstrip("-").isdigit() else value + "."
        if base in ("bit", "bit varying"):
            shown = containers.bits(value)
            return f"x'{shown[1:]}'" if shown.startswith("x") else f"b'{value}'"
    text = _quoted(value, type_name, timezone)
    cast = _cast_name(type_name)
    return f"{cast}{text}" if cast in _PREFIXES and text[0] == "'" else f"{text}::{cast}"


def _cast_name(type_name: str) -> str:
    """The shortest name for a cast; without a modifier, which the canonical text fits already."""
    base, _, is_array = _parse_type(type_name)
    name = _CAST_NAMES.get(base)
    return type_name if name is None else name + ("[]" if is_array else "")

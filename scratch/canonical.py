"""Values in the text that the scratch server itself prints.

A stream written under other settings, or by hand, may spell a value in another way (a zone of +02,
1.50 for numeric(6,1)); compared are texts, so they have to be the server's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from psycopg import Error
from psycopg.errors import NumericValueOutOfRange

from scratch.arrays import Given
from scratch.catalog import Catalog, Column
from scratch.errors import ScratchError
from scratch.session import Session
from stream.model import RowChange, Value

_ANY_TEXT = re.compile(r"", re.DOTALL)
# Days that every year has.
_DAY = (
    r"(?!0000)[0-9]{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
    r"|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
)


def _integer(digits: int) -> re.Pattern[str]:
    return re.compile(rf"(?:0|-?[1-9][0-9]{{0,{digits - 1}}})\Z")


# Types whose canonical text can be told by looking at it, as long as it is surely in their range.
_PLAIN = {
    "text": _ANY_TEXT,
    "character varying": _ANY_TEXT,
    "json": _ANY_TEXT,
    "smallint": _integer(4),
    "integer": _integer(9),
    "bigint": _integer(18),
    "boolean": re.compile(r"[tf]\Z"),
    "uuid": re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z"),
    "date": re.compile(_DAY + r"\Z"),
    "timestamp with time zone": re.compile(
        _DAY + r" (?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{0,5}[1-9])?\+00\Z"
    ),
}


class Spellings:
    """The canonical text of every value of some changes."""

    def __init__(self, by_type: Mapping[str, Mapping[str, str]]) -> None:
        self._by_type = by_type

    def canonical(self, column: Column, value: Value) -> Value:
        if value is None:
            return None
        return self._by_type.get(column.type, {}).get(value, value)


def read_spellings(session: Session, catalog: Catalog, changes: Iterable[RowChange]) -> Spellings:
    """Ask the server how it spells the values of `changes`: one query a type, with its distinct values.

    Raises ScratchError, with the line of the stream, for a value that is none of its column's type.
    """
    wanted: dict[str, dict[str, tuple[int, Column]]] = {}
    for change in changes:
        by_name = catalog[change.table].by_name
        for row in (change.old, change.new):
            for name, value in (row or {}).items():
                column = by_name[name]
                # A length is no part of a look, so varchar(5) is looked at as varchar.
                plain = _PLAIN.get(column.type.partition("(")[0])
                if value is not None and not (plain and plain.match(value)):
                    wanted.setdefault(column.type, {}).setdefault(value, (change.line, column))
    return Spellings({name: _spell(session, values) for name, values in wanted.items()})


def _spell(session: Session, values: Mapping[str, tuple[int, Column]]) -> dict[str, str]:
    (_, column), *_ = values.values()
    given = Given([column], [[value] for value in values])
    query = f"SELECT {given.value(0)} FROM {given.source} ORDER BY x.n"
    try:
        with session.transaction():
            printed = session.execute(query.encode(), given.params).fetchall()
    except Error as error:
        if len(values) == 1:
            ((value, (line, _)),) = values.items()
            what = "is out of range for" if isinstance(error, NumericValueOutOfRange) else "is no"
            raise ScratchError(f"line {line}: {value[:80]!r} {what} {column.type} (column {column.name})") from error
        return _spell_halves(session, values)
    return {value: text or "" for value, (text,) in zip(values, printed, strict=True)}


def _spell_halves(session: Session, values: Mapping[str, tuple[int, Column]]) -> dict[str, str]:
    """Halve the values until the one that the server refuses stands alone."""
    items = list(values.items())
    half = len(items) // 2
    return _spell(session, dict(items[:half])) | _spell(session, dict(items[half:]))

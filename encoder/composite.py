"""Read the text of a composite value (PostgreSQL manual, 8.16.6)."""

from __future__ import annotations

import re

from stream.model import Value

_FIELD = re.compile(r'("(?:[^"\\]|""|\\.)*"|[^,()"\\]*)[,)]', re.DOTALL)
_ESCAPED = re.compile(r'""|\\(.)', re.DOTALL)


def parse_record(text: str) -> tuple[Value, ...]:
    """The fields of a record in its output form; an empty unquoted field is NULL.

    >>> parse_record('(1,"a ""b",,"")')
    ('1', 'a "b', None, '')
    """
    return tuple(_field(field) for field in _FIELD.findall(text, 1))


def _field(field: str) -> Value:
    if not field:
        return None
    if field[0] != '"':
        return field
    inner = field[1:-1]
    if '"' in inner or "\\" in inner:
        return _ESCAPED.sub(lambda match: match.group(1) or '"', inner)
    return inner

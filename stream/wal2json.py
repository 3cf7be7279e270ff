"""Reads wal2json's format-version 2: one JSON object a line, its "action" one of B, C, I, U, D, T, M.

What wal2json does to values, and how they get their PostgreSQL text back (wal2json.c,
`pg_decode_write_value`): numbers are printed bare, so their source text is kept; booleans become
true/false; bytea loses its `\\x`; every other type is the text of its output function.  NaN and the
infinities of number columns become null there and cannot be told from NULL (option
numeric-data-types-as-string keeps them as strings, and so does `stream.write`); strings are
accepted for any type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from sys import intern
from typing import Any

from stream.assembly import Assembler, refuse_truncate, update
from stream.model import Op, RowChange, StreamError, TableName, Transaction, Value

# The hooks keep the source text of numbers: no float rounds, no integer overflows.
_JSON = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)
_SUSPECT_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_HEX = re.compile(r"(?:\\x)?((?:[0-9a-f]{2})*)", re.IGNORECASE)
_XID = re.compile(r"[0-9]{1,20}")
_BOM = "\ufeff"


def read_wal2json(lines: Iterable[str | bytes]) -> Iterator[Transaction]:
    """The transactions of a stream of lines (UTF-8 where bytes), one at a time.

    Empty transactions are kept, messages (M) and blank lines skipped, and unchanged TOAST values
    that "identity" holds filled in.  Raises StreamError with the 1-based line for anything that
    is not a whole, replayable stream.
    """
    assembler = Assembler()
    tables: dict[TableName, TableName] = {}
    number = 0
    for number, raw in enumerate(lines, 1):
        text = _decode(number, raw)
        if not text:
            continue
        event = _parse(number, text)
        action = event.get("action")
        if action == "M":
            continue
        xid = _xid(number, event)
        if action == "B":
            assembler.begin(number, xid, len(raw))
        elif action == "C":
            yield assembler.commit(number, xid, len(raw))
        elif action == "T":
            raise refuse_truncate(number, str(_table(number, event)))
        elif action in ("I", "U", "D"):
            table = _table(number, event)
            table = tables.setdefault(table, table)
            assembler.change(_change(number, Op(action), table, event), xid, len(raw))
        elif action is None:
            raise StreamError(number, 'no "action": not an object of wal2json format-version 2')
        else:
            raise StreamError(number, f'"action" is {json.dumps(action)}, not one of B, C, I, U, D, T, M')
    assembler.end(number)


def _decode(line: int, raw: str | bytes) -> str:
    try:
        if isinstance(raw, bytes):
            text = raw.decode()
        else:
            text = raw
            raw.encode()
    except UnicodeDecodeError as error:
        raise StreamError(line, f"byte {error.start + 1} of the line is not UTF-8 ({error.reason})") from None
    except UnicodeEncodeError as error:
        raise StreamError(line, f"character {error.start + 1} of the line is not Unicode text") from None
    if line == 1:
        text = text.removeprefix(_BOM)
    return text.strip(" \t\r\n")


def _parse(line: int, text: str) -> dict[str, Any]:
    try:
        event, end = _JSON.raw_decode(text)
    except json.JSONDecodeError as error:
        if error.pos >= len(text) or error.msg.startswith("Unterminated string"):
            raise StreamError(line, "the JSON object is cut off in the middle of the line") from None
        raise StreamError(line, f"not JSON: {error.msg} (column {error.pos + 1})") from None
    except RecursionError:
        raise StreamError(line, "not a wal2json object: JSON nested too deeply") from None
    if end != len(text):
        raise StreamError(line, f"more than one JSON value in the line (column {end + 1})")
    if not isinstance(event, dict):
        raise StreamError(line, "not a wal2json object: the line is JSON, but no object")
    if _SUSPECT_ESCAPE.search(text):
        _require_storable(line, event)
    return event


def _require_storable(line: int, value: Any) -> None:
    """PostgreSQL's text holds neither NUL nor half a surrogate pair, though JSON can spell both."""
    if isinstance(value, str):
        if "\0" in value or not _is_unicode(value):
            raise StreamError(line, f"the string {json.dumps(value[:60])} cannot be text of a UTF-8 database")
    elif isinstance(value, dict):
        for key, item in value.items():
            _require_storable(line, key)
            _require_storable(line, item)
    elif isinstance(value, list):
        for item in value:
            _require_storable(line, item)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _xid(line: int, event: dict[str, Any]) -> int | None:
    xid = event.get("xid")
    if xid is None:
        return None
    if not (isinstance(xid, str) and _XID.fullmatch(xid)):
        raise StreamError(line, f'"xid" is {json.dumps(xid)}, not a transaction id')
    return int(xid)


def _table(line: int, event: dict[str, Any]) -> TableName:
    schema, table = event.get("schema"), event.get("table")
    if not isinstance(schema, str):
        raise StreamError(line, 'no "schema" (wal2json option include-schemas)')
    if not isinstance(table, str):
        raise StreamError(line, 'no "table"')
    return TableName(intern(schema), intern(table))


def _change(line: int, op: Op, table: TableName, event: dict[str, Any]) -> RowChange:
    if op is Op.INSERT:
        return RowChange(op, table, None, _row(line, op, table, event, "columns"), line)
    old = _row(line, op, table, event, "identity")
    if op is Op.DELETE:
        return RowChange(op, table, old, None, line)
    return update(table, old, _row(line, op, table, event, "columns"), line)


def _row(line: int, op: Op, table: TableName, event: dict[str, Any], part: str) -> dict[str, Value]:
    columns = event.get(part)
    if not isinstance(columns, list):
        hint = " (give the table a primary key or REPLICA IDENTITY FULL)" if part == "identity" else ""
        raise StreamError(line, f'{op.name} of {table} has no "{part}"{hint}')
    row: dict[str, Value] = {}
    for column in columns:
        if not isinstance(column, dict):
            raise StreamError(line, f'"{part}" of {table} holds {json.dumps(column)[:60]}, not a column')
        name = column.get("name")
        if not isinstance(name, str):
            raise StreamError(line, f'a column in "{part}" of {table} has no "name"')
        if name in row:
            raise StreamError(line, f'column {name} of {table} is twice in "{part}"')
        row[intern(name)] = _value(line, table, name, column)
    return row


def _value(line: int, table: TableName, name: str, column: dict[str, Any]) -> Value:
    try:
        value = column["value"]
    except KeyError:
        raise StreamError(line, f'column {name} of {table} has no "value"') from None
    if isinstance(value, bool):
        return "t" if value else "f"
    if value is None:
        return None
    if not isinstance(value, str):
        raise StreamError(line, f"value of column {name} of {table} is a JSON object or array, not a scalar")
    type_name = column.get("type")
    if type_name == "bytea":
        match = _HEX.fullmatch(value)
        if match is None:
            raise StreamError(
                line, f"bytea column {name} of {table} is not in hex: write the stream with bytea_output=hex"
            )
        return f"\\x{match[1].lower()}"
    if not isinstance(type_name, str):
        # Without its type nobody can tell bytea from text.
        raise StreamError(line, f'column {name} of {table} has no "type" (wal2json option include-types)')
    return value

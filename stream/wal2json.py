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
        elif action in ("I", "U", "D", "T"):
            table = _table(number, event)
            table = tables.setdefault(table, table)
            assembler.change(_change(number, Op(action), table, event), xid, len(raw)) if action != "T" else None
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
    return text.removeprefix(_BOM).strip() if line == 1 else text.strip()


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

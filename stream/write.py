"""Writes transactions in the canonical form: wal2json's format-version 2.

`stream.wal2json.read_wal2json` reads back what was written, to the last digit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TextIO

from stream.model import Row, RowChange, TableName, Transaction, Value

Types = Callable[[TableName], Mapping[str, str]]

_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NUMBER_TYPE = re.compile(r"smallint|integer|bigint|oid|real|double precision|numeric(?:\(.*\))?")
_HEX = re.compile(r"\\x(?:[0-9a-f]{2})*")
_BOOLEAN = {"t": "true", "f": "false"}


def write_wal2json(transactions: Iterable[Transaction], out: TextIO, types: Types) -> None:
    """Write one JSON object a line to `out`, a text file in UTF-8.

    `types` gives each column's type name as `format_type` spells it; a column that it lacks is
    written as text.  Raises ValueError for a bytea value that is not PostgreSQL's hex text.
    """
    for transaction in transactions:
        xid = "" if transaction.xid is None else f',"xid":{transaction.xid}'
        out.write(f'{{"action":"B"{xid}}}\n')
        for change in transaction.changes:
            out.write(_change(change, xid, types(change.table)))
        out.write(f'{{"action":"C"{xid}}}\n')


def _change(change: RowChange, xid: str, types: Mapping[str, str]) -> str:
    schema, name = _string(change.table.schema), _string(change.table.name)
    columns = "" if change.new is None else f',"columns":{_row(change.new, types)}'
    identity = "" if change.old is None else f',"identity":{_row(change.old, types)}'
    return f'{{"action":"{change.op.value}"{xid},"schema":{schema},"table":{name}{columns}{identity}}}\n'


def _row(row: Row, types: Mapping[str, str]) -> str:
    return f"[{','.join(_column(name, types.get(name, 'text'), value) for name, value in row.items())}]"


def _column(name: str, type_name: str, value: Value) -> str:
    return f'{{"name":{_string(name)},"type":{_string(type_name)},"value":{_value(type_name, value)}}}'


def _value(type_name: str, value: Value) -> str:
    if value is None:
        return "null"
    if type_name == "boolean":
        return _BOOLEAN.get(value) or _string(value)
    if type_name == "bytea":
        if not _HEX.fullmatch(value):
            raise ValueError(f"not the hex text of a bytea: {value[:60]!r}")
        return _string(value[2:])
    if _NUMBER_TYPE.fullmatch(type_name) and _JSON_NUMBER.fullmatch(value):
        return value
    return _string(value)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)

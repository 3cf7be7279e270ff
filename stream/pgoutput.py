"""Decodes pgoutput, the plugin of PostgreSQL's own logical replication (proto_version 1, text values).

The layout is that of PostgreSQL's manual, "Logical Replication Message Formats".  Integers are
big-endian; strings end with a zero byte and are UTF-8 (the client_encoding of the session that
reads the slot).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from sys import intern

from stream.assembly import Assembler, refuse_truncate, update
from stream.model import Op, RowChange, StreamError, TableName, Transaction, Value

_KEY_COLUMN = 1


@dataclass(frozen=True, slots=True)
class _Relation:
    """A table as its Relation message describes it; `keys` are the columns of the replica identity."""

    table: TableName
    columns: tuple[str, ...]
    keys: frozenset[str]


def decode(messages: Iterable[bytes]) -> Iterator[Transaction]:
    """The transactions of a sequence of message payloads, one at a time.

    A payload is what the column `data` of `pg_logical_slot_peek_binary_changes` holds.  `line` of
    what is yielded counts the messages from 1.  Raises StreamError with the number of the message.
    """
    assembler = Assembler()
    relations: dict[int, _Relation] = {}
    number = 0
    for number, payload in enumerate(messages, 1):
        message = _Message(number, payload)
        kind = message.byte()
        if kind == b"B":
            message.skip(8 + 8)
            assembler.begin(number, message.unsigned(4), len(payload))
        elif kind == b"C":
            yield assembler.commit(number, None, len(payload))
        elif kind == b"R":
            oid = message.unsigned(4)
            relations[oid] = _relation(message)
        elif kind in (b"I", b"U", b"D"):
            change = _change(message, Op(kind.decode()), relations)
            assembler.change(change, None, len(payload))
        elif kind == b"T":
            raise refuse_truncate(number, _truncated(message, relations))
        elif kind not in (b"Y", b"O", b"M"):
            raise StreamError(number, f"pgoutput message of kind {kind!r}, unknown to proto_version 1")
    assembler.end(number)


class _Message:
    """Reads one payload from left to right."""

    __slots__ = ("_at", "_data", "line")

    def __init__(self, line: int, data: bytes) -> None:
        self.line = line
        self._data = data
        self._at = 0

    def skip(self, length: int) -> bytes:
        taken = self._data[self._at : self._at + length]
        if len(taken) != length:
            raise StreamError(self.line, "the pgoutput message is cut off")
        self._at += length
        return taken

    def byte(self) -> bytes:
        return self.skip(1)

    def unsigned(self, length: int) -> int:
        return int.from_bytes(self.skip(length), "big")

    def text(self, length: int) -> str:
        try:
            return self.skip(length).decode()
        except UnicodeDecodeError:
            raise StreamError(self.line, "the pgoutput message holds text that is not UTF-8") from None

    def name(self) -> str:
        end = self._data.find(b"\0", self._at)
        if end < 0:
            raise StreamError(self.line, "the pgoutput message is cut off")
        name = intern(self.text(end - self._at))
        self._at = end + 1
        return name


def _relation(message: _Message) -> _Relation:
    # An empty namespace stands for pg_catalog.
    table = TableName(message.name() or "pg_catalog", message.name())
    message.byte()  # the replica identity's kind; the flags of the columns say all that is needed
    columns: list[str] = []
    keys: list[str] = []
    for _ in range(message.unsigned(2)):
        flags = message.unsigned(1)
        columns.append(message.name())
        message.skip(4 + 4)  # type oid, type modifier
        if flags & _KEY_COLUMN:
            keys.append(columns[-1])
    return _Relation(table, tuple(columns), frozenset(keys))


def _change(message: _Message, op: Op, relations: dict[int, _Relation]) -> RowChange:
    relation = _known(message, relations)
    part = message.byte()
    old = None
    if op is not Op.INSERT and part in (b"K", b"O"):
        old = _tuple(message, relation)
        if part == b"K":
            # The other columns are sent as NULL, which is not what they are.
            old = {name: value for name, value in old.items() if name in relation.keys}
        if op is Op.DELETE:
            return RowChange(op, relation.table, old, None, message.line)
        part = message.byte()
    if op is Op.DELETE or part != b"N":
        raise StreamError(message.line, f"{op.name} of {relation.table}: {part!r} where a row must begin")
    new = _tuple(message, relation)
    if op is Op.INSERT:
        return RowChange(op, relation.table, None, new, message.line)
    if old is None:
        # Neither K nor O: the key is unchanged.
        old = {name: value for name, value in new.items() if name in relation.keys}
    return update(relation.table, old, new, message.line)


def _tuple(message: _Message, relation: _Relation) -> dict[str, Value]:
    count = message.unsigned(2)
    if count != len(relation.columns):
        announced = len(relation.columns)
        raise StreamError(message.line, f"{relation.table} has a row of {count} columns, not {announced}")
    row: dict[str, Value] = {}
    for name in relation.columns:
        kind = message.byte()
        if kind == b"t":
            row[name] = message.text(message.unsigned(4))
        elif kind == b"n":
            row[name] = None
        elif kind != b"u":  # u: an unchanged TOAST value, not sent
            raise StreamError(message.line, f"value of column {name} of {relation.table} is of kind {kind!r}, not text")
    return row


def _truncated(message: _Message, relations: dict[int, _Relation]) -> str:
    count = message.unsigned(4)
    message.byte()  # CASCADE, RESTART IDENTITY
    return ", ".join(str(_known(message, relations).table) for _ in range(count))


def _known(message: _Message, relations: dict[int, _Relation]) -> _Relation:
    oid = message.unsigned(4)
    if oid not in relations:
        raise StreamError(message.line, f"row change of table oid {oid}, which no Relation message announced")
    return relations[oid]

"""What a search for a transaction is worth: about the bytes of plain literal statements, which are what it may save,
for each kind of change, since every kind takes a search of its own."""

from __future__ import annotations

from stream.model import RowChange, Transaction, Value

# What a row's key and its comma take, roughly; what names a statement's table and columns, what parts two values.
_KEY, _STATEMENT, _COMMA = 6, 30, 1
# More kinds than this are hardly all due to a statement of their own.
_MOST_KINDS = 8


def stake(transaction: Transaction) -> int:
    """Bytes times kinds.  Rows are listed by their keys, those that change alike together; new rows are written out."""
    groups = {_group(change) for change in transaction.changes}
    inserted = (change.new for change in transaction.changes if change.old is None and change.new)
    written = sum(_bytes(value) for row in inserted for value in row.values())
    named = sum(change.old is not None for change in transaction.changes)
    kinds = {(head, names) for head, names, _ in groups}
    literal = written + _KEY * named + sum(_STATEMENT + sum(map(_bytes, values)) for _, _, values in groups)
    return literal * min(len(kinds), _MOST_KINDS)


def _group(change: RowChange) -> tuple[object, tuple[str, ...], tuple[Value, ...]]:
    """The statement that has the change: its table, and what an UPDATE sets."""
    if change.old is None or change.new is None:
        return (change.table, change.op), (), ()
    names = sorted(name for name, value in change.new.items() if name not in change.old or change.old[name] != value)
    return change.table, tuple(names), tuple(change.new[name] for name in names)


def _bytes(value: Value) -> int:
    return _COMMA + len(value or "")

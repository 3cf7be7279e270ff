"""About how many bytes plain literal statements for a transaction take: what a search may save at most."""

from __future__ import annotations

from stream.model import RowChange, Transaction, Value

# What a row's key and its comma take, roughly; what names a statement's table and columns, what parts two values.
_KEY, _STATEMENT, _COMMA = 6, 30, 1


def stake(transaction: Transaction) -> int:
    """Rows are listed by their keys, those that change alike together; new rows are written out."""
    groups = {_group(change) for change in transaction.changes}
    inserted = (change.new for change in transaction.changes if change.old is None and change.new)
    written = sum(_bytes(value) for row in inserted for value in row.values())
    named = sum(change.old is not None for change in transaction.changes)
    return written + _KEY * named + sum(_STATEMENT + sum(map(_bytes, values)) for _, _, values in groups)


def _group(change: RowChange) -> tuple[object, tuple[str, ...], tuple[Value, ...]]:
    """The statement that has the change: its table, and what an UPDATE sets."""
    if change.old is None or change.new is None:
        return (change.table, change.op), (), ()
    names = sorted(name for name, value in change.new.items() if name not in change.old or change.old[name] != value)
    return change.table, tuple(names), tuple(change.new[name] for name in names)


def _bytes(value: Value) -> int:
    return _COMMA + len(value or "")

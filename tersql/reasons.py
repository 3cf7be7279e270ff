"""Why a transaction has no script: told to the user, who can do something about it."""

from __future__ import annotations

from collections.abc import Iterator

from encoder.effect import Effect, effect_of
from encoder.trial import Laboratory
from encoder.yardstick import starter
from scratch.catalog import ALWAYS, Catalog
from scratch.session import Session
from stream.model import RowChange, Transaction


def why_not(
    session: Session, catalog: Catalog, lab: Laboratory, transaction: Transaction, timezone: str | None
) -> str | None:
    """What stands in the way of `transaction` (completed) in the present state; None where all is well.

    The session must be in autocommit; the database stays as it was.
    """
    for change in transaction.changes:
        for reason in _identities(catalog, lab, change):
            return f"line {change.line}: {reason}"
    with session.transaction(force_rollback=True):
        lab.refresh()
        return _first_trouble(catalog, lab, transaction, timezone)


def _identities(catalog: Catalog, lab: Laboratory, change: RowChange) -> Iterator[str]:
    """Ids that only a sequence can give and this one will not, and ids that no UPDATE can change."""
    if change.new is None:
        return
    for column in catalog[change.table].columns:
        value = change.new.get(column.name)
        if column.identity != ALWAYS or value is None or column.sequence is None:
            continue
        name = f"{change.table}.{column.name}"
        if change.old is None and int(value) < lab.next_value(column.sequence):
            yield (
                f"{name} is GENERATED ALWAYS AS IDENTITY and its sequence gives "
                f"{lab.next_value(column.sequence)} next, so no INSERT can make the row with {value}"
            )
        if change.old is not None and change.old.get(column.name) != value:
            yield f"{name} is GENERATED ALWAYS AS IDENTITY, so no UPDATE can set it to {value}"


def _first_trouble(catalog: Catalog, lab: Laboratory, transaction: Transaction, timezone: str | None) -> str | None:
    """Where the plainest script goes wrong: the statement that fails, or the first table that comes out wrong."""
    statements = starter(catalog, transaction.changes, timezone)
    standing = lab.sequences()
    with lab.savepoint():
        for statement in statements:
            done = lab.perform(statement)
            if not isinstance(done, Effect):
                return f"{statement[:80]}{'…' if len(statement) > 80 else ''} fails: {done}"
    lab.stand(standing)
    done = lab.observe(statements, constraints=True)
    if not isinstance(done, Effect):
        return done
    left = effect_of(catalog, transaction.changes).minus(done)
    for table in sorted(left.tables):
        row, count = min(left.tables[table].items(), key=lambda item: [value or "" for value in item[0]])
        cells = ", ".join(f"{column.name}={value}" for column, value in zip(catalog[table].stored, row, strict=True))
        return f"literal statements leave {table} {'without' if count > 0 else 'with'} the row ({cells[:200]})"
    return None

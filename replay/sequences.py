"""Sequence positions: PostgreSQL does not roll them back, so a try that failed has to be undone by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scratch.arrays import ident
from scratch.session import Session, rows
from stream.model import TableName

_SEQUENCES = """
SELECT n.nspname, c.relname
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'S' AND c.relpersistence <> 't'
ORDER BY n.nspname COLLATE "C", c.relname COLLATE "C" """


@dataclass(frozen=True, slots=True)
class Position:
    last_value: str
    is_called: str


class Sequences:
    """The sequences of the database behind a superuser's session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.names = tuple(TableName(schema or "", name or "") for schema, name in rows(session, _SEQUENCES))
        self._names = [f"{ident(name.schema)}.{ident(name.name)}" for name in self.names]
        self._query = " UNION ALL ".join(
            f"SELECT {number},last_value,is_called FROM {name}" for number, name in enumerate(self._names)
        )

    def positions(self) -> list[Position]:
        """Where each sequence stands, in the order of their names."""
        if not self._names:
            return []
        found = rows(self._session, self._query, [])
        by_number = {int(number or 0): Position(last or "", called or "") for number, last, called in found}
        return [by_number[number] for number in range(len(self._names))]

    def restore(self, positions: Sequence[Position]) -> None:
        """Put every sequence that has moved back to where it stood."""
        for name, before, now in zip(self._names, positions, self.positions(), strict=True):
            if before != now:
                self._session.execute(
                    b"SELECT pg_catalog.setval(%s::regclass,%s,%s)",
                    [name.replace("%%", "%"), before.last_value, before.is_called],
                )

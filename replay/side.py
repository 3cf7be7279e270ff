"""One copy of the database on which a script is tried, in a session of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import psycopg
from psycopg import sql

from replay.role import restricted_role
from replay.sequences import Position, Sequences
from replay.sessions import Settings
from scratch.session import Session, connect
from stream.canonical import CANONICAL
from stream.model import TableName


class Side:
    """The session `script` runs statements as the restricted role; `observer` sees what it committed.

    `attempt` until one try is right, then `commit`; `undo` takes an open try back, sequences included.
    """

    def __init__(self, observer: Session, script: Session) -> None:
        self.observer = observer
        self.script = script
        self.is_open = False
        self._sequences = Sequences(observer)
        self._positions: Sequence[Position] = self._sequences.positions()

    def next_values(self) -> dict[TableName, int]:
        """What nextval gives for each sequence of increment 1, as committed."""
        return {
            name: int(position.last_value) + (position.is_called == "t")
            for name, position in zip(self._sequences.names, self._positions, strict=True)
        }

    def attempt(self, statements: Sequence[str]) -> tuple[int, str] | None:
        """Run `statements` in a transaction, with the deferred constraints brought forward; it stays open, under the
        settings that digests need.  Where one fails its number (past the last: COMMIT) and the server's reason."""
        self.undo()
        self.is_open = True
        for number, text in enumerate(["BEGIN", *statements, "SET CONSTRAINTS ALL IMMEDIATE"]):
            reason = self._execute(text)
            if reason is not None:
                return number, reason
        _be_canonical(self.script)
        return None

    def commit(self) -> str | None:
        """None, or why the server refuses; the try is then taken back."""
        reason = self._execute("COMMIT")
        self.is_open = reason is not None
        if reason is None:
            self._positions = self._sequences.positions()
        self.undo()
        return reason

    def vacuum(self, names: Iterable[TableName]) -> None:
        """Free the room of rows that nobody sees, as autovacuum may at any time: rows to come lie elsewhere then."""
        for name in sorted(names):
            self.observer.execute(sql.SQL("VACUUM {}").format(sql.Identifier(name.schema, name.name)))

    def undo(self) -> None:
        """Back to the state before the try, if one is open."""
        if not self.is_open:
            return
        self.script.execute("ROLLBACK")
        # A session may hold values of a sequence in advance, as of the position that is taken back.
        self.script.execute("DISCARD SEQUENCES")
        self._sequences.restore(self._positions)
        self.is_open = False

    def _execute(self, text: str) -> str | None:
        try:
            self.script.execute(text.encode())
        except psycopg.Error as error:
            return (error.diag.message_primary or str(error)).replace("\n", " ")
        return None


@contextmanager
def side(dsn: str, settings: Settings) -> Iterator[Side]:
    """A side on the database behind `dsn`, a superuser's, whose script session has `settings`."""
    with (
        connect(dsn) as observer,
        restricted_role(observer) as role,
        connect(role.dsn(dsn), settings=dict(settings)) as script,
    ):
        yield Side(observer, script)


def _be_canonical(session: Session) -> None:
    """Give the rest of the session's transaction the settings that digests need."""
    settings: Mapping[str, str] = CANONICAL
    for name, value in settings.items():
        session.execute(sql.SQL("SET LOCAL {} TO {}").format(sql.Identifier(name), sql.Literal(value)))

"""A bed for whole runs: a schema, a script that is captured, what tersql makes of the stream, and the proof."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

import psycopg

from encoder.context import Effort
from encoder.transaction import Strategy
from replay.role import drop_role, fresh_role, make_role
from replay.verify import verify
from scratch.database import cloned, create_database, drop_database, dump_source, with_database
from scratch.server import Server
from scratch.session import connect
from stream.capture import capture_script, column_types
from stream.open import open_stream
from stream.write import write_wal2json
from tersql.optimize import Result, finished
from tersql.worker import Claim, Done, Task, solve_share
from tersql.workspace import Workspace


@dataclass(frozen=True)
class Sample:
    """A database before a stream, on `server`, the stream in a file, and the role of trials."""

    server: Server
    template: str
    stream: Path
    role: str

    def solved(self, strategy: Strategy, timezone: str | None = None) -> list[Done]:
        """All transactions, solved in this process."""
        total = sum(1 for _ in open_stream(self.stream))
        claims = (Claim(index, Effort(0.1)) for index in itertools.chain(range(1, total + 1), itertools.repeat(0)))
        with cloned(self.server.dsn(), self.template, f"bed_{token_hex(4)}") as dsn:
            task = Task(self.stream, strategy, timezone, dsn, role=self.role)
            return list(solve_share(task, lambda: next(claims)))

    def optimized(self, strategy: Strategy, timezone: str | None = None) -> Result:
        """The script, proved twice: by the last pass, and by `verify` for itself."""
        found = self.solved(strategy, timezone)
        place = Workspace(self.server.dsn(), self.template)
        result = finished(place, self.stream, found, timezone)
        report = verify(result.script, open_stream(self.stream), self.server.dsn(), self.template, timezone=timezone)
        assert report.exact, (report, result.script)
        assert report.transactions == len(found)
        assert result.faults == (), result.faults
        return result

    def dump(self, target: Path) -> Path:
        dump_source(with_database(self.server.dsn(), self.template), target)
        return target


@contextmanager
def sample(server: Server, folder: Path, schema: str, script: str) -> Iterator[Sample]:
    """`schema` (with its rows), and the stream of what `script` does to it."""
    template = f"sample_{token_hex(4)}"
    create_database(server.dsn(), template)
    role = fresh_role()
    try:
        with connect(with_database(server.dsn(), template)) as session:
            session.execute(schema.encode())
            make_role(session, role)
        stream = folder / f"{template}.jsonl"
        with cloned(server.dsn(), template, f"source_{token_hex(4)}") as source:
            flushed = psycopg.conninfo.make_conninfo(source, options="-c synchronous_commit=on")
            with psycopg.connect(source) as session:
                types = column_types(session)
            with stream.open("w", encoding="utf-8") as file:
                write_wal2json(capture_script(flushed, script), file, types)
        yield Sample(server, template, stream, role.name)
    finally:
        drop_database(server.dsn(), template)
        with connect(server.dsn()) as session:
            drop_role(session, role)

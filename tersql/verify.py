"""Prove a script from files: restore, check the rules, replay, compare."""

from __future__ import annotations

from pathlib import Path

from replay.verify import Report
from replay.verify import verify as replay_verify
from stream.open import open_stream
from tersql.errors import server_errors
from tersql.workspace import Origin, workspace


def verify(
    script: str,
    stream: Path | str,
    *,
    dump: Path | str | None = None,
    database: str | None = None,
    scratch: str | None = None,
    timezone: str | None = None,
) -> Report:
    """Whether `script` obeys the rules and replays `stream` exactly on `dump` or `database`.

    Raises StreamError, ScratchError.
    """
    origin = Origin(Path(dump) if dump is not None else None, database)
    with server_errors(), workspace(origin, scratch) as place:
        return replay_verify(script, open_stream(stream), place.admin_dsn, place.template, timezone=timezone)

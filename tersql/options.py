"""Arguments and options that several commands share: their types, names and help."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from tersql.endings import fail
from tersql.rounds import EFFORTS

DEFAULT_JOBS = min(2, os.cpu_count() or 1)


def _known_effort(effort: str) -> str:
    if effort not in EFFORTS:
        fail(f"--effort is one of {', '.join(EFFORTS)}", 2)
    return effort


def require_origin(dump: Path | None, database: str | None) -> None:
    """End the command with a usage error where not exactly one of the two is given."""
    if (dump is None) == (database is None):
        fail("give either --dump FILE or --database DSN", 2)


StreamFile = Annotated[Path, typer.Argument(help="The change stream: wal2json format 2, plain or .gz.")]
ScriptFile = Annotated[Path, typer.Argument(help="The SQL script; - for standard input.")]
Dump = Annotated[
    Path | None, typer.Option("--dump", help="The database before the stream: a plain pg_dump, or its .gz.")
]
Database = Annotated[
    str | None, typer.Option("--database", metavar="DSN", help="The same as a live database, which is only read.")
]
Scratch = Annotated[
    str | None,
    typer.Option(metavar="DSN", help="A superuser's connection to another scratch server than the embedded one."),
]
Zone = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Promise that the replaying session has this TimeZone (shorter literals)."),
]
EffortName = Annotated[
    str, typer.Option("--effort", callback=_known_effort, help="Counted work of the searches: low, default or high.")
]
Jobs = Annotated[int, typer.Option(min=1, help="Worker processes; the bytes do not depend on it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON on standard output.")]
JsonFile = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write all figures as JSON.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Where it goes; default standard output.")]

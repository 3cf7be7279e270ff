"""From a change stream to a proved script."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from emit.literal import table_name
from emit.rules import check_script
from encoder.deadline import Deadline
from encoder.transaction import FRAME_BYTES, Strategy, Variant
from replay.replayer import Replayer
from scratch.session import connect
from stream.model import TableName
from stream.open import open_stream
from tersql.errors import NotReplayable, server_errors
from tersql.pool import Pool
from tersql.rounds import EFFORTS, in_rounds
from tersql.sequencing import adjusted, choose
from tersql.stakes import stake
from tersql.temporary import rereadable
from tersql.worker import Done, Task
from tersql.workspace import Origin, Workspace, workspace

_log = logging.getLogger("tersql")

# What is kept of the time limit for the last pass.
_SEARCH_SHARE = 0.86


@dataclass(frozen=True, slots=True)
class TransactionReport:
    """What one transaction cost: bytes with its BEGIN and COMMIT, how it was written, and what its search took
    (see encoder.transaction.Solved for `work` and `cut`)."""

    index: int
    changes: int
    starter: int
    baseline: int
    size: int
    bound: int
    kind: str
    seconds: float = 0.0
    work: float = 0.0
    cut: bool = False


@dataclass(frozen=True)
class Result:
    """`script` ends without a newline; sizes are in bytes, `seconds` is wall-clock time.

    `late` says that the time limit cut the search, so that another run may give other bytes; `faults` are
    searches that broke down, one line each: the script is exact all the same, but longer than it might be.
    """

    script: str
    transactions: tuple[TransactionReport, ...]
    seconds: float
    late: bool = False
    faults: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return sum(one.size for one in self.transactions)

    @property
    def starter(self) -> int:
        return sum(one.starter for one in self.transactions)

    @property
    def baseline(self) -> int:
        return sum(one.baseline for one in self.transactions)


Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Options:
    """`effort` scales counted work; `time_limit` (seconds) is only a safety net; `timezone` is what the
    replaying session promises; `progress` is called with (done, total)."""

    strategy: Strategy = Strategy.OPTIMAL
    effort: str = "default"
    time_limit: float = 120.0
    jobs: int = field(default_factory=lambda: min(2, os.cpu_count() or 1))
    timezone: str | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.effort not in EFFORTS:
            raise ValueError(f"effort is one of {', '.join(EFFORTS)}")


def optimize(
    stream: Path | str,
    *,
    dump: Path | str | None = None,
    database: str | None = None,
    scratch: str | None = None,
    options: Options | None = None,
) -> Result:
    """The shortest script found that replays `stream` exactly on the database in `dump` or `database`.

    The source is only read.  Every transaction of the result was run as a restricted role on a fresh
    restore and compared with the stream.  `stream` may be "-", standard input.
    Raises OSError, StreamError, ScratchError, NotReplayable, InternalError.
    """
    options = options or Options()
    started = time.monotonic()
    deadline = Deadline(started + options.time_limit * _SEARCH_SHARE)
    origin = Origin(Path(dump) if dump is not None else None, database)
    with ExitStack() as stack:
        path = stack.enter_context(rereadable(Path(stream)))
        stakes = [stake(transaction) for transaction in open_stream(path)]
        pool = stack.enter_context(Pool(min(max(1, options.jobs), len(stakes))))
        stack.enter_context(server_errors())
        place = stack.enter_context(workspace(origin, scratch))
        connect(place.admin_dsn, timezone=options.timezone).close()  # refuses a zone that the server does not know
        # A dump's rows lie as they are restored; where those of a live database lie, nobody knows.
        task = Task(path, options.strategy, options.timezone, steadily=database is not None, role=place.role)
        found = in_rounds(pool, place, task, stakes, options.effort, deadline, options.progress)
        result = finished(place, path, found, options.timezone)
    return replace(result, seconds=time.monotonic() - started)


def finished(place: Workspace, path: Path, found: Sequence[Done], timezone: str | None) -> Result:
    """The script made of the solved transactions: each in the cheapest variant that the last pass proves.

    `seconds` is 0.  Raises NotReplayable.
    """
    reports, bodies = _last_pass(place, path, found, timezone)
    faults = tuple(f"transaction {done.solved.index}: {fault}" for done in found for fault in done.faults)
    return Result(_script(bodies), tuple(reports), 0.0, any(done.late for done in found), faults)


def _last_pass(
    place: Workspace, path: Path, found: Sequence[Done], timezone: str | None
) -> tuple[list[TransactionReport], list[tuple[str, ...]]]:
    """Run the script on a fresh restore as the restricted role; where a variant differs, take the next."""
    reports: list[TransactionReport] = []
    bodies: list[tuple[str, ...]] = []
    with Replayer(place.admin_dsn, place.template, timezone=timezone) as replayer:
        solved = [done.solved for done in found]
        for transaction, done, variants in zip(open_stream(path), found, choose(solved), strict=True):
            replayer.expect(transaction)
            variant = _first_exact(replayer, done, variants)
            one = done.solved
            bodies.append(variant.statements)
            reports.append(
                TransactionReport(
                    one.index,
                    one.changes,
                    one.starter,
                    one.baseline,
                    FRAME_BYTES + variant.size,
                    one.bound,
                    variant.kind,
                    round(one.seconds, 2),
                    round(one.work, 2),
                    one.cut,
                )
            )
        difference = replayer.compare_all()
        if difference is not None:
            raise NotReplayable(f"after the last transaction the databases differ: {difference}")
    return reports, bodies


def _first_exact(replayer: Replayer, done: Done, variants: Sequence[Variant]) -> Variant:
    reason: object = done.reason or "no statements were found that have its effect"
    idle = min(replayer.catalog, key=lambda name: (len(table_name(*name)), name), default=TableName("", ""))
    for variant in adjusted(variants, replayer.next_values(), idle):
        violations = check_script(_script([variant.statements]))
        if violations:
            reason = violations[0].message
            continue
        reason = replayer.run(variant.statements) or replayer.accept()
        if reason is None:
            return variant
        _log.info("%s: %d bytes (%s) pass the search but not the last pass", reason, variant.size, variant.kind)
    index = done.solved.index
    told = str(reason).removeprefix(f"transaction {index}: ")
    raise NotReplayable(f"transaction {index} cannot be replayed under the rules: {told}")


def _script(bodies: Sequence[Sequence[str]]) -> str:
    """One line a transaction."""
    return "\n".join(f"BEGIN;{''.join(statement + ';' for statement in body)}COMMIT;" for body in bodies)

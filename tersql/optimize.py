"""From a change stream to a proved script."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from emit.rules import check_script
from encoder.context import Effort
from encoder.transaction import FRAME_BYTES, Solved, Strategy, Variant
from replay.replayer import Replayer
from stream.open import open_stream
from tersql.sequencing import choose
from tersql.worker import Task, solve_share
from tersql.workspace import Origin, Workspace, workspace

EFFORTS = {"low": 0.3, "default": 1.0, "high": 4.0}

# What is kept of the time limit for the last pass.
_SEARCH_SHARE = 0.8


class NotReplayable(Exception):
    """A transaction that no statements allowed by the rules reproduce; `str()` is one line."""


@dataclass(frozen=True, slots=True)
class TransactionReport:
    """What one transaction cost: bytes with its BEGIN and COMMIT, and how it was written."""

    index: int
    changes: int
    starter: int
    baseline: int
    size: int
    bound: int
    kind: str
    seconds: float = 0.0


@dataclass(frozen=True)
class Result:
    """`script` ends without a newline; sizes are in bytes, `seconds` is wall-clock time.

    `late` says that the time limit cut the search, so that another run may give other bytes.
    """

    script: str
    transactions: tuple[TransactionReport, ...]
    seconds: float
    late: bool = False

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
    restore and compared with the stream.  Raises StreamError, ScratchError, NotReplayable.
    """
    options = options or Options()
    started = time.monotonic()
    path = Path(stream)
    total = sum(1 for _ in open_stream(path))
    origin = Origin(Path(dump) if dump is not None else None, database)
    with workspace(origin, scratch) as place:
        task = Task(place, path, options.strategy, options.timezone, Effort(EFFORTS[options.effort]))
        deadline = started + options.time_limit * _SEARCH_SHARE
        solved = _solve_all(task, total, deadline, options)
        reports, bodies = _last_pass(place, path, solved, options.timezone)
    late = time.monotonic() > deadline
    return Result(_script(bodies), tuple(reports), time.monotonic() - started, late)


def _solve_all(task: Task, total: int, deadline: float, options: Options) -> list[Solved]:
    """All transactions solved, by as many processes as asked for; in the order of the stream."""
    found: dict[int, Solved] = {}
    jobs = max(1, min(options.jobs, total))
    source = _in_processes if jobs > 1 else _in_this_process
    for solved in source(task, jobs, total, deadline):
        found[solved.index] = solved
        if options.progress is not None:
            options.progress(len(found), total)
    return [found[index] for index in sorted(found)]


def _in_this_process(task: Task, jobs: int, total: int, deadline: float) -> Iterator[Solved]:
    indexes = iter(range(1, total + 2))
    yield from solve_share(task, lambda: next(indexes), lambda: time.monotonic() > deadline)


def _in_processes(task: Task, jobs: int, total: int, deadline: float) -> Iterator[Solved]:
    context = multiprocessing.get_context("spawn")
    counter = context.Value("q", 0)
    pipes: list[Connection] = []
    workers: list[Any] = []
    remaining = deadline - time.monotonic()
    try:
        for _ in range(jobs):
            receiver, sender = context.Pipe(duplex=False)
            worker = context.Process(target=_work, args=(task, counter, sender, remaining), daemon=True)
            worker.start()
            sender.close()
            pipes.append(receiver)
            workers.append(worker)
        yield from _gather(pipes)
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.join()


def _gather(pipes: list[Connection]) -> Iterator[Solved]:
    """Results as they come, until every worker has said that it is done."""
    open_pipes = list(pipes)
    while open_pipes:
        for pipe in multiprocessing.connection.wait(open_pipes):
            assert isinstance(pipe, Connection)
            try:
                message = pipe.recv()
            except EOFError as error:
                raise RuntimeError("a worker process died before its work was done") from error
            if message is None:
                open_pipes.remove(pipe)
            elif isinstance(message, BaseException):
                raise message
            else:
                yield message


def _work(task: Task, counter: Any, sender: Connection, seconds: float) -> None:
    deadline = time.monotonic() + seconds

    def claim() -> int:
        with counter.get_lock():
            counter.value += 1
            return int(counter.value)

    try:
        for solved in solve_share(task, claim, lambda: time.monotonic() > deadline):
            sender.send(solved)
        sender.send(None)
    except Exception as error:
        sender.send(error)


def _last_pass(
    place: Workspace, path: Path, solved: list[Solved], timezone: str | None
) -> tuple[list[TransactionReport], list[tuple[str, ...]]]:
    """Run the script on a fresh restore as the restricted role; where a variant differs, take the next."""
    reports: list[TransactionReport] = []
    bodies: list[tuple[str, ...]] = []
    with Replayer(place.admin_dsn, place.template, timezone=timezone) as replayer:
        for transaction, one, variants in zip(open_stream(path), solved, choose(solved), strict=True):
            replayer.expect(transaction)
            variant = _first_exact(replayer, one, variants)
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
                )
            )
        difference = replayer.compare_all()
        if difference is not None:
            raise NotReplayable(f"after the last transaction the databases differ: {difference}")
    return reports, bodies


def _first_exact(replayer: Replayer, solved: Solved, variants: list[Variant]) -> Variant:
    reason: object = "no statements were found that have its effect"
    for variant in variants or [Variant((), "empty")]:
        violations = check_script(_script([variant.statements]))
        if violations:
            reason = violations[0].message
            continue
        reason = replayer.run(variant.statements) or replayer.accept()
        if reason is None:
            return variant
    raise NotReplayable(f"transaction {solved.index} cannot be replayed under the rules: {reason}")


def _script(bodies: Sequence[Sequence[str]]) -> str:
    """One line a transaction."""
    return "\n".join(f"BEGIN;{''.join(statement + ';' for statement in body)}COMMIT;" for body in bodies)

"""One worker process: its own copy of the database, brought to each of its transactions in turn.

It talks with its pool over one pipe.  In come a Task and then Claims, in ascending order; out goes for
each claim a Done, or one Failure for good.  When the pipe closes it ends at once, wherever it is, so no
worker outlives the process that it works for.
"""

from __future__ import annotations

import logging
import math
import os
import queue
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psycopg

from encoder.context import Effort
from encoder.deadline import Deadline
from encoder.frame import State
from encoder.partitioning import implied_positions
from encoder.transaction import DEFAULT_EFFORT, Solved, Strategy, solve_transaction
from encoder.trial import Laboratory, install_capture
from replay.sessions import odd_sessions
from scratch.catalog import read_catalog
from scratch.changes import apply_changes, complete
from scratch.errors import ScratchError
from scratch.layout import Layout
from scratch.session import connect
from stream.model import StreamError
from stream.open import open_stream
from tersql.errors import located, one_line
from tersql.reasons import why_not

# Part of a worker's memory from which on it keeps nothing from one transaction to the next.
_ROOM = 0.4


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker is told; trials run as `role`.  By worker: `dsn` is its own copy of the source, `memory` how many
    bytes of data it may hold."""

    stream: Path
    strategy: Strategy
    timezone: str | None
    dsn: str = ""
    memory: int = 0
    steadily: bool = False
    role: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """The transaction to solve next and the work that it is worth, which should not take more than `seconds`;
    `plainly` by its literal forms alone."""

    index: int
    effort: Effort = DEFAULT_EFFORT
    seconds: float = math.inf
    plainly: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """A transaction solved.  `late`: the time limit cut its search.  `faults`: searches that broke down,
    so that others or the literal forms had to do.  `reason`: why there is no variant, where there is none."""

    solved: Solved
    late: bool = False
    faults: tuple[str, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """The worker's last message.  `line` is the stream's for a StreamError, `lost` says that the scratch
    server has gone, `internal` that nobody foresaw it."""

    message: str
    line: int | None = None
    lost: bool = False
    internal: bool = False


def solve_share(task: Task, claim: Callable[[], Claim]) -> Iterator[Done]:
    """Solve the transactions that `claim` names, in ascending order; the others are only applied.

    `claim` is asked for the next one whenever one is done, and does not return when there is none.
    Raises StreamError, ScratchError.
    """
    with connect(task.dsn) as session:
        catalog = read_catalog(session)
        install_capture(session, catalog)
        state = State(session, catalog)
        layout = Layout(session)
        # Under what the last pass replays, so that it meets nothing new.
        lab = Laboratory(session, catalog, sessions=odd_sessions(task.timezone), role=task.role)

        def solve(strategy: Strategy) -> Solved:
            return solve_transaction(
                session,
                catalog,
                lab,
                state,
                transaction,
                strategy=strategy,
                timezone=task.timezone,
                effort=wanted.effort,
                steadily=task.steadily,
            )

        wanted = claim()
        for transaction in open_stream(task.stream):
            transaction = complete(session, catalog, transaction)
            if transaction.index == wanted.index:
                lab.deadline = Deadline.in_seconds(wanted.seconds)
                plain = task.strategy if task.strategy is Strategy.STARTER else Strategy.BASELINE
                with _faults() as faults:
                    try:
                        solved = solve(plain if wanted.plainly or lab.deadline.passed else task.strategy)
                    except Exception as error:
                        # A fault of one search is no reason to have no script.
                        if session.closed:
                            raise
                        faults.append(located(error))
                        state.forget()
                        solved = solve(plain)
                if session.closed:
                    raise psycopg.OperationalError("the connection to the scratch server is lost")
                late = lab.deadline.passed and plain is not task.strategy
                if late:
                    solved = replace(solved, cut=True)
                reason = None if solved.variants else why_not(session, catalog, lab, transaction, task.timezone)
                yield Done(solved, late, tuple(faults), reason)
                wanted = claim()
                layout.restore()
            apply_changes(session, catalog, transaction.changes)
            state.forget(None if _is_full(task.memory) else sorted({change.table for change in transaction.changes}))
            layout.restore()
            lab.stand(implied_positions(catalog, transaction.changes, lab.next_value))


@contextmanager
def _faults() -> Iterator[list[str]]:
    """What the encoder warns of meanwhile."""
    heard: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: heard.append(" ".join(record.getMessage().split()))  # type: ignore[method-assign]
    log = logging.getLogger("tersql")
    log.addHandler(handler)
    try:
        yield heard
    finally:
        log.removeHandler(handler)


def _is_full(most: int) -> bool:
    """Whether a good part of the memory is in use, so that what is known of unchanged tables should go too."""
    with suppress(OSError), open("/proc/self/statm") as report:
        return int(report.read().split()[1]) * resource.getpagesize() > _ROOM * most
    return False


def serve(handle: int) -> None:
    """The life of a worker process; `handle` is the file descriptor of its end of the pipe."""
    pipe: Connection[Any, Any] = Connection(handle)
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, inbox), daemon=True).start()
    try:
        task = inbox.get()
        _bound_memory(task.memory)
        for done in solve_share(task, inbox.get):
            pipe.send(done)
    except Exception as error:
        with suppress(OSError):
            pipe.send(_failure(error))
    # Without the interpreter's tidying up, which a thread that waits in recv() could hang.
    os._exit(0)


def _listen(pipe: Connection[Any, Any], inbox: queue.SimpleQueue[Any]) -> None:
    try:
        while True:
            inbox.put(pipe.recv())
    except (EOFError, OSError):
        os._exit(1)


def _failure(error: Exception) -> Failure:
    match error:
        case StreamError():
            return Failure(str(error).removeprefix(f"line {error.line}: "), line=error.line)
        case ScratchError():
            return Failure(one_line(error))
        case psycopg.OperationalError():
            return Failure(error.diag.message_primary or one_line(error), lost=True)
        case MemoryError():
            # A fresh worker has all of its share before it.
            return Failure("out of memory", lost=True)
        case OSError():
            return Failure(f"{error.filename or 'stream'}: {error.strerror or one_line(error)}")
        case _:
            return Failure(located(error), internal=True)


def _bound_memory(most: int) -> None:
    """Let allocations beyond `most` bytes fail, as faults of the search that asked for them."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))

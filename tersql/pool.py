"""Worker processes: started, given transactions, replaced where one dies, and ended.

Own processes rather than `multiprocessing`'s, which run the caller's main module once more in every
child (a notebook, a script from standard input or one without a main guard breaks on that).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, Pipe, wait
from secrets import token_hex
from typing import Any

import psycopg

from encoder.context import Effort
from encoder.deadline import Deadline
from scratch.database import create_database, drop_database, with_database
from scratch.errors import ScratchError
from stream.model import StreamError
from tersql.errors import InternalError
from tersql.worker import Claim, Done, Failure, Task
from tersql.workspace import Workspace

_START = "import sys;from tersql.worker import serve;serve(int(sys.argv[1]))"
# How often a transaction is begun: as it should be, once more by a fresh worker, and in its literal forms.
_ATTEMPTS = 3
# A server that lost a backend restarts by itself within moments.
_PATIENCE = 5.0
# How many times its share of the time that is left, by the work that it is worth, a transaction may take: while nothing
# is known of how fast the machine is, where time is short, and where there is plenty.
_FIRST_FAIR, _LEAST_FAIR, _MOST_FAIR = 3.0, 1.2, 5.0
# Resident memory of all workers together, in bytes; what one may have at least.
_MEMORY = 1_700 << 20
_LEAST_MEMORY = 400 << 20


@dataclass
class _Worker:
    process: subprocess.Popen[bytes]
    pipe: Connection[Any, Any]
    database: str = ""
    claimed: int = 0  # the transaction that it works on

    @classmethod
    def start(cls) -> _Worker:
        ours, theirs = Pipe()
        with theirs:
            process = subprocess.Popen(
                # -P and our own path: the modules of this process, not what lies about in the working folder.
                [sys.executable, "-P", "-c", _START, str(theirs.fileno())],
                env=os.environ
                | {
                    "PYTHONPATH": os.pathsep.join(os.path.abspath(entry) for entry in sys.path),
                    # One order of sets and one thread of sums: the same bytes in every worker.
                    "PYTHONHASHSEED": "0",
                    "OPENBLAS_NUM_THREADS": "1",
                },
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # Ctrl-C in the terminal is for the main process.
                process_group=0,
            )
        return cls(process, ours)

    def end(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.wait()


class Pool:
    """`jobs` workers; they load their modules while the caller prepares their work.  A context manager."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._workers: list[_Worker] = []

    def __enter__(self) -> Pool:
        try:
            while len(self._workers) < self._jobs:
                self._workers.append(_Worker.start())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        while self._workers:
            self._workers.pop().end()

    def solve(
        self,
        place: Workspace,
        task: Task,
        wanted: Mapping[int, Effort],
        deadline: Deadline,
        progress: Callable[[int], None] | None,
    ) -> dict[int, Done]:
        """The transactions of `wanted`, each solved with its effort, by their indexes in the order of the stream.

        `task` lacks what differs by worker; `progress` is called with how many are done.  Raises StreamError,
        ScratchError, InternalError.
        """
        while len(self._workers) < min(self._jobs, len(wanted)):
            self._workers.append(_Worker.start())
        return _Run(self._workers, place, task, wanted, deadline).results(progress)


class _Run:
    def __init__(
        self, workers: list[_Worker], place: Workspace, task: Task, wanted: Mapping[int, Effort], deadline: Deadline
    ) -> None:
        self._workers = workers
        self._place = place
        self._task = replace(task, memory=max(_LEAST_MEMORY, _MEMORY // max(len(workers), 1)))
        self._wanted = wanted
        self._deadline = deadline
        self._waiting = deque(sorted(wanted))
        self._attempts: Counter[int] = Counter()
        self._done: dict[int, Done] = {}

    def results(self, progress: Callable[[int], None] | None) -> dict[int, Done]:
        try:
            for worker in list(self._workers):
                self._employ(worker)
                self._claim(worker)
            while len(self._done) < len(self._wanted):
                for pipe in wait([worker.pipe for worker in self._workers]):
                    self._hear(next(worker for worker in self._workers if worker.pipe is pipe))
                    if progress is not None:
                        progress(len(self._done))
            return {index: self._done[index] for index in sorted(self._done)}
        finally:
            # Their connections first: a worker in the middle of a statement would be waited for.
            while self._workers:
                self._dismiss(self._workers.pop())

    def _employ(self, worker: _Worker) -> None:
        """Give the worker its own database and its task."""
        worker.database = f"tersql_worker_{token_hex(6)}"
        patience = Deadline.in_seconds(_PATIENCE)
        while True:
            try:
                create_database(self._place.admin_dsn, worker.database, self._place.template)
                break
            except psycopg.OperationalError:
                if patience.passed:
                    raise
                time.sleep(0.2)
        dsn = with_database(self._place.admin_dsn, worker.database)
        _tell(worker, replace(self._task, dsn=dsn))

    def _claim(self, worker: _Worker, index: int | None = None) -> None:
        """Have the worker solve `index`, or the next that nobody has."""
        if index is None:
            if not self._waiting:
                self._workers.remove(worker)
                self._dismiss(worker)
                return
            index = self._waiting.popleft()
        worker.claimed = index
        self._attempts[index] += 1
        plainly = self._attempts[index] == _ATTEMPTS
        _tell(worker, Claim(index, self._wanted[index], self._share(index), plainly))

    def _share(self, index: int) -> float:
        """How many seconds a transaction may take so that there is time for all that wait; some take less."""
        left = max(0.0, self._deadline.left)
        claimed = [worker.claimed for worker in self._workers if worker.claimed]
        whole = sum(self._wanted[one].allowance for one in (*self._waiting, *claimed))
        fair = self._fair(left * len(self._workers) / whole)
        return left * min(1.0, fair * len(self._workers) * self._wanted[index].allowance / whole)

    def _fair(self, pace: float) -> float:
        """How many times its share a transaction may take where there are `pace` seconds for a unit of the work that
        waits, by the seconds that such a unit took so far."""
        took = sum(done.solved.seconds for done in self._done.values())
        was_worth = sum(self._wanted[index].allowance for index in self._done)
        if not took:
            return _FIRST_FAIR
        return min(_MOST_FAIR, max(_LEAST_FAIR, 3 * pace * was_worth / took - 2))

    def _hear(self, worker: _Worker) -> None:
        try:
            message = worker.pipe.recv()
        except (EOFError, OSError):
            code = worker.process.wait()
            message = Failure(f"its process ended ({'signal' if code < 0 else 'code'} {abs(code)})", lost=True)
        if isinstance(message, Done):
            if self._attempts[worker.claimed] == _ATTEMPTS:
                message = replace(message, faults=(*message.faults, "its worker was lost twice: literal forms only"))
            self._done[worker.claimed] = message
            self._claim(worker)
        elif message.lost:
            self._replace(worker, message)
        elif message.line is not None:
            raise StreamError(message.line, message.message)
        elif message.internal:
            raise InternalError(f"transaction {worker.claimed}: {message.message}")
        else:
            raise ScratchError(message.message)

    def _replace(self, lost: _Worker, failure: Failure) -> None:
        """A fresh worker in the place of the lost one, for the same transaction."""
        self._workers.remove(lost)
        self._dismiss(lost)
        if self._attempts[lost.claimed] == _ATTEMPTS:
            raise ScratchError(f"transaction {lost.claimed}: {_ATTEMPTS} workers were lost over it: {failure.message}")
        fresh = _Worker.start()
        self._workers.append(fresh)
        self._employ(fresh)
        self._claim(fresh, lost.claimed)

    def _dismiss(self, worker: _Worker) -> None:
        worker.end()
        if worker.database:
            # A server that has gone took the database along.
            with suppress(psycopg.Error):
                drop_database(self._place.admin_dsn, worker.database)


def _tell(worker: _Worker, message: Task | Claim) -> None:
    # One that has died is heard of as such when its pipe is read.
    with suppress(BrokenPipeError, ConnectionResetError):
        worker.pipe.send(message)

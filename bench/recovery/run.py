"""Draws and judges, in this process or in several."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.recovery.families import FAMILIES
from bench.recovery.model import Optimizer, Outcome
from bench.recovery.optimizers import OPTIMIZERS
from bench.recovery.workbench import Workbench
from scratch.database import create_database, drop_database, restore
from scratch.server import Server
from scratch.session import connect


@dataclass(frozen=True, slots=True)
class Task:
    """Draw number `number` of a family; what it draws depends on nothing but this and the database."""

    workload: str
    family: str
    number: int
    seed: int


def judged(bench: Workbench, task: Task, optimizer: Optimizer) -> Outcome | None:
    """None where the family finds nothing to draw in this database."""
    found = bench.draw(FAMILIES[task.family], f"{task.seed}/{task.family}/{task.number}")
    return found and bench.judge(task.workload, task.number, *found, optimizer)


@contextmanager
def template(server: Server, dump: Path, name: str) -> Iterator[str]:
    """A database with the contents of `dump` that shows whole rows to a stream."""
    create_database(server.dsn(), name)
    try:
        restore(server.dsn(name), dump)
        with connect(server.dsn(name)) as session:
            session.execute(
                b"DO $$DECLARE t regclass; BEGIN FOR t IN SELECT c.oid FROM pg_class c JOIN pg_namespace n "
                b"ON n.oid=c.relnamespace WHERE relkind IN('r','p')AND nspname!~'^pg_|^information_schema$'"
                b"LOOP EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL',t); END LOOP; END$$"
            )
        yield name
    finally:
        drop_database(server.dsn(), name)


def run(
    workload: Path, families: Sequence[str], numbers: Sequence[int], seed: int, jobs: int, optimizer: str
) -> Iterator[tuple[Task, Outcome | None]]:
    """The draws `numbers` of each family and their outcomes, in the order in which they are done.

    `workload` holds before.sql.gz; no outcome where a family finds nothing to draw in it.
    """
    tasks = [Task(workload.name, family, number, seed) for family in families for number in numbers]
    with Server.start() as server, template(server, workload / "before.sql.gz", "recovery") as name:
        if jobs > 1:
            yield from _in_processes(server.dsn(), name, tasks, jobs, optimizer)
            return
        with Workbench.open(server.dsn(), name, "solo") as bench:
            chosen = OPTIMIZERS[optimizer]()
            for task in tasks:
                yield task, judged(bench, task, chosen)


def _in_processes(
    dsn: str, template_name: str, tasks: list[Task], jobs: int, optimizer: str
) -> Iterator[tuple[Task, Outcome | None]]:
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        jobs, mp_context=spawn, initializer=_start_worker, initargs=(dsn, template_name, optimizer)
    ) as pool:
        futures = {pool.submit(_work, task): task for task in tasks}
        for future in as_completed(futures):
            yield futures[future], future.result()


@dataclass(slots=True)
class _Worker:
    bench: Workbench
    optimizer: Optimizer
    # Its databases go with the server, which outlives the workers.
    stack: ExitStack


_worker: _Worker | None = None


def _start_worker(dsn: str, template_name: str, optimizer: str) -> None:
    global _worker
    stack = ExitStack()
    name = f"worker_{multiprocessing.current_process().pid}"
    bench = stack.enter_context(Workbench.open(dsn, template_name, name))
    _worker = _Worker(bench, OPTIMIZERS[optimizer](), stack)


def _work(task: Task) -> Outcome | None:
    assert _worker is not None
    return judged(_worker.bench, task, _worker.optimizer)

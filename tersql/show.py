"""What people see: progress, summaries, JSON."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tersql.optimize import Result

console = Console(stderr=True)


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on a terminal, None in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def ratio(size: int, other: int) -> str:
    return f"{size / other:.3f}" if other else "-"


def summary(result: Result, *, each: bool) -> Table:
    """Bytes by transaction (or the total alone): the yardsticks, the script, and what it is of the baseline."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("transaction", "changes", "starter", "baseline", "script", "ratio"):
        table.add_column(name, justify="right")
    table.add_column("how")
    for one in result.transactions if each else ():
        table.add_row(
            str(one.index),
            str(one.changes),
            str(one.starter),
            str(one.baseline),
            str(one.size),
            ratio(one.size, one.baseline),
            one.kind,
        )
    table.add_row(
        "total",
        str(sum(one.changes for one in result.transactions)),
        str(result.starter),
        str(result.baseline),
        str(result.size),
        ratio(result.size, result.baseline),
        f"{result.seconds:.1f} s" + (" (cut by the time limit)" if result.late else ""),
        style="bold",
    )
    return table


def as_json(result: Result) -> str:
    """The summary for machines; bytes are integers, seconds a float, `gain` is ln(baseline/script)."""
    return json.dumps(
        {
            "size": result.size,
            "starter": result.starter,
            "baseline": result.baseline,
            "gain": round(math.log(result.baseline / result.size), 6) if result.size and result.baseline else 0.0,
            "seconds": round(result.seconds, 3),
            "late": result.late,
            "faults": list(result.faults),
            "transactions": [asdict(one) for one in result.transactions],
        }
    )

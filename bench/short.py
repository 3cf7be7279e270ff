"""The short form of every bench: its command, and the figures that its JSON holds."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Figures = Iterator[tuple[str, float]]
_ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Short:
    """`arguments` follow `python -m bench.`…; `figures` reads what `--json` wrote."""

    name: str
    module: str
    arguments: tuple[str, ...]
    figures: Callable[[Any], Figures]


def recovery(data: Any) -> Figures:
    for family in data["families"]:
        # Those of a family's depths have no family in their name.
        if not family["name"].startswith("depth "):
            yield f"{family['name']}/recovered share", family["share"]
            yield f"{family['name']}/exact", family["exact"]
            yield f"{family['name']}/size of the original's", family["ratio"]


def scaling(data: Any) -> Figures:
    for axis in ("rows", "changes"):
        for point in data[axis]:
            case = f"{point['rows']} rows, {point['changes']} changes"
            yield f"{case}/bytes", point["size"]
            yield f"{case}/seconds", point["seconds"]
            yield f"{case}/MiB", point["worker"]


def literals(data: Any) -> Figures:
    for kind in dict.fromkeys(one["kind"] for one in data):
        own = [one for one in data if one["kind"] == kind]
        yield f"{kind}/bytes", sum(one["best"] for one in own)
        yield f"{kind}/within goal", sum(one["within_goal"] for one in own)
        yield f"{kind}/seconds", sum(one["search"] for one in own)


def solver(data: Any) -> Figures:
    for run in data:
        case = f"{run['instance']}, {run['strategy']}"
        yield f"{case}/value", run["value"]
        yield f"{case}/bound", run["bound"]
        yield f"{case}/seconds", run["seconds"]


SHORT = (
    Short("recovery", "recovery", ("--workload", "data/shop", "--draws", "2", "--losses", "0"), recovery),
    Short("scaling", "scaling", ("--rows", "1000", "10000", "--changes"), scaling),
    Short("literals", "literals", ("--largest", "1000"), literals),
    Short("solver", "solver_bench", ("scp41", "scp51", "scpa1", "--work", "5", "--wall", "10"), solver),
)


def measured(short: Short) -> dict[str, float] | None:
    """The figures by their full names, its whole time among them; None where it failed, having told why itself."""
    with tempfile.TemporaryDirectory(prefix="tersql-bench-") as folder:
        target = Path(folder, "figures.json")
        command = [sys.executable, "-m", f"bench.{short.module}", *short.arguments, "--json", str(target)]
        began = time.monotonic()
        # Its table is progress here; standard output is for the figures.
        done = subprocess.run(command, cwd=_ROOT, stdout=sys.stderr, check=False)
        seconds = time.monotonic() - began
        if done.returncode != 0:
            return None
        found = dict(short.figures(json.loads(target.read_text(encoding="utf-8"))))
    return {f"{short.name}/{name}": round(value, 4) for name, value in (*found.items(), ("all/seconds", seconds))}

"""A comparison for people and for programs: tables, CSV, JSON, a plot."""

from __future__ import annotations

import csv
import importlib.util
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from rich.table import Table

from tersql.compare import Comparison, Line, gap
from tersql.errors import InputError
from tersql.files import written

_YARDSTICKS = ("starter", "baseline")
_SERIES = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#9d755d", "#eeca3b", "#7f7f7f")
_MARKERS = "osD^vPX*h"


def by_transaction(comparison: Comparison) -> Table:
    """Bytes: a row for each transaction, a column for each strategy; those at the proven optimum in bold."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    for name in ("workload", "tx", "changes", "cand."):
        table.add_column(name, justify="left" if name == "workload" else "right", no_wrap=True)
    for name in (*_YARDSTICKS, *comparison.strategies, "bound", "script"):
        # Two lines are narrower.
        table.add_column(name.replace("greedy-", "greedy\n"), justify="right", no_wrap=True, vertical="bottom")
    for line in comparison.lines:
        one = line.instance
        table.add_row(
            one.workload,
            str(one.transaction),
            str(one.changes or "-"),
            str(line.candidates),
            *(_bytes(getattr(one, name)) for name in _YARDSTICKS),
            *(_cell(line, name) for name in comparison.strategies),
            _bytes(line.bound or None),
            _bytes(one.script),
        )
    return table


def _cell(line: Line, strategy: str) -> str:
    run = line.run(strategy)
    if run is None:
        return "-"
    return f"[bold]{run.size}[/bold]" if run.size <= line.bound else str(run.size)


def totals(comparison: Comparison) -> Table:
    """A row for each yardstick and strategy."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("total", no_wrap=True)
    for name in ("bytes", "own bound", "gap", "optimal", "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    known = () if comparison.known is None else (("best known", comparison.known),)
    yardsticks = [(name, comparison.yardstick(name)) for name in _YARDSTICKS]
    for name, size in (*yardsticks, *known):
        if size is not None:
            table.add_row(name, str(size), "", "", "", "")
    for name in comparison.strategies:
        total = comparison.total(name)
        if total is None:
            table.add_row(name, "no cover of some", "", "", "", "")
            continue
        optimal = f"{total.optimal}/{len(comparison.lines)}"
        own = _bytes(total.bound or None)
        table.add_row(name, str(total.size), own, percent(total.gap), optimal, f"{total.seconds:.2f}")
    script = comparison.yardstick("script")
    if script is not None:
        table.add_row("script, proved", str(script), "", percent(gap(script, comparison.bound)), "", "", style="bold")
    return table


def percent(value: float) -> str:
    return "-" if math.isinf(value) else f"{100 * value:.2f} %"


def _bytes(size: int | None) -> str:
    return "-" if size is None else str(size)


_FIELDS = (
    "workload",
    "transaction",
    "changes",
    "candidates",
    "elements",
    "starter",
    "baseline",
    "script",
    "strategy",
    "share",
    "bytes",
    "bound",
    "best_bound",
    "gap",
    "seconds",
)


def records(comparison: Comparison) -> list[dict[str, Any]]:
    """One record for each transaction, strategy and share of the budget."""
    return [
        dict(
            zip(
                _FIELDS,
                (
                    line.instance.workload,
                    line.instance.transaction,
                    line.instance.changes,
                    line.candidates,
                    line.elements,
                    line.instance.starter,
                    line.instance.baseline,
                    line.instance.script,
                    run.strategy,
                    run.share,
                    run.size,
                    run.bound or None,
                    line.bound or None,
                    round(gap(run.size, line.bound), 6) if line.bound else None,
                    round(run.seconds, 6),
                ),
                strict=True,
            )
        )
        for line in comparison.lines
        for run in line.runs
    ]


def write_csv(comparison: Comparison, file: TextIO) -> None:
    writer = csv.DictWriter(file, _FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records(comparison))


def write_json(comparison: Comparison, file: TextIO) -> None:
    """`runs` as in the CSV; `totals` by strategy."""
    found = {name: comparison.total(name) for name in comparison.strategies}
    data = {
        "starter": comparison.yardstick("starter"),
        "baseline": comparison.yardstick("baseline"),
        "script": comparison.yardstick("script"),
        "known": comparison.known,
        "bound": comparison.bound,
        "totals": {
            name: {
                "bytes": total.size,
                "bound": total.bound or None,
                "gap": None if math.isinf(total.gap) else round(total.gap, 6),
                "optimal": total.optimal,
                "seconds": round(total.seconds, 6),
            }
            for name, total in found.items()
            if total is not None
        },
        "runs": records(comparison),
    }
    json.dump(data, file, indent=1)
    file.write("\n")


def require_plot(target: Path) -> None:
    """Raise InputError where `write_plot` could not: before long work rather than after."""
    if target.suffix not in (".png", ".svg"):
        raise InputError(f"{target}: a plot is a .png or a .svg")
    if importlib.util.find_spec("matplotlib") is None:
        raise InputError("a plot takes matplotlib: pip install 'tersql[plot]'")


def write_plot(comparison: Comparison, target: Path) -> None:
    """Bytes by strategy, and how bytes and gap fall with time; PNG or SVG by the name of `target`.

    Raises InputError as `require_plot`, and OSError.
    """
    require_plot(target)
    from matplotlib.figure import Figure  # heavy, and optional

    names = [name for name in comparison.strategies if comparison.total(name) is not None]
    figure = Figure(figsize=(12, 4.8), layout="constrained")
    bars, above, proven = figure.subplots(1, 3, width_ratios=(1.15, 1, 1))
    workloads = list(dict.fromkeys(line.instance.workload for line in comparison.lines))
    title = ", ".join(workloads[:6]) + (f" and {len(workloads) - 6} more" if len(workloads) > 6 else "")
    figure.suptitle(f"{title}: {len(comparison.lines)} cover problems, the same candidates for all strategies")
    _bars(bars, comparison, names)
    for place, name in enumerate(names):
        found = [t for share in comparison.shares if (t := comparison.total(name, share)) is not None]
        style = {
            "color": _SERIES[place % len(_SERIES)],
            "marker": _MARKERS[place % len(_MARKERS)],
            "markersize": 5,
            "linewidth": 1.4,
            "alpha": 0.85,
        }
        _curve(above, [(t.seconds, t.size - comparison.bound) for t in found], {"label": name, **style})
        _curve(proven, [(t.seconds, 100 * gap(t.size, t.bound)) for t in found if t.bound], style)
    _finish(above, "bytes above the best proven bound", "bytes", 1.0)
    _finish(proven, "gap to the bound that it proved itself", "%", 0.1)
    figure.legend(loc="outside lower center", ncols=9, fontsize=8, frameon=False)
    with written(target) as file:
        figure.savefig(file.buffer, format=target.suffix[1:], dpi=150)


def _curve(axes: Any, points: Sequence[tuple[float, float]], style: Mapping[str, Any]) -> None:
    """An anytime curve: from each point on the best so far holds."""
    ordered = sorted(points)
    best = itertools.accumulate((value for _, value in ordered), min)
    axes.plot([seconds for seconds, _ in ordered], list(best), drawstyle="steps-post", **style)


def _finish(axes: Any, title: str, unit: str, smallest: float) -> None:
    """Logarithmic axes, the vertical one with a zero: it is linear up to `smallest`."""
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(_plain)
    axes.set_yscale("symlog", linthresh=smallest)
    axes.yaxis.set_major_formatter(_plain)
    axes.set_ylim(-smallest / 4, 2 * max(axes.get_ylim()[1], smallest))
    axes.set_xlabel("seconds for all problems")
    axes.set_ylabel(unit)
    axes.set_title(title, fontsize=10)
    axes.grid(alpha=0.3)


def _plain(value: float, _: object) -> str:
    return f"{value:,.10g}"


def _bars(axes: Any, comparison: Comparison, names: Sequence[str]) -> None:
    found = [(name, comparison.yardstick(name), "#b0b0b0") for name in _YARDSTICKS]
    found += [(name, total.size, "#4c78a8") for name in names if (total := comparison.total(name)) is not None]
    found += [("proved script", comparison.yardstick("script"), "#2a7f3f"), ("best known", comparison.known, "#b0b0b0")]
    rows = [(name, size, color) for name, size, color in found if size is not None]
    drawn = axes.barh([row[0] for row in rows], [row[1] for row in rows], color=[row[2] for row in rows])
    axes.bar_label(drawn, labels=[f"{size:,}" for _, size, _ in rows], padding=3, fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(_plain)
    axes.xaxis.set_minor_formatter("")
    sizes = [size for _, size, _ in rows]
    axes.set_xlim(min(sizes) / 2, max(sizes) * 4)
    axes.set_xlabel("bytes (log scale)")
    axes.set_title("bytes within the whole budget", fontsize=10)

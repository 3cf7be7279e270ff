"""Tables of outcomes by family and by depth, and the worst losses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

from bench.recovery.model import Outcome


@dataclass(frozen=True, slots=True)
class Line:
    """What became of the draws of one family, or of one depth of it.

    `ratio` is the mean of the found sizes over the original ones, of exact scripts.
    """

    name: str
    draws: int
    exact: int
    recovered: int
    ratio: float
    seconds: float

    @property
    def share(self) -> float:
        return self.recovered / self.draws


def line(name: str, outcomes: Sequence[Outcome]) -> Line:
    exact = [outcome for outcome in outcomes if outcome.exact]
    return Line(
        name,
        len(outcomes),
        len(exact),
        sum(outcome.recovered for outcome in outcomes),
        fmean(outcome.ratio for outcome in exact) if exact else 0.0,
        fmean(outcome.seconds for outcome in outcomes),
    )


def lines(outcomes: Sequence[Outcome]) -> list[Line]:
    """One line a family, followed by one for each of its depths where there are several, and the total."""
    found: list[Line] = []
    ordered = sorted(outcomes, key=lambda outcome: outcome.draw.family)
    for family, group in groupby(ordered, lambda outcome: outcome.draw.family):
        members = list(group)
        found.append(line(family, members))
        depths = sorted({outcome.draw.depth for outcome in members})
        if len(depths) > 1:
            found += [
                line(f"  depth {depth}", [outcome for outcome in members if outcome.draw.depth == depth])
                for depth in depths
            ]
    return [*found, line("all", outcomes)] if outcomes else found


def table(found: Iterable[Line]) -> str:
    rows = [f"{'family':<16}{'draws':>6}{'exact':>6}{'recov.':>7}{'share':>7}{'bytes':>7}{'s/draw':>8}"]
    rows += [
        f"{one.name:<16}{one.draws:>6}{one.exact:>6}{one.recovered:>7}{one.share:>7.0%}{one.ratio:>7.2f}{one.seconds:>8.2f}"
        for one in found
    ]
    return "\n".join(rows)


def losses(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """What was not recovered, what is not exact first, then by the ratio of sizes, worst first."""
    lost = [outcome for outcome in outcomes if not outcome.recovered]
    return sorted(lost, key=lambda o: (o.exact, -o.ratio, o.workload, o.draw.family, o.number))


def side_by_side(outcomes: Iterable[Outcome], width: int = 600) -> str:
    """Original and found, one above the other."""
    return "\n".join(
        f"\n{o.workload} {o.draw.family}/{o.number} {o.draw.shape}: {o.changes} changes, {o.original} -> {o.found}"
        f"{'' if o.exact else ' NOT EXACT ' + o.error}\n  - {o.draw.sql[:width]}\n  + {o.script[:width]}"
        for o in outcomes
    )


def brief(outcome: Outcome | None) -> str:
    """One outcome in a few words."""
    if outcome is None:
        return "nothing to draw"
    if not outcome.exact:
        return f"not exact {outcome.error}".rstrip()
    return f"{outcome.original} -> {outcome.found} ({outcome.changes} changes, {outcome.seconds:.1f} s)"


def as_json(outcomes: Sequence[Outcome]) -> dict[str, object]:
    """All of it, for other programs; `losses` holds the scripts in full."""
    return {
        "families": [
            {
                "name": one.name.strip(),
                "draws": one.draws,
                "exact": one.exact,
                "recovered": one.recovered,
                "share": round(one.share, 4),
                "ratio": round(one.ratio, 4),
            }
            for one in lines(outcomes)
        ],
        "losses": [
            {
                "workload": o.workload,
                "family": o.draw.family,
                "number": o.number,
                "shape": o.draw.shape,
                "depth": o.draw.depth,
                "changes": o.changes,
                "exact": o.exact,
                "error": o.error,
                "original": o.draw.sql,
                "found": o.script,
                "bytes": [o.original, o.found],
            }
            for o in losses(outcomes)
        ],
    }

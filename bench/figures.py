"""Named figures of one day, written and read as JSON, and what became of them since.

A figure's name is a path that ends in what it is: `recovery/own/recovered share`, `scaling/1000 rows/seconds`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# What is measured with a clock or a scale, and how far it may go up or down by itself, as a factor.
_NOISE = {"seconds": 1.3, "MiB": 1.1}
# Below this, seconds are the machine's.
_INSTANT = 0.5


@dataclass(frozen=True, slots=True)
class Table:
    """`date` in ISO form; `skipped` are benches that did not end well."""

    date: str
    figures: Mapping[str, float]
    skipped: tuple[str, ...] = ()

    def write(self, target: Path) -> None:
        data = {"date": self.date, "skipped": list(self.skipped), "figures": dict(self.figures)}
        target.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, source: Path) -> Table:
        """Raises OSError, and ValueError where it is no such table."""
        try:
            data = json.loads(source.read_text(encoding="utf-8"))
            figures = {str(name): float(value) for name, value in data["figures"].items()}
            return cls(str(data["date"]), figures, tuple(map(str, data["skipped"])))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"{source}: not a table of figures") from error


@dataclass(frozen=True, slots=True)
class Difference:
    """One of the two is None where only the other table has the figure."""

    name: str
    before: float | None
    now: float | None

    def __str__(self) -> str:
        told = " -> ".join("none" if value is None else number(value) for value in (self.before, self.now))
        change = ""
        if self.before and self.now is not None:
            change = f" ({100 * (self.now / self.before - 1):+.1f} %)"
        return f"{self.name}: {told}{change}"


def differences(before: Table, now: Table) -> list[Difference]:
    """What is not the same, by name; times and memory only where they differ by more than such things do."""
    names = sorted(before.figures.keys() | now.figures.keys())
    pairs = (Difference(name, before.figures.get(name), now.figures.get(name)) for name in names)
    return [one for one in pairs if not _alike(one)]


def _alike(one: Difference) -> bool:
    if one.before is None or one.now is None or one.before == one.now:
        return one.before == one.now
    unit = one.name.rsplit("/", 1)[-1]
    if unit not in _NOISE:
        return False
    least = _INSTANT if unit == "seconds" else 0.0
    low, high = sorted(max(value, least) for value in (one.before, one.now))
    return high <= low * _NOISE[unit]


def number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.4g}"


def markdown(table: Table) -> Iterator[str]:
    """The lines of a table, those of a bench together."""
    yield f"# Benchmarks, {table.date}"
    for bench in dict.fromkeys(name.split("/", 1)[0] for name in table.figures):
        yield from ("", f"## {bench}", "", "| figure | |", "|---|---:|")
        own = (name for name in table.figures if name.split("/", 1)[0] == bench)
        yield from (f"| {name.split('/', 1)[1]} | {number(table.figures[name])} |" for name in own)
    if table.skipped:
        yield from ("", f"Skipped: {', '.join(table.skipped)}.")


def compared(before: Table, now: Table) -> Sequence[str]:
    """The differences in lines for people."""
    found = [str(one) for one in differences(before, now)]
    return [f"since {before.date}:", *(found or ["no difference"])]

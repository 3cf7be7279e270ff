"""A look at few rows before an aggregate is computed for all: most are refused at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from encoder.assignment.decimals import Band
from encoder.assignment.relations import Member, Relation

# How many rows of the sample are looked at, those with the fewest related rows.
_LOOKED_AT = 2


@dataclass(frozen=True, slots=True)
class Probe:
    """Rows of a sample: for each the places of its related rows, and between which bounds an aggregate of these has to
    be (NaN where it has to be NULL)."""

    groups: tuple[tuple[int, ...], ...]
    bounds: tuple[tuple[float, float], ...]

    @classmethod
    def into(cls, relation: Relation, band: Band) -> Probe:
        """What tells most: few related rows, and a value other than none and nothing."""
        low, high = band.low.tolist(), band.high.tolist()

        def rank(row: int) -> tuple[bool, bool, int, int]:
            size = len(relation.groups[row])
            return size == 0 or math.isnan(low[row]), low[row] <= 0 <= high[row], size, row

        rows = sorted(range(len(relation.groups)), key=rank)[:_LOOKED_AT]
        return cls(tuple(relation.groups[row] for row in rows), tuple((low[row], high[row]) for row in rows))

    def counts(self, keep: Sequence[bool]) -> bool:
        """Whether the number of the related rows that `keep` marks may be what is wanted."""
        return all(
            low <= sum(map(keep.__getitem__, group)) <= high
            for group, (low, high) in zip(self.groups, self.bounds, strict=True)
        )

    def likely(self, members: Sequence[Member], keep: Sequence[bool]) -> list[Member]:
        """Those of `members` of which some aggregate over the related rows that `keep` marks may be what is wanted."""
        kept = [[place for place in group if keep[place]] for group in self.groups]
        return [
            member
            for member in members
            if all(_may(member, group, *bounds) for group, bounds in zip(kept, self.bounds, strict=True))
        ]


def _may(member: Member, group: Sequence[int], low: float, high: float) -> bool:
    values = [value for place in group if not math.isnan(value := float(member.numbers[place]))]
    return any(low <= value <= high for value in _aggregates(values)) or (not values and math.isnan(low))


def _aggregates(values: Sequence[float]) -> Iterator[float]:
    total = round(sum(values), 9)
    yield total  # 0 for none, as with coalesce
    if values:
        yield max(values)
        yield min(values)
        yield total / len(values)

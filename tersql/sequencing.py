"""Which variant of each transaction to take, given that sequences are shared between them.

A variant that takes ids from a sequence is right only while the sequence stands where the stream's
own statements had brought it: from the first transaction on that writes its ids out instead, every later one must do
so too.  So for each sequence there is one point up to which it is used.
"""

from __future__ import annotations

from collections.abc import Sequence

from encoder.transaction import Solved, Variant
from stream.model import TableName


def choose(solved: Sequence[Solved]) -> list[list[Variant]]:
    """For each transaction its variants, the chosen one first, the others as they stand (by size)."""
    names = sorted({name for one in solved for name in one.consumes})
    forbidden: list[set[TableName]] = [set() for _ in solved]
    demanded: list[set[TableName]] = [set() for _ in solved]
    for name in names:
        users = [place for place, one in enumerate(solved) if name in one.consumes]
        best = min(
            range(len(users) + 1),
            key=lambda until: (
                sum(_cost(solved[p], forbidden[p], {*demanded[p], name}) for p in users[:until])
                + sum(_cost(solved[p], {*forbidden[p], name}, demanded[p]) for p in users[until:]),
                -until,
            ),
        )
        for place in users[:best]:
            demanded[place].add(name)
        for place in users[best:]:
            forbidden[place].add(name)
    return [
        sorted(one.variants, key=lambda v: (_misfit(v, forbidden[place], demanded[place]), v.size))
        for place, one in enumerate(solved)
    ]


def _misfit(variant: Variant, forbidden: set[TableName], demanded: set[TableName]) -> int:
    return len(variant.sequences & forbidden) + len(demanded - variant.sequences)


def _cost(solved: Solved, forbidden: set[TableName], demanded: set[TableName]) -> float:
    """Bytes of the cheapest variant that fits; endless where none does."""
    return min((v.size for v in solved.variants if not _misfit(v, forbidden, demanded)), default=float("inf"))

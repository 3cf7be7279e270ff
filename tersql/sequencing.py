"""Which variant of each transaction to take, given that sequences are shared between them.

A variant that takes ids from a sequence is right only while the sequence stands where the stream's
own statements had brought it: from the first transaction on that writes its ids out instead, every later one must do
so too.  So for each sequence there is one point up to which it is used, unless a later transaction
pays for a statement that takes the missing values first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from encoder.spaced import take_values
from encoder.transaction import Solved, Variant
from stream.model import TableName

# About what it costs to take the values that are missing of one sequence.
_CATCHING_UP = 70


def choose(solved: Sequence[Solved]) -> list[list[Variant]]:
    """For each transaction its variants, the chosen one first, then by size and what they ask of the sequences."""
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
        sorted(one.variants, key=lambda v: (_priced(v, forbidden[place], demanded[place]), v.size))
        for place, one in enumerate(solved)
    ]


def _priced(variant: Variant, forbidden: set[TableName], demanded: set[TableName]) -> int:
    """Its bytes, with those of catching up with the sequences that it uses though they stand behind, or that a later
    transaction has to catch up with."""
    misfit = len(variant.sequences & forbidden) + len(demanded - variant.sequences)
    return variant.size + _CATCHING_UP * misfit


def _cost(solved: Solved, forbidden: set[TableName], demanded: set[TableName]) -> float:
    """Bytes of the cheapest variant; endless where there is none."""
    return min((_priced(v, forbidden, demanded) for v in solved.variants), default=float("inf"))


def adjusted(variants: Sequence[Variant], standing: Mapping[TableName, int], idle: TableName) -> list[Variant]:
    """The variants that can be right while nextval gives `standing`, those behind their sequence with
    statements in front that take the values in between; the first stays first where it needs none, the
    others follow by size.  `idle` is a table to write those statements on, which do nothing to it."""
    fitting = [fit for variant in variants if (fit := _caught_up(variant, standing, idle)) is not None]
    head = [variant for variant in fitting[:1] if variant in variants]
    return head + sorted((v for v in fitting if v not in head), key=lambda v: (v.size, v.statements))


def _caught_up(variant: Variant, standing: Mapping[TableName, int], idle: TableName) -> Variant | None:
    steps = []
    for name, start in variant.starts:
        behind = start - standing.get(name, start)
        if behind < 0:
            return None  # nothing that the rules allow brings a sequence back
        if behind > 0:
            steps.append(take_values(name, behind, idle))
    return replace(variant, statements=(*steps, *variant.statements)) if steps else variant

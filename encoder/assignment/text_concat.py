"""Texts put together from pieces and constants: the cheapest way through all examples at once.

The positions reached in every example's output are one state of a shortest path search, in the way of FlashFill's
program DAG (Gulwani 2011) with costs in bytes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from encoder.assignment.text_ops import Piece

_MAX_STATES = 1500
# Pieces that are held against the texts, in all.
_MAX_TRIED = 150_000
_MAX_STEPS = 9
_MAX_CONSTANT = 60
_SOLUTIONS = 3


@dataclass(frozen=True, slots=True)
class Constant:
    text: str


Step = Constant | Piece


def concatenations(wanted: Sequence[str], pieces: Sequence[Piece]) -> Iterator[tuple[Step, ...]]:
    """Sequences of pieces and constants that spell all of `wanted`, cheapest first."""
    usable = [
        piece for piece in pieces if all(v is not None and v in w for v, w in zip(piece.values, wanted, strict=True))
    ]
    starts = _occurrences(wanted[0], usable)
    ends = tuple(map(len, wanted))
    origin = (0,) * len(wanted)
    queue: list[tuple[int, int, tuple[int, ...], tuple[Step, ...]]] = [(0, 0, origin, ())]
    best: dict[tuple[tuple[int, ...], bool], int] = {}
    found = serial = expanded = tried = 0
    while queue and expanded < _MAX_STATES and tried < _MAX_TRIED and found < _SOLUTIONS:
        cost, _, state, steps = heapq.heappop(queue)
        if state == ends:
            if any(isinstance(step, Piece) for step in steps):
                found += 1
                yield steps
            continue
        after_constant = bool(steps) and isinstance(steps[-1], Constant)
        if best.get((state, after_constant), cost + 1) <= cost and state != origin:
            continue
        best[state, after_constant] = cost
        expanded += 1
        tried += len(starts.get(state[0], ()))
        if len(steps) >= _MAX_STEPS:
            continue
        for step, following, price in _moves(wanted, state, starts, after_constant):
            serial += 1
            heapq.heappush(queue, (cost + price, serial, following, (*steps, step)))


def _moves(
    wanted: Sequence[str], state: tuple[int, ...], starts: dict[int, list[Piece]], after_constant: bool
) -> Iterator[tuple[Step, tuple[int, ...], int]]:
    for piece in starts.get(state[0], ()):
        following = []
        for text, place, value in zip(wanted, state, piece.values, strict=True):
            if value is None or not text.startswith(value, place):
                break
            following.append(place + len(value))
        else:
            yield piece, tuple(following), piece.cost + 2
    if after_constant:
        return
    common = common_prefix([text[place : place + _MAX_CONSTANT] for text, place in zip(wanted, state, strict=True)])
    for length in range(1, len(common) + 1):
        yield Constant(common[:length]), tuple(place + length for place in state), length + 4


def common_prefix(texts: Sequence[str]) -> str:
    least, most = min(texts), max(texts)
    length = next((i for i, (a, b) in enumerate(zip(least, most, strict=False)) if a != b), min(len(least), len(most)))
    return least[:length]


def _occurrences(text: str, pieces: Sequence[Piece]) -> dict[int, list[Piece]]:
    """The pieces that stand in `text`, the first example's output, by where they start."""
    starts: dict[int, list[Piece]] = {}
    for piece in pieces:
        value = piece.values[0]
        if value is None or all(not value for value in piece.values):
            continue
        place = text.find(value)
        while place >= 0:
            starts.setdefault(place, []).append(piece)
            place = text.find(value, place + 1)
    return starts

"""How the work is shared out: a round for every transaction, and another for those that it was too little for.

Work is counted (see encoder.budget.Meter), so both rounds, and who is in the second, are the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from encoder.context import Effort
from encoder.deadline import Deadline
from tersql.pool import Pool
from tersql.worker import Done, Task
from tersql.workspace import Workspace

EFFORTS = {"low": 0.3, "default": 1.0, "high": 4.0}

# What all transactions together may cost at the default level in the first round and in both, in estimated seconds
# of one core, and the least that each of them is worth however many there are.
_FIRST, _ALL = 85.0, 150.0
_LEAST = 1.2
# What a second search gets at least, in shares of the first, and at most.
_MORE, _MOST = 2.0, 60.0
# How far a single search goes in the first round.
_GLANCE = 0.4
# The part of the time limit for the first round, should the clock have to end it.
_FIRST_TIME = 0.7
# What a transaction is worth in the first round grows with the binary logarithm of its bytes, counted from so few on,
# between these.
_LIGHT, _LIGHTEST, _WEIGHTIEST = 300, 1.5, 6.0
# Transactions of fewer bytes are as good as they get.
_SHORT = 120


def effort(level: str, transactions: int) -> Effort:
    """The counted work that each transaction of a stream with so many of them gets at `level` in the first round, if
    all are alike."""
    scale = EFFORTS[level]
    return Effort(scale, scale * max(_LEAST, _FIRST / max(1, transactions)))


def efforts(level: str, stakes: Sequence[int]) -> dict[int, Effort]:
    """The counted work of each transaction in the first round by its index: the more, the more bytes a search may save
    (see tersql.stakes)."""
    alike = effort(level, len(stakes))
    weights = [min(_WEIGHTIEST, max(_LIGHTEST, math.log2(max(stake, 1) / _LIGHT))) for stake in stakes]
    each = alike.allowance * len(weights) / max(1.0, sum(weights))
    return {index: replace(alike, allowance=each * weight) for index, weight in enumerate(weights, start=1)}


def in_rounds(
    pool: Pool,
    place: Workspace,
    task: Task,
    stakes: Sequence[int],
    level: str,
    deadline: Deadline,
    progress: Callable[[int, int], None] | None,
) -> list[Done]:
    """All transactions of the stream in its order, those that are still long after a search that was cut short
    searched once more with what the others left.

    `stakes` are the bytes that the transactions take at most, see tersql.stakes; `task` lacks what differs by worker.
    Raises StreamError, ScratchError, InternalError.
    """

    def told(before: int, whole: int) -> Callable[[int], None] | None:
        return None if progress is None else lambda done: progress(before + done, whole)

    first, total = effort(level, len(stakes)), len(stakes)
    found = pool.solve(place, task, efforts(level, stakes), deadline.sooner(_FIRST_TIME), told(0, total))
    again = second_round(list(found.values()), first)
    if again and not deadline.passed:
        for index, done in pool.solve(place, task, again, deadline, told(total, total + len(again))).items():
            found[index] = _joined(found[index], done)
    return list(found.values())


def second_round(found: Sequence[Done], first: Effort) -> Mapping[int, Effort]:
    """Which transactions are worth another search, and how much of one: the longest of those whose search was cut
    share what the first round left."""
    left = first.scale * _ALL - sum(done.solved.work for done in found)
    # Those that the clock left without any search come before all others.
    missed = [done for done in found if done.late and not done.solved.work]
    if missed:
        return {done.solved.index: first for done in missed}
    cut = [done.solved for done in found if done.solved.cut and done.solved.bound > _SHORT]
    least = _MORE * first.allowance
    chosen = sorted(cut, key=lambda one: (-one.bound, one.index))[: max(0, int(left / least))]
    if not chosen:
        return {}
    share = min(left / len(chosen), first.scale * _MOST)
    return {one.index: replace(first, allowance=share) for one in chosen}


def _joined(first: Done, second: Done) -> Done:
    """What both searches of one transaction found."""
    return Done(
        first.solved.joined(second.solved),
        first.late or second.late,
        tuple(dict.fromkeys((*first.faults, *second.faults))),
        first.reason and second.reason,
    )

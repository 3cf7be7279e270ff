"""How good a script's size is, between the baseline's and a target below the best replay known."""

from __future__ import annotations

import math


def target(k: int) -> int:
    """The size that scores 1: 94 % of `k`, the bytes of the shortest exact replay known, rounded down."""
    return k * 94 // 100


def score(s: int, b: int, k: int) -> float:
    """min(1, max(0, ln(b/s) / ln(b/t))) with t = target(k): 1 at the target, 0 at the baseline.

    `s`, `b` and `k` are sizes in bytes of the script, of the fixed baseline, and of the shortest exact
    replay known.  Where the baseline leaves nothing to gain (b <= t), a script scores 1 if it
    reaches the target, else 0.  Raises ValueError for a size below 1.
    """
    if min(s, b, k) < 1:
        raise ValueError("sizes are positive numbers of bytes")
    t = target(k)
    if s <= t:
        return 1.0
    if b <= s:
        return 0.0
    return math.log(b / s) / math.log(b / max(t, 1))

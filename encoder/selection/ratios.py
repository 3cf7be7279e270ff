"""Conditions on the ratio of two amounts of a row: `drawn>maximum*.8`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from itertools import permutations

import numpy as np

from emit.term import Term, op
from encoder.selection.booleans import measure
from encoder.selection.ground import Ground, Held
from encoder.selection.model import Mask
from encoder.selection.pairs import Numeric
from encoder.selection.scales import number
from encoder.selection.spelling import make_atom

_AMOUNTS = 8
_DIGITS = 3


def ratios(amounts: list[Numeric], ground: Ground, bound: int | None) -> Iterator[Held]:
    """Comparisons of one own column with a multiple of another that hold for all rows to select: the factors of each
    number of digits that exclude more rows than all shorter ones."""
    own = [each for each in amounts if not each.feature.path and each.family == "number"][:_AMOUNTS]
    for left, right in permutations(own, 2):
        a, b = ground.numbers(left.numbers, True), ground.numbers(right.numbers, True)
        if not (b > 0).all() or not len(a):
            continue
        quotients = a / b
        if np.isnan(quotients).any():
            continue
        least = measure(op(left.feature.term, ">", op(right.feature.term, "*", number(Decimal(2)))))
        if bound is None or least < bound:
            yield from _bounded(left, right, ground, float(quotients.min()), ">")
            yield from _bounded(left, right, ground, float(quotients.max()), "<")


def _bounded(left: Numeric, right: Numeric, ground: Ground, edge: float, operator: str) -> Iterator[Held]:
    refused_most = 0
    for digits in range(_DIGITS + 1):
        scaled = edge * 10**digits
        whole = math.ceil(scaled) - 1 if operator == ">" else math.floor(scaled) + 1
        factor = Decimal(whole).scaleb(-digits)
        if factor <= 0 or factor == 1:
            continue
        on_must, on_must_not = (_holds(left, right, ground, float(factor), operator, side) for side in (True, False))
        refused = int(np.count_nonzero(~on_must_not))
        if on_must.all() and refused > refused_most:
            refused_most = refused
            yield Held((make_atom(_spell(left, right, factor, operator), frozenset()),), on_must, on_must_not)


def _holds(left: Numeric, right: Numeric, ground: Ground, factor: float, operator: str, must: bool) -> Mask:
    a, b = ground.numbers(left.numbers, must), factor * ground.numbers(right.numbers, must)
    with np.errstate(invalid="ignore"):
        found: Mask = a > b if operator == ">" else a < b
    return found


def _spell(left: Numeric, right: Numeric, factor: Decimal, operator: str) -> Term:
    return op(left.feature.term, operator, op(right.feature.term, "*", number(factor)))

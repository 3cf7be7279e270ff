"""A set of rows by an integer key, and the terms that conditions on it are made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from emit.term import Prec, Term, cast, op, raw, ref
from encoder.selection.booleans import measure

Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Run(NamedTuple):
    """Consecutive numbers to select, from `first` to `last`; `low` and `high` are the nearest that must not be
    selected, None where there is none on that side."""

    low: int | None
    first: int
    last: int
    high: int | None


@dataclass(frozen=True)
class KeySet:
    """The rows of a table by their key `name`: `numbers` ascending, those that a condition must hold for, those
    that it must not hold for.  `wide` if the key is a bigint, which some functions do not take.

    No condition may fail for any of `numbers`, whatever else stands in the WHERE beside it.
    """

    name: str
    wide: bool
    numbers: Numbers
    must: Mask
    must_not: Mask

    @cached_property
    def opposite(self) -> KeySet:
        return replace(self, must=self.must_not, must_not=self.must)

    @cached_property
    def key(self) -> Term:
        return ref((), self.name)

    @cached_property
    def integer(self) -> Term:
        """The key where nothing but a plain integer will do."""
        return cast(self.key, "int") if self.wide else self.key

    @cached_property
    def listed(self) -> Numbers:
        return self.numbers[self.must]

    @cached_property
    def others(self) -> Numbers:
        return self.numbers[self.must_not]

    @cached_property
    def lowest(self) -> int:
        return int(self.numbers[0])

    @cached_property
    def highest(self) -> int:
        return int(self.numbers[-1])

    @cached_property
    def runs(self) -> list[Run]:
        labelled = np.flatnonzero(self.must | self.must_not)
        marks = np.concatenate([[False], self.must[labelled], [False]]).astype(np.int8)
        numbers = self.numbers[labelled].tolist()
        return [
            Run(
                numbers[start - 1] if start else None,
                numbers[start],
                numbers[end - 1],
                numbers[end] if end < len(numbers) else None,
            )
            for start, end in np.flatnonzero(np.diff(marks)).reshape(-1, 2).tolist()
        ]


def numeral(number: int) -> Term:
    return raw(str(number), Prec.UNARY if number < 0 else Prec.ATOM)


def numerals(numbers: Iterable[int]) -> list[Term]:
    return [numeral(int(number)) for number in numbers]


def shifted(term: Term, shift: int) -> Term:
    """`term` + `shift`."""
    if not shift:
        return term
    return op(term, "+" if shift > 0 else "-", raw(str(abs(shift))))


def in_select(key: Term, select: Term, yes: bool, ctes: str = "") -> Term:
    """`key IN(ctes SELECT select)`."""
    words = "IN(" if yes else "NOT IN("
    return Term((*key.parts, words, *([ctes] if ctes else []), "SELECT", *select.parts, ")"), Prec.LIKE)


def shortest(terms: Iterable[Term]) -> Term:
    return min(terms, key=measure)

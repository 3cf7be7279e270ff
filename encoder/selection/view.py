"""One feature under the labels: how often each of its values must and must not be selected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from emit.term import Term
from encoder.selection.features import Feature
from encoder.selection.model import Labels, Mask

Counts: TypeAlias = NDArray[np.int64]
# Spells a condition, or with False its opposite; None where the opposite has no spelling.
Spell: TypeAlias = Callable[[bool], Term | None]


@dataclass(frozen=True, eq=False)
class Shape:
    """A condition on a feature: `accept` says for every value, then for NULL, whether it holds.

    `total` says that it is never NULL itself, so that its opposite holds for NULL where it does not.
    """

    accept: Mask
    spell: Spell
    total: bool = False

    def opposite(self) -> Mask:
        """What the opposite accepts."""
        accept = ~self.accept
        if not self.total:
            accept[-1] = False
        return accept


@dataclass(frozen=True, eq=False)
class View:
    """`need[c]` rows with value c must be selected, `bad[c]` must not; the last place counts the NULLs.

    `flipped`: the opposites of the conditions will be written.
    """

    feature: Feature
    need: Counts
    bad: Counts
    flipped: bool = False

    @classmethod
    def of(cls, feature: Feature, labels: Labels) -> View:
        codes, size = feature.coded.codes, len(feature.coded.values) + 1
        return cls(feature, count(codes[labels.must], size), count(codes[labels.must_not], size))

    @cached_property
    def needed(self) -> NDArray[np.int64]:
        """The values that must be selected."""
        return np.flatnonzero(self.need[:-1])

    @cached_property
    def foreign(self) -> NDArray[np.int64]:
        """The values that only rows have which must not be selected."""
        return np.flatnonzero((self.need[:-1] == 0) & (self.bad[:-1] > 0))

    def swapped(self) -> View:
        """The view from the other side, without NULLs: for conditions whose opposite is wanted."""
        need, bad = self.bad.copy(), self.need.copy()
        need[-1] = bad[-1] = 0
        return View(self.feature, need, bad, True)


def count(codes: NDArray[np.int32], size: int) -> Counts:
    """How often each code occurs; the last place is that of code -1."""
    counted = np.bincount(codes + 1, minlength=size)
    return np.append(counted[1:], counted[0])

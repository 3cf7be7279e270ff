"""The labelled rows of one search, and what every feature says about them.

A search looks at parts of the rows to select again and again, while the rows not to select stay the same: what is
gathered for these is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from encoder.frame import Codes, Floats
from encoder.selection.features import Feature
from encoder.selection.model import Atom, Labels, Mask, MaskedAtom, Path
from encoder.selection.paths import join_cost
from encoder.selection.view import Counts, View, count

Ints: TypeAlias = NDArray[np.int64]

# Bytes of the word between two conditions.
AND = 4


@dataclass(frozen=True, eq=False)
class Held:
    """An atom, or a conjunction of several, with the rows of a `Ground` for which it holds."""

    atoms: tuple[Atom, ...]
    on_must: Mask
    on_must_not: Mask

    @cached_property
    def size(self) -> int:
        return sum(atom.size for atom in self.atoms) + AND * (len(self.atoms) - 1)

    @cached_property
    def paths(self) -> frozenset[Path]:
        return frozenset(path for atom in self.atoms for path in atom.paths)

    @cached_property
    def price(self) -> int:
        """The size with the joins that it needs by itself."""
        return self.size + join_cost(self.paths)


@dataclass(frozen=True, eq=False, slots=True)
class Sight:
    """The codes of a feature in the rows to select and in those not to, and how often each is in the latter."""

    must: Codes
    must_not: Codes
    bad: Counts


class Ground:
    """The rows of `labels` by their places; a *part* is a set of the rows to select, as a mask of `must`."""

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self.must: Ints = np.flatnonzero(labels.must)
        self.must_not: Ints = np.flatnonzero(labels.must_not)
        self._sights: dict[Feature, Sight] = {}
        self._gathered: dict[tuple[int, bool], Floats] = {}
        self._kept: list[Floats] = []
        # The atoms of a feature for which some of its values are to be selected.
        self.found: dict[tuple[Feature, bytes, bool], list[Held]] = {}

    @cached_property
    def whole(self) -> Mask:
        """All rows to select."""
        return np.ones(len(self.must), dtype=np.bool_)

    def sight(self, feature: Feature) -> Sight:
        known = self._sights.get(feature)
        if known is None:
            codes = feature.coded.codes
            others = codes[self.must_not]
            known = Sight(codes[self.must], others, count(others, len(feature.coded.values) + 1))
            self._sights[feature] = known
        return known

    def view(self, feature: Feature, part: Mask) -> View:
        """The feature under the labels, with `part` as the rows to select."""
        sight = self.sight(feature)
        return View(feature, count(sight.must[part], len(sight.bad)), sight.bad)

    def numbers(self, every: Floats, must: bool) -> Floats:
        """Those of `every`, which has one for each row of the frame, that the rows to select (or not to) have."""
        key = (id(every), must)
        if key not in self._gathered:
            self._kept.append(every)  # so that no other array gets its id
            self._gathered[key] = every[self.must if must else self.must_not]
        return self._gathered[key]

    def held(self, masked: MaskedAtom) -> Held:
        return Held((masked.atom,), masked.holds[self.must], masked.holds[self.must_not])

"""What a search for a WHERE gives: atoms, and selections made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from emit.term import Term
from scratch.catalog import ForeignKey

Mask: TypeAlias = NDArray[np.bool_]

# A way up foreign keys from the row itself, which is (); also the source key of terms about it.
Path: TypeAlias = tuple[ForeignKey, ...]


@dataclass(frozen=True, slots=True)
class Labels:
    """Which rows of a frame a selection must hold for, and for which it must not; the rest are free."""

    must: Mask
    must_not: Mask


@dataclass(frozen=True, slots=True)
class Atom:
    """A condition on one row.  References in `term` are keyed by Path: () is the row itself, a
    non-empty path the row that it leads to.  `paths` are the non-empty ones among them; a nested query
    in the term brings its own sources and is not among them.  `size` is its bytes as it would stand
    in a WHERE, with no join counted."""

    term: Term
    paths: frozenset[Path]
    size: int


@dataclass(frozen=True)
class MaskedAtom:
    """An atom with the rows of the frame for which it holds, as far as could be computed here;
    the server has the last word when the finished statement is run."""

    atom: Atom
    holds: Mask


@dataclass(frozen=True, slots=True)
class Selection:
    """A disjunction of conjunctions of atoms.  ((),) is every row.  `size` estimates the bytes of the
    WHERE clause with what its joins cost."""

    terms: tuple[tuple[Atom, ...], ...]
    size: int

    @property
    def paths(self) -> frozenset[Path]:
        return frozenset(path for term in self.terms for atom in term for path in atom.paths)

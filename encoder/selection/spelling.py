"""Atoms from terms, and what they cost."""

from __future__ import annotations

from emit.term import Term
from encoder.selection.booleans import measure
from encoder.selection.model import Atom, Path


def make_atom(term: Term, paths: frozenset[Path]) -> Atom:
    """An atom with its size: the bytes of its tokens with every column by its plain name."""
    return Atom(term, paths, measure(term))

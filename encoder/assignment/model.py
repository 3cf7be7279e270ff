"""What a search for a value gives: expressions over one row and the rows that it leads to."""

from __future__ import annotations

from dataclasses import dataclass

from emit.term import Term
from encoder.selection.model import Path


@dataclass(frozen=True, slots=True)
class Expression:
    """A term whose references are keyed by Path (() is the row itself, see encoder.selection.model).
    `paths` are the non-empty paths that it uses as joined sources; nested queries in the term bring
    their own.  `size` is its bytes with no join counted."""

    term: Term
    paths: frozenset[Path]
    size: int

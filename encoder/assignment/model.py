"""What a search for a value gives: expressions over one row and the rows that it leads to."""

from __future__ import annotations

from dataclasses import dataclass

from emit.term import Source, Term
from encoder.selection.model import Path


@dataclass(frozen=True, slots=True)
class Expression:
    """A term whose references are keyed by Path (() is the row itself, see encoder.selection.model).
    `paths` are the non-empty paths that it uses as joined sources; nested queries in the term bring
    their own.  `size` is its bytes with no join counted."""

    term: Term
    paths: frozenset[Path]
    size: int


WINDOW = "window"
"""The source key of a window's value in a WindowExpression's term; the column is VALUE."""
VALUE = "n"


@dataclass(frozen=True, slots=True)
class WindowExpression:
    """A value that a window function over the table gives, which SET can only take from a derived source.

    `window` is the function's call with its OVER; its references are keyed () and mean the rows that the
    derived query reads.  `term` is what SET gets: (WINDOW, VALUE) is the window's value, () the updated row.
    `selected` says that the derived query must read only the rows that the statement updates.  `size` is the
    bytes of the term, the derived source and its join.  The window's references to other rows are keyed by their
    Path, and `sources` and `joins` bring these into scope.  `window_sql.update_from_window` builds the statement.
    """

    term: Term
    window: Term
    selected: bool
    size: int
    sources: tuple[Source, ...] = ()
    joins: tuple[Term, ...] = ()

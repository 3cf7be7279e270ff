"""What the families of atoms about other rows share: offering atoms, sources and constants."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import numpy as np

from emit.literal import literal, table_name
from emit.render import render
from emit.term import Delete, Part, Query, Ref, Source, SourceKey, Term, is_null, negate, op, raw, ref, tuple_of
from encoder.budget import Budget
from encoder.selection.model import Atom, Labels, Mask, MaskedAtom
from scratch.catalog import Column, Table
from stream.model import Value

# What rendering an atom costs, in cells.
_RENDERING = 5_000


class Offers:
    """The atoms found so far for one search: of several that agree on every labelled row the shortest.

    An offer is taken when it holds for every must row and fails on one in `share` must_not rows; with `partial` also
    when it holds for a must row and for no must_not row.  Atoms of `bound` bytes or more are of no use.
    """

    def __init__(
        self, table: Table, labels: Labels, budget: Budget, *, partial: bool, share: int, bound: int | None = None
    ) -> None:
        self.bound = sys.maxsize if bound is None else bound
        self.budget = budget
        self.labels = labels
        self.partial = partial
        self._target = source(table, ())
        self._labelled = np.flatnonzero(labels.must | labels.must_not)
        self._must = labels.must[self._labelled]
        self._must_not = labels.must_not[self._labelled]
        self._needed = int(self._must.sum())
        self._refused = int(self._must_not.sum())
        # Atoms about other rows are long: one that excludes next to nothing never pays.
        self.least = max(1, self._refused // share)
        self._overhead = len(render(Delete(self._target)).encode()) + len(" WHERE ")
        self._found: dict[bytes, MaskedAtom] = {}

    def wanted(self, holds: Mask) -> bool:
        """Whether an atom with this mask would be taken."""
        seen = holds[self._labelled]
        right = int(np.count_nonzero(seen & self._must))
        wrong = int(np.count_nonzero(seen & self._must_not))
        if right == self._needed:
            return self._refused - wrong >= self.least
        return self.partial and right > 0 and wrong == 0

    def offer(self, holds: Mask, make: Callable[[], Term]) -> bool:
        """Take the atom if it is wanted; `make` is called only then."""
        if not self.wanted(holds):
            return False
        key = np.packbits(holds[self._labelled]).tobytes()
        term = make()
        known = self._found.get(key)
        limit = self.bound if known is None else known.atom.size
        # Rendering is what costs, so most of those that lose are dropped before.
        if least_size(term) < limit:
            self.budget.spend(_RENDERING)
            size = self.size(term)
            if size < limit:
                self._found[key] = MaskedAtom(Atom(term, frozenset(), size), holds)
        return True

    def size(self, term: Term) -> int:
        """The bytes of `term` in the WHERE of a statement on the table alone."""
        return len(render(Delete(self._target, where=term)).encode()) - self._overhead

    def __iter__(self) -> Iterator[MaskedAtom]:
        return iter(self._found.values())


def least_size(node: Term | Query) -> int:
    """A lower bound of the bytes of what is rendered."""
    if isinstance(node, Term):
        return sum(_least_part(part) for part in node.parts)
    terms = [*node.select, *(term for term in (node.where, node.tail) if term is not None)]
    return sum(map(least_size, terms)) + sum(_least_part(item.text) for item in node.sources)


def _least_part(part: Part | Term) -> int:
    if isinstance(part, str):
        return len(part) - part.count(" ")
    if isinstance(part, Term | Query):
        return least_size(part)
    return len(part.column) if isinstance(part, Ref) else 1


def source(table: Table, key: SourceKey) -> Source:
    """`table` as a row source."""
    return Source(key, table_name(*table.name), tuple(column.name for column in table.columns), only=table.heirs)


def columns_of(key: SourceKey, columns: tuple[str, ...]) -> Term:
    """The columns of a source as one value, a row in parentheses for several."""
    return tuple_of([ref(key, column) for column in columns])


def constant(value: Value, type_name: str, timezone: str | None) -> Term:
    """The literal of `value` as an operand of a comparison with something of its type."""
    return raw(literal(value, type_name, context="compare", timezone=timezone))


def equation(term: Term, column: Column, value: Value, timezone: str | None) -> Term:
    """That `term`, of the column's type, has this value or is NULL."""
    if value is None:
        return is_null(term)
    if column.base == "boolean":
        return term if value == "t" else negate(term)
    return op(term, "=", constant(value, column.base, timezone))

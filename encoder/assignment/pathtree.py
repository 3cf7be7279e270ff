"""Trees that a text column spells: every level adds the same number of characters to the parent's path."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from emit.term import Query, Term, call, op, raw, ref, subquery
from encoder.frame import Frame
from encoder.literals import source_of
from scratch.catalog import Column, Table

_TEXTS = frozenset({"text", "character varying"})
_STEPS = range(2, 9)
# The share of rows below the roots that must have a parent.
_LEAST_SHARE = 0.8
KEY = "tree"


@dataclass(frozen=True)
class PathTree:
    """Paths of the rows of `table` in `column`; a child's is `step` characters longer than its parent's."""

    table: Table
    column: str
    step: int
    paths: tuple[str, ...]

    @cached_property
    def index(self) -> dict[str, int]:
        return {path: row for row, path in enumerate(self.paths)}

    @cached_property
    def _sorted(self) -> list[tuple[str, int]]:
        return sorted((path, row) for row, path in enumerate(self.paths))

    def parent(self, row: int) -> int:
        """The parent's row, -1 for none."""
        return self.index.get(self.paths[row][: -self.step], -1)

    def below(self, row: int) -> list[int]:
        """The row itself and all rows below it."""
        path, found = self.paths[row], []
        for place in range(bisect_left(self._sorted, (path, -1)), len(self._sorted)):
            other, number = self._sorted[place]
            if not other.startswith(path):
                break
            found.append(number)
        return found

    def of_parent(self, column: Column) -> Term:
        """(SELECT column FROM table WHERE path=left(own path,-step))."""
        up = call("left", ref((), self.column), raw(f"-{self.step}"))
        source = source_of(self.table, KEY)
        return subquery(Query((ref(KEY, column.name),), (source,), op(ref(KEY, self.column), "=", up)))


@lru_cache(maxsize=8)
def path_trees(frame: Frame) -> tuple[PathTree, ...]:
    return tuple(_trees(frame))


def _trees(frame: Frame) -> Iterator[PathTree]:
    for column in frame.table.columns:
        if column.base not in _TEXTS or frame.size < 3:
            continue
        texts = [text for text in frame.texts(column.name) if text]
        lengths = {len(text) for text in texts}
        step = math.gcd(*lengths)
        if len(set(texts)) < frame.size or len(lengths) < 2 or step not in _STEPS:
            continue
        tree = PathTree(frame.table, column.name, step, tuple(texts))
        roots = sum(len(text) == min(lengths) for text in texts)
        children = sum(tree.parent(row) >= 0 for row in range(frame.size))
        if children >= _LEAST_SHARE * (frame.size - roots):
            yield tree

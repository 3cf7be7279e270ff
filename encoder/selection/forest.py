"""A forest of rows: parents, depths, and what lies below and above.  Knows no SQL."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from encoder.frame import Codes
from encoder.selection.links import Ints
from encoder.selection.model import Mask


class Forest:
    """`parent[i]` is the parent row of row i, -1 for a root.

    Rows in or below a cycle have depth -1 and are left out of `counted`; `below` and `above` are right for them too.
    """

    def __init__(self, parent: Codes) -> None:
        self.parent = parent
        self.size = len(parent)

    @cached_property
    def depth(self) -> Ints:
        depth = np.full(self.size, -1, dtype=np.int64)
        level = np.flatnonzero(self.parent < 0)
        while level.size:
            depth[level] = 0 if self.parent[level[0]] < 0 else depth[self.parent[level[0]]] + 1
            found = np.zeros(self.size + 1, dtype=np.bool_)
            found[level] = True
            level = np.flatnonzero(found[self.parent] & (self.parent >= 0))
        return depth

    def counted(self, weights: Ints) -> Ints:
        """For every row the weights of itself and all rows below it, added up."""
        sums = weights.astype(np.int64)
        for level in range(int(self.depth.max(initial=-1)), 0, -1):
            rows = np.flatnonzero(self.depth == level)
            np.add.at(sums, self.parent[rows], sums[rows])
        return sums

    def below(self, seeds: Mask) -> Mask:
        """The seeds and all rows below them."""
        reached = np.append(seeds, False)  # the last one stands for the parent of a root
        while True:
            more: Mask = reached[:-1] | reached[self.parent]
            if np.array_equal(more, reached[:-1]):
                return more
            reached[:-1] = more

    def above(self, seeds: Mask) -> Mask:
        """The seeds and all rows above them."""
        reached = seeds.copy()
        front = np.flatnonzero(seeds)
        while front.size:
            front = np.unique(self.parent[front])
            front = front[front >= 0]
            front = front[~reached[front]]
            reached[front] = True
        return reached

    def parents(self) -> Mask:
        """The rows that have a row below them."""
        found = np.zeros(self.size, dtype=np.bool_)
        found[self.parent[self.parent >= 0]] = True
        return found

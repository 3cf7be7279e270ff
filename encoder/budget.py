"""Counted work: the only thing that cuts a search, so that the same input gives the same bytes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Budget:
    """What is left to spend, in units of the search that spends it (cells compared, nodes, queries)."""

    left: int

    def spend(self, units: int = 1) -> bool:
        """Take `units`; False when nothing is left (the work that asked should stop)."""
        self.left -= units
        return self.left >= 0

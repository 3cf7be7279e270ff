"""Counted work: the only thing that cuts a search, so that the same input gives the same bytes."""

from __future__ import annotations

from dataclasses import dataclass

from encoder.deadline import NEVER, Deadline


@dataclass
class Budget:
    """What is left to spend, in units of the search that spends it (cells compared, nodes, queries); nothing once
    `deadline`, the safety net, has passed."""

    left: int
    deadline: Deadline = NEVER

    def spend(self, units: int = 1) -> bool:
        """Take `units`; False when nothing is left (the work that asked should stop)."""
        self.left = self.left - units if not self.deadline.passed else min(self.left, 0) - units
        return self.left >= 0


@dataclass
class Meter:
    """The work that one transaction is worth, in rough seconds of a core as estimated from row counts: what is
    estimated from the input is the same on every machine.

    `spent` is what was taken so far, `cut` whether anything was refused.  Past `deadline`, the safety net, everything
    is refused.
    """

    left: float
    deadline: Deadline = NEVER
    spent: float = 0.0
    cut: bool = False

    def spend(self, estimate: float) -> bool:
        """Take `estimate`; False when nothing is left.  The last one granted may overdraw."""
        if self.left <= 0 or self.deadline.passed:
            self.cut = True
            return False
        self.left -= estimate
        self.spent += estimate
        return True

    def charge(self, estimate: float) -> None:
        """Take `estimate` for work that had to be done."""
        self.left -= estimate
        self.spent += estimate

    def account(self, granted: int, budget: Budget, unit: float) -> None:
        """Take what a search spent of the units that it was granted; one that wanted more was cut."""
        self.charge((granted - budget.left) * unit)
        self.cut |= budget.left < 0

    def part(self, share: float) -> Meter:
        """A meter of its own with `share` of what is left, to be paid for with `pay`."""
        return Meter(self.left * share, self.deadline)

    def pay(self, part: Meter) -> None:
        """Take what `part` spent."""
        self.charge(part.spent)
        self.cut |= part.cut

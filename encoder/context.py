"""What the searches of one block share."""

from __future__ import annotations

from dataclasses import dataclass, field

from encoder.budget import Meter
from encoder.frame import State
from encoder.trial import Laboratory
from scratch.catalog import Catalog
from solver.problem import Strategy as Covering


@dataclass(frozen=True, slots=True)
class Effort:
    """How much counted work each kind of search may do; `scale` 1 is the default level.  `allowance` is what
    one transaction may cost in all, see encoder.budget.Meter."""

    scale: float = 1.0
    allowance: float = 14.0

    def units(self, amount: int) -> int:
        return int(amount * self.scale)


@dataclass(frozen=True, slots=True)
class Context:
    """One state of the scratch database with all that is needed to search in it.

    `timezone` is the zone that the replaying session promises, None for no promise; `covering` the way to
    choose among the candidates, the exact one by default.
    """

    state: State
    lab: Laboratory
    timezone: str | None
    effort: Effort = Effort()
    meter: Meter = field(default_factory=lambda: Meter(Effort().allowance))
    covering: Covering | None = None

    @property
    def late(self) -> bool:
        """Whether the time is up: no search begins any more, literal forms have to do."""
        return self.lab.deadline.passed

    @property
    def catalog(self) -> Catalog:
        return self.state.catalog

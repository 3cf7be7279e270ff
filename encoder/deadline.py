"""The clock as the last safety net: counted budgets cut the searches, and this only what outlasts them all."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment after which no new search begins; those that would are left at their literal forms.

    `at` is a reading of time.monotonic(), in seconds.
    """

    at: float = math.inf

    @classmethod
    def in_seconds(cls, seconds: float) -> Deadline:
        return cls(time.monotonic() + seconds)

    @property
    def left(self) -> float:
        """Seconds until then; negative afterwards."""
        return self.at - time.monotonic()

    def sooner(self, share: float) -> Deadline:
        """The moment at which `share` of the seconds that are left now will have gone."""
        return self if math.isinf(self.at) else Deadline(self.at - (1 - share) * self.left)

    @property
    def passed(self) -> bool:
        return self.left <= 0


NEVER = Deadline()

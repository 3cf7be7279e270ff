"""All families in the order in which they propose."""

from __future__ import annotations

from encoder.assignment import basic, children, numeric
from encoder.assignment.problem import Family

# Tiers of families, each with the bytes of a found expression that make it not worth running.
FAMILIES: tuple[tuple[int, tuple[Family, ...]], ...] = (
    (0, (basic.constants, basic.copies, basic.filled, numeric.single)),
    (24, (numeric.pairs, children.existence, children.picked)),
    (80, (numeric.triples, children.filtered, children.lists)),
)

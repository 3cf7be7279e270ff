"""All families in the order in which they propose."""

from __future__ import annotations

from encoder.assignment import basic, children, numeric
from encoder.assignment.problem import Family

# Tiers of families: a later one runs only while nothing short has been found.
FAMILIES: tuple[tuple[Family, ...], ...] = (
    (basic.constants, basic.copies, basic.filled, numeric.single),
    (numeric.pairs, children.existence, children.picked),
    (numeric.triples, children.filtered, children.lists),
)

"""All families in the order in which they propose."""

from __future__ import annotations

from encoder.assignment import basic, children, numeric
from encoder.assignment.problem import Family

FAMILIES: tuple[Family, ...] = (
    basic.constants,
    basic.copies,
    basic.filled,
    numeric.arithmetic,
    children.existence,
    children.picked,
    children.filtered,
    children.lists,
)

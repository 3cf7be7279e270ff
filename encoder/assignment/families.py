"""All families in the order in which they propose."""

from __future__ import annotations

from encoder.assignment import (
    arrays,
    basic,
    cases,
    children,
    conditions,
    documents,
    lookups,
    numeric,
    text,
    times,
    windows,
)
from encoder.assignment.problem import Family

# Tiers of families, each with the bytes of a found expression that make it not worth running.
FAMILIES: tuple[tuple[int, tuple[Family, ...]], ...] = (
    (
        0,
        (
            basic.constants,
            basic.copies,
            basic.filled,
            conditions.booleans,
            numeric.single,
            text.single_edits,
            times.shifts,
            times.differences,
            times.parts,
            documents.documents,
            arrays.arrays,
        ),
    ),
    (
        24,
        (
            conditions.flags,
            cases.maps,
            numeric.pairs,
            times.scaled_shifts,
            children.existence,
            children.picked,
            text.concatenated,
        ),
    ),
    (24, (text.compositions, lookups.lookups, windows.ranked)),
    (80, (numeric.triples, children.filtered, children.lists)),
)

"""All families in the order in which they propose."""

from __future__ import annotations

from typing import TypeAlias

from encoder.assignment import (
    arrays,
    basic,
    cases,
    children,
    conditions,
    documents,
    filters,
    fulltext,
    hashed,
    lookups,
    networks,
    numeric,
    reached,
    text,
    times,
    trees,
    windows,
)
from encoder.assignment.problem import Family

# Tiers of families, each with the bytes of a found expression that make it not worth running.
Tiers: TypeAlias = tuple[tuple[int, tuple[Family, ...]], ...]

# What one row or two are enough to tell.
NEAR: Tiers = (
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
            networks.networks,
            fulltext.vectors,
        ),
    ),
)
# Near families and combinations of two or three columns: what a part of the rows is fitted with.
PARTS: Tiers = (*NEAR, (40, (numeric.pairs, numeric.triples, text.concatenated)))
FAMILIES: Tiers = (
    *NEAR,
    (
        16,
        (
            basic.distant_copies,
            numeric.related,
            conditions.flags,
            cases.maps,
            cases.indexed,
            numeric.pairs,
            times.scaled_shifts,
            times.binned,
        ),
    ),
    (40, (children.existence, children.picked, text.concatenated, hashed.hashed)),
    (50, (text.compositions, windows.ranked)),
    (50, (trees.branches, lookups.lookups)),
    (110, (filters.filtered, children.lists, reached.documented)),
    (70, (numeric.triples, numeric.related_pairs)),
    (120, (filters.distant, reached.reached, reached.combined, reached.scaled, reached.counted)),
)
# All but those that look at rows of many tables that are far away.
CLOSE: Tiers = FAMILIES[:-1]
# What comes first.
BRIEF: Tiers = FAMILIES[:3]

"""All grammars by the name of their family."""

from __future__ import annotations

from bench.recovery import (
    grammar_children,
    grammar_combined,
    grammar_groups,
    grammar_insert,
    grammar_moves,
    grammar_natural,
    grammar_own,
    grammar_sets,
    grammar_transactions,
    grammar_trees,
    grammar_up,
)
from bench.recovery.model import Grammar

FAMILIES: dict[str, Grammar] = {
    "own": grammar_own.own,
    "up": grammar_up.up,
    "natural": grammar_natural.natural,
    "children": grammar_children.children,
    "nephews": grammar_children.nephews,
    "groups": grammar_groups.groups,
    "trees": grammar_trees.trees,
    "conjunctions": grammar_combined.conjunctions,
    "disjunctions": grammar_combined.disjunctions,
    "exceptions": grammar_combined.exceptions,
    "arbitrary": grammar_combined.arbitrary,
    **{family: grammar_sets.single(family) for family in grammar_sets.EXPRESSIONS},
    "set_several": grammar_sets.several,
    "insert": grammar_insert.inserts,
    "moves": grammar_moves.moves,
    "transactions": grammar_transactions.transactions,
}

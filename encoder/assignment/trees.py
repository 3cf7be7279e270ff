"""Aggregates over the rows below a row in a tree of paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from emit.term import Query, Term, call, conjoin, op, raw, ref, subquery
from encoder.assignment import numeric
from encoder.assignment.decimals import Band
from encoder.assignment.pathtree import KEY, PathTree, path_trees
from encoder.assignment.problem import INTEGERS, Floats, Input, Problem
from encoder.literals import source_of

_NUMERIC = INTEGERS | {"numeric"}
# Rows for each of which the server may read the whole table.
_MAX_ROWS = 4_000
_AGGREGATES: tuple[tuple[str, Callable[..., float]], ...] = (("sum", sum), ("max", max), ("min", min))

Groups = Sequence[Sequence[int]]


def branches(problem: Problem) -> Iterator[Term]:
    """Counts, sums and extremes over the children, over all descendants, and over these and the row itself."""
    if problem.base not in _NUMERIC or problem.light or problem.frame.size > _MAX_ROWS:
        return
    for tree in path_trees(problem.frame):
        for condition, groups in _parts(tree, problem.rows):
            if any(groups):
                yield from _over(problem, tree, condition, groups)


def _parts(tree: PathTree, rows: Sequence[int]) -> Iterator[tuple[Term, Groups]]:
    """Conditions that lead to rows of the tree, and the rows for each of `rows`."""
    inner, own = ref(KEY, tree.column), ref((), tree.column)
    below = [tree.below(row) for row in rows]
    yield op(inner, "^@", own), below
    proper = [[other for other in found if other != row] for found, row in zip(below, rows, strict=True)]
    yield op(inner, "LIKE", op(own, "||", raw("'_%'"))), proper
    near = [[other for other in found if tree.parent(other) == row] for found, row in zip(proper, rows, strict=True)]
    yield op(inner, "LIKE", op(own, "||", raw(f"'{'_' * tree.step}'"))), near


def _over(problem: Problem, tree: PathTree, condition: Term, groups: Groups) -> Iterator[Term]:
    def spelled(value: Term, also: Term | None = None) -> Term:
        where = conjoin([condition] if also is None else [condition, also])
        return subquery(Query((value,), (source_of(tree.table, KEY),), where))

    def counted(found: Groups, also: Term | None) -> Iterator[Term]:
        term = spelled(call("count", raw("*")), also)
        item = Input(term, "bigint", "N", tuple(str(len(group)) for group in found), problem.cost(term))
        return numeric.of_input(problem, item)

    yield from counted(groups, None)
    band = Band.rounding(problem.numbers, problem.scale)
    for column in tree.table.columns:
        own = ref(KEY, column.name)
        if column.base == "boolean":
            texts = problem.frame.texts(column.name)
            yield from counted([[row for row in group if texts[row] == "t"] for group in groups], own)
        elif column.base in _NUMERIC and column.name not in tree.table.primary_key:
            values = problem.frame.numbers(column.name)
            for name, function in _AGGREGATES:
                if band.holds(_reduced(values, groups, function)):
                    yield spelled(call(name, own))


def _reduced(values: Floats, groups: Groups, function: Callable[..., float]) -> Floats:
    lines = [[x for x in values[list(group)].tolist() if not np.isnan(x)] for group in groups]
    return np.array([round(function(line), 9) if line else np.nan for line in lines])

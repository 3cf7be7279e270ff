"""Atoms about other rows of the same table: those with equal values of one or two columns.

`g IN(SELECT g FROM t WHERE …)`, groups by size, a column beside an aggregate of its group or of the whole table, and
pairs that are mirrored (`(a,b)IN(SELECT b,a FROM t)`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from encoder.budget import Budget
from encoder.frame import State
from encoder.selection.grouping import all_groups
from encoder.selection.linked import search
from encoder.selection.links import Link
from encoder.selection.masks import Offers
from encoder.selection.model import Labels, MaskedAtom
from stream.model import TableName

# Atoms that exclude less than this part of the rows never pay for their length.
_SHARE = 20


def atoms(
    state: State,
    table: TableName,
    labels: Labels,
    budget: Budget,
    timezone: str | None,
    *,
    partial: bool = False,
    bound: int | None = None,
) -> Iterator[MaskedAtom]:
    """Atoms on the table's other rows; see encoder.selection.masks.Offers for which are taken."""
    offers = Offers(state.catalog[table], labels, budget, partial=partial, share=_SHARE, bound=bound)
    search(state, _links(state, table), offers, budget, timezone, depth=0)
    yield from offers


def _links(state: State, table: TableName) -> Iterator[Link]:
    yield Link(table, (), table, ())
    by_name = state.catalog[table].by_name
    single: list[str] = []
    for groups in all_groups(state.frame(table)):
        # The rows with an equal truth value are half of them: no relatives.
        if groups.names and all(by_name[name].base != "boolean" for name in groups.names):
            yield Link(table, groups.names, table, groups.names)
            single += groups.names if len(groups.names) == 1 else ()
    for first, second in combinations(single, 2):
        if by_name[first].base == by_name[second].base and _referred(state, table, first, second):
            yield Link(table, (first, second), table, (second, first))
            yield Link(table, (first,), table, (second,))
            yield Link(table, (second,), table, (first,))


def _referred(state: State, table: TableName, first: str, second: str) -> bool:
    """Whether both columns refer to the same table."""
    targets = {key.columns: key.target for key in state.catalog[table].foreign_keys}
    return (first,) in targets and targets[(first,)] == targets.get((second,))

"""One call for a WHERE: all atom families together, with their shares of the work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from encoder.budget import Budget
from encoder.context import Context
from encoder.frame import State
from encoder.rowset import row_set_selections
from encoder.selection import children, groups, relatives, trees
from encoder.selection.lower import Where, lower
from encoder.selection.model import Labels, MaskedAtom, Path, Selection
from encoder.selection.search import find_selections
from stream.model import TableName

_Family: TypeAlias = Callable[..., Iterator[MaskedAtom]]

_FAMILIES: tuple[_Family, ...] = (children.atoms, groups.atoms, trees.atoms, relatives.atoms)

# Counted work by default: cells for each further family, thousands of cells for the search itself.
_FAMILY_CELLS = 10_000_000
_SEARCH_UNITS = 20_000
# A condition shorter than this no compact form of a row set could beat.
_COMPACT_FROM = 40
# Atoms that row sets are tried beside.
_WITHIN = 8


def select(context: Context, table: TableName, labels: Labels, *, share: float = 1.0, keep: int = 8) -> list[Selection]:
    """Selections for `labels`, the shortest first; `share` is the part of the usual work that it is worth."""
    key = ("select", table, labels.must.tobytes(), labels.must_not.tobytes(), share)
    return context.state.remember(key, lambda: _select(context, table, labels, share))[:keep]


def _select(context: Context, table: TableName, labels: Labels, share: float) -> list[Selection]:
    state: State = context.state
    extra: list[MaskedAtom] = []
    if labels.must_not.any():
        for family in _FAMILIES:
            budget = Budget(int(context.effort.units(_FAMILY_CELLS) * share))
            extra += family(state, table, labels, budget, context.timezone)
    found = find_selections(
        state,
        table,
        labels,
        budget=Budget(int(context.effort.units(_SEARCH_UNITS) * share)),
        timezone=context.timezone,
        extra_atoms=extra,
    )
    if not found or found[0].size > _COMPACT_FROM:
        found += row_set_selections(state.frame(table), labels, context.timezone, within=extra[:_WITHIN])
        found.sort(key=lambda selection: selection.size)
    return found


def lowered(
    context: Context, table: TableName, selection: Selection, needed: frozenset[Path] = frozenset()
) -> list[Where]:
    """The spellings of `selection` as sources and WHERE, none that would compare all rows of large tables."""
    size = lambda name: context.state.frame(name).size  # noqa: E731
    return lower(context.catalog, table, selection, needed=needed, size_of=size)

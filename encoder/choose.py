"""One call for a WHERE: all atom families together, with their shares of the work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from encoder.budget import Budget
from encoder.context import Context
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
# Rough seconds of one search that ends at once, of each row of the table, of a cell and of a unit of the search.
_SELECT, _SELECT_ROW, _CELL, _UNIT = 0.1, 1e-5, 2e-8, 6e-5
# Units of a glance.
_GLANCE = 300
# Atoms that compact row sets are tried beside.
_WITHIN = 4


def select(context: Context, table: TableName, labels: Labels, *, share: float = 1.0, keep: int = 8) -> list[Selection]:
    """Selections for `labels`, the shortest first; `share` is the part of the usual work that it is worth."""
    key = ("select", table, labels.must.tobytes(), labels.must_not.tobytes(), share)
    return context.state.remember(key, lambda: _select(context, table, labels, share))[:keep]


def _select(context: Context, table: TableName, labels: Labels, share: float) -> list[Selection]:
    state, zone = context.state, context.timezone
    rows = state.frame(table).size
    worth = context.meter.spend(share * (_SELECT + rows * _SELECT_ROW))
    extra: list[MaskedAtom] = []

    def further() -> list[MaskedAtom]:
        for family in _FAMILIES:
            cells = Budget(int(context.effort.units(_FAMILY_CELLS) * share), context.lab.deadline)
            granted = cells.left
            extra.extend(family(state, table, labels, cells, zone))
            context.meter.account(granted, cells, _CELL)
        return extra

    def named(bound: int | None) -> list[Selection]:
        beside = sorted((a for a in extra if a.holds[labels.must].all()), key=lambda a: a.atom.size)[:_WITHIN]
        return row_set_selections(state.frame(table), labels, zone, within=beside, bound=bound)

    if not worth:
        # Nothing is left for a search; what the rows' own columns tell at once is still looked at.
        return find_selections(
            state, table, labels, budget=Budget(_GLANCE, context.lab.deadline), timezone=zone, named=named
        )
    budget = Budget(int(context.effort.units(_SEARCH_UNITS) * share), context.lab.deadline)
    granted = budget.left
    found = find_selections(state, table, labels, budget=budget, timezone=zone, further=further, named=named)
    # Searches differ widely: what this one really took is charged when it is known.
    context.meter.account(granted, budget, _UNIT)
    return found


def lowered(
    context: Context, table: TableName, selection: Selection, needed: frozenset[Path] = frozenset()
) -> list[Where]:
    """The spellings of `selection` as sources and WHERE, none that would compare all rows of large tables."""
    size = lambda name: context.state.frame(name).size  # noqa: E731
    return lower(context.catalog, table, selection, needed=needed, size_of=size)

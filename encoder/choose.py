"""One call for a WHERE: all atom families together, with their shares of the work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from encoder.budget import Budget
from encoder.context import Context
from encoder.frame import Frame, State
from encoder.rowset import row_set_selections
from encoder.selection import children, groups, relatives, trees
from encoder.selection.features import look
from encoder.selection.lower import Where, lower
from encoder.selection.model import Labels, MaskedAtom, Path, Selection
from encoder.selection.priors import Prior, recall, remember
from encoder.selection.rowset import key_bytes
from encoder.selection.search import find_selections
from stream.model import TableName

_Family: TypeAlias = Callable[..., Iterator[MaskedAtom]]

_FAMILIES: tuple[_Family, ...] = (children.atoms, groups.atoms, trees.atoms, relatives.atoms)

# Counted work by default: cells for each further family, thousands of cells for the search itself.
_FAMILY_CELLS = 10_000_000
_SEARCH_UNITS = 20_000
# The share of a family's cells that a search for a part of the rows gets.
_PART = 0.3
# Where less than this is left of the transaction's work, parts of the rows are not searched for by themselves.
_PLENTY = 0.6
# Rough seconds of one search that ends at once, of each row of the table, of a cell and of a unit of the search.
_SELECT, _SELECT_ROW, _CELL, _UNIT = 0.25, 4e-6, 1e-7, 2.6e-4
# Units of a glance.
_GLANCE = 300
# From lists of so many bytes on a search is worth all of its work, and the part that it is always worth.
_STAKE, _LEAST_STAKE = 300, 0.25
# Atoms that compact row sets are tried beside.
_WITHIN = 2


def select(context: Context, table: TableName, labels: Labels, *, share: float = 1.0, keep: int = 8) -> list[Selection]:
    """Selections for `labels`, the shortest first; `share` is the part of the usual work that it is worth."""
    key = ("select", table, labels.must.tobytes(), labels.must_not.tobytes(), share)
    return context.state.remember(key, lambda: _select(context, table, labels, share))[:keep]


def _select(context: Context, table: TableName, labels: Labels, share: float) -> list[Selection]:
    state, zone = context.state, context.timezone
    prior = recall(state, table, labels)
    if prior.changed is not None and not _above(state, table) & prior.changed:
        return _again(context, table, labels, prior, share)
    share *= _stake(state.frame(table), labels)
    rows = state.frame(table).size
    worth = context.meter.spend(share * (_SELECT + rows * _SELECT_ROW))
    extra: list[MaskedAtom] = []

    def further(asked: Labels, bound: int | None) -> list[MaskedAtom]:
        found: list[MaskedAtom] = []
        if asked is not labels and context.meter.left < _PLENTY:
            return found
        part = share if asked is labels else share * _PART
        for family in _FAMILIES:
            cells = Budget(int(context.effort.units(_FAMILY_CELLS) * part), context.lab.deadline)
            granted = cells.left
            found.extend(family(state, table, asked, cells, zone, partial=True, bound=bound))
            context.meter.account(granted, cells, _CELL)
        if asked is labels:
            extra.extend(found)
        return found

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
    found = find_selections(
        state, table, labels, budget=budget, timezone=zone, further=further, named=named, known=prior.found
    )
    remember(state, table, labels, found)
    # Searches differ widely: what this one really took is charged when it is known.
    context.meter.account(granted, budget, _UNIT)
    return found


def _stake(frame: Frame, labels: Labels) -> float:
    """The part of the usual work that it is worth to find something shorter than a list of the rows' keys."""
    rows = np.flatnonzero(labels.must)
    listed = len(rows) * key_bytes(frame, int(rows[0])) if len(rows) and frame.table.row_key else _STAKE
    return min(1.0, max(_LEAST_STAKE, listed / _STAKE))


def _above(state: State, table: TableName) -> set[TableName]:
    """The tables of the rows above."""
    return {frame.table.name for frame in look(state, table, Budget(0)).frames}


def _again(context: Context, table: TableName, labels: Labels, prior: Prior, share: float) -> list[Selection]:
    """What was found before for these labels, and what the tables that have changed since say of the rows."""
    assert prior.changed is not None
    state, zone = context.state, context.timezone
    cells = Budget(int(context.effort.units(_FAMILY_CELLS) * share), context.lab.deadline)
    budget = Budget(int(context.effort.units(_SEARCH_UNITS) * share), context.lab.deadline)
    all_cells, all_units = cells.left, budget.left
    bound = prior.found[0].size if prior.found else None
    news = list(children.atoms(state, table, labels, cells, zone, bound=bound, among=prior.changed))
    if not news and prior.found:
        found = prior.found
    else:
        found = find_selections(
            state, table, labels, budget=budget, timezone=zone, extra_atoms=news, known=prior.found, simple=True
        )
    context.meter.account(all_cells, cells, _CELL)
    context.meter.account(all_units, budget, _UNIT)
    return found


def lowered(
    context: Context, table: TableName, selection: Selection, needed: frozenset[Path] = frozenset()
) -> list[Where]:
    """The spellings of `selection` as sources and WHERE, none that would compare all rows of large tables."""
    size = lambda name: context.state.frame(name).size  # noqa: E731
    return lower(context.catalog, table, selection, needed=needed, size_of=size)

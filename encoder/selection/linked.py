"""All atoms along one link: existence, aggregates, rows linked to the linked rows."""

from __future__ import annotations

from collections.abc import Iterable

from emit.term import in_query, op, ref
from encoder.budget import Budget
from encoder.frame import State
from encoder.selection.aggregates import Aggregates, Measures
from encoder.selection.existence import Existence, Pairs
from encoder.selection.links import Condition, Joined, Link, features
from encoder.selection.masks import Offers, columns_of, source

# What a column costs beside its cells, in cells: many links are to small tables.
_OVERHEAD = 5_000


def search(
    state: State, links: Iterable[Link], offers: Offers, budget: Budget, timezone: str | None, *, depth: int
) -> None:
    """Offer what the links give, one after the other, until the budget is used up.

    `depth` 1 brings in the rows that linked rows refer to, and those that refer to linked rows.
    """
    measures: Measures | None = None
    for link in links:
        size = state.frame(link.other).size
        if not size:
            continue
        if not budget.spend(state.frame(link.table).size + size + _OVERHEAD):
            return
        joined = Joined(state, link)
        if joined.counts.any():
            measures = measures or Measures(joined.frame)
            existence = Existence(joined, offers, budget, timezone)
            aggregates = Aggregates(joined, offers, budget, timezone, measures)
            _columns(state, joined, existence, aggregates, depth)
            if depth:
                for condition in _grandchildren(state, joined, budget):
                    existence.add(condition, True)
                    existence.add(condition, False)
            existence.pairs()


def _columns(state: State, joined: Joined, existence: Existence, aggregates: Aggregates, depth: int) -> None:
    existence.plain()
    aggregates.count()
    if not aggregates.complete and not any(side.reached(joined.counts > 0) for side in existence.sides):
        return
    found = []
    for feature in features(state, joined, depth):
        if not existence.budget.spend(2 * Pairs.COST * joined.others.size + _OVERHEAD):
            return
        found.append(feature)
        pairs = Pairs(joined, feature)
        if pairs.codes.size:
            existence.feature(feature, pairs)
            aggregates.feature(feature, pairs)
    aggregates.products(found)


def _grandchildren(state: State, joined: Joined, budget: Budget) -> Iterable[Condition]:
    """Whether a linked row is referred to itself, for every foreign key that could."""
    link = joined.link
    for key in state.catalog.referenced_by.get(link.other, ()):
        below = state.frame(key.table)
        if not below.size or not budget.spend(below.size + joined.others.size):
            continue
        deeper = Joined(state, Link(link.other, key.target_columns, key.table, key.columns))
        has = deeper.rows(deeper.counts > 0)
        child = source(below.table, ("below", link.key, key.table, key.columns))
        joins = tuple(
            op(ref(child.key, name), "=", ref(link.key, target))
            for name, target in zip(key.columns, key.target_columns, strict=True)
        )
        yield Condition((), has, (child,), joins)
        if not deeper.null.any():
            query = deeper.query(deeper.selected, None)
            yield Condition((in_query(columns_of(link.key, key.target_columns), query, False),), ~has)

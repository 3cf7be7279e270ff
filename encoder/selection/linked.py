"""All atoms along one link: existence, aggregates, rows linked to the linked rows."""

from __future__ import annotations

from collections.abc import Iterable

from emit.term import in_query, op, ref
from encoder.budget import Budget
from encoder.frame import State
from encoder.selection.aggregates import Aggregates
from encoder.selection.existence import Existence
from encoder.selection.links import Condition, Joined, Link, features
from encoder.selection.masks import Offers, columns_of, source


def search(
    state: State, links: Iterable[Link], offers: Offers, budget: Budget, timezone: str | None
) -> None:
    """Offer what the links give, one after the other, until the budget is used up."""
    for link in links:
        if not state.frame(link.other).size:
            continue
        if not budget.spend(state.frame(link.table).size + state.frame(link.other).size):
            return
        joined = Joined(state, link)
        if joined.counts.any():
            _search(state, joined, offers, budget, timezone)


def _search(state: State, joined: Joined, offers: Offers, budget: Budget, timezone: str | None) -> None:
    existence = Existence(joined, offers, budget, timezone)
    aggregates = Aggregates(joined, offers, budget, timezone)
    existence.plain()
    aggregates.count()
    found = []
    for feature in features(state, joined):
        found.append(feature)
        if not existence.feature(feature) or not aggregates.feature(feature):
            return
    if not joined.same:
        for condition in _grandchildren(state, joined, budget):
            existence.add(condition, True)
            existence.add(condition, False)
    existence.pairs()
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

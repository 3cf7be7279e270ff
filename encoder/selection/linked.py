"""All atoms along one link: existence, aggregates, rows linked to the linked rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from emit.literal import table_name
from emit.term import Source, Term, in_query, op, ref
from encoder.budget import Budget
from encoder.frame import State
from encoder.selection.aggregates import Aggregates, Measures
from encoder.selection.booleans import measure
from encoder.selection.existence import Existence, Pairs
from encoder.selection.links import (
    UNCOMPARABLE,
    Condition,
    Deeper,
    Feature,
    Joined,
    Link,
    columns,
    is_constant,
    parents,
)
from encoder.selection.masks import Offers, columns_of, source
from scratch.catalog import ForeignKey

# What a column costs beside its cells, in cells: many links are to small tables.
_OVERHEAD = 5_000


@dataclass
class _Way:
    """The searches along one link."""

    joined: Joined
    existence: Existence
    aggregates: Aggregates

    def columns(self, found: Iterable[Feature]) -> list[Feature] | None:
        """Conditions on and aggregates of these columns; None where the budget has ended."""
        seen: list[Feature] = []
        room = self.existence.offers.bound - _least(self.joined.link)
        for feature in found:
            if feature.sources and _join_size(feature.sources, feature.joins) >= room:
                continue
            if not self.existence.budget.spend(2 * Pairs.COST * self.joined.others.size + _OVERHEAD):
                return None
            seen.append(feature)
            pairs = Pairs(self.joined, feature)
            if pairs.codes.size:
                self.existence.feature(feature, pairs)
                self.aggregates.feature(feature, pairs)
        return seen

    @property
    def covering(self) -> bool:
        """Whether all rows to select have linked rows, so that a condition on these may name them."""
        return bool(self.joined.rows(self.joined.counts > 0)[self.existence.offers.labels.must].all())

    @property
    def promising(self) -> bool:
        linked = self.joined.counts > 0
        return self.aggregates.complete or any(side.reached(linked) for side in self.existence.sides)


def search(
    state: State, links: Iterable[Link], offers: Offers, budget: Budget, timezone: str | None, *, depth: int
) -> None:
    """Offer what the links give, until the budget is used up: first of all links what linked rows say themselves.

    `depth` 1 brings in the rows that linked rows refer to, and those that refer to linked rows.
    """
    ways = list(_ways(state, links, offers, budget, timezone))
    likely = sorted((way for way in ways if way.promising), key=lambda way: not way.covering) if depth else []
    for way in likely:
        way.columns(parents(state, way.joined))
    for way in likely:
        for condition in _grandchildren(state, way.joined, budget):
            way.existence.add(condition, True)
            way.existence.add(condition, False)
        _below(state, way.joined, offers, budget, timezone)
    for way in ways:
        way.existence.pairs()


def _ways(state: State, links: Iterable[Link], offers: Offers, budget: Budget, timezone: str | None) -> Iterator[_Way]:
    measures: Measures | None = None
    for link in links:
        size = state.frame(link.other).size
        if not size:
            continue
        if _least(link) >= offers.bound:
            continue
        if not budget.spend(state.frame(link.table).size + size + _OVERHEAD):
            return
        joined = Joined(state, link)
        if not joined.counts.any():
            continue
        measures = measures or Measures(joined.frame)
        way = _Way(
            joined,
            Existence(joined, offers, budget, timezone),
            Aggregates(joined, offers, budget, timezone, measures),
        )
        way.existence.plain()
        way.aggregates.count()
        if way.promising and (found := way.columns(columns(joined))) is not None:
            way.aggregates.products(found)
        yield way


def _least(link: Link) -> int:
    """About the bytes of the shortest condition along a link, `EXISTS(SELECT FROM other WHERE a=b)` or with IN."""
    names = sum(map(len, link.own)) + sum(map(len, link.columns))
    return len("EXISTS(SELECTFROM WHERE =)") + len(table_name(*link.other)) + names


def _join_size(sources: tuple[Source, ...], joins: tuple[Term, ...]) -> int:
    """The bytes that bringing in the sources adds to a query at least."""
    return sum(1 + len(str(source.text)) for source in sources) + sum(map(measure, joins))


def _grandchildren(state: State, joined: Joined, budget: Budget) -> Iterable[Condition]:
    """Whether a linked row is referred to itself, for every foreign key that could."""
    link = joined.link
    for key in state.catalog.referenced_by.get(link.other, ()):
        below = state.frame(key.table)
        if not below.size or not budget.spend(below.size + joined.others.size):
            continue
        deeper = Joined(state, Link(link.other, key.target_columns, key.table, key.columns))
        has = deeper.rows(deeper.counts > 0)
        child, joins = _child(state, link, key)
        yield Condition((), has, (child,), joins)
        if not deeper.null.any():
            query = deeper.query(deeper.selected, None)
            yield Condition((in_query(columns_of(link.key, key.target_columns), query, False),), ~has)


def _child(state: State, link: Link, key: ForeignKey) -> tuple[Source, tuple[Term, ...]]:
    """The rows that refer to linked rows by `key`, and what joins them."""
    child = source(state.catalog[key.table], ("below", link.key, key.table, key.columns))
    joins = tuple(
        op(ref(child.key, name), "=", ref(link.key, target))
        for name, target in zip(key.columns, key.target_columns, strict=True)
    )
    return child, joins


def _below(state: State, joined: Joined, offers: Offers, budget: Budget, timezone: str | None) -> None:
    """Conditions on the rows that refer to linked rows."""
    for key in state.catalog.referenced_by.get(joined.link.other, ()):
        below = state.frame(key.table)
        child, joins = _child(state, joined.link, key)
        if _least(joined.link) + _join_size((child,), joins) >= offers.bound:
            continue
        if not below.size or not budget.spend(below.size + joined.others.size + _OVERHEAD):
            continue
        deeper = Deeper(joined, below, key)
        existence = Existence(deeper, offers, budget, timezone)
        if not any(side.reached(deeper.counts > 0) for side in existence.sides):
            continue
        for column in below.table.columns:
            coded = below.coded(column.name)
            if column.base in UNCOMPARABLE or column.name in key.columns or is_constant(coded):
                continue
            if not budget.spend(2 * Pairs.COST * below.size + _OVERHEAD):
                return
            feature = Feature((child,), joins, child.key, column, coded, deeper.other >= 0)
            pairs = Pairs(deeper, feature)
            if pairs.codes.size:
                existence.feature(feature, pairs)

"""Comparisons of what a row's linked rows add up to: count, sum, min, max, avg, count(DISTINCT), bool_and.

An aggregate is compared with a constant, in `own IN(SELECT … GROUP BY 1 HAVING …)` or in a correlated query, and
with the columns of the row itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np

from emit.term import Term, call, in_query, op, raw, ref
from encoder.budget import Budget
from encoder.frame import Floats, Frame, to_numbers
from encoder.selection.cuts import Cut, Numbers, Scale, cuts, differ, scale_of
from encoder.selection.existence import Pairs
from encoder.selection.links import Condition, Feature, Joined
from encoder.selection.masks import Offers, equation
from encoder.selection.model import Mask
from scratch.catalog import Column, Table

_INTEGERS = frozenset({"smallint", "integer", "bigint"})
_NUMBERS = _INTEGERS | {"numeric", "real", "double precision"}
_TIMES = frozenset({"date", "timestamp without time zone", "timestamp with time zone"})
_COUNTED_VALUES = 6  # values of a column whose rows are counted apart
_PRODUCTS = 10  # pairs of columns whose products are summed


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`term` over the linked rows with `condition`; `values` has one number a group, NaN for NULL."""

    term: Term
    condition: Condition | None
    values: Floats
    missing: float  # the value of a group without such rows
    scale: Scale
    family: frozenset[str]  # the types of columns with which it compares
    operators: str = "<>="  # for constants
    rounded: bool = False  # a float may be a little off


class Measures:
    """The columns of a table with which aggregates may be compared, with their numbers."""

    def __init__(self, frame: Frame) -> None:
        chosen = (column for column in frame.table.columns if column.base in _NUMBERS or column.base in _TIMES)
        self.columns = [(column, frame.numbers(column.name)) for column in chosen]
        self.foreign = frozenset(name for key in frame.table.foreign_keys for name in key.columns)
        self.primary = frozenset(frame.table.primary_key)

    def of(self, joined: Joined) -> list[tuple[Column, Floats]]:
        """Those for this link: the key is one only beside rows of the same table."""
        left_out = self.foreign | frozenset(joined.link.own) | (frozenset() if joined.same else self.primary)
        return [(column, numbers) for column, numbers in self.columns if column.name not in left_out]


class Aggregates:
    """The search along one link."""

    def __init__(
        self, joined: Joined, offers: Offers, budget: Budget, timezone: str | None, measures: Measures
    ) -> None:
        self.joined = joined
        self.offers = offers
        self.budget = budget
        self.timezone = timezone
        self.own = measures.of(joined)
        # NULL, which most aggregates of no rows are, holds for no comparison.
        linked = joined.rows(joined.counts > 0)
        self.complete = offers.partial or bool(linked[offers.labels.must].all())

    def count(self, condition: Condition | None = None) -> None:
        """How many linked rows there are."""
        groups = self.joined.other if condition is None else self.joined.other[condition.holds]
        numbers = np.bincount(groups[groups >= 0], minlength=self.joined.groups).astype(np.float64)
        self._try(Aggregate(raw("count(*)"), condition, numbers, 0.0, Numbers("bigint"), _INTEGERS))

    def feature(self, feature: Feature, pairs: Pairs) -> None:
        """All aggregates of one column."""
        base = feature.column.base
        if pairs.width > 1:
            self._distinct(feature, pairs)
        if self.complete and base == "boolean":
            self._all(feature, pairs)
        if self.complete and (base in _NUMBERS or base in _TIMES):
            self._numbers(feature, pairs)
        if 1 < pairs.width <= _COUNTED_VALUES and not feature.sources:
            for code, value in enumerate(feature.coded.values):
                term = equation(feature.term, feature.column, value, self.timezone)
                self.count(Condition((term,), feature.coded.codes == code))

    def products(self, features: list[Feature]) -> None:
        """Sums of products of two columns, compared with columns of the row."""
        if not self.complete or not any(name.base in _NUMBERS for name, _ in self.own):
            return
        numeric = [feature for feature in features if is_measure(feature, self.joined)]
        for first, second in list(combinations(numeric, 2))[:_PRODUCTS]:
            if not self.budget.spend(4 * self.joined.others.size):
                return
            factors = (to_numbers(f.column.base, f.coded) for f in (first, second))
            condition = Condition((), first.present, first.sources, first.joins)
            condition &= Condition((), second.present, second.sources, second.joins)
            term = call("sum", op(first.term, "*", second.term))
            self._columns(self._sum(term, condition, next(factors) * next(factors)))

    def _distinct(self, feature: Feature, pairs: Pairs) -> None:
        if not pairs.repeated and (self.joined.counts <= 1).all():
            return
        term = Term(("count(", "DISTINCT", *feature.term.parts, ")"))
        condition = _only_joins(feature)
        self._try(Aggregate(term, condition, pairs.distinct.astype(np.float64), 0.0, Numbers("bigint"), _INTEGERS))

    def _all(self, feature: Feature, pairs: Pairs) -> None:
        truths = np.append(np.array([value == "t" for value in feature.coded.values]), False)
        every = truths[pairs.lowest]
        joined = self.joined
        select = joined.selected
        having = _grouped(len(select), call("bool_and", feature.term))
        query = joined.query(select, _only_joins(feature), tail=having)
        self.offers.offer(joined.rows(every), lambda: in_query(joined.own_term, query))

    def _numbers(self, feature: Feature, pairs: Pairs) -> None:
        base = feature.column.base
        scale, places = scale_of(feature.column, feature.coded, self.timezone)
        family = _NUMBERS if base in _NUMBERS else _TIMES
        condition = _only_joins(feature)
        for name, ends in (("min", pairs.lowest), ("max", pairs.highest)):
            self._try(Aggregate(call(name, feature.term), condition, places[ends], np.nan, scale, family))
        if base in _NUMBERS and is_measure(feature, self.joined):
            numbers = places[feature.coded.codes]
            total = self._sum(call("sum", feature.term), condition, numbers)
            self._try(total)
            known = ~np.isnan(numbers) & (self.joined.other >= 0)
            counts = np.bincount(self.joined.other[known], minlength=self.joined.groups)
            with np.errstate(invalid="ignore", divide="ignore"):
                mean = total.values / counts
            # A mean is seldom a number of few digits, and then a float is not it.
            self._try(Aggregate(call("avg", feature.term), condition, mean, np.nan, Numbers(), _NUMBERS, "<>", True))

    def _sum(self, term: Term, condition: Condition | None, numbers: Floats) -> Aggregate:
        known = ~np.isnan(numbers) & (self.joined.other >= 0)
        groups = self.joined.other[known]
        sums = np.bincount(groups, weights=numbers[known], minlength=self.joined.groups).astype(np.float64)
        sums[np.bincount(groups, minlength=self.joined.groups) == 0] = np.nan
        return Aggregate(term, condition, np.round(sums, 9), np.nan, Numbers(), _NUMBERS, rounded=True)

    # -- comparisons

    def _try(self, aggregate: Aggregate) -> None:
        self._constants(aggregate)
        self._columns(aggregate)

    def _constants(self, aggregate: Aggregate) -> None:
        joined = self.joined
        if not joined.link.own:  # an aggregate of the whole table is the same for all rows
            return
        some = joined.counts > 0 if aggregate.condition is None else joined.image(aggregate.condition.holds)
        present = np.where(some, aggregate.values, np.nan)
        grouped = np.append(present, np.nan)[joined.own]
        every = np.append(aggregate.values, aggregate.missing)[joined.own]
        for cut in self._cuts(grouped, aggregate):
            self.offers.offer(cut.holds, partial(self._having, aggregate, cut))
        if joined.correlates:
            for cut in self._cuts(every, aggregate):
                self.offers.offer(cut.holds, partial(self._correlated, aggregate, cut))

    def _cuts(self, values: Floats, aggregate: Aggregate) -> Iterator[Cut]:
        labels = self.offers.labels
        return cuts(
            values,
            labels.must,
            labels.must_not,
            aggregate.scale,
            cover=True,
            avoid=self.offers.partial,
            operators=aggregate.operators,
        )

    def _having(self, aggregate: Aggregate, cut: Cut) -> Term:
        joined = self.joined
        tail = _grouped(len(joined.selected), op(aggregate.term, cut.operator, cut.constant))
        return in_query(joined.own_term, joined.query(joined.selected, aggregate.condition, tail=tail))

    def _correlated(self, aggregate: Aggregate, cut: Cut) -> Term:
        return op(self.joined.value(aggregate.term, aggregate.condition), cut.operator, cut.constant)

    def _columns(self, aggregate: Aggregate) -> None:
        if not self.joined.correlates:
            return
        every = np.append(aggregate.values, aggregate.missing)[self.joined.own]
        for column, values in self.own:
            if column.base not in aggregate.family or not self.budget.spend(4 * len(values)):
                continue
            less, equal, more = differ(values, every, rounded=aggregate.rounded)
            for operator, holds in _comparisons(less, equal, more):
                self.offers.offer(holds, partial(self._beside, aggregate, column.name, operator))

    def _beside(self, aggregate: Aggregate, column: str, operator: str) -> Term:
        return op(ref((), column), operator, self.joined.value(aggregate.term, aggregate.condition))


def _comparisons(less: Mask, equal: Mask, more: Mask) -> Iterator[tuple[str, Mask]]:
    yield "<", less
    yield ">", more
    yield "=", equal
    yield "<>", less | more
    yield "<=", less | equal
    yield ">=", more | equal


def _grouped(width: int, having: Term) -> Term:
    listed = ",".join(str(place + 1) for place in range(width))
    return Term((f"GROUP BY {listed}", "HAVING", *having.parts))


def _only_joins(feature: Feature) -> Condition | None:
    if not feature.sources:
        return None
    return Condition((), feature.present, feature.sources, feature.joins)


def is_measure(feature: Feature, joined: Joined) -> bool:
    """Whether a column holds quantities, as far as its keys tell: numbers that are no key."""
    if feature.column.base not in _NUMBERS:
        return False
    return feature.sources != () or feature.column.name not in _key_columns(joined.others.table)


def _key_columns(table: Table) -> frozenset[str]:
    keys = (table.primary_key, *(key.columns for key in table.foreign_keys))
    return frozenset(name for key in keys for name in key)

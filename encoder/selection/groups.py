"""Atoms about a row's place among the rows of its own table.

Rows are ranked by an order (the key, a time, a number) in the whole table, in groups by one or two columns, and in
the rows that share a value with all must rows; a cut of the ranks gives first and last rows, top n, all but the
newest n.  What SQL says shorter than with a window is offered beside it: `id IN(SELECT max(id)FROM t GROUP BY g)`,
ORDER BY … LIMIT n, a count of the rows before.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial as bind

import numpy as np

from emit.literal import table_name
from emit.term import Part, Query, Source, Term, call, in_query, op, raw, ref, separate, subquery
from encoder.budget import Budget
from encoder.frame import Floats, Frame, State
from encoder.selection.cuts import Cut, Numbers, cuts
from encoder.selection.duplicates import duplicates
from encoder.selection.grouping import PEER, Groups, Order, Subset, all_groups, orders, ranks, subsets
from encoder.selection.links import PAIRS_OF_ROWS
from encoder.selection.masks import Offers, columns_of, source
from encoder.selection.model import Labels, Mask, MaskedAtom
from stream.model import TableName

_RANK = "r"
_RANKS = Numbers("bigint")
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
    """Atoms on ranks and duplicates; see encoder.selection.masks.Offers for which are taken."""
    frame = state.frame(table)
    # A row that a query is to name needs a key.
    if frame.table.row_key and frame.size > 1:
        offers = Offers(frame.table, labels, budget, partial=partial, share=_SHARE, bound=bound)
        duplicates(frame, offers, budget)
        _Ranks(frame, offers, budget).search(subsets(frame, labels, timezone))
        yield from offers


class _Ranks:
    def __init__(self, frame: Frame, offers: Offers, budget: Budget) -> None:
        self.frame = frame
        self.offers = offers
        self.budget = budget
        self.names = frame.table.row_key
        self.key = columns_of((), self.names)
        self.source = source(frame.table, PEER)
        self.selected = tuple(ref(PEER, name) for name in self.names)

    def search(self, narrowed: list[Subset]) -> None:
        groupings, orderings = all_groups(self.frame), orders(self.frame)
        windows = self._window_size < self.offers.bound
        for subset in narrowed:
            for groups in groupings:
                for order in orderings:
                    # Where a window would be too long, what is shorter asks for one column.
                    if not windows and groups.terms and len(order.names) > 1:
                        continue
                    # Sorting is the price.
                    if not self.budget.spend(8 * self.frame.size):
                        return
                    if not set(order.names) & set(groups.names):
                        self._rank(subset, groups, order)

    @property
    def _window_size(self) -> int:
        """About the bytes of the shortest condition on a rank in groups."""
        names = 2 * sum(map(len, self.names))
        return (
            len("IN(SELECT FROM(SELECT ,rank()OVER(PARTITION BY a ORDER BY b)r FROM )x WHERE r<2)")
            + names
            + len(table_name(*self.frame.table.name))
        )

    def _rank(self, subset: Subset, groups: Groups, order: Order) -> None:
        ascending, descending = ranks(subset.holds, groups.codes, order.codes)
        for values, last in ((ascending, False), (descending, True)):
            for cut in self._cuts(values):
                condition = op(ref(("ranked",), _RANK), cut.operator, cut.constant)
                self.offers.offer(cut.holds, bind(self._window, subset, groups, order, last, condition))
                if not groups.terms and cut.operator in ("<", ">"):
                    self.offers.offer(cut.holds, bind(self._limit, subset, order, last, cut))
            if len(order.names) == 1:
                self._first(subset, groups, order, values, last)
                self._before(subset, groups, order, values, last)
        self._steps(subset, groups, order, ascending)

    def _cuts(self, values: Floats) -> Iterator[Cut]:
        labels = self.offers.labels
        return cuts(
            values, labels.must, labels.must_not, _RANKS, cover=True, avoid=self.offers.partial, operators="<>="
        )

    def _window(self, subset: Subset, groups: Groups, order: Order, last: bool, condition: Term) -> Term:
        partition: tuple[Part, ...] = ("PARTITION BY", *separate(groups.terms)) if groups.terms else ()
        rank = Term(("rank()OVER(", *partition, *_order_by(order, last), ")"))
        inner = Query((*self.selected, rank), (self.source,), subset.where, names=(*(None for _ in self.names), _RANK))
        ranked = Source(("ranked",), inner, (*self.names, _RANK))
        return in_query(self.key, Query(tuple(ref(ranked.key, name) for name in self.names), (ranked,), condition))

    def _limit(self, subset: Subset, order: Order, last: bool, cut: Cut) -> Term:
        """Ranks tie, so that a cut of them never parts equal rows: LIMIT is as exact as the rank."""
        skipped = cut.operator == ">"
        count = int(np.count_nonzero(subset.holds & ~cut.holds if skipped else cut.holds))
        tail = Term((*_order_by(order, last), "OFFSET" if skipped else "LIMIT", str(count)))
        return in_query(self.key, Query(self.selected, (self.source,), subset.where, tail))

    def _first(self, subset: Subset, groups: Groups, order: Order, values: Floats, last: bool) -> None:
        """Rank 1 is the least or greatest of the group, and the rest is what is not."""
        first, rest = values == 1, values > 1
        least = call("max" if last else "min", *order.terms)
        if order.is_key:
            query = Query((least,), (self.source,), subset.where, _group_by(groups))
            if groups.terms:
                self.offers.offer(first, lambda: in_query(self.key, query))
                if subset.where is None:
                    self.offers.offer(rest, lambda: in_query(self.key, query, False))
            else:
                self.offers.offer(first, lambda: op(self.key, "=", subquery(query)))
                if subset.where is None:
                    self.offers.offer(rest, lambda: op(self.key, "<" if last else ">", subquery(query)))
        elif groups.names and subset.where is None and (order.known.all() or not last):
            # The group and the value together name the row; what is NULL equals nothing.
            tail = Term((f"GROUP BY {','.join(str(place + 1) for place in range(len(groups.names)))}",))
            query = Query((*groups.terms, least), (self.source,), subset.where, tail)
            own = columns_of((), (*groups.names, *order.names))
            self.offers.offer(first & groups.known & order.known, lambda: in_query(own, query))
            self._extremes(groups, order, first, least)
        elif not groups.terms and (order.known.all() or not last):
            value = subquery(Query((least,), (self.source,), subset.where))
            self.offers.offer(first & order.known, lambda: op(columns_of((), order.names), "=", value))

    def _extremes(self, groups: Groups, order: Order, first: Mask, least: Term) -> None:
        """Whether the value is the least or greatest of some group."""
        if not order.known.all():
            return
        extreme = np.zeros(int(order.codes.max()) + 1, dtype=np.bool_)
        extreme[order.codes[first]] = True
        inside = extreme[order.codes]
        query = Query((least,), (self.source,), None, _group_by(groups))
        own = columns_of((), order.names)
        self.offers.offer(inside, lambda: in_query(own, query))
        self.offers.offer(~inside, lambda: in_query(own, query, False))

    def _before(self, subset: Subset, groups: Groups, order: Order, values: Floats, last: bool) -> None:
        """`(SELECT count(*)FROM t WHERE g=x.g AND o<x.o)>2`: as many come before."""
        derived = bool(groups.terms) and not groups.names
        if subset.where is not None or derived or not order.known.all() or self.frame.size**2 > PAIRS_OF_ROWS:
            return
        conditions = [op(ref(PEER, name), "=", ref((), name)) for name in groups.names]
        conditions += [op(ref(PEER, name), ">" if last else "<", ref((), name)) for name in order.names]
        where = conditions[0]
        for condition in conditions[1:]:
            where = op(where, "AND", condition)
        count = subquery(Query((raw("count(*)"),), (self.source,), where))
        for cut in self._cuts(np.where(groups.known, values - 1, 0.0)):
            self.offers.offer(cut.holds, bind(op, count, cut.operator, cut.constant))

    def _steps(self, subset: Subset, groups: Groups, order: Order, values: Floats) -> None:
        """Every n-th row: the ranks of all must rows leave the same rest."""
        chosen = values[self.offers.labels.must]
        if chosen.size < 3 or np.isnan(chosen).any():
            return
        whole = chosen.astype(np.int64)
        divisor = int(np.gcd.reduce(np.abs(whole - whole[0])))
        if divisor > 1:
            rest = int(whole[0] % divisor)
            condition = op(op(ref(("ranked",), _RANK), "%", raw(str(divisor))), "=", raw(str(rest)))
            holds: Mask = values % divisor == rest
            self.offers.offer(holds, bind(self._window, subset, groups, order, False, condition))


def _order_by(order: Order, last: bool) -> tuple[Part, ...]:
    """ORDER BY, from the other end with `last`."""
    falling = [last, *([last != order.turned] * (len(order.terms) - 1))]
    terms = (Term((*term.parts, "DESC")) if down else term for term, down in zip(order.terms, falling, strict=True))
    return ("ORDER BY", *separate(terms))


def _group_by(groups: Groups) -> Term | None:
    return Term(("GROUP BY", *separate(groups.terms))) if groups.terms else None

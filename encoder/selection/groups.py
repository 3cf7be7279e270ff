"""Atoms about a row's place among the rows of its own table.

Rows are ranked by an order (the key, a time, a number) in the whole table, in groups by one or two columns, or in the rows
that share a value with all must rows; a cut of the ranks gives first and last rows, top n, all but the newest n.  The special
cases that SQL says shorter are spelled so: `id IN(SELECT max(id)FROM t GROUP BY g)`, ORDER BY … LIMIT n.  Duplicates by a key of
any number of columns are found by refining the key greedily.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial as bind

import numpy as np

from emit.term import Query, Source, SourceKey, Term, call, cast, in_query, is_null, op, raw, ref, separate, subquery
from encoder.budget import Budget
from encoder.frame import Floats, Frame, State
from encoder.selection.cuts import Cut, Numbers, cuts
from encoder.selection.links import Ints, group_columns
from encoder.selection.masks import Offers, columns_of, constant, source
from encoder.selection.model import Labels, Mask, MaskedAtom
from stream.model import TableName

_NUMBERS = frozenset({"smallint", "integer", "bigint", "numeric", "real", "double precision"})
_TIMES = frozenset({"date", "timestamp without time zone", "timestamp with time zone"})
_ORDERED = _NUMBERS | _TIMES | {"text", "character varying"}
_UNGROUPED = frozenset({"json", "xml", "point"})
_ORDERS = 8
_GROUPS = 14
_SUBSETS = 3
_KEY_COLUMNS = 5  # of a key of duplicates
_PAIRS_OF_ROWS = 20_000_000
_PEER: SourceKey = ("peer",)


def atoms(
    state: State,
    table: TableName,
    labels: Labels,
    budget: Budget,
    timezone: str | None,
    *,
    partial: bool = False,
) -> Iterator[MaskedAtom]:
    """Atoms on ranks and duplicates; see encoder.selection.masks.Offers for which are taken."""
    frame = state.frame(table)
    # A row that is to be named by a query needs a key without NULL.
    if frame.table.row_key and frame.size > 1:
        offers = Offers(frame.table, labels, partial)
        search = _Search(frame, offers, budget)
        search.duplicates()
        search.ranks(_subsets(frame, labels, timezone))
        yield from offers


@dataclass(frozen=True, slots=True)
class Subset:
    """The rows that are ranked: those with `where`."""

    holds: Mask
    where: Term | None


@dataclass(frozen=True, slots=True)
class Groups:
    """What rows are grouped by: `codes` are equal for rows of one group, NULL being a value like others."""

    terms: tuple[Term, ...]
    codes: Ints
    known: Mask  # no NULL in it


@dataclass(frozen=True, slots=True)
class Order:
    """What rows are ordered by, ascending with NULL last; `codes` as the order of rows."""

    terms: tuple[Term, ...]
    codes: Ints
    known: Mask
    is_key: bool


class _Search:
    def __init__(self, frame: Frame, offers: Offers, budget: Budget) -> None:
        self.frame = frame
        self.offers = offers
        self.budget = budget
        self.table = frame.table
        self.key = columns_of((), self.table.row_key)
        self.source = source(self.table, _PEER)
        self.selected = tuple(ref(_PEER, name) for name in self.table.row_key)
        self.orders = list(_orders(frame))
        self.groups = list(_groups(frame))

    def ranks(self, subsets: list[Subset]) -> None:
        """First and last rows of the table, of groups, and of the rows that have something in common."""
        for subset in subsets:
            for groups in self.groups:
                if groups.terms and not _is_shared(groups, subset):
                    continue
                for order in self.orders:
                    # Sorting is the price.
                    if not self.budget.spend(8 * self.frame.size):
                        return
                    self._rank(subset, groups, order)

    def _rank(self, subset: Subset, groups: Groups, order: Order) -> None:
        ascending, descending = _ranks(subset.holds, groups.codes, order.codes)
        for ranks, tail in ((ascending, ""), (descending, "DESC")):
            for cut in self._cuts(ranks):
                if not self.offers.wanted(cut.holds):
                    continue
                self.offers.offer(cut.holds, bind(self._window, subset, groups, order, tail, cut))
                self._extreme(subset, groups, order, tail, cut)
                if not groups.terms and cut.operator in "<>":
                    self.offers.offer(cut.holds, bind(self._limit, subset, order, tail, cut))
            self._smaller(subset, groups, order, ranks, tail)
        for divisor, rest in self._steps(ascending):
            every = ascending % divisor == rest
            self.offers.offer(every, bind(self._every, subset, groups, order, divisor, rest))

    def _cuts(self, values: Floats) -> Iterator[Cut]:
        labels = self.offers.labels
        return cuts(
            values, labels.must, labels.must_not, Numbers("bigint"), cover=True, avoid=self.offers.partial
        )

    def _window(self, subset: Subset, groups: Groups, order: Order, tail: str, cut: Cut) -> Term:
        return self._ranked(subset, groups, order, tail, op(ref(("ranked",), "r"), cut.operator, cut.constant))

    def _every(self, subset: Subset, groups: Groups, order: Order, divisor: int, rest: int) -> Term:
        return self._ranked(
            subset, groups, order, "", op(op(ref(("ranked",), "r"), "%", raw(str(divisor))), "=", raw(str(rest)))
        )

    def _ranked(self, subset: Subset, groups: Groups, order: Order, tail: str, where: Term) -> Term:
        partition = ("PARTITION BY", *separate(groups.terms)) if groups.terms else ()
        rank = Term(("rank()OVER(", *partition, *_order_by(order, tail), ")"))
        names = (*(None for _ in self.selected), "r")
        inner = Query((*self.selected, rank), (self.source,), subset.where, names=names)
        ranked = Source(("ranked",), inner, (*self.table.row_key, "r"))
        return in_query(self.key, Query(tuple(ref(ranked.key, name) for name in self.table.row_key), (ranked,), where))

    def _limit(self, subset: Subset, order: Order, tail: str, cut: Cut) -> Term:
        if cut.operator == "<":
            ending = ("LIMIT", str(int(cut.holds.sum())))
        else:
            ending = ("OFFSET", str(int((subset.holds & ~cut.holds).sum())))
        query = Query(self.selected, (self.source,), subset.where, Term((*_order_by(order, tail), *ending)))
        return in_query(self.key, query)

    def _extreme(self, subset: Subset, groups: Groups, order: Order, tail: str, cut: Cut) -> None:
        """Rank 1 is the least or greatest of the group, and the rest is what is not."""
        if len(order.terms) > 1:
            return
        first = np.array_equal(cut.holds, subset.holds & (cut.holds & True)) and _is_first(cut)
        others = subset.where is None and _is_rest(cut)
        least = call("max" if tail else "min", order.terms[0])
        if order.is_key and len(self.table.row_key) == 1 and (first or others):
            query = Query((least,), (self.source,), subset.where, _group_by(groups, 0))
            if groups.terms:
                self.offers.offer(cut.holds, lambda: in_query(self.key, query, first))
            else:
                self.offers.offer(cut.holds, lambda: op(self.key, "=" if first else "<>", subquery(query)))
        elif first and groups.terms and all(len(term.parts) == 1 for term in groups.terms):
            # The group and the value together name the row; what is NULL is not equal to itself.
            holds = cut.holds & groups.known & order.known
            if tail and not np.array_equal(holds, cut.holds):
                return  # NULL comes first in a descending order, but is not the greatest
            query = Query((*groups.terms, least), (self.source,), subset.where, _group_by(groups, 1))
            own = tuple(_column(term) for term in (*groups.terms, *order.terms))
            self.offers.offer(holds, lambda: in_query(columns_of((), own), query))

    def _smaller(self, subset: Subset, groups: Groups, order: Order, ranks: Floats, tail: str) -> None:
        """`(SELECT count(*)FROM t WHERE g=x.g AND o<x.o)>2`: as many come before."""
        plain = all(len(term.parts) == 1 for term in (*groups.terms, *order.terms))
        if subset.where is not None or len(order.terms) > 1 or not plain:
            return
        if self.frame.size**2 > _PAIRS_OF_ROWS or not order.known.all():
            return
        before = np.where(groups.known, ranks - 1, 0)
        names = tuple(_column(term) for term in groups.terms)
        equations = [op(term, "=", ref((), name)) for term, name in zip(groups.terms, names, strict=True)]
        least = order.terms[0]
        where = op(least, ">" if tail else "<", ref((), _column(least)))
        for equation in reversed(equations):
            where = op(equation, "AND", where)
        count = subquery(Query((raw("count(*)"),), (self.source,), where))
        for cut in self._cuts(before):
            self.offers.offer(cut.holds, bind(op, count, cut.operator, cut.constant))

    def _steps(self, ranks: Floats) -> Iterator[tuple[int, int]]:
        """Divisors that leave the same rest for the ranks of all must rows."""
        chosen = ranks[self.offers.labels.must]
        if chosen.size < 3 or np.isnan(chosen).any():
            return
        whole = chosen.astype(np.int64)
        divisor = int(np.gcd.reduce(np.abs(whole - whole[0])))
        if divisor > 1:
            yield divisor, int(whole[0] % divisor)

    # -- duplicates

    def duplicates(self) -> None:
        """All but one row of each group, and that one row, for keys of any number of columns."""
        key = self.table.row_key
        if len(key) != 1 or not self.orders or not self.orders[0].is_key:
            return
        labels = self.offers.labels
        candidates = [groups for groups in _single_groups(self.frame) if _column(groups.terms[0]) not in key]
        for first in (False, True):
            repeated, single = (labels.must_not, labels.must) if first else (labels.must, labels.must_not)
            if not repeated.any():
                continue
            for tail in ("", "DESC"):
                self._refine(candidates, repeated, single, tail, first)

    def _refine(self, candidates: list[Groups], repeated: Mask, single: Mask, tail: str, first: bool) -> None:
        order = self.orders[0].codes if not tail else -self.orders[0].codes
        chosen: list[Groups] = []
        codes = np.zeros(self.frame.size, dtype=np.int64)
        wrong = int(single.sum())
        while wrong and len(chosen) < _KEY_COLUMNS:
            best: tuple[int, int, int, Ints, Mask] | None = None
            for place, groups in enumerate(candidates):
                if groups in chosen or not self.budget.spend(4 * self.frame.size):
                    continue
                finer = _dense(codes * (int(groups.codes.max()) + 1) + groups.codes)
                later = _later(finer, order)
                if not later[repeated].all():
                    continue
                length = len(_column(groups.terms[0]))
                trial = (int(np.count_nonzero(later & single)), length, place, finer, later)
                if best is None or trial[:3] < best[:3]:
                    best = trial
            if best is None or best[0] >= wrong:
                return
            wrong, codes = best[0], best[3]
            chosen.append(candidates[best[2]])
            self._offer_duplicates(chosen, best[4], tail, first)

    def _offer_duplicates(self, chosen: list[Groups], later: Mask, tail: str, first: bool) -> None:
        terms = tuple(term for groups in chosen for term in groups.terms)
        groups = Groups(terms, chosen[0].codes, chosen[0].known)
        keep = call("max" if tail else "min", self.selected[0])
        query = Query((keep,), (self.source,), tail=_group_by(groups, 0))
        self.offers.offer(~later if first else later, lambda: in_query(self.key, query, first))


def _column(term: Term) -> str:
    """The column of a term that is one reference."""
    part = term.parts[0] if len(term.parts) == 1 else term.parts[1]
    return part.column if not isinstance(part, str) and hasattr(part, "column") else ""


def _is_first(cut: Cut) -> bool:
    return (cut.operator == "=" and cut.at == 1) or (cut.operator == "<" and cut.at == 2)


def _is_rest(cut: Cut) -> bool:
    return (cut.operator == ">" and cut.at == 1) or (cut.operator == "<>" and cut.at == 1)


def _order_by(order: Order, tail: str) -> tuple[str | object, ...]:
    raise NotImplementedError

"""Links from the rows of a table to rows of another one (or of itself) by equal values of columns.

A link is what `own IN(SELECT columns FROM other WHERE …)` goes along: a foreign key read backwards, two foreign keys
to one table, or columns that merely hold the same values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from emit.term import Query, Source, SourceKey, Term, cast, conjoin, is_null, op, ref, subquery
from encoder.frame import Coded, Codes, Frame, State
from encoder.selection.masks import columns_of, source
from encoder.selection.model import Mask
from encoder.selection.scales import TEXTS
from scratch.catalog import Column, ForeignKey
from stream.model import TableName

Ints = NDArray[np.int64]

# What a nested loop does in about a second.
PAIRS_OF_ROWS = 20_000_000
# Types without equality, or whose values are no conditions by themselves.
UNCOMPARABLE = frozenset({"json", "xml", "point", "jsonb", "bytea"})


@dataclass(frozen=True, slots=True)
class Link:
    """`columns` of `other` hold values of the columns `own` of `table`."""

    table: TableName
    own: tuple[str, ...]
    other: TableName
    columns: tuple[str, ...]

    @property
    def key(self) -> SourceKey:
        """The key of the other table's source."""
        return ("linked", self.other, self.columns)


@dataclass(frozen=True, slots=True)
class Feature:
    """A column of the other table's rows, or of the rows that these refer to: `sources` and `joins` bring it into
    the query; `coded` has a code for every row of the other table, and `present` tells which rows the joins keep."""

    sources: tuple[Source, ...]
    joins: tuple[Term, ...]
    key: SourceKey
    column: Column
    coded: Coded
    present: Mask

    @property
    def term(self) -> Term:
        return ref(self.key, self.column.name)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on the other table's rows: `holds` for each of them."""

    terms: tuple[Term, ...]
    holds: Mask
    sources: tuple[Source, ...] = ()
    joins: tuple[Term, ...] = ()

    def __and__(self, other: Condition) -> Condition:
        sources = {item.key: item for item in (*self.sources, *other.sources)}
        joins = (*self.joins, *(join for join in other.joins if join not in self.joins))
        return Condition((*self.terms, *other.terms), self.holds & other.holds, tuple(sources.values()), joins)


class Joined:
    """A link with its rows in one state.

    Rows with equal values of the link's columns form a group: `own[i]` and `other[j]` are the group of a row of either
    table, -1 where a column is NULL; there are `groups` of them.
    """

    def __init__(self, state: State, link: Link) -> None:
        self.link = link
        self.frame = state.frame(link.table)
        self.others = state.frame(link.other)
        self.own, self.other, self.groups = _group(self.frame, link.own, self.others, link.columns)
        self.source = source(self.others.table, link.key)
        self.same = link.table == link.other and link.own == link.columns
        nulls = [self.others.coded(name).codes < 0 for name in link.columns]
        self.null: Mask = np.logical_or.reduce(nulls) if nulls else np.zeros(self.others.size, dtype=np.bool_)

    @property
    def correlates(self) -> bool:
        """Whether a correlated query is no risk to the time of a statement: few pairs of rows, or an index that is
        nearly sure to be there, since the columns refer to another table, or all rows make one group."""
        if not self.link.own or self.frame.size * self.others.size <= PAIRS_OF_ROWS:
            return True
        return any(key.columns == self.link.columns for key in self.others.table.foreign_keys)

    @cached_property
    def counts(self) -> Ints:
        """The number of the other table's rows in each group."""
        return np.bincount(self.other[self.other >= 0], minlength=self.groups)

    def image(self, holds: Mask) -> Mask:
        """The groups that have one of these rows of the other table."""
        hit = np.zeros(self.groups, dtype=np.bool_)
        groups = self.other[holds]
        hit[groups[groups >= 0]] = True
        return hit

    def rows(self, hit: Mask) -> Mask:
        """The own rows whose group is hit."""
        return np.append(hit, False)[self.own]

    def query(
        self,
        select: tuple[Term, ...],
        condition: Condition | None,
        more: tuple[Term, ...] = (),
        tail: Term | None = None,
    ) -> Query:
        """SELECT from the other table where `condition` and `more` hold."""
        extra = condition.sources if condition else ()
        where = (*condition.joins, *condition.terms) if condition else ()
        return Query(select, (self.source, *extra), conjoin([*where, *more]), tail)

    @property
    def selected(self) -> tuple[Term, ...]:
        return tuple(self._linked(own, column) for own, column in self._pairs)

    @property
    def _pairs(self) -> Iterator[tuple[str, str]]:
        return zip(self.link.own, self.link.columns, strict=True)

    def _linked(self, own: str, column: str) -> Term:
        """A column of the other table, as a text where one's own is."""
        term, base = ref(self.link.key, column), self.frame.table.by_name[own].base
        return cast(term, "text") if base in TEXTS and self._base(column) not in TEXTS else term

    def _base(self, column: str) -> str:
        return self.frame.state.catalog[self.link.other].by_name[column].base

    @property
    def own_term(self) -> Term:
        return columns_of((), self.link.own)

    @property
    def correlation(self) -> tuple[Term, ...]:
        """The equations that a correlated query needs."""
        return tuple(op(self._linked(own, column), "=", ref((), own)) for own, column in self._pairs)

    def value(self, select: Term, condition: Condition | None) -> Term:
        """The correlated query of one value about a row's group."""
        return subquery(self.query((select,), condition, self.correlation))

    def no_nulls(self) -> tuple[Term, ...]:
        """What keeps NULL out of the selected columns."""
        nullable = (name for name in self.link.columns if (self.others.coded(name).codes < 0).any())
        return tuple(is_null(ref(self.link.key, name), False) for name in nullable)


class Deeper(Joined):
    """The same link with a row for every one that refers to a linked row by `key`: `others` are those of `below`.

    The query still selects from the linked table, which conditions on `below` have to join.
    """

    def __init__(self, joined: Joined, below: Frame, key: ForeignKey) -> None:
        up = below.parent(key)
        self.link = joined.link
        self.frame = joined.frame
        self.others = below
        self.own, self.groups = joined.own, joined.groups
        self.other = np.append(joined.other, np.int32(-1))[up]
        self.source = joined.source
        self.same = False
        self.null = np.append(joined.null, False)[up]
        self._nulls = joined.no_nulls()

    @property
    def correlates(self) -> bool:
        return self.frame.size * self.others.size <= PAIRS_OF_ROWS

    def no_nulls(self) -> tuple[Term, ...]:
        return self._nulls


def _group(frame: Frame, own: tuple[str, ...], others: Frame, columns: tuple[str, ...]) -> tuple[Codes, Codes, int]:
    left = np.zeros(frame.size, dtype=np.int64)
    right = np.zeros(others.size, dtype=np.int64)
    groups = 1
    for name, other_name in zip(own, columns, strict=True):
        mine, theirs = frame.coded(name), others.coded(other_name)
        place = {value: code for code, value in enumerate(mine.values)}
        # Values that no own row has are of no interest: they get no group.
        moved = np.array([place.get(value, -1) for value in theirs.values] + [-1], dtype=np.int64)
        left = _refine(left, mine.codes.astype(np.int64), len(mine.values))
        right = _refine(right, moved[theirs.codes], len(mine.values))
        known, dense = np.unique(left[left >= 0], return_inverse=True)
        left[left >= 0] = dense
        at = np.minimum(np.searchsorted(known, right), max(len(known) - 1, 0))
        right = np.where((right >= 0) & (known[at] == right), at, -1) if len(known) else np.full_like(right, -1)
        groups = len(known)
    return left.astype(np.int32), right.astype(np.int32), groups


def _refine(groups: Ints, codes: Ints, width: int) -> Ints:
    return np.where((groups >= 0) & (codes >= 0), groups * width + codes, -1)


def columns(joined: Joined) -> Iterator[Feature]:
    """The columns of the other table but those of the link."""
    everywhere = np.ones(joined.others.size, dtype=np.bool_)
    for column in joined.others.table.columns:
        if column.name not in joined.link.columns and column.base not in UNCOMPARABLE:
            yield Feature((), (), joined.link.key, column, joined.others.coded(column.name), everywhere)


def parents(state: State, joined: Joined) -> Iterator[Feature]:
    """The columns of the rows that the other table refers to."""
    others, link = joined.others, joined.link
    for key in others.table.foreign_keys:
        if set(key.columns) & set(link.columns):
            continue
        above = state.frame(key.target)
        if not above.size:
            continue
        up = others.parent(key)
        parent = source(above.table, ("up", link.key, key.name))
        joins = tuple(
            op(ref(parent.key, target), "=", ref(link.key, name))
            for name, target in zip(key.columns, key.target_columns, strict=True)
        )
        for column in above.table.columns:
            if column.name in key.target_columns or column.base in UNCOMPARABLE:
                continue
            coded = above.coded(column.name)
            if not is_constant(coded):
                codes = np.append(coded.codes, np.int32(-1))[up]
                yield Feature((parent,), joins, parent.key, column, Coded(codes, coded.values), up >= 0)


def is_constant(coded: Coded) -> bool:
    """Whether all rows have the same value, so that it says nothing."""
    return len(coded.values) + bool((coded.codes < 0).any()) < 2

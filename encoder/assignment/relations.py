"""Rows of other tables that belong to a row: its children, and rows that share a foreign key with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from emit.term import Query, Source, Term, conjoin, op, ref, subquery
from encoder.assignment.problem import Floats, Problem, to_number
from encoder.literals import source_of
from scratch.catalog import Column, Table

_MAX_RELATIONS = 16
_MAX_ROWS = 20_000


@dataclass(frozen=True)
class Member:
    """A column of the related rows, or one that they refer to: its values row by row of `Relation.flat`."""

    term: Term
    column: Column
    values: tuple[str | None, ...]
    sources: tuple[Source, ...]
    joins: tuple[Term, ...]
    is_key: bool

    @property
    def own(self) -> bool:
        return not self.sources

    @cached_property
    def numbers(self) -> Floats:
        return np.array([to_number(self.column.base, text) for text in self.values], dtype=np.float64)


@dataclass(frozen=True)
class Relation:
    """The rows of `other` whose `theirs` equals this row's `ours`; `child` where they refer to the row itself."""

    problem: Problem
    other: Table
    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    child: bool

    @property
    def key(self) -> str:
        return f"related:{self.other.name}:{','.join(self.theirs)}"

    @cached_property
    def _layout(self) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
        frame, other = self.problem.frame, self.problem.state.frame(self.other.name)
        own = [frame.texts(name) for name in self.ours]
        wanted: dict[tuple[str | None, ...], list[int]] = {
            tuple(column[row] for column in own): [] for row in self.problem.rows
        }
        for row, value in enumerate(zip(*(other.texts(name) for name in self.theirs), strict=True)):
            if value in wanted and None not in value:
                wanted[value].append(row)
        found: list[tuple[int, ...]] = []
        flat: list[int] = []
        for row in self.problem.rows:
            rows = wanted[tuple(column[row] for column in own)]
            found.append(tuple(range(len(flat), len(flat) + len(rows))))
            flat.extend(rows)
        return tuple(flat), tuple(found)

    @property
    def flat(self) -> tuple[int, ...]:
        """Row indexes in the frame of `other`."""
        return self._layout[0]

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """For every row of the sample the places of its related rows in `flat`."""
        return self._layout[1]

    @cached_property
    def group_of(self) -> NDArray[np.intp]:
        """For every related row the place in the sample that it belongs to (a shared row comes once for each)."""
        sizes = [len(group) for group in self.groups]
        return np.repeat(np.arange(len(sizes)), sizes)

    @cached_property
    def members(self) -> tuple[Member, ...]:
        return tuple(self._members())

    def _members(self) -> Iterator[Member]:
        frame = self.problem.state.frame(self.other.name)
        for column in self.other.columns:
            if column.name not in self.theirs:
                texts = frame.texts(column.name)
                values = tuple(texts[row] for row in self.flat)
                yield Member(ref(self.key, column.name), column, values, (), (), _is_key(self.other, column))
        shared = {key.target for key in self.problem.table.foreign_keys} | {self.problem.table.name}
        for link in self.other.foreign_keys if self.child else ():
            # What the row itself refers to, its children mostly share.
            if link.columns == self.theirs or link.target in shared:
                continue
            target = self.problem.state.catalog[link.target]
            reached = self.problem.follow(link, self.flat)
            source = source_of(target, f"{self.key}:{link.name}")
            joins = tuple(
                op(ref(source.key, theirs), "=", ref(self.key, ours))
                for ours, theirs in zip(link.columns, link.target_columns, strict=True)
            )
            for column in target.columns:
                if column.name not in link.target_columns:
                    texts = self.problem.state.frame(target.name).texts(column.name)
                    values = tuple(texts[row] if row >= 0 else None for row in reached)
                    is_key = _is_key(target, column)
                    yield Member(ref(source.key, column.name), column, values, (source,), joins, is_key)

    def select(
        self, value: Term, members: tuple[Member, ...] = (), where: Term | None = None, tail: Term | None = None
    ) -> Query:
        """SELECT `value` over the related rows; `members` are what it and `where` use."""
        sources = list(dict.fromkeys(source for member in members for source in member.sources))
        joins = list(dict.fromkeys(join for member in members for join in member.joins))
        match = [op(ref(self.key, b), "=", ref((), a)) for a, b in zip(self.ours, self.theirs, strict=True)]
        extra = [] if where is None else [where]
        condition = conjoin([*match, *joins, *extra])
        return Query((value,), (source_of(self.other, self.key), *sources), condition, tail)

    def scalar(
        self, value: Term, members: tuple[Member, ...] = (), where: Term | None = None, tail: Term | None = None
    ) -> Term:
        return subquery(self.select(value, members, where, tail))


@lru_cache(maxsize=8)
def relations(problem: Problem) -> tuple[Relation, ...]:
    """Children first, then rows under the same parent; those without any related row left out."""
    found: list[Relation] = []
    if problem.light:
        return ()
    seen: set[tuple[object, ...]] = set()

    def add(other: Table, ours: tuple[str, ...], theirs: tuple[str, ...], child: bool) -> None:
        mark = (other.name, ours, theirs)
        if mark in seen or len(found) >= _MAX_RELATIONS:
            return
        seen.add(mark)
        relation = Relation(problem, other, ours, theirs, child)
        if 0 < len(relation.flat) <= _MAX_ROWS:
            found.append(relation)

    catalog = problem.state.catalog
    for key in catalog.referenced_by.get(problem.table.name, ()):
        add(catalog[key.table], key.target_columns, key.columns, True)
    for own in problem.table.foreign_keys:
        for key in catalog.referenced_by.get(own.target, ()):
            if key.target_columns == own.target_columns:
                add(catalog[key.table], own.columns, key.columns, False)
    return tuple(found)


def _is_key(table: Table, column: Column) -> bool:
    return column.name in table.primary_key or any(column.name in key.columns for key in table.foreign_keys)

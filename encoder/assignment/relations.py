"""Rows of other tables that belong to a row: its children, and rows that share a foreign key with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from emit.literal import literal
from emit.term import Query, Source, Term, conjoin, op, raw, ref, subquery
from encoder.assignment.problem import INTEGERS, STRINGS, Floats, Problem, to_number
from encoder.frame import State, identifier_sql, table_sql
from encoder.literals import source_of
from encoder.selection.model import Path
from scratch.catalog import Catalog, Column, ForeignKey, Table
from scratch.session import rows

_MAX_RELATIONS = 16
_MAX_NEAR = 64
# Relations of each farther kind, and names by which the tables are found that rows are named in.
_MAX_FAR = 24
_MAX_NAMED = 12
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
    """The rows of `other` whose `theirs` equals this row's `ours`; `child` where they refer to the row itself.

    `path` leads to the row that `ours` are columns of, () for the row itself; `theirs` are columns of the row that
    `other` refers to by `via`, where that is given.  Keys of different types are compared as texts.
    """

    problem: Problem
    other: Table
    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    child: bool
    path: Path = ()
    via: ForeignKey | None = None

    @cached_property
    def key(self) -> str:
        via = "" if self.via is None else f"{self.via.name}."
        return f"related:{self.other.name}:{via}{','.join(self.theirs)}:{len(self.path)}{','.join(self.ours)}"

    @property
    def _owner(self) -> Table:
        return self.problem.state.catalog[self.path[-1].target] if self.path else self.problem.table

    @cached_property
    def _layout(self) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
        state = self.problem.state
        rows: Sequence[int] = self.problem.rows
        for key in self.path:
            rows = self.problem.follow(key, rows)
        own = [state.frame(self._owner.name).texts(name) for name in self.ours]
        sought = [tuple(column[row] for column in own) if row >= 0 else (None,) for row in rows]
        wanted: dict[tuple[str | None, ...], list[int]] = {value: [] for value in sought}
        for row, value in enumerate(self._their_values()):
            if value in wanted and None not in value:
                wanted[value].append(row)
        found: list[tuple[int, ...]] = []
        flat: list[int] = []
        for value in sought:
            related = wanted[value]
            found.append(tuple(range(len(flat), len(flat) + len(related))))
            flat.extend(related)
        return tuple(flat), tuple(found)

    def _their_values(self) -> Iterator[tuple[str | None, ...]]:
        other = self.problem.state.frame(self.other.name)
        if self.via is None:
            yield from zip(*(other.texts(name) for name in self.theirs), strict=True)
            return
        middle = self.problem.state.frame(self.via.target)
        columns = [middle.texts(name) for name in self.theirs]
        for row in other.parent(self.via).tolist():
            yield tuple(column[row] for column in columns) if row >= 0 else (None,)

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
        """Columns of the related rows, and of what children refer to."""
        return (*self._own_members(), *(self._hop_members() if self.child else ()))

    @cached_property
    def every_member(self) -> tuple[Member, ...]:
        """Columns of the related rows, and of what they refer to."""
        return self.members if self.child else (*self.members, *self._hop_members())

    def _own_members(self) -> Iterator[Member]:
        frame = self.problem.state.frame(self.other.name)
        for column in self.other.columns:
            if self.via is not None or column.name not in self.theirs:
                texts = frame.texts(column.name)
                values = tuple(texts[row] for row in self.flat)
                yield Member(ref(self.key, column.name), column, values, (), (), _is_key(self.other, column))

    def _hop_members(self) -> Iterator[Member]:
        shared = {key.target for key in self.problem.table.foreign_keys} | {self.problem.table.name}
        for link in self.other.foreign_keys:
            # What the row itself refers to, its children mostly share.
            if link.columns == self.theirs or (self.child and link.target in shared):
                continue
            target = self.problem.state.catalog[link.target]
            reached = self.problem.follow(link, self.flat)
            source, joins = self._hop(link)
            for column in target.columns:
                if column.name not in link.target_columns:
                    texts = self.problem.state.frame(target.name).texts(column.name)
                    values = tuple(texts[row] if row >= 0 else None for row in reached)
                    is_key = _is_key(target, column)
                    yield Member(ref(source.key, column.name), column, values, (source,), joins, is_key)

    def _hop(self, link: ForeignKey) -> tuple[Source, tuple[Term, ...]]:
        """The source of what the related rows refer to by `link`, and how it is joined."""
        source = source_of(self.problem.state.catalog[link.target], f"{self.key}:{link.name}")
        pairs = zip(link.columns, link.target_columns, strict=True)
        return source, tuple(op(ref(source.key, theirs), "=", ref(self.key, ours)) for ours, theirs in pairs)

    def _match(self) -> Iterator[Term]:
        key, table = self.key, self.other
        if self.via is not None:
            key, table = f"{self.key}:{self.via.name}", self.problem.state.catalog[self.via.target]
        for ours, theirs in zip(self.ours, self.theirs, strict=True):
            left, right = table.by_name[theirs], self._owner.by_name[ours]
            soft = (left.base in STRINGS) != (right.base in STRINGS)
            yield op(_as_text(ref(key, theirs), left, soft), "=", _as_text(ref(self.path, ours), right, soft))

    def select(
        self, value: Term, members: tuple[Member, ...] = (), where: Term | None = None, tail: Term | None = None
    ) -> Query:
        """SELECT `value` over the related rows; `members` are what it and `where` use."""
        hops = [] if self.via is None else [self._hop(self.via)]
        sources = dict.fromkeys([*(s for s, _ in hops), *(source for member in members for source in member.sources)])
        joins = dict.fromkeys(
            [*(j for _, on in hops for j in on), *(join for member in members for join in member.joins)]
        )
        extra = [] if where is None else [where]
        condition = conjoin([*self._match(), *joins, *extra])
        return Query((value,), (source_of(self.other, self.key), *sources), condition, tail)

    def scalar(
        self, value: Term, members: tuple[Member, ...] = (), where: Term | None = None, tail: Term | None = None
    ) -> Term:
        return subquery(self.select(value, members, where, tail))


def _as_text(term: Term, column: Column, soft: bool) -> Term:
    return op(term, "||", raw("''")) if soft and column.base not in STRINGS else term


@lru_cache(maxsize=8)
def near_relations(problem: Problem) -> tuple[Relation, ...]:
    """Children first, then rows under the same parent; those without any related row left out."""
    if problem.light:
        return ()
    return tuple(islice(_usable(chain(_children(problem), _siblings(problem))), _MAX_NEAR))


def relations(problem: Problem) -> tuple[Relation, ...]:
    """The first of `near_relations`, among which sums and products are looked for."""
    return near_relations(problem)[:_MAX_RELATIONS]


@lru_cache(maxsize=8)
def far_relations(problem: Problem) -> tuple[Relation, ...]:
    """The rest of `near_relations`; rows that a column names which is no foreign key; grandchildren; children of rows
    under the same parent; rows under the same grandparent."""
    if problem.light:
        return ()
    kinds = (_named, _grandchildren, _nephews, _uncles)
    farther = (found for kind in kinds for found in islice(_usable(kind(problem)), _MAX_FAR))
    return (*near_relations(problem)[_MAX_RELATIONS:], *farther)


def _usable(found: Iterable[Relation]) -> Iterator[Relation]:
    seen: set[tuple[object, ...]] = set()
    for relation in found:
        mark = (relation.other.name, relation.ours, relation.theirs, relation.path, relation.via)
        if mark not in seen:
            seen.add(mark)
            if 0 < len(relation.flat) <= _MAX_ROWS:
                yield relation


def _children(problem: Problem) -> Iterator[Relation]:
    catalog = problem.state.catalog
    for key in catalog.referenced_by.get(problem.table.name, ()):
        yield Relation(problem, catalog[key.table], key.target_columns, key.columns, True)


def _siblings(problem: Problem) -> Iterator[Relation]:
    catalog = problem.state.catalog
    for own in _telling(problem, problem.table, problem.rows):
        for key in catalog.referenced_by.get(own.target, ()):
            if key.target_columns == own.target_columns:
                yield Relation(problem, catalog[key.table], own.columns, key.columns, False)


def _telling(problem: Problem, table: Table, chosen: Sequence[int]) -> list[ForeignKey]:
    """The foreign keys of a table, those first that tell most of the chosen rows (-1 for none) apart."""

    def distinct(key: ForeignKey) -> int:
        columns = [problem.state.frame(table.name).texts(name) for name in key.columns]
        return len({tuple(column[row] for column in columns) for row in chosen if row >= 0})

    return sorted(table.foreign_keys, key=lambda key: -distinct(key))


def _grandchildren(problem: Problem) -> Iterator[Relation]:
    catalog = problem.state.catalog
    for key in catalog.referenced_by.get(problem.table.name, ()):
        for below in catalog.referenced_by.get(key.table, ()):
            yield Relation(problem, catalog[below.table], key.target_columns, key.columns, True, via=below)


def _nephews(problem: Problem) -> Iterator[Relation]:
    catalog = problem.state.catalog
    for own in _telling(problem, problem.table, problem.rows):
        for key in catalog.referenced_by.get(own.target, ()):
            if key.target_columns == own.target_columns and key.table != problem.table.name:
                for below in catalog.referenced_by.get(key.table, ()):
                    if below.table != problem.table.name:
                        yield Relation(problem, catalog[below.table], own.columns, key.columns, False, via=below)


def _uncles(problem: Problem) -> Iterator[Relation]:
    catalog = problem.state.catalog
    for own in _telling(problem, problem.table, problem.rows):
        for above in _telling(problem, catalog[own.target], problem.follow(own, problem.rows)):
            for key in catalog.referenced_by.get(above.target, ()):
                if key.target_columns == above.target_columns:
                    yield Relation(problem, catalog[key.table], above.columns, key.columns, False, path=(own,))


def _named(problem: Problem) -> Iterator[Relation]:
    """Rows that a column like object_id names without a foreign key, on either side."""
    catalog, key = problem.state.catalog, problem.table.row_key
    if len(key) == 1:
        base = problem.table.by_name[key[0]].base
        for table in _tables(catalog):
            for column in _naming(table):
                if column.base in STRINGS or _comparable(column.base, base):
                    yield Relation(problem, table, key, (column.name,), False)
    for column in _naming(problem.table):
        texts = problem.frame.texts(column.name)
        named = sorted({text for row in problem.rows if (text := texts[row])})[:_MAX_NAMED]
        for target in _holders(problem.state, column, named) if named else ():
            yield Relation(problem, target, (column.name,), target.row_key, False)


def _naming(table: Table) -> Iterator[Column]:
    """Columns that look like references but are none."""
    links = {name for key in table.foreign_keys for name in key.columns} | set(table.primary_key)
    for column in table.columns:
        named = column.name.lower().endswith("id") and column.name not in links
        if named and column.base in INTEGERS | STRINGS | {"uuid"}:
            yield column


def _tables(catalog: Catalog) -> list[Table]:
    return [catalog[name] for name in sorted(catalog)]


def _comparable(a: str, b: str) -> bool:
    return a == b or (a in INTEGERS and b in INTEGERS)


def _holders(state: State, column: Column, named: Sequence[str]) -> list[Table]:
    """The tables of which all of `named` are keys, the smallest first."""
    whole = all(text.isdigit() and len(text) < 10 for text in named)
    asked: list[Table] = []
    for table in _tables(state.catalog):
        if len(table.row_key) == 1:
            base = table.by_name[table.row_key[0]].base
            if base in INTEGERS if whole else base == column.base:
                asked.append(table)
    listed = ",".join(literal(text, "text", context="compare") for text in named)
    counts = [
        f"(SELECT count(*) FROM {table_sql(table.name)} WHERE {identifier_sql(table.row_key[0])} IN({listed}))"
        for table in asked
    ]
    if not counts:
        return []
    found = rows(state.session, f"SELECT {','.join(counts)}")[0]
    return [table for table, count in zip(asked, found, strict=True) if count == str(len(named))][:_MAX_FAR]


def _is_key(table: Table, column: Column) -> bool:
    return column.name in table.primary_key or any(column.name in key.columns for key in table.foreign_keys)

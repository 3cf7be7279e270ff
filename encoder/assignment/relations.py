"""Rows of other tables that belong to a row, with their columns and how queries speak of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from emit.term import Query, Source, Term, conjoin, op, raw, ref, subquery
from encoder.assignment.containment import containing
from encoder.assignment.problem import STRINGS, Floats, Problem, to_number
from encoder.keyed import keyed
from encoder.literals import source_of
from encoder.selection.model import Path
from scratch.catalog import Column, ForeignKey, Table


@dataclass(frozen=True)
class Member:
    """A column of the related rows, or one that they refer to: `texts` are all its values, `rows` where in them the
    related rows' are (-1 for NULL), row by row of `Relation.flat`."""

    term: Term
    column: Column
    texts: Sequence[str | None]
    rows: Sequence[int]
    sources: tuple[Source, ...]
    joins: tuple[Term, ...]
    is_key: bool

    @property
    def own(self) -> bool:
        return not self.sources

    def value(self, place: int) -> str | None:
        row = self.rows[place]
        return self.texts[row] if row >= 0 else None

    @cached_property
    def values(self) -> tuple[str | None, ...]:
        texts = self.texts
        return tuple(texts[row] if row >= 0 else None for row in self.rows)

    @cached_property
    def numbers(self) -> Floats:
        return np.array([to_number(self.column.base, text) for text in self.values], dtype=np.float64)


@dataclass(frozen=True)
class Relation:
    """The rows of `other` whose `theirs` equals this row's `ours`; `child` where they refer to the row itself.

    `path` leads to the row that `ours` are columns of, () for the row itself; `theirs` are columns of the row that
    `other` refers to by `via`, where that is given.  Keys of different types are compared as texts.  With an
    `operator` of `containment`, ours `operator` theirs holds instead.  Beside that, columns are `alike`: for each a
    path from the row, the column there, and the related row's.
    """

    problem: Problem
    other: Table
    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    child: bool
    path: Path = ()
    via: ForeignKey | None = None
    operator: str = "="
    alike: tuple[tuple[Path, str, str], ...] = ()

    @cached_property
    def mark(self) -> tuple[object, ...]:
        """What tells relations of one problem apart."""
        return self.other.name, self.ours, self.theirs, self.path, self.via, self.operator, self.alike

    @cached_property
    def key(self) -> str:
        via = "" if self.via is None else f"{self.via.name}."
        ours = f"{len(self.path)}{','.join(self.ours)}{self.operator}{','.join(a for _, a, _ in self.alike)}"
        return f"related:{self.other.name}:{via}{','.join(self.theirs)}:{ours}"

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
        found: list[tuple[int, ...]] = []
        flat: list[int] = []
        every = self._equal(sought) if self.operator == "=" else self._within(sought)
        for related in self._matching(every):
            found.append(tuple(range(len(flat), len(flat) + len(related))))
            flat.extend(related)
        return tuple(flat), tuple(found)

    def _equal(self, sought: Sequence[tuple[str | None, ...]]) -> list[list[int]]:
        known = keyed(self.problem.state.frame(self.other.name), self.theirs, self.via)
        return [known.rows(value) for value in sought]

    def _within(self, sought: Sequence[tuple[str | None, ...]]) -> list[list[int]]:
        theirs = [value[0] for value in self._their_values()]
        return containing(self.operator, [value[0] for value in sought], theirs)

    def _matching(self, found: list[list[int]]) -> list[list[int]]:
        """Of the related rows those that are alike in the columns that have to be."""
        state = self.problem.state
        other = state.frame(self.other.name)
        for path, ours, its in self.alike:
            owner, rows = self.problem.table.name, self.problem.rows
            for key in path:
                owner, rows = key.target, tuple(self.problem.follow(key, rows))
            mine, yours = state.frame(owner).texts(ours), other.texts(its)
            wanted = [mine[row] if row >= 0 else None for row in rows]
            nothing = self.operator != "="
            found = [
                [place for place in group if yours[place] == value] if nothing or value is not None else []
                for value, group in zip(wanted, found, strict=True)
            ]
        return found

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
            if self.via is not None or self.operator != "=" or column.name not in self.theirs:
                is_key = _is_key(self.other, column)
                yield Member(ref(self.key, column.name), column, frame.texts(column.name), self.flat, (), (), is_key)

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
                    is_key = _is_key(target, column)
                    yield Member(ref(source.key, column.name), column, texts, reached, (source,), joins, is_key)

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
            if self.operator != "=":
                yield op(ref(self.path, ours), self.operator, ref(key, theirs))
                continue
            soft = (left.base in STRINGS) != (right.base in STRINGS)
            yield op(_as_text(ref(key, theirs), left, soft), "=", _as_text(ref(self.path, ours), right, soft))
        frame, other = self.problem.frame, self.problem.state.frame(self.other.name)
        for path, ours, theirs in self.alike:
            gaps = self.operator != "=" and None in frame.texts(ours) and None in other.texts(theirs)
            yield op(ref(self.key, theirs), "IS NOT DISTINCT FROM" if gaps else "=", ref(path, ours))

    def select(
        self, value: Term, members: tuple[Member, ...] = (), where: Term | None = None, tail: Term | None = None
    ) -> Query:
        """SELECT `value` over the related rows; `members` are what it and `where` use."""
        hops = [] if self.via is None else [self._hop(self.via)]
        hops += [(source, member.joins) for member in members for source in member.sources]
        sources = dict.fromkeys(source for source, _ in hops)
        joins = dict.fromkeys(join for _, on in hops for join in on)
        extra = [] if where is None else [where]
        condition = conjoin([*self._match(), *joins, *extra])
        return Query((value,), (source_of(self.other, self.key), *sources), condition, tail)

    def scalar(
        self, value: Term, members: tuple[Member, ...] = (), where: Term | None = None, tail: Term | None = None
    ) -> Term:
        return subquery(self.select(value, members, where, tail))


def _as_text(term: Term, column: Column, soft: bool) -> Term:
    return op(term, "||", raw("''")) if soft and column.base not in STRINGS else term


def _is_key(table: Table, column: Column) -> bool:
    return column.name in table.primary_key or any(column.name in key.columns for key in table.foreign_keys)

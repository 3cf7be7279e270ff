"""Candidates that settle several tables by one statement: data-modifying CTEs.

One statement, the driver, returns the rows that it deletes or updates; followers on other tables take
their rows from there instead of selecting them again.  All parts see the same snapshot (PostgreSQL manual,
7.8.4), so everything here is searched in one state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from emit.term import Cte, Delete, Insert, Source, Statement, Term, Update, Whole, conjoin, op, raw, ref, separate
from encoder.candidate import Candidate, Element
from encoder.choose import lowered, select
from encoder.context import Context
from encoder.drivers import CTE, Driver, drivers, places, reading
from encoder.effect import RowTuple, TableEffect, key_of
from encoder.insert import insert_elements, propose
from encoder.literals import source_of
from encoder.proof import prove
from encoder.selection.lower import Where
from encoder.selection.model import Labels, Path
from encoder.update import UpdateSearch

_MAX_PARTS = 5
# How many inserts that read a driver are tried for each table.
_INSERTS = 2


@dataclass(frozen=True)
class _Follower:
    """A statement that reads the driver's rows as `d`; `returns` are the columns that it needs, () for all.

    `build` makes it for the names under which `d` has these columns.
    """

    build: Callable[[Mapping[str, str]], Statement]
    returns: tuple[str, ...]
    target: frozenset[Element]


def shared_candidates(context: Context, parts: Sequence[TableEffect], found: Sequence[Candidate]) -> list[Candidate]:
    """Candidates that cover a driver and one or more followers; `found` are those of the single tables."""
    operations = sum(bool(rows) for part in parts for rows in (part.inserts, part.deletes, part.updates))
    if operations < 2 or len(parts) > _MAX_PARTS or context.late:
        return []
    made: list[Candidate] = []
    for driver in drivers(parts, found):
        if context.late:
            break
        for group in _groups(list(_followers(context, parts, driver))):
            target = driver.candidate.covers.union(*(follower.target for follower in group))
            candidate = prove(context, parts, target, _compose(driver, group), "shared", tries=3)
            if candidate is not None:
                made.append(candidate)
    return made


def _groups(followers: Sequence[_Follower]) -> Iterator[tuple[_Follower, ...]]:
    """Each follower alone, and the first for each target together."""
    for follower in followers:
        yield (follower,)
    first: dict[frozenset[Element], _Follower] = {}
    for follower in followers:
        if not any(follower.target & target for target in first):
            first[follower.target] = follower
    if len(first) > 1:
        yield tuple(first.values())


def _followers(context: Context, parts: Sequence[TableEffect], driver: Driver) -> Iterator[_Follower]:
    own = driver.table.name
    if not driver.inserts:
        rows = places(context.state.frame(own), driver.before)
        for part in parts if rows is not None else ():
            if part.table.name == own or not part.table.row_key or rows is None:
                continue
            if part.deletes:
                yield from _following_deletes(context, driver, rows, part)
            if part.updates:
                yield from _following_updates(context, parts, driver, rows, part)
    targets = [part for part in parts if part.inserts and not (driver.inserts and part.table.name == own)]
    if not targets:
        return
    with reading(context, driver) as read:
        if read is None:
            return
        there, pool = read
        for part in targets:
            proposals = propose(there, part, (pool,))
            yield from [
                _Follower(partial(_as_is, proposal.statement), (), insert_elements(part))
                for proposal in proposals
                if _reads_driver(proposal.statement)
            ][:_INSERTS]


def _as_is(statement: Statement, names: Mapping[str, str]) -> Statement:
    return statement


def _reads_driver(statement: Insert) -> bool:
    rows = statement.rows
    return not isinstance(rows, Term) and any(source.text == CTE for source in rows.sources)


# -- followers joined by a foreign key


@dataclass(frozen=True)
class _Link:
    """Rows of the follower's table that the driver's rows are joined to: `pairs` of its columns and the driver's."""

    linked: NDArray[np.bool_]
    pairs: tuple[tuple[str, str], ...]

    @property
    def returns(self) -> tuple[str, ...]:
        return tuple(theirs for _, theirs in self.pairs)

    def condition(self, names: Mapping[str, str]) -> Term:
        joined = conjoin([op(ref((), own), "=", ref(CTE, names.get(theirs, theirs))) for own, theirs in self.pairs])
        assert joined is not None
        return joined


def _links(context: Context, driver: Driver, rows: NDArray[np.int64], part: TableEffect) -> Iterator[_Link]:
    """By every foreign key between the two tables, whichever way it points."""
    frame = context.state.frame(part.table.name)
    driver_frame = context.state.frame(driver.table.name)
    for key in part.table.foreign_keys:
        if key.target == driver.table.name:
            pairs = tuple(zip(key.columns, key.target_columns, strict=True))
            yield _Link(np.isin(frame.parent(key), rows), pairs)
    for key in driver.table.foreign_keys:
        if key.target == part.table.name:
            linked = np.zeros(frame.size, dtype=np.bool_)
            parents = driver_frame.parent(key)[rows]
            linked[parents[parents >= 0]] = True
            yield _Link(linked, tuple(zip(key.target_columns, key.columns, strict=True)))


def _following_deletes(
    context: Context, driver: Driver, rows: NDArray[np.int64], part: TableEffect
) -> Iterator[_Follower]:
    frame = context.state.frame(part.table.name)
    must = _mask(context, part, part.deletes)
    target = frozenset((part.table.name, "D", row, None) for row in part.deletes)
    for link in _links(context, driver, rows, part):
        for where in _conditions(context, part, link, must, np.zeros(frame.size, np.bool_)):

            def build(names: Mapping[str, str], link: _Link = link, where: Where = where) -> Statement:
                sources, condition = _joined(driver, link, where, names)
                return Delete(source_of(part.table), sources, condition)

            yield _Follower(build, link.returns, target)


def _following_updates(
    context: Context, parts: Sequence[TableEffect], driver: Driver, rows: NDArray[np.int64], part: TableEffect
) -> Iterator[_Follower]:
    search = UpdateSearch(context, parts, part)
    group = search.whole()
    must = _mask(context, part, [before for before, _ in part.updates])
    links = [link for link in _links(context, driver, rows, part) if not (must & ~link.linked).any()]
    if not links:
        return
    assignments = search.cheapest_assignments(group)
    if assignments is None:
        return
    needed: frozenset[Path] = frozenset().union(*(e.paths for _, e in assignments))
    sets = tuple(((column.name,), expression.term) for column, expression in assignments)
    free = search.free_rows(assignments)
    for link in links:
        for where in _conditions(context, part, link, must, free, needed):

            def build(names: Mapping[str, str], link: _Link = link, where: Where = where) -> Statement:
                sources, condition = _joined(driver, link, where, names)
                return Update(source_of(part.table), sets, sources, condition)

            yield _Follower(build, link.returns, group.elements(part))


def _joined(driver: Driver, link: _Link, where: Where, names: Mapping[str, str]) -> tuple[tuple[Source, ...], Term]:
    """Sources and condition of a follower; without `names`, `d` has all columns of the driver's table."""
    columns = tuple(names.values()) or tuple(column.name for column in driver.table.columns)
    condition = link.condition(names)
    if where.where is not None:
        condition = op(condition, "AND", where.where)
    return (Source(CTE, CTE, columns), *where.sources), condition


def _conditions(
    context: Context,
    part: TableEffect,
    link: _Link,
    must: NDArray[np.bool_],
    free: NDArray[np.bool_],
    needed: frozenset[Path] = frozenset(),
) -> list[Where]:
    """What picks the `must` rows among the linked ones, at most one spelling."""
    if (must & ~link.linked).any():
        return []
    forbidden = link.linked & ~must & ~free
    selections = select(context, part.table.name, Labels(must, forbidden), share=0.25, keep=1)
    return [where for s in selections[:1] for where in lowered(context, part.table.name, s, needed=needed)[:1]]


def _mask(context: Context, part: TableEffect, rows: Sequence[RowTuple]) -> NDArray[np.bool_]:
    frame = context.state.frame(part.table.name)
    mask = np.zeros(frame.size, dtype=np.bool_)
    mask[[frame.index[key_of(part.table, row)] for row in rows]] = True
    return mask


# -- putting together


def _compose(driver: Driver, followers: Sequence[_Follower]) -> Iterator[Statement]:
    """WITH d AS(driver RETURNING …), … the last follower; every choice of the last one and of what is returned."""
    tree = driver.candidate.tree
    assert tree is not None
    for listed, names in _returned(driver, followers):
        head = Cte(CTE, replace(tree, returning=listed))
        statements = [follower.build(names) for follower in followers]
        for place, last in enumerate(statements):
            others = [statement for index, statement in enumerate(statements) if index != place]
            ctes = (head, *(Cte(chr(ord(CTE) + 1 + index), body) for index, body in enumerate(others)))
            yield replace(last, ctes=(*ctes, *last.ctes))


def _returned(driver: Driver, followers: Sequence[_Follower]) -> Iterator[tuple[Term, dict[str, str]]]:
    """RETURNING lists, each with the names of the columns in it ({}: all under their own)."""
    tree = driver.candidate.tree
    joined = isinstance(tree, Delete | Update) and tree.sources
    # Beside other sources a bare star would return their columns too.
    yield (Term((Whole(()), ".*")) if joined else raw("*")), {}
    names = sorted({name for follower in followers for name in follower.returns})
    if any(not follower.returns for follower in followers):
        return
    yield Term(separate([ref((), name) for name in names])), {name: name for name in names}
    used = {column.name for column in driver.table.columns}
    used |= {name for follower in followers for source in _sources(follower) for name in source.columns}
    letters = [letter for letter in "abcdefghijklmnopqrstuvwxyz" if letter not in used]
    if len(names) == 1 and letters:
        yield Term((*ref((), names[0]).parts, letters[0])), {names[0]: letters[0]}


def _sources(follower: _Follower) -> tuple[Source, ...]:
    statement = follower.build({})
    assert isinstance(statement, Delete | Update)
    return (statement.target, *statement.sources)

"""Candidates that settle several tables by one statement: data-modifying CTEs.

One statement, the driver, returns the rows that it deletes or updates; followers on other tables take
their rows from there instead of selecting them again.  All parts see the same snapshot (PostgreSQL manual,
7.8.4), so everything here is searched in one state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from emit.term import Cte, Delete, Insert, Ref, Source, Statement, Term, Update, conjoin, op, raw, ref, separate
from encoder.candidate import Candidate, Element, elements
from encoder.choose import lowered, select
from encoder.context import Context
from encoder.effect import RowTuple, TableEffect, key_of
from encoder.insert import insert_elements, propose
from encoder.insertion.model import DriverRows
from encoder.literals import source_of
from encoder.proof import prove
from encoder.selection.model import Labels, Path
from encoder.update import UpdateSearch
from scratch.catalog import ForeignKey

_CTE = "d"
_MAX_PARTS = 5


@dataclass(frozen=True)
class _Driver:
    """The statement that returns rows, and which rows of its table's frame these are."""

    candidate: Candidate
    effect: TableEffect
    rows: NDArray[np.int64]


@dataclass(frozen=True)
class _Follower:
    """A statement that reads the driver's rows as `d`; `returns` are the columns that it needs, () for all."""

    statement: Statement
    returns: tuple[str, ...]
    target: frozenset[Element]


def shared_candidates(context: Context, parts: Sequence[TableEffect], found: Sequence[Candidate]) -> list[Candidate]:
    """Candidates that cover a driver and one or more followers; `found` are those of the single tables."""
    if not 2 <= len(parts) <= _MAX_PARTS or context.late:
        return []
    made: list[Candidate] = []
    for driver in _drivers(context, parts, found):
        if context.late:
            break
        followers = [
            follower
            for part in parts
            if part.table.name != driver.effect.table.name
            for follower in _followers(context, parts, driver, part)
        ]
        for group in _groups(followers):
            target = driver.candidate.covers.union(*(follower.target for follower in group))
            candidate = prove(context, parts, target, _compose(driver, group), "shared", tries=2)
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


def _drivers(context: Context, parts: Sequence[TableEffect], found: Sequence[Candidate]) -> Iterator[_Driver]:
    """For each table the shortest statement that alone deletes, or updates, all that is to be."""
    for part in parts:
        frame = context.state.frame(part.table.name)
        if not part.table.row_key:
            continue
        for rows, kind in ((part.deletes, "D"), (tuple(before for before, _ in part.updates), "U")):
            if not rows:
                continue
            whole = frozenset(e for e in elements([part]) if e[1] == kind)
            fits = [c for c in found if isinstance(c.tree, Delete | Update) and whole <= c.covers and not c.tree.ctes]
            best = min(fits, key=lambda c: (c.size, c.statements), default=None)
            if best is not None:
                places = sorted(frame.index[key_of(part.table, row)] for row in rows)
                yield _Driver(best, part, np.array(places, dtype=np.int64))


def _followers(
    context: Context, parts: Sequence[TableEffect], driver: _Driver, part: TableEffect
) -> Iterator[_Follower]:
    if part.deletes and part.table.row_key:
        yield from _following_deletes(context, driver, part)
    if part.updates and part.table.row_key:
        yield from _following_updates(context, parts, driver, part)
    if part.inserts:
        pool = [DriverRows(driver.effect.table.name, driver.rows, None, _CTE)]
        for proposal in propose(context, part, pool):
            if _reads_driver(proposal.statement):
                yield _Follower(proposal.statement, (), insert_elements(part))
                break


def _reads_driver(statement: Insert) -> bool:
    rows = statement.rows
    return not isinstance(rows, Term) and any(source.text == _CTE for source in rows.sources)


# -- followers joined by a foreign key


@dataclass(frozen=True)
class _Link:
    """Rows of the follower's table that the driver's rows are joined to by `condition`."""

    linked: NDArray[np.bool_]
    condition: Term
    returns: tuple[str, ...]


def _links(context: Context, driver: _Driver, part: TableEffect) -> Iterator[_Link]:
    """By every foreign key between the two tables, whichever way it points."""
    frame = context.state.frame(part.table.name)
    driver_frame = context.state.frame(driver.effect.table.name)
    for key in part.table.foreign_keys:
        if key.target == driver.effect.table.name:
            yield _Link(np.isin(frame.parent(key), driver.rows), _join(key, down=True), key.target_columns)
    for key in driver.effect.table.foreign_keys:
        if key.target == part.table.name:
            linked = np.zeros(frame.size, dtype=np.bool_)
            parents = driver_frame.parent(key)[driver.rows]
            linked[parents[parents >= 0]] = True
            yield _Link(linked, _join(key, down=False), key.columns)


def _join(key: ForeignKey, *, down: bool) -> Term:
    pairs = zip(key.columns, key.target_columns, strict=True)
    terms = [
        op(ref((), own), "=", ref(_CTE, target)) if down else op(ref((), target), "=", ref(_CTE, own))
        for own, target in pairs
    ]
    joined = conjoin(terms)
    assert joined is not None
    return joined


def _following_deletes(context: Context, driver: _Driver, part: TableEffect) -> Iterator[_Follower]:
    frame = context.state.frame(part.table.name)
    must = _mask(context, part, part.deletes)
    target = frozenset((part.table.name, "D", row, None) for row in part.deletes)
    for link in _links(context, driver, part):
        for sources, where in _conditions(context, part, link, must, np.zeros(frame.size, np.bool_)):
            statement = Delete(source_of(part.table), (_source(link.returns), *sources), where)
            yield _Follower(statement, link.returns, target)


def _following_updates(
    context: Context, parts: Sequence[TableEffect], driver: _Driver, part: TableEffect
) -> Iterator[_Follower]:
    search = UpdateSearch(context, parts, part)
    group = search.whole()
    must = _mask(context, part, [before for before, _ in part.updates])
    links = [link for link in _links(context, driver, part) if not (must & ~link.linked).any()]
    if not links:
        return
    assignments = search.cheapest_assignments(group)
    if assignments is None:
        return
    needed: frozenset[Path] = frozenset().union(*(e.paths for _, e in assignments))
    sets = tuple(((column.name,), expression.term) for column, expression in assignments)
    free = search.free_rows(assignments)
    for link in links:
        for sources, where in _conditions(context, part, link, must, free, needed):
            statement = Update(source_of(part.table), sets, (_source(link.returns), *sources), where)
            yield _Follower(statement, link.returns, group.elements(part))


def _conditions(
    context: Context,
    part: TableEffect,
    link: _Link,
    must: NDArray[np.bool_],
    free: NDArray[np.bool_],
    needed: frozenset[Path] = frozenset(),
) -> Iterator[tuple[tuple[Source, ...], Term]]:
    """Sources and WHERE that pick the `must` rows among the linked ones."""
    if (must & ~link.linked).any():
        return
    forbidden = link.linked & ~must & ~free
    selections = select(context, part.table.name, Labels(must, forbidden), share=0.25, keep=1)
    for selection in selections[:1]:
        for where in lowered(context, part.table.name, selection, needed=needed)[:1]:
            terms = [link.condition] + ([where.where] if where.where is not None else [])
            joined = conjoin(terms)
            assert joined is not None
            yield where.sources, joined


def _mask(context: Context, part: TableEffect, rows: Sequence[RowTuple]) -> NDArray[np.bool_]:
    frame = context.state.frame(part.table.name)
    mask = np.zeros(frame.size, dtype=np.bool_)
    mask[[frame.index[key_of(part.table, row)] for row in rows]] = True
    return mask


def _source(columns: tuple[str, ...]) -> Source:
    return Source(_CTE, _CTE, columns)


# -- putting together


def _compose(driver: _Driver, followers: Sequence[_Follower]) -> Iterator[Statement]:
    """WITH d AS(driver RETURNING …), … the last follower; every choice of the last one."""
    returns = sorted({name for follower in followers for name in follower.returns})
    star = any(not follower.returns for follower in followers)
    tree = driver.candidate.tree
    assert isinstance(tree, Delete | Update)
    listed = raw("*") if star else Term(separate([Term((Ref((), name),)) for name in returns]))
    head = Cte(_CTE, replace(tree, returning=listed))
    for place, last in enumerate(followers):
        others = [follower.statement for index, follower in enumerate(followers) if index != place]
        ctes = (head, *(Cte(chr(ord(_CTE) + 1 + index), body) for index, body in enumerate(others)))
        yield replace(last.statement, ctes=(*ctes, *last.statement.ctes))

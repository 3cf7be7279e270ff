"""Statements that can return the rows that they delete, update or insert, and the state in which to read those rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import psycopg
from numpy.typing import NDArray

from emit.render import render
from emit.term import Delete, Insert, Statement, Term, Update, ref, separate
from encoder.candidate import Candidate, elements
from encoder.context import Context
from encoder.effect import Key, RowTuple, TableEffect
from encoder.frame import Frame
from encoder.insertion.model import DriverRows
from scratch.catalog import Table

CTE = "d"


@dataclass(frozen=True)
class Driver:
    """The statement that returns rows: `before` as they are in the present state (none for an insert), `returned`
    as RETURNING gives them."""

    candidate: Candidate
    effect: TableEffect
    before: tuple[RowTuple, ...]
    returned: tuple[RowTuple, ...]

    @property
    def table(self) -> Table:
        return self.effect.table

    @property
    def deletes(self) -> bool:
        return isinstance(self.candidate.tree, Delete)

    @property
    def inserts(self) -> bool:
        return isinstance(self.candidate.tree, Insert)


def drivers(parts: Sequence[TableEffect], found: Sequence[Candidate]) -> Iterator[Driver]:
    """For each table the shortest statement that alone deletes, updates or inserts all that is to be."""
    for part in parts:
        old, new = tuple(b for b, _ in part.updates), tuple(a for _, a in part.updates)
        for operation, kind, before, returned in (
            (Delete, "D", part.deletes, part.deletes),
            (Update, "U", old, new),
            (Insert, "I", (), part.inserts),
        ):
            if not returned:
                continue
            whole = frozenset(e for e in elements([part]) if e[1] == kind)
            fits = [c for c in found if isinstance(c.tree, operation) and whole <= c.covers and _can_return(c.tree)]
            best = min(fits, key=lambda c: (c.size, c.statements), default=None)
            if best is not None:
                yield Driver(best, part, before, returned)


def _can_return(tree: Statement) -> bool:
    """Whether more can be had of a statement by RETURNING; what VALUES said can be said again."""
    return not tree.ctes and not (isinstance(tree, Insert) and isinstance(tree.rows, Term))


def places(frame: Frame, rows: Sequence[RowTuple]) -> NDArray[np.int64] | None:
    """The frame's rows that `rows` are, in its order; None where equal rows without a key cannot be told apart."""
    where: dict[RowTuple, list[int]] = {}
    names = frame.table.row_key or tuple(column.name for column in frame.table.stored)
    at = [place for place, column in enumerate(frame.table.stored) if column.name in names]
    order = [column.name for column in frame.table.stored if column.name in names]
    for row, key in enumerate(zip(*(frame.texts(name) for name in order), strict=True)):
        where.setdefault(key, []).append(row)
    wanted: dict[RowTuple, int] = {}
    for values in rows:
        key = tuple(values[place] for place in at)
        wanted[key] = wanted.get(key, 0) + 1
    if any(len(where.get(key, ())) != count for key, count in wanted.items()):
        return None
    return np.array(sorted(row for key in wanted for row in where[key]), dtype=np.int64)


@contextmanager
def reading(context: Context, driver: Driver) -> Iterator[tuple[Context, DriverRows] | None]:
    """A context in whose state the driver's returned rows stand, and these rows; None where they cannot be found.

    What a DELETE returns stands in the present state.  What UPDATE and INSERT return stands in the state after them,
    which differs from what the statement's other parts will see in the driver's own table alone.
    """
    if driver.deletes:
        frame = context.state.frame(driver.table.name)
        found = places(frame, driver.returned)
        if found is not None:
            found = found[np.argsort(frame.scan[found])]
        yield None if found is None else (context, DriverRows(driver.table.name, found, None, CTE))
        return
    lab = context.lab
    standing = lab.sequences()
    changed = sorted({element[0] for element in driver.candidate.covers})
    with lab.savepoint():
        keys = _returned(context, driver)
        state = context.state.successor(changed)
        found = None if keys is None else _at(state.frame(driver.table.name), keys)
        yield (
            None
            if found is None
            else (
                replace(context, state=state),
                DriverRows(driver.table.name, found, None, CTE),
            )
        )
    lab.stand(standing)


def _returned(context: Context, driver: Driver) -> list[Key] | None:
    """Run the driver for good; the keys of the rows that it returns, those among them that it left as they were."""
    names = driver.table.row_key or tuple(column.name for column in driver.table.stored)
    tree = driver.candidate.tree
    assert tree is not None
    statement = replace(tree, returning=Term(separate([ref(tree.target.key, name) for name in names])))
    try:
        return context.lab.returned(render(statement))
    except psycopg.Error:
        return None


def _at(frame: Frame, keys: Sequence[Key]) -> NDArray[np.int64] | None:
    """The frame's rows of these keys, in their order; None where one is not there or there are twins."""
    if len(frame.index) != frame.size or not all(key in frame.index for key in keys):
        return None
    return np.array([frame.index[key] for key in keys], dtype=np.int64)

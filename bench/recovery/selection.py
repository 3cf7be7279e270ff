"""A drawn set of rows, and the shortest statement that updates or deletes it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from bench.recovery.model import Draw
from bench.recovery.world import World, constant
from emit.render import render
from emit.size import size
from emit.term import Delete, Source, SourceKey, Statement, Term, Update, conjoin, op, raw
from scratch.catalog import Column, Table

Sets = Sequence[tuple[Column, Term]]


@dataclass(frozen=True, slots=True)
class Link:
    """A source that joins to the target, and the condition of the join."""

    source: Source
    on: Term

    @property
    def key(self) -> SourceKey:
        return self.source.key


@dataclass(frozen=True, slots=True)
class Selection:
    """Rows of `table`, whose columns have the source key ().

    `nested` needs no other source; `links` and `joined`, where there are links, say the same with
    sources beside the target.
    """

    table: Table
    nested: Term
    shape: str
    depth: int = 0
    links: tuple[Link, ...] = ()
    joined: Term | None = None

    @property
    def test(self) -> Term:
        """The condition beside the links, or on the table alone."""
        return self.nested if self.joined is None else self.joined


def shortest(statements: Sequence[Statement]) -> str:
    return min((render(statement) for statement in statements), key=lambda text: (size(text), text))


def update(world: World, selection: Selection | None, table: Table, sets: Sets, links: Sequence[Link] = ()) -> str:
    """UPDATE `table` SET `sets`, whose terms may refer to `links`."""
    target = world.source(table.name)
    assigned = tuple(((column.name,), term) for column, term in sets)

    def statement(also: Sequence[Link], test: Term | None) -> Update:
        every = _merged([*links, *also])
        where = conjoin([link.on for link in every] + ([] if test is None else [test]))
        return Update(target, assigned, tuple(link.source for link in every), where)

    if selection is None:
        return shortest([statement((), None)])
    ways = [statement((), selection.nested)]
    if selection.joined is not None:
        ways.append(statement(selection.links, selection.joined))
    return shortest(ways)


def delete(world: World, selection: Selection) -> str:
    target = world.source(selection.table.name)
    ways = [Delete(target, where=selection.nested)]
    if selection.joined is not None:
        where = conjoin([*(link.on for link in selection.links), selection.joined])
        ways.append(Delete(target, tuple(link.source for link in selection.links), where))
    return shortest(ways)


def change(rng: random.Random, world: World, selection: Selection) -> str | None:
    """A plain statement on the selected rows: they go, or one column or two become constants."""
    deletable = not world.catalog.referenced_by.get(selection.table.name)
    if rng.random() < (0.4 if deletable else 0.1):
        return delete(world, selection)
    columns = [column for column in world.settable(selection.table) if column.base != "jsonb"]
    if not columns:
        return None
    chosen = rng.sample(columns, 1 if len(columns) < 2 or rng.random() < 0.7 else 2)
    sets = []
    for column in chosen:
        if (value := new_value(rng, world, selection.table, column)) is None:
            return None
        sets.append((column, value))
    return update(world, selection, selection.table, sets)


def new_value(rng: random.Random, world: World, table: Table, column: Column) -> Term | None:
    """A constant for `column`: NULL, a value that other rows have, or one of its own."""
    if not column.not_null and rng.random() < 0.15:
        return raw("NULL")
    if column.kind == "S" and rng.random() < 0.4:
        return constant(column, rng.choice(("", "n/a", "checked", "x")), assign=True)
    if column.kind == "N" and rng.random() < 0.4:
        return constant(column, str(rng.choice((0, 1, 5, 42, 100))), assign=True)
    value = world.value(rng, table, column)
    return None if value is None else constant(column, value, assign=True)


def drawn(
    rng: random.Random, world: World, selection: Selection | None, family: str, depth: int | None = None
) -> Draw | None:
    """A plain statement on the selected rows as a draw of `family`."""
    if selection is None or (sql := change(rng, world, selection)) is None:
        return None
    table = selection.table.name
    return Draw((sql,), family, selection.shape, selection.depth if depth is None else depth, table)


def both(first: Selection, second: Selection) -> Selection:
    """The rows that are in both selections of one table."""
    links = _merged([*first.links, *second.links])
    return Selection(
        first.table,
        op(first.nested, "AND", second.nested),
        f"{first.shape}&{second.shape}",
        max(first.depth, second.depth),
        tuple(links),
        op(first.test, "AND", second.test) if links else None,
    )


def _merged(links: Sequence[Link]) -> list[Link]:
    """Equal paths are one join."""
    return list({link.key: link for link in links}.values())

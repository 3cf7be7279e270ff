"""Candidates: statements with what they were seen to do, and the elements that a block owes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from emit.size import size
from emit.term import Statement
from encoder.effect import Effect, Origins, RowTuple, TableEffect, table_effects
from scratch.catalog import Catalog
from stream.model import TableName

# One searched statement of at most so many bytes is hardly bettered by several.
_PLAIN = 150

# An element: a row to insert or delete (place None), or one cell to change.
Element: TypeAlias = tuple[TableName, str, RowTuple, int | None]


@dataclass(frozen=True)
class Candidate:
    """`statements` in order, proved by running them: `covers` are the elements that they settle.

    `sequences` are those that they moved; `kind` says in a word how they were found; `tree` is the
    statement as data where it is a single one.  `shaky` ones hang on the planner's choice or on how rows lie,
    `steadier` is then the same with what depends on it written out, where that was possible; `hopeful` ones are right
    only where rows lie otherwise than in the trial (see encoder.numbering).
    """

    statements: tuple[str, ...]
    covers: frozenset[Element]
    kind: str
    sequences: frozenset[TableName] = frozenset()
    tree: Statement | None = field(default=None, compare=False)
    shaky: bool = field(default=False, compare=False)
    hopeful: bool = field(default=False, compare=False)
    steadier: Candidate | None = field(default=None, compare=False, repr=False)
    size: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", bytes_of(self.statements))

    def steadied(self) -> Iterator[Candidate]:
        """The steadier ones behind it, one behind another."""
        if self.steadier is not None:
            yield self.steadier
            yield from self.steadier.steadied()

    @property
    def is_plain(self) -> bool:
        """Whether it is one short statement that was searched for, so that several would hardly be shorter."""
        return len(self.statements) == 1 and self.size <= _PLAIN and self.kind in ("update", "delete", "insert")


def bytes_of(statements: Sequence[str]) -> int:
    """The bytes of statements in a script, each with its semicolon."""
    return sum(size(statement) + 1 for statement in statements)


def elements(effects: Sequence[TableEffect]) -> frozenset[Element]:
    """What must be covered: every row that comes or goes and every cell that changes."""
    found: list[Element] = []
    for effect in effects:
        name = effect.table.name
        found += [(name, "I", row, None) for row in effect.inserts]
        found += [(name, "D", row, None) for row in effect.deletes]
        for before, after in effect.updates:
            found += [
                (name, "U", before, place)
                for place, (old, new) in enumerate(zip(before, after, strict=True))
                if old != new
            ]
    return frozenset(found)


def footprint(catalog: Catalog, owed: Sequence[TableEffect], done: Effect) -> tuple[frozenset[Element], Effect]:
    """Which elements of `owed` the effect `done` settles, and what it does besides (harm).

    Harm is given as the effect that would have to follow to mend it: rows back to what they were,
    or cells on to what they should be.
    """
    wanted = {effect.table.name: effect for effect in owed}
    covered: set[Element] = set()
    mend = Effect()
    known: dict[TableName, dict[RowTuple, list[RowTuple]]] = {}
    for part in owed:
        for old_row, new_row in part.updates:
            known.setdefault(part.table.name, {}).setdefault(new_row, []).append(old_row)
    origins = Origins(before=known)
    for effect in table_effects(catalog, done, origins):
        name = effect.table.name
        want = wanted.get(name)
        inserts = Counter(want.inserts if want else ())
        deletes = Counter(want.deletes if want else ())
        updates = dict(want.updates) if want else {}
        for row, count in Counter(effect.inserts).items():
            if inserts[row] == count:
                covered.add((name, "I", row, None))
                del inserts[row]
                continue
            # Of equal rows too few or too many are as wrong as another row.
            mend.add(name, row, -count)
            partner = _same_key(effect, row, inserts)
            if partner is not None:
                mend.add(name, partner, 1)
                covered.add((name, "I", partner, None))
        for row, count in Counter(effect.deletes).items():
            if deletes[row] == count:
                covered.add((name, "D", row, None))
            else:
                mend.add(name, row, count)
        for before, after in effect.updates:
            right = updates.get(before)
            goal = list(after)
            for place, (old, new) in enumerate(zip(before, after, strict=True)):
                if old == new:
                    continue
                if right is not None and right[place] != old:
                    covered.add((name, "U", before, place))
                    goal[place] = right[place]
                else:
                    goal[place] = old
            if tuple(goal) != after:
                mend.add(name, after, -1)
                mend.add(name, tuple(goal), 1)
    return frozenset(covered), mend


def _same_key(effect: TableEffect, row: RowTuple, rows: Collection[RowTuple]) -> RowTuple | None:
    if not effect.table.row_key:
        return None
    key = effect.key(row)
    return next((other for other in rows if effect.key(other) == key), None)

"""What the parts of one search for an INSERT share."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from emit.render import render
from emit.term import Insert, Query, Source, Term, op, raw, ref
from encoder.assignment.model import Expression
from encoder.assignment.search import Goal
from encoder.budget import Budget
from encoder.frame import Frame, State
from encoder.insertion.derive import derive, plus, size_of
from encoder.insertion.evidence import Link
from encoder.insertion.layout import Layout, layouts, source_of
from encoder.insertion.model import Proposal
from encoder.insertion.order import Order
from encoder.insertion.parted import parted
from encoder.insertion.relation import Relation, insertable
from encoder.insertion.slots import Slot
from encoder.insertion.spell import INT, TEXT, Speller, class_of
from encoder.selection.lower import lower
from encoder.selection.model import Labels, MaskedAtom, Path, Selection
from encoder.selection.search import find_selections
from scratch.catalog import Table
from stream.model import TableName

CELLS = 1000  # read for one unit of the budget, as in the search for selections

_SELECTIONS = 3
# What one call of another search may spend at most.
_SELECTION_UNITS = 30000
_EXPRESSION_UNITS = 1500
# What it costs to begin one, beside what it tries.
_EXPRESSION, _TOGETHER = 500, 1000
# A simple expression of so few bytes is taken without looking further.
_SIMPLE = 45
# A column that so many sources could not give is not looked for in others.
_TRIED = 4
_TRIED_TOGETHER = 2
# From so many sources a column is also looked for in rows that are far away.
_FAR = 1
_JOIN = 12  # bytes that a join costs at least
# The shortest condition: WHERE a
_SHORTEST_WHERE = 7

CONFLICT = raw("ON CONFLICT DO NOTHING")


@dataclass(frozen=True, slots=True)
class From:
    """The sources of a query and its condition."""

    sources: tuple[Source, ...]
    where: Term | None


@dataclass(frozen=True)
class Task:
    state: State
    target: Table
    slots: tuple[Slot, ...]
    spell: Speller
    budget: Budget
    timezone: str | None
    ceiling: int = 1 << 60  # bytes of a statement that is known already
    _expressed: dict[tuple[TableName, bytes, str], Expression | None] = field(default_factory=dict)
    _selections: dict[tuple[TableName, bytes, bytes, int], list[Selection]] = field(default_factory=dict)
    _far: dict[str, int] = field(default_factory=dict)
    _failed: dict[str, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return len(self.slots[0].values) if self.slots else 0

    @property
    def sequences(self) -> list[Slot]:
        return [slot for slot in self.slots if slot.sequence is not None]

    @property
    def numbered(self) -> list[Slot]:
        """The slots that the rows' order may give values to: those of sequences, or a part of the key that counts."""
        return self.sequences or [slot for slot in self.slots if slot.name in self.target.row_key and slot.counts][:1]

    @property
    def doubtful(self) -> list[Slot]:
        """The slots, those first that most sources could not give."""
        return sorted(self.slots, key=lambda slot: -self._failed.get(slot.name, 0))

    def constants(self) -> dict[str, Term]:
        """A term for every column that holds one value in all rows."""
        return {
            slot.name: self.spell.top(slot.values[0], slot.column)
            for slot in self.slots
            if slot.explicit and slot.values and slot.constant
        }

    def insert(self, layout: Layout, query: Query, *, conflict: bool, note: str) -> Proposal:
        statement = Insert(source_of(self.target, ()), layout.columns, query, CONFLICT if conflict else None)
        return Proposal(statement, layout.uses, note)

    def express(self, link: Link, slot: Slot) -> Expression | None:
        """`slot` over the rows of `link`: equal columns and offsets first, then whatever synthesis finds."""
        key = (link.table.name, link.rows.tobytes(), slot.name)
        if key not in self._expressed:
            self._expressed[key] = self._express(link, slot) or parted(
                self.state, link, slot, budget=self.budget, timezone=self.timezone
            )
        return self._expressed[key]

    def _express(self, link: Link, slot: Slot) -> Expression | None:
        simple = self.simple(link, slot)
        if simple is not None and _bytes(simple) <= _SIMPLE:
            return simple
        rows, first, inverse = np.unique(link.rows, return_index=True, return_inverse=True)
        new = [slot.values[place] for place in first.tolist()]
        if any(new[at] != value for at, value in zip(inverse.tolist(), slot.values, strict=True)):
            return None
        if simple is None and self._failed.get(slot.name, 0) >= _TRIED:
            return None
        found = self._found(link.table, Goal(slot.column, rows, new), slot)
        found += [simple] if simple is not None else []
        self._failed[slot.name] = self._failed.get(slot.name, 0) + (not found)
        return min(found, key=lambda e: (_bytes(e), str(e.term)), default=None)

    def _found(self, table: Table, goal: Goal, slot: Slot) -> list[Expression]:
        """What synthesis finds, asked again only where `table` or one beside it has changed since."""
        catalog, frame = self.state.catalog, self.state.frame(table.name)
        near = [key.target for key in table.foreign_keys] + [k.table for k in catalog.referenced_by.get(table.name, ())]
        beside = [self.state.frame(name) for name in near if name in catalog]
        far = self._goes_far(slot)
        asked = "expressed", goal.column, goal.rows.tobytes(), tuple(goal.new), far, self.timezone
        known: tuple[list[Frame], list[Expression]] | None = frame.made.get(asked)
        if known is None or [*map(id, known[0])] != [*map(id, beside)]:
            with self._allot(_EXPRESSION_UNITS) as budget:
                found = insertable(self.state, table.name, goal, budget=budget, timezone=self.timezone, far=far)
            self.budget.spend(_EXPRESSION)
            known = frame.made[asked] = beside, found
        return list(known[1])

    def _goes_far(self, slot: Slot) -> bool:
        """Whether `slot` is also looked for far away from a source: only from the likeliest ones."""
        self._far[slot.name] = self._far.get(slot.name, 0) + 1
        return self._far[slot.name] <= _FAR

    def express_over(self, relation: Relation, slot: Slot) -> tuple[Term, frozenset[Hashable]] | None:
        key = f"{slot.name} of several"
        if self._failed.get(key, 0) >= _TRIED_TOGETHER:
            return None
        self.budget.spend(_TOGETHER)
        with self._allot(_EXPRESSION_UNITS) as budget:
            found = relation.express(slot, budget, self.timezone)
        self._failed[key] = self._failed.get(key, 0) + (found is None)
        return found

    def simple(self, link: Link, slot: Slot) -> Expression | None:
        """An equal column, one at a fixed distance, or a simple function of one; without any search."""
        if slot.name in link.equal:
            return own(link.equal[slot.name])
        return self._offset(link, slot) or self._derived(link, slot)

    def _derived(self, link: Link, slot: Slot) -> Expression | None:
        """A simple function of one column, of the row itself or of one that it refers to."""
        found: list[Expression] = []
        for path, table, rows in self._reached(link):
            frame = self.state.frame(table.name)
            for column in table.columns:
                kind = class_of(column)
                if kind == TEXT and column.kind != "S":
                    continue
                texts = frame.texts(column.name)
                derived = derive([texts[row] for row in rows], kind, slot, self.spell)
                if derived is not None:
                    term = derived.build(ref(path, column.name))
                    size = derived.cost + len(column.name)
                    found.append(Expression(term, frozenset({path} if path else ()), size))
        return min(found, key=_bytes, default=None)

    def _reached(self, link: Link) -> Iterator[tuple[Path, Table, list[int]]]:
        """The link's rows, and those that all of them refer to by one foreign key."""
        yield (), link.table, link.rows.tolist()
        if link.pool is not None and link.pool.cte is not None:
            return
        frame = self.state.frame(link.table.name)
        for key in link.table.foreign_keys:
            rows = frame.parent(key)[link.rows]
            if (rows >= 0).all():
                yield (key,), self.state.catalog[key.target], rows.tolist()

    def _offset(self, link: Link, slot: Slot) -> Expression | None:
        """A whole number away from an integer column."""
        if class_of(slot.column) != INT or None in slot.values or self.count < 2:
            return None
        frame = self.state.frame(link.table.name)
        wanted = [int(value or 0) for value in slot.values]
        for column in link.table.columns:
            if class_of(column) != INT:
                continue
            texts = frame.texts(column.name)
            values = [texts[row] for row in link.rows.tolist()]
            if None in values:
                continue
            offsets = {a - int(b or 0) for a, b in zip(wanted, values, strict=True)}
            if len(offsets) == 1:
                term = plus(ref((), column.name), offsets.pop())
                return Expression(term, frozenset(), size_of(term) + len(column.name))
        return None

    def selections(
        self, table: Table, labels: Labels, keep: int = 3, extra: Sequence[MaskedAtom] = ()
    ) -> list[Selection]:
        if not labels.must_not.any():
            return [Selection(((),), 0)]
        key = (table.name, labels.must.tobytes(), labels.must_not.tobytes(), len(extra))
        if key not in self._selections:
            self._selections[key] = self._select(table, labels, extra)
        return self._selections[key][:keep]

    def _select(self, table: Table, labels: Labels, extra: Sequence[MaskedAtom]) -> list[Selection]:
        # The first hypotheses are the likeliest ones.
        with self._allot(_SELECTION_UNITS // (1 + len(self._selections) // 3)) as budget:
            return find_selections(
                self.state,
                table.name,
                labels,
                budget=budget,
                timezone=self.timezone,
                keep=_SELECTIONS,
                extra_atoms=extra,
            )

    @contextmanager
    def _allot(self, units: int) -> Iterator[Budget]:
        """A budget of at most `units`; what is spent of it is taken out of the task's."""
        part = Budget(max(0, min(units, self.budget.left)))
        granted = part.left
        try:
            yield part
        finally:
            self.budget.spend(granted - max(0, part.left))

    def may_pay(self, terms: Mapping[str, Term], tables: Sequence[Table], selective: bool) -> bool:
        """Whether a SELECT from `tables` can be shorter than `ceiling`; columns not in `terms` count one byte."""
        known = {slot.name: terms.get(slot.name, raw("a")) for slot in self.slots}
        sources = tuple(source_of(table, place) for place, table in enumerate(tables))
        keyed = {name: raw(_short(term)) for name, term in known.items()}
        sizes = [
            len(render(self.insert(layout, Query(layout.select, sources), conflict=False, note="").statement).encode())
            for layout in layouts(self.slots, keyed, True)
        ]
        # No layout at all: a column that no statement may give where nothing else may be named.
        return bool(sizes) and min(sizes) + _SHORTEST_WHERE * selective < self.ceiling

    def origins(self, link: Link, selections: Sequence[Selection], needed: frozenset[Path]) -> list[From]:
        """What FROM and WHERE say to read the selected rows of `link` with what their paths `needed` lead to."""
        pool = link.pool
        own_source = source_of(link.table, (), pool.cte if pool is not None else None)
        found = []
        for selection in selections:
            for where in lower(self.state.catalog, link.table.name, selection, needed=needed):
                found.append(From((own_source, *where.sources), where.where))
        return found


def _short(term: Term) -> str:
    """A word no longer than `term` will be."""
    return "a" * sum(len(part.encode()) if isinstance(part, str) else 1 for part in term.parts)


def _bytes(expression: Expression) -> int:
    return expression.size + _JOIN * len(expression.paths)


def own(column: str) -> Expression:
    """A column of the row itself."""
    return Expression(ref((), column), frozenset(), len(column.encode()))


def sort_keys(order: Order, key: object = ()) -> list[tuple[Term, bool]]:
    return [(ref(key, column), falls) for column, falls in order.keys]


def order_by(keys: Sequence[tuple[Term, bool]], select: Sequence[Term] = ()) -> Term:
    """ORDER BY; a key that `select` holds is named by its place."""
    parts: list[object] = ["ORDER BY"]
    for place, (term, falls) in enumerate(keys):
        parts += [","] if place else []
        parts += [str(select.index(term) + 1)] if term in select else list(term.parts)
        parts += ["DESC"] if falls else []
    return Term(tuple(parts))  # type: ignore[arg-type]


def row_number(keys: Sequence[tuple[Term, bool]], offset: int) -> Term:
    """row_number()OVER(ORDER BY …)+offset"""
    inside = order_by(keys).parts if keys else ()
    return plus(Term(("row_number()OVER(", *inside, ")")), offset)


def with_join(where: Term | None, condition: Term) -> Term:
    return condition if where is None else op(condition, "AND", where)

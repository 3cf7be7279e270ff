"""Candidates for the updated rows of one table.

The rows are looked at in groups: all of them; those in which the same columns change; those that get the
same values.  Of each group the assignments are found first, since they decide which rows a WHERE may
hold for without doing anything, and then the selections.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from emit.render import render
from emit.term import Query, Term, Update, conjoin
from encoder import literals
from encoder.assignment.evaluate import ABSENT, evaluate, window_values
from encoder.assignment.families import BRIEF, FAMILIES
from encoder.assignment.model import Expression, WindowExpression
from encoder.assignment.search import Goal, find_constant, find_expressions, find_partial, find_windows
from encoder.assignment.window_conditions import window_conditions
from encoder.assignment.window_sql import update_from_window
from encoder.budget import Budget
from encoder.candidate import Candidate, Element
from encoder.choose import lowered, select
from encoder.context import Context
from encoder.effect import Effect, RowTuple, TableEffect, key_of
from encoder.frame import Frame
from encoder.proof import cheapest, prove
from encoder.selection.model import Labels, Path, Selection
from encoder.statements import Assignment, updates
from scratch.catalog import Column
from stream.model import Value

Rows = NDArray[np.int64]

_MAX_VALUE_GROUPS = 8
_MAX_CLUSTERS = 8
_MAX_LONE = 3
_COMBINATIONS = 4
# How many expressions one search for a column may try.
_EXPRESSIONS = 3_000
# Estimated seconds of a search for expressions, of each row to explain, of each expression tried, of each row that a
# window ranks, and of each pair of columns by which it may do so.
_EXPRESSION, _EXPRESSION_ROW, _EXPRESSION_UNIT, _WINDOW_ROW, _WINDOW_PAIR = 0.14, 5e-4, 7e-3, 1e-4, 3e-4


@dataclass(frozen=True)
class Group:
    """Rows of the frame that one statement might update: where, from what, to what, which columns.  `brief` says that
    only the likeliest expressions are looked for."""

    rows: tuple[int, ...]
    pairs: tuple[tuple[RowTuple, RowTuple], ...]
    places: tuple[int, ...]
    brief: bool = False

    def elements(self, effect: TableEffect) -> frozenset[Element]:
        name = effect.table.name
        return frozenset(
            (name, "U", before, place)
            for before, after in self.pairs
            for place in self.places
            if before[place] != after[place]
        )

    def goal(self, place: int) -> tuple[Value, ...]:
        return tuple(after[place] for _, after in self.pairs)


def update_candidates(context: Context, owed: Sequence[TableEffect], effect: TableEffect) -> list[Candidate]:
    """See UpdateSearch.candidates."""
    return UpdateSearch(context, owed, effect).candidates()


class UpdateSearch:
    """The search for one table's updates in one state."""

    def __init__(self, context: Context, owed: Sequence[TableEffect], effect: TableEffect) -> None:
        self.context = context
        self.owed = owed
        self.effect = effect
        self.table = effect.table
        self.frame: Frame = context.state.frame(self.table.name)
        self._tried: set[Group] = set()
        self._index = self.frame.index

    def candidates(self) -> list[Candidate]:
        """Proved candidates by expressions and conditions, for all updated rows and for parts of them."""
        if not self.effect.updates or len(self._index) < self.frame.size:
            return []
        whole = self.whole()
        clusters = self.clusters(whole)
        # Rows in which different columns change are seldom the work of one far-fetched expression.
        first = replace(whole, brief=bool(clusters))
        found = self._attempt(first)
        found += self._by_trigger(first)
        best = min((c.size for c in found if whole.elements(self.effect) <= c.covers), default=None)
        for family in clusters:
            # Splitting pays only if the heads of the statements alone leave something to gain.
            if best is not None and sum(self._least(group) for group in family) >= best:
                continue
            if self._settles(whole, found):
                break
            for group in family:
                made = self._attempt(group)
                found += made
                found += self._by_trigger(group)
                if not made:
                    found += self._parts(group)
        if best is None and self._settles(whole, found):
            if self._lift(whole, [group for family in clusters for group in family]):
                found += self._attempt(whole)
        elif best is None:
            if clusters:
                found += self._attempt(whole)
            found += self._parts(whole)
            for part in self.by_ease(whole):
                found += self._attempt(part)
        return found

    def _lift(self, whole: Group, parts: Sequence[Group]) -> bool:
        """Whether what was found for parts of the rows is right on all of them, for every column; it is known from then
        on."""
        memo = self.context.state.memo
        for place in whole.places:
            column, goal = self.table.stored[place], whole.goal(place)
            options = [e for part in parts if place in part.places for e in memo.get(self._key(part, place), ())]
            fits = []
            for expression in dict.fromkeys(options):
                (values,) = self._values([(column, expression)])
                if all(values[row] == new for row, new in zip(whole.rows, goal, strict=True)):
                    fits.append(expression)
            if not fits and not memo.get(self._key(whole, place)):
                return False
            memo[self._key(whole, place)] = memo.get(self._key(whole, place)) or fits
        return True

    def _settles(self, group: Group, found: Sequence[Candidate]) -> bool:
        """Whether statements with expressions do all of a group among them."""
        covered = frozenset[Element]().union(*(one.covers for one in found if one.kind == "update"))
        return group.elements(self.effect) <= covered

    def _parts(self, group: Group) -> list[Candidate]:
        """What is found for parts of a group that no single statement was found for."""
        found = [candidate for part in self._value_groups(group) for candidate in self._attempt(part)]
        return found + list(self._partial(group))

    def _least(self, group: Group) -> int:
        """A lower bound on the bytes of a statement for `group`: its head and assignments, without WHERE."""
        sets = 0
        for place in group.places:
            options = self._find_expressions(group, place)
            sets += len(self.table.stored[place].name) + 2 + min((e.size for e in options), default=1)
        return len(f"UPDATE {self.table.name.name} SET ") + sets

    def whole(self) -> Group:
        """All updated rows with all columns that change in any of them."""
        return self._group(self.effect.updates, None)

    def cheapest_assignments(self, group: Group) -> tuple[Assignment, ...] | None:
        """One expression for each column of `group`, right on all its rows; None if one has none."""
        choices = self._choices(group)
        return next(_combinations(choices)) if choices else None

    # -- groups

    def _group(self, pairs: Sequence[tuple[RowTuple, RowTuple]], places: tuple[int, ...] | None) -> Group:
        chosen = sorted((self._index[key_of(self.table, pair[0])], pair) for pair in pairs)
        if places is None:
            places = tuple(sorted({p for before, after in pairs for p in literals.changed_places(before, after)}))
        return Group(tuple(row for row, _ in chosen), tuple(pair for _, pair in chosen), places)

    def clusters(self, whole: Group) -> list[list[Group]]:
        """Two ways to split: columns that change in the same rows, each such set of columns with its
        rows; and the rows that change in exactly the same columns."""
        by_rows: dict[tuple[int, ...], list[int]] = {}
        for place in whole.places:
            rows = tuple(i for i, (b, a) in enumerate(whole.pairs) if b[place] != a[place])
            by_rows.setdefault(rows, []).append(place)
        by_columns: dict[tuple[int, ...], list[int]] = {}
        for i, (before, after) in enumerate(whole.pairs):
            by_columns.setdefault(literals.changed_places(before, after), []).append(i)
        families = []
        if 1 < len(by_rows) <= _MAX_CLUSTERS:
            families.append([self._group([whole.pairs[i] for i in rows], tuple(p)) for rows, p in by_rows.items()])
        if 1 < len(by_columns) <= _MAX_CLUSTERS:
            families.append([self._group([whole.pairs[i] for i in rows], p) for p, rows in by_columns.items()])
        return families

    def by_ease(self, group: Group) -> list[Group]:
        """The same rows with the columns that an expression explains, and with the others; [] where all are alike."""
        easy = tuple(place for place in group.places if self._find_expressions(group, place))
        hard = tuple(place for place in group.places if place not in easy)
        return [replace(group, places=places) for places in (easy, hard)] if easy and hard else []

    def _by_trigger(self, group: Group) -> list[Candidate]:
        """Statements that set one column of the rows, where triggers may see to the others."""
        if not self.table.triggers or len(group.places) == 1:
            return []
        lone = [p for p in group.places if self._brings_more(group, p) and self._find_expressions(group, p)]
        return [candidate for p in lone[:_MAX_LONE] for candidate in self._attempt(replace(group, places=(p,)))]

    def _brings_more(self, group: Group, place: int) -> bool:
        """Whether a trigger brings other columns of a row to what is owed when `place` gets its new value."""
        before, after = group.pairs[0]
        if before[place] == after[place] or not self.table.row_key:
            return False
        name = literals.by_keys(self.table, [key_of(self.table, before)], self.context.timezone)
        statement = literals.set_constants(self.table, [(place, after[place])], name, self.context.timezone)
        done = self.context.lab.observe([render(statement)])
        rows = done.tables.get(self.table.name, Counter()) if isinstance(done, Effect) else Counter[RowTuple]()
        return any(
            row[other] == after[other] != before[other]
            for row, count in rows.items()
            if count > 0 and key_of(self.table, row) == key_of(self.table, after)
            for other in group.places
            if other != place
        )

    def _value_groups(self, group: Group) -> list[Group]:
        """The rows of `group` by their new values, if these are few."""
        by_value: dict[tuple[Value, ...], list[tuple[RowTuple, RowTuple]]] = {}
        for pair in group.pairs:
            by_value.setdefault(tuple(pair[1][place] for place in group.places), []).append(pair)
        if not 1 < len(by_value) <= _MAX_VALUE_GROUPS or len(by_value) * 2 > len(group.pairs):
            return []
        return [self._group(pairs, group.places) for pairs in by_value.values()]

    # -- one group

    def _attempt(self, group: Group) -> list[Candidate]:
        """The best proved statement for each promising combination of assignments; tried once a group."""
        if group in self._tried or self.context.late:
            return []
        self._tried.add(group)
        choices = self._choices(group)
        target = group.elements(self.effect)
        found: list[Candidate | None] = []
        seen: list[NDArray[np.bool_]] = []
        for assignments in _combinations(choices):
            free = self.free_rows(assignments)
            # Dearer assignments pay only by rows for which the WHERE need not fail.
            if not any((free <= earlier).all() for earlier in seen):
                found.append(self._select(group, assignments, free, target))
            seen.append(free)
        best = cheapest(found)
        if best is None or best.size > self._least_with_window(group):
            found += self._by_window(group, target)
        return [candidate for candidate in found if candidate is not None]

    def _least_with_window(self, group: Group) -> int:
        """A lower bound on the bytes of a statement that takes a value of `group` from a window."""
        name, key = self.table.name.name, ",".join(self.table.row_key)
        sets = sum(len(self.table.stored[place].name) + 3 for place in group.places)
        return len(f"UPDATE {name} SET FROM(SELECT {key} i,rank()OVER()j FROM {name})a WHERE i={key}") + sets

    def _by_window(self, group: Group, target: frozenset[Element]) -> Iterator[Candidate | None]:
        """Statements that take one column's value from a window over the table, others by expressions."""
        if len(group.rows) < 2:
            return
        # Columns that no expression gives need windows all of them.
        bare = [place for place in group.places if not self._find_expressions(group, place)]
        for place in bare[:1] or group.places:
            rest = tuple(p for p in group.places if p != place and p not in bare)
            others = self._choices(replace(group, places=rest))
            if rest and not others:
                continue
            seen = self._with_idle(group)
            for window in self._find_windows(seen, place):
                beside = [(p, self._window_like(seen, p, window)) for p in bare if p != place]
                windows = [(place, window), *((p, one) for p, one in beside if one is not None)]
                if len(windows) == 1 + len(beside):
                    statements = self._window_statements(seen, windows, [options[0] for options in others])
                    yield prove(self.context, self.owed, target, statements, "update")

    def _with_idle(self, group: Group) -> Group:
        """The group with the rows that its statement met and left as they were: a window may have seen them too."""
        if not self.effect.idle:
            return group
        known = {pair[0] for pair in group.pairs}
        return self._group([*group.pairs, *((row, row) for row in self.effect.idle if row not in known)], group.places)

    def _window_like(self, group: Group, place: int, window: WindowExpression) -> WindowExpression | None:
        """A window for another column that sees the same rows."""
        return next((one for one in self._find_windows(group, place) if one.selected == window.selected), None)

    def _find_windows(self, group: Group, place: int) -> list[WindowExpression]:
        goal = self._goal(group, place)
        return self.context.state.remember(
            ("windows", self.table.name, place, group.rows, tuple(goal.new)),
            lambda: (
                []
                if not self.context.meter.spend(self._window_cost)
                else find_windows(
                    self.context.state,
                    self.table.name,
                    goal,
                    budget=Budget(self.context.effort.units(_EXPRESSIONS), self.context.lab.deadline),
                    timezone=self.context.timezone,
                    keep=2,
                )
            ),
        )

    @property
    def _window_cost(self) -> float:
        return _EXPRESSION + self.frame.size * _WINDOW_ROW + len(self.table.columns) ** 2 * _WINDOW_PAIR

    def _window_statements(
        self, group: Group, windows: Sequence[tuple[int, WindowExpression]], others: Sequence[Assignment]
    ) -> Iterator[Update]:
        (place, window), *more = windows
        column, selected = self.table.stored[place].name, window.selected
        made = partial(
            update_from_window,
            self.context.catalog,
            self.table,
            column,
            window,
            others=[(other.name, expression.term) for other, expression in others],
            windows=[(self.table.stored[p].name, one) for p, one in more],
        )
        # A selection inside of the derived query joins for itself.
        joined = () if selected else others
        above: frozenset[Path] = frozenset().union(*(expression.paths for _, expression in joined))
        must = np.zeros(self.frame.size, dtype=np.bool_)
        must[list(group.rows)] = True
        if not selected:
            # Rows that the window leaves as they are need no condition; the proof tells.
            yield made()
        idle = ~must if selected else ~must & ~self._window_free(windows, others)
        if not selected and idle.any():
            state, timezone = self.context.state, self.context.timezone
            found = window_conditions(state, self.table, window, must, idle, timezone)
            enough = [condition for condition, holds in found if not (idle & holds).any()]
            yield from (made(where=condition) for condition in enough)
            if enough:
                return
            for condition, holds in found:
                yield from self._by_value(made, condition, Labels(must, idle & holds))
        for forbidden in (idle, ~must) if (idle != ~must).any() else (idle,):
            for selection in self._selections(Labels(must, forbidden)):
                for where in lowered(self.context, self.table.name, selection, needed=above):
                    yield made(where=where.where, sources=where.sources)

    def _by_value(self, made: Callable[..., Update], condition: Term, labels: Labels) -> Iterator[Update]:
        """Statements with a condition on the window's value and one on the row."""
        for selection in self._selections(labels):
            for where in lowered(self.context, self.table.name, selection):
                both = conjoin([condition, *([where.where] if where.where is not None else [])])
                yield made(where=both, sources=where.sources)

    def _window_free(
        self, windows: Sequence[tuple[int, WindowExpression]], others: Sequence[Assignment]
    ) -> NDArray[np.bool_]:
        """Rows that the windows' values and the other assignments would leave as they are, or bring to what is owed."""
        free = self.free_rows(others)
        for place, window in windows:
            column = self.table.stored[place]
            state, timezone = self.context.state, self.context.timezone
            free &= self._unharmed(column, window_values(state, self.table.name, window, column, timezone=timezone))
        return free

    def _partial(self, group: Group) -> Iterator[Candidate]:
        """Where no expression is right on all rows: one for most of them, literals for the others."""
        hard = [place for place in group.places if not self._find_expressions(group, place)]
        if len(hard) != 1 or len(group.rows) < 4:
            return
        if not self.context.meter.spend(2 * (_EXPRESSION + len(group.rows) * _EXPRESSION_ROW)):
            return
        fits = find_partial(
            self.context.state,
            self.table.name,
            self._goal(group, hard[0]),
            budget=Budget(self.context.effort.units(_EXPRESSIONS), self.context.lab.deadline),
            timezone=self.context.timezone,
            keep=2,
        )
        for _, right in fits:
            if 2 * int(right.sum()) < len(group.rows):
                continue
            part = self._group(
                [pair for pair, fits_here in zip(group.pairs, right, strict=True) if fits_here], group.places
            )
            rest = self._group(
                [pair for pair, fits_here in zip(group.pairs, right, strict=True) if not fits_here], group.places
            )
            made = self._attempt(part)
            if not made:
                continue
            yield from made
            yield from self._attempt(rest)
            values = literals.values_update(self.table, rest.pairs, rest.places, self.context.timezone)
            proved = prove(self.context, self.owed, rest.elements(self.effect), [values] if values else [], "literal")
            if proved is not None:
                yield proved

    def _choices(self, group: Group) -> list[list[Assignment]]:
        choices = []
        for place in group.places:
            expressions = self._find_expressions(group, place)
            if not expressions:
                return []
            choices.append([(self.table.stored[place], expression) for expression in expressions])
        return choices

    def _goal(self, group: Group, place: int) -> Goal:
        return Goal(self.table.stored[place], np.array(group.rows, dtype=np.int64), group.goal(place))

    def _find_expressions(self, group: Group, place: int) -> list[Expression]:
        key = self._key(group, place)
        if group.brief and key not in self.context.state.memo:
            key = (*key, "brief")
        goal = self._goal(group, place)
        return self.context.state.remember(key, lambda: self._search_expressions(goal, group.brief))

    def _key(self, group: Group, place: int) -> tuple[Hashable, ...]:
        return "expressions", self.table.name, place, group.rows, group.goal(place)

    def _search_expressions(self, goal: Goal, brief: bool) -> list[Expression]:
        meter = self.context.meter
        if not meter.spend(_EXPRESSION + len(goal.rows) * _EXPRESSION_ROW):
            return find_constant(self.context.state, self.table.name, goal, self.context.timezone)
        budget = Budget(self.context.effort.units(_EXPRESSIONS), self.context.lab.deadline)
        granted = budget.left
        found = find_expressions(
            self.context.state,
            self.table.name,
            goal,
            budget=budget,
            timezone=self.context.timezone,
            keep=3,
            split=not brief,
            tiers=BRIEF if brief else FAMILIES,
        )
        meter.account(granted, budget, _EXPRESSION_UNIT)
        return found

    def _select(
        self, group: Group, assignments: Sequence[Assignment], free: NDArray[np.bool_], target: frozenset[Element]
    ) -> Candidate | None:
        must = np.zeros(self.frame.size, dtype=np.bool_)
        must[list(group.rows)] = True
        found = []
        # A join leaves rows alone for which a nested query finds no row.
        spared = free | self._without_rows(assignments)
        for forbidden in (*([~must & ~spared] if (spared & ~free).any() else []), ~must & ~free, ~must):
            selections = self._selections(Labels(must, forbidden))
            candidate = prove(
                self.context, self.owed, target, updates(self.context, self.table, assignments, selections), "update"
            )
            found.append(candidate)
            # A free row is not free of triggers.
            if not free.any() or (candidate is not None and not self.table.triggers):
                break
        return cheapest(found)

    def _selections(self, labels: Labels) -> list[Selection]:
        return select(self.context, self.table.name, labels)

    def free_rows(self, assignments: Sequence[Assignment]) -> NDArray[np.bool_]:
        """Rows that the assignments would leave as they are, or bring to what is owed."""
        free = np.ones(self.frame.size, dtype=np.bool_)
        for (column, _), new in zip(assignments, self._values(assignments), strict=True):
            free &= self._unharmed(column, new)
        return free

    def _without_rows(self, assignments: Sequence[Assignment]) -> NDArray[np.bool_]:
        """Rows for which an expression with a nested query gives NULL."""
        none = np.zeros(self.frame.size, dtype=np.bool_)
        nested = [one for one in assignments if any(isinstance(part, Query) for part in one[1].term.parts)]
        for new in self._values(nested):
            none |= np.array([value is None for value in new], dtype=np.bool_)
        return none

    def _values(self, assignments: Sequence[Assignment]) -> list[list[Value]]:
        """The values of each assignment in all rows."""
        key = ("values", self.table.name, *((column.name, expression.term) for column, expression in assignments))
        return self.context.state.remember(
            key,
            lambda: evaluate(
                self.context.state,
                self.table.name,
                [expression for _, expression in assignments],
                [column for column, _ in assignments],
                timezone=self.context.timezone,
            ),
        )

    def _unharmed(self, column: Column, values: Sequence[Value]) -> NDArray[np.bool_]:
        """Rows in which `values` for `column` change nothing, or do what is owed."""
        place = self.table.stored.index(column)
        free = np.ones(self.frame.size, dtype=np.bool_)
        for row, (old, value) in enumerate(zip(self.frame.texts(column.name), values, strict=True)):
            if value not in (old, ABSENT) and not (row in self._after and self._after[row][place] == value):
                free[row] = False
        return free

    @cached_property
    def _after(self) -> dict[int, RowTuple]:
        """What becomes of updated rows of the frame."""
        return {self._index[key_of(self.table, before)]: row for before, row in self.effect.updates}


def _combinations(choices: Sequence[Sequence[Assignment]]) -> Iterator[tuple[Assignment, ...]]:
    """The cheapest few ways to take one expression a column, those of fewest bytes first."""
    if not choices:
        return iter(())
    ranked = sorted(
        itertools.islice(itertools.product(*(options[:2] for options in choices)), 64),
        key=lambda pick: sum(e.size for _, e in pick) + 30 * len(frozenset().union(*(e.paths for _, e in pick))),
    )
    return iter(ranked[: _COMBINATIONS if len(choices) > 1 else 3])

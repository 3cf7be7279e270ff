"""Propose on a sample, prove on all rows, learn from what refutes: one goal's search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from emit.term import Query, Term, in_query, ref
from encoder.assignment.bench import ABSENT, Bench, Environment, environments, laid_first, measured
from encoder.assignment.model import Expression, WindowExpression
from encoder.assignment.problem import Family, Problem, choose_sample
from encoder.assignment.steps import stepped_terms
from encoder.assignment.window_sql import derived, joined, valued
from encoder.assignment.windows import window_terms
from encoder.budget import Budget
from encoder.frame import State
from scratch.catalog import Column
from stream.model import TableName, Value

Rows: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]
Tiers: TypeAlias = Sequence[tuple[int, Sequence[Family]]]

_ROUNDS = 3
_BATCH = 24
_PER_FAMILY = 60
_MAX_NESTED = 16
_FEW_OTHERS = 40
# Tiers that run although this many bytes were found look at rows of many tables; what that is worth in trials.
_FAR, _FAR_UNITS = 110, 40


@dataclass(frozen=True)
class Goal:
    """Rows of a frame (by index) and the value that `column` gets in each, as canonical text."""

    column: Column
    rows: Rows
    new: Sequence[Value]


class Search:
    """The state of one goal's search; `trial` holds the goal's rows, then other rows of the table."""

    def __init__(
        self, state: State, table: TableName, goal: Goal, budget: Budget, timezone: str | None, trial: Bench
    ) -> None:
        self.state = state
        self.table = state.catalog[table]
        self.goal = goal
        self.budget = budget
        self.timezone = timezone
        self.trial = trial
        self.environments = environments(timezone)
        self._last: tuple[tuple[list[int], list[int], bool], Problem] | None = None
        self.own = self.table.by_name.get(goal.column.name) == goal.column
        texts = state.frame(table).texts(goal.column.name) if self.own else None
        self.old = [texts[row] for row in goal.rows.tolist()] if texts is not None else None

    def run(self, tiers: Tiers, enough: int, within: Sequence[int] | None = None) -> list[Term]:
        """Terms that give the goal on all rows, cheapest first; with `within`, at these places, looking near only."""
        places = list(range(len(self.goal.rows))) if within is None else list(within)
        proven: dict[Term, int] = {}
        tried: set[Term] = set()
        counterexamples: list[int] = []
        for short, tier in tiers:
            if proven and min(proven.values()) <= short:
                continue
            for _ in range(_ROUNDS):
                # What looks far costs even where it tries nothing.
                if not self.budget.spend(_FAR_UNITS * (short >= _FAR)):
                    break
                sample = self._sample(places, counterexamples)
                problem = self.problem(sample, counterexamples, light=within is not None)
                found, refuting = self._prove(self._propose(problem, tier, tried), places, sample, enough)
                proven.update(found)
                if not refuting or len(proven) >= enough:
                    break
                counterexamples += refuting
        return sorted(proven, key=lambda term: (proven[term], str(term.parts)))

    def all_right(self, terms: Sequence[Term]) -> list[Term]:
        """Those of `terms` that give the goal on all rows under every session's settings."""
        places = range(len(self.goal.rows))
        good = list(terms) if self.budget.spend(len(terms)) else []
        for environment in self.environments:
            good = self._agreeing(good, places, environment, {})
        return good

    def footprints(self, terms: Sequence[Term]) -> list[Mask]:
        """For every term the goal's rows on which it is right, under every session's settings."""
        places = range(len(self.goal.rows))
        right = [np.ones(len(places), dtype=np.bool_) for _ in terms]
        for environment in self.environments:
            for mask, term, values in zip(
                right, terms, self.trial.values(terms, self.goal.column, environment, places), strict=True
            ):
                if values is None:
                    values = self.trial.every_value(term, self.goal.column, environment, places)
                mask &= np.array([a == b for a, b in zip(values, self.goal.new, strict=True)])
        return right

    def window_candidates(self) -> Iterator[WindowExpression]:
        """See windows.window_terms and steps.stepped_terms; not sized yet."""
        sample = self._sample(range(len(self.goal.rows)), ())
        problem, count = self.problem(sample), self.state.frame(self.table.name).size
        rows = self.goal.rows.astype(np.int64)
        found = [((term, window, False) for term, window in stepped_terms(problem, None))]
        if len(rows) < count:
            found.append((term, window, True) for term, window in stepped_terms(problem, rows))
        for term, window, selected in chain(window_terms(problem, rows, self.goal.new), *found):
            yield joined(self.state.catalog, term, selected, window)

    def window_holds(self, expression: WindowExpression) -> bool:
        """Whether a window function gives the goal on all rows under every session's settings."""
        count = len(self.goal.rows)
        where = in_query(ref((), "ctid"), laid_first(count)) if expression.selected else None
        source, join = derived(self.table, [expression], where)
        wanted = list(self.goal.new)
        for environment in self.environments:
            (values,) = self.trial.values(
                [valued(self.table, expression.term)], self.goal.column, environment, range(count), (source,), [join]
            )
            if not self.budget.spend() or values != wanted:
                return False
        return True

    def _sample(self, places: Sequence[int], extra: Sequence[int]) -> list[int]:
        new = [self.goal.new[place] for place in places]
        old = None if self.old is None else [self.old[place] for place in places]
        position = {place: i for i, place in enumerate(places)}
        return [places[i] for i in choose_sample(new, old, [position[place] for place in extra])]

    def problem(self, sample: Sequence[int], hard: Sequence[int] = (), light: bool = False) -> Problem:
        """The problem on these places; that of the last call where they are the same, with all that it knows."""
        mark = (list(sample), list(hard), light)
        if self._last is not None and self._last[0] == mark:
            return self._last[1]
        rows = tuple(int(self.goal.rows[place]) for place in sample)
        new = tuple(self.goal.new[place] for place in sample)
        position = {place: i for i, place in enumerate(sample)}
        places = tuple(position[place] for place in hard)
        problem = Problem(self.state, self.table, self.goal.column, rows, new, self.timezone, places, light)
        self._last = (mark, problem)
        return problem

    def _propose(self, problem: Problem, families: Iterable[Family], tried: set[Term]) -> list[tuple[int, Term]]:
        found: list[tuple[int, Term]] = []
        for family in families:
            for term in islice(family(problem), _PER_FAMILY):
                if term not in tried:
                    tried.add(term)
                    found.append((problem.cost(term), term))
        found.sort(key=lambda pair: pair[0])
        nested = [pair for pair in found if _is_nested(pair[1])]
        dropped = {term for _, term in nested[_MAX_NESTED:]}
        return [pair for pair in found if pair[1] not in dropped]

    def _prove(
        self,
        terms: Sequence[tuple[int, Term]],
        places: Sequence[int],
        sample: Sequence[int],
        enough: int,
    ) -> tuple[dict[Term, int], list[int]]:
        """The terms that hold with their costs, and places where terms that fit the sample failed."""
        proven: dict[Term, int] = {}
        refuting: dict[int, None] = {}
        for start in range(0, len(terms), _BATCH):
            batch = terms[start : start + _BATCH]
            if len(proven) >= enough or not self.budget.spend(len(batch)):
                break
            cost_of = {term: cost for cost, term in batch}
            good = self._agreeing(list(cost_of), sample, self.environments[0], refuting)
            if len(places) > len(sample):
                good = self._agreeing(good, places, self.environments[0], refuting)
            for environment in self.environments[1:]:
                good = self._agreeing(good, places, environment, {})
            proven |= {term: cost_of[term] for term in good}
        return proven, list(refuting)[:8]

    def _agreeing(
        self, terms: Sequence[Term], places: Sequence[int], environment: Environment, refuting: dict[int, None]
    ) -> list[Term]:
        if not terms:
            return []
        wanted = [self.goal.new[place] for place in places]
        good = []
        for term, values in zip(terms, self.trial.values(terms, self.goal.column, environment, places), strict=True):
            if values == wanted:
                good.append(term)
            elif values is not None:
                wrong = (place for place, a, b in zip(places, values, wanted, strict=True) if a != b)
                refuting.update(dict.fromkeys(islice(wrong, 3)))
        return good

    def ordered(self, terms: Iterable[Term]) -> list[Term]:
        """`terms` without repetitions, cheapest first."""
        problem = self.problem(self._sample(range(len(self.goal.rows)), ()))
        return sorted(dict.fromkeys(terms), key=lambda term: (problem.cost(term), str(term.parts)))

    def choose(self, terms: Sequence[Term], others: Rows, keep: int) -> list[Expression]:
        """The cheapest `keep`, among them every one that spares more other rows than all cheaper ones."""
        spared = self._spared(terms, others) if len(terms) > 1 and len(others) else [0] * len(terms)
        front: list[int] = []
        best = -1
        for place, count in enumerate(spared):
            if count > best:
                best = count
                front.append(place)
        chosen = front[:keep] if len(front) >= keep else front
        chosen += [place for place in range(len(terms)) if place not in chosen][: keep - len(chosen)]
        return [measured(self.state.catalog, self.table, terms[place]) for place in sorted(chosen)]

    def _spared(self, terms: Sequence[Term], others: Rows) -> list[int]:
        texts = self.state.frame(self.table.name).texts(self.goal.column.name)
        old = [texts[row] for row in others.tolist()]
        counts = []
        for term in terms:
            # Nested queries may read a whole table for every row.
            used = min(len(others), _FEW_OTHERS if _is_nested(term) else len(others))
            places = range(len(self.goal.rows), len(self.goal.rows) + used)
            (values,) = self.trial.values([term], self.goal.column, self.environments[0], places)
            same = zip(values or [], old, strict=False)
            counts.append(sum(value is ABSENT or value == text for value, text in same) * len(others) // used)
        return counts


def _is_nested(term: Term) -> bool:
    return any(isinstance(part, Query) for part in term.parts)

"""The shortest expressions that give a goal's new values.

Families propose from a sample of the rows; the server proves on all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from emit.term import Term
from encoder.assignment.bench import ABSENT, Bench, Environment, bench, environments, measured
from encoder.assignment.families import FAMILIES
from encoder.assignment.model import Expression
from encoder.assignment.problem import Family, Problem, choose_sample
from encoder.budget import Budget
from encoder.frame import State
from scratch.catalog import Column
from stream.model import TableName, Value

Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]

_ROUNDS = 3
_BATCH = 24
_PER_FAMILY = 60
# Proven expressions among which the kept ones are chosen, for each that is kept.
_CHOICE = 3
_OTHERS = 600


@dataclass(frozen=True)
class Goal:
    """Rows of a frame (by index) and the value that `column` gets in each, as canonical text."""

    column: Column
    rows: Rows
    new: Sequence[Value]


def find_expressions(
    state: State, table: TableName, goal: Goal, *, budget: Budget, timezone: str | None, keep: int = 6
) -> list[Expression]:
    """Expressions over a row of `table` that give `goal.new` on all of `goal.rows`, cheapest first.

    Each is proved on the server, text for text after the assignment cast.  Among those found, ones that
    leave more of the other rows as they are come in even where they are longer.  One unit of `budget` is
    one expression tried.
    """
    if not len(goal.rows):
        return []
    others = _others(state, table, goal)
    with bench(state, table, np.concatenate([goal.rows, others])) as trial:
        search = _Search(state, table, goal, budget, timezone, trial)
        proven = search.run(FAMILIES, keep * _CHOICE)
        return search.choose(proven, others, keep)


class _Search:
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
        self._last: tuple[tuple[list[int], list[int]], Problem] | None = None
        self.own = self.table.by_name.get(goal.column.name) == goal.column
        texts = state.frame(table).texts(goal.column.name) if self.own else None
        self.old = [texts[row] for row in goal.rows.tolist()] if texts is not None else None

    def run(self, tiers: Sequence[tuple[int, Sequence[Family]]], enough: int, within: Sequence[int] | None = None) -> list[Term]:
        """Terms that give the goal on all rows (or at the places `within`), cheapest first."""
        places = list(range(len(self.goal.rows))) if within is None else list(within)
        proven: dict[Term, int] = {}
        tried: set[Term] = set()
        counterexamples: list[int] = []
        for short, tier in tiers:
            if proven and min(proven.values()) <= short:
                continue
            for _ in range(_ROUNDS):
                sample = self._sample(places, counterexamples)
                problem = self._problem(sample, counterexamples)
                found, refuting = self._prove(self._propose(problem, tier, tried), places, sample, enough)
                proven.update(found)
                if not refuting or len(proven) >= enough:
                    break
                counterexamples += refuting
        return sorted(proven, key=lambda term: (proven[term], str(term.parts)))

    def _sample(self, places: Sequence[int], extra: Sequence[int]) -> list[int]:
        new = [self.goal.new[place] for place in places]
        old = None if self.old is None else [self.old[place] for place in places]
        position = {place: i for i, place in enumerate(places)}
        return [places[i] for i in choose_sample(new, old, [position[place] for place in extra])]

    def _problem(self, sample: Sequence[int], hard: Sequence[int]) -> Problem:
        """The problem on these places; that of the last call where they are the same, with all that it knows."""
        mark = (list(sample), list(hard))
        if self._last is not None and self._last[0] == mark:
            return self._last[1]
        rows = tuple(int(self.goal.rows[place]) for place in sample)
        new = tuple(self.goal.new[place] for place in sample)
        position = {place: i for i, place in enumerate(sample)}
        places = tuple(position[place] for place in hard)
        problem = Problem(self.state, self.table, self.goal.column, rows, new, self.timezone, places)
        self._last = (mark, problem)
        return problem

    def _propose(self, problem: Problem, families: Iterable[Family], tried: set[Term]) -> list[tuple[int, Term]]:
        found: list[tuple[int, Term]] = []
        for family in families:
            for term in islice(family(problem), _PER_FAMILY):
                if term not in tried:
                    tried.add(term)
                    found.append((problem.cost(term), term))
        return sorted(found, key=lambda pair: pair[0])

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
        places = range(len(self.goal.rows), len(self.goal.rows) + len(others))
        counts = []
        for values in self.trial.values(terms, self.goal.column, self.environments[0], places):
            same = zip(values or [], old, strict=False)
            counts.append(sum(value is ABSENT or value == text for value, text in same))
        return counts


def _others(state: State, table: TableName, goal: Goal) -> Rows:
    """Rows that the goal leaves alone: an even spread of them."""
    frame = state.frame(table)
    if frame.table.by_name.get(goal.column.name) != goal.column:
        return np.empty(0, dtype=np.intp)
    rest = np.setdiff1d(np.arange(frame.size), goal.rows)
    return rest[:: max(1, len(rest) // _OTHERS)][:_OTHERS]



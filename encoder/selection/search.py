"""The search for the shortest selection of given rows.

A conjunction must hold for all rows to select, and every other row must fail one of its atoms: a set cover of
the rows not to select, with a fixed charge for every parent that atoms share.  A disjunction is a set cover the
other way round: its terms hold for no row that must not be selected, and every row to select is in one of them.
Terms are single atoms of that kind, and conjunctions found for parts of the rows (those that share a value).
In both the rows that are left may be named by their keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from emit.render import render
from emit.term import Delete, disjoin
from encoder.budget import Budget
from encoder.frame import Frame, State
from encoder.literals import source_of
from encoder.selection.atoms import all_features, atoms, seed_masks
from encoder.selection.booleans import arranged
from encoder.selection.clauses import clauses
from encoder.selection.covers import Covers, Ints, Listing
from encoder.selection.features import MAX_DEPTH
from encoder.selection.ground import AND, Ground, Held
from encoder.selection.lower import lower
from encoder.selection.model import Atom, Labels, Mask, MaskedAtom, Path, Selection
from encoder.selection.paths import step_cost, steps
from encoder.selection.rowset import key_atom, key_bytes
from encoder.selection.spelling import make_atom
from solver.setcover import CoverSolution
from stream.model import TableName

_MAX_ATOMS = 600
_MAX_TERMS = 400
_MAX_EXCEPTIONS = 400
_SEEDS, _FIRST_SEEDS, _HOPE = 10, 6, 1.3
# Terms for the rest of which another one is looked for.
_RESTS = 2
# A term may be this many times as dear for its rows as the selection to beat.
_FAIR = 2
# Bytes of the words around terms and lists of keys, that between conditions apart.
_OR, _NOT_IN, _IN = 4, 7, 3
# For parts of the rows, columns that could exclude less than this share of the others are not looked at.
_TELLING = 12
# A term of more bytes than this never pays in a disjunction.
_LONG_TERM = 120
# A selection this short is not worth a search for disjunctions.
_SHORT = 24
# A selection is no chance where each of its bytes stands for so many bits about the rows; a longer one may still be.
_BITS, _CONVINCING = 5, 80
_ALTERNATIVES = 4
# Alternatives that cost so many bytes more are of no use.
_FURTHER = 24
# The least bytes of an own condition, of one of a further family, and of a compact list of keys.
_LEAST, _LEAST_FURTHER, _LEAST_NAMED = 9, 32, 40
# What the measured size may be below the estimate.
_SLACK = 6
# The least bytes of `a AND(b OR c)`, of the brackets in it, and how many conditions are tried as the outer one.
_LEAST_INNER, _BRACKETS, _OUTER = 44, 2, 2
# The least that a second term of a disjunction adds.
_LEAST_TERM = 8
# How far the rows are that are looked at together.
_STAGES = (range(1), range(1, 2), range(2, MAX_DEPTH + 1))


_Terms: TypeAlias = tuple[tuple[Atom, ...], ...]
# Conditions of other families, of less than so many bytes, that tell all or some of the rows of labels.
Further: TypeAlias = Callable[[Labels, int | None], Sequence[MaskedAtom]]


def find_selections(
    state: State,
    table: TableName,
    labels: Labels,
    *,
    budget: Budget,
    timezone: str | None,
    keep: int = 8,
    extra_atoms: Sequence[MaskedAtom] = (),
    further: Further | None = None,
    named: Callable[[int | None], Sequence[Selection]] | None = None,
    known: Sequence[Selection] = (),
    simple: bool = False,
) -> list[Selection]:
    """At most `keep` selections, the shortest first, of all rows in `labels.must` and none in `labels.must_not`.

    `extra_atoms` are conditions of other families with their rows; `further` gives more of them, and `named`
    selections that name rows by their keys in other ways: both are asked only where what was found before leaves
    room for them.  `known` are selections found before; `simple` leaves disjunctions
    out.  A unit of the budget is about a thousand cells read.  Empty only where there is no row to select, or the
    table has no row key and no condition tells the rows apart.
    """
    if not labels.must.any():
        return []
    if not labels.must_not.any():
        return [Selection(((),), 0)]
    search = _Search(state, table, labels, budget, timezone)
    search.look_beside(extra_atoms)
    literal = key_atom(search.frame, np.flatnonzero(labels.must).tolist(), True, timezone)
    if literal is not None:
        search.offer([((literal,),)])
    search.offer(selection.terms for selection in known)
    if search.leaves(_LEAST):
        search.offer(search.conjunctions())
    if further is not None and search.leaves(_LEAST_FURTHER) and not search.convinced:
        search.further = further
        search.look_beside([*further(labels, search.bound), *clauses(state, table, labels, budget, timezone)])
        search.offer(search.conjunctions())
    if named is not None and search.leaves(_LEAST_NAMED):
        search.offer([selection.terms for selection in named(search.bound)])
    if search.worthwhile and not simple:
        search.disjunctions()
    return search.found[:keep]


class _Search:
    def __init__(
        self,
        state: State,
        table: TableName,
        labels: Labels,
        budget: Budget,
        timezone: str | None,
    ) -> None:
        self.state = state
        self.table = table
        self.labels = labels
        self.budget = budget
        self.timezone = timezone
        self.beside: list[Held] = []
        self.further: Further | None = None
        self.frame: Frame = state.frame(table)
        self.ground = Ground(labels)
        self.must_rows, self.must_not_rows = self.ground.must, self.ground.must_not
        self.found: list[Selection] = []

    def look_beside(self, more: Iterable[MaskedAtom]) -> None:
        """Take conditions of other families into account."""
        self.beside += map(self.ground.held, more)

    def offer(self, found: Iterable[_Terms]) -> None:
        """Take selections with their measured sizes, the shortest first."""
        known = {selection.terms for selection in self.found}
        self.found += [
            Selection(terms, measure_selection(self.state, self.table, terms))
            for terms in dict.fromkeys(found)
            if terms not in known
        ]
        self.found.sort(key=lambda selection: selection.size)

    def leaves(self, least: int) -> bool:
        """Whether a condition of `least` bytes would be the shortest so far."""
        return self.bound is None or self.bound > least

    @property
    def bound(self) -> int | None:
        """The size to beat."""
        return self.found[0].size if self.found else None

    @property
    def convinced(self) -> bool:
        """Whether the shortest selection says so much about the rows in so few bytes that it is no chance: what the
        rows were selected by is then hardly anything else."""
        if not self.found:
            return False
        size = self.found[0].size
        return size <= _CONVINCING and self._bits >= _BITS * size

    @cached_property
    def _bits(self) -> float:
        """What it takes to tell the rows to select from as many others: log2 C(n+m, n)."""
        n, m = len(self.must_rows), len(self.must_not_rows)
        return (math.lgamma(n + m + 1) - math.lgamma(n + 1) - math.lgamma(m + 1)) / math.log(2)

    # -- conjunctions

    def conjunctions(self) -> list[_Terms]:
        """Conjunctions that hold for all rows to select, as selections of one term."""
        return [(held,) for held, _ in self._conjunctions(self.ground.whole, self.bound, exceptions=True)]

    def _conjunctions(
        self, part: Mask, bound: int | None, *, exceptions: bool
    ) -> Iterator[tuple[tuple[Atom, ...], list[Held]]]:
        """Conjunctions that hold for all rows of `part`: first with own columns, then with what may be shorter of
        those further and further away."""
        pool: list[Held] = []
        problem, best = None, None
        for depths in _STAGES:
            source: Iterable[Held] = self._atoms(part, bound, depths)
            if problem is None:
                useful = (held for held in self.beside if held.on_must[part].all() and not held.on_must_not.all())
                source = chain(source, useful)
            more = self._pool(source, pure=False)
            if problem is not None and not more:
                continue
            pool = [*pool, *more]
            wider = self._others_problem(pool, bound, exceptions)
            shortest = wider.cheapest()
            if shortest is not None or problem is None:
                problem, best = wider, shortest
            if best is not None:
                bound = best.cost + _SLACK if bound is None else min(bound, best.cost + _SLACK)
        assert problem is not None
        for cover in _best(problem, best):
            if (bound is not None and cover.cost > bound + _SLACK) or len(cover.exceptions) > _MAX_EXCEPTIONS:
                continue
            chosen = [pool[place] for place in cover.atoms]
            conjunction = tuple(atom for held in chosen for atom in held.atoms)
            named = key_atom(self.frame, self.must_not_rows[list(cover.exceptions)].tolist(), False, self.timezone)
            yield (conjunction if named is None else (*conjunction, named)), chosen

    def _atoms(self, part: Mask, bound: int | None, depths: range) -> Iterator[Held]:
        where = (self.state, self.table, self.ground, part, self.budget, self.timezone)
        least = 1 if part is self.ground.whole else max(1, len(self.must_not_rows) // _TELLING)
        return atoms(*where, bound=bound, depths=depths, least=least)

    def _others_problem(self, pool: list[Held], bound: int | None, exceptions: bool) -> Covers:
        """To cover the rows not to select by atoms that fail for them."""
        missed = np.array([~held.on_must_not for held in pool], dtype=np.bool_)
        missed = missed.reshape(len(pool), len(self.must_not_rows))
        return self._problem(pool, missed, self._naming_others if exceptions else None, bound, AND)

    @cached_property
    def _naming_others(self) -> Listing | None:
        return self._listing(self.must_not_rows, _NOT_IN)

    def _listing(self, rows: Ints, words: int) -> Listing | None:
        """What it costs to name each row; None where rows have no names."""
        names = self.frame.table.row_key
        if not names:
            return None
        prices = np.array([key_bytes(self.frame, row) for row in rows.tolist()], dtype=np.int64)
        return Listing(prices, words + sum(len(name) + 1 for name in names))

    def _problem(
        self,
        pool: list[Held],
        covered: NDArray[np.bool_],
        listing: Listing | None,
        bound: int | None,
        joiner: int,
    ) -> Covers:
        """The cover of rows by atoms, and by a list if that may help."""
        groups: dict[Path, int] = {}
        needs = []
        for held in pool:
            closure = {step for path in held.paths for step in steps(path)}
            needs.append(frozenset(groups.setdefault(path, len(groups)) for path in sorted(closure, key=_by_name)))
        return Covers(
            covered,
            costs=[held.size for held in pool],
            needs=needs,
            charges=list(map(step_cost, groups)),
            listing=listing,
            joiner=joiner,
            limit=None if bound is None else bound + _SLACK,
        )

    def _pool(self, source: Iterable[Held], *, pure: bool) -> list[Held]:
        """The cheapest atom for every set of rows, the most useful ones for their size."""
        best: dict[bytes, Held] = {}
        for held in source:
            mark = np.packbits(held.on_must if pure else held.on_must_not).tobytes()
            known = best.get(mark)
            if known is None or (held.price, held.size) < (known.price, known.size):
                best[mark] = held
        if len(best) <= _MAX_ATOMS:
            return list(best.values())
        return sorted(best.values(), key=lambda held: _worth(held, pure))[:_MAX_ATOMS]

    # -- disjunctions

    def disjunctions(self) -> None:
        """Offers selections of several terms: first of single atoms, then of conjunctions too."""
        where = (self.state, self.table, self.ground, self.ground.whole, self.budget, self.timezone)
        near = atoms(*where, partial=True, bound=self._room)
        useful = (held for held in self.beside if not held.on_must_not.any() and held.on_must.any())
        terms = self._pool(chain(near, useful), pure=True)[:_MAX_TERMS]
        self.offer(self._disjoined(terms))
        if self.convinced:
            return
        rests = self._rests(terms) if self.worthwhile else []
        for rest in rests[:1]:
            self._look_at_part(rest)
        if self.worthwhile and (seeded := list(self._seeded(rests, self._room))):
            self.offer(self._disjoined([*terms, *seeded]))
        if self.leaves(_LEAST_INNER):
            self.offer(self._inner())

    def _look_at_part(self, part: Mask) -> None:
        """Take conditions of other families into account that tell `part` of the rows."""
        room = self._room
        if self.further is None or (room is not None and room <= _LEAST_FURTHER):
            return
        must = np.zeros(self.frame.size, dtype=np.bool_)
        must[self.must_rows[part]] = True
        self.look_beside(self.further(Labels(must, self.labels.must_not), room))

    def _inner(self) -> Iterator[_Terms]:
        """`a AND(b OR c)`: where a condition on the row holds for all rows to select, the others for which it holds
        are told apart by a disjunction."""
        own = self._pool(self._atoms(self.ground.whole, self.bound, range(1)), pure=False)
        for tried, outer in enumerate(sorted(own, key=lambda held: _worth(held, False))[:_OUTER]):
            room = None if self.bound is None else self.bound - outer.size - AND - _BRACKETS
            if (room is not None and room < _LEAST + _LEAST_TERM) or not outer.on_must_not.any():
                continue
            inside = np.zeros(self.frame.size, dtype=np.bool_)
            inside[self.must_not_rows[outer.on_must_not]] = True
            ground = Ground(Labels(self.labels.must, inside))
            where = (self.state, self.table, ground, ground.whole, self.budget, self.timezone)
            terms = [*atoms(*where, partial=True, bound=room, depths=range(1))]
            if self.further is not None and not tried and (room is None or room > _LEAST_FURTHER + _LEAST_TERM):
                terms += map(ground.held, self.further(ground.labels, room))
            terms = self._pool((held for held in terms if not held.on_must_not.any()), pure=True)[:_MAX_TERMS]
            covered = np.array([held.on_must for held in terms], dtype=np.bool_)
            problem = self._problem(terms, covered.reshape(len(terms), len(self.must_rows)), None, room, _OR)
            if (cover := problem.cheapest()) is not None:
                either = disjoin(arranged([terms[place].atoms[0].term for place in cover.atoms]))
                assert either is not None
                size = make_atom(either, frozenset()).size + _BRACKETS
                yield ((*outer.atoms, Atom(either, frozenset(), size)),)

    @property
    def _room(self) -> int | None:
        """What one of several terms may cost."""
        return None if self.bound is None else self.bound - _LEAST_TERM

    @property
    def worthwhile(self) -> bool:
        """Whether there is enough to win for a search for disjunctions."""
        return self.bound is None or self.bound > _SHORT

    def _disjoined(self, terms: list[Held]) -> Iterator[_Terms]:
        """Covers of the rows to select by `terms`."""
        covered = np.array([held.on_must for held in terms], dtype=np.bool_).reshape(len(terms), len(self.must_rows))
        problem = self._problem(terms, covered, self._naming_wanted, self.bound, _OR)
        for cover in _best(problem, problem.cheapest()):
            sides = [terms[place].atoms for place in cover.atoms]
            named = key_atom(self.frame, self.must_rows[list(cover.exceptions)].tolist(), True, self.timezone)
            yield tuple(sides if named is None else [*sides, (named,)])

    @cached_property
    def _naming_wanted(self) -> Listing | None:
        return self._listing(self.must_rows, _IN)

    def _rests(self, terms: list[Held]) -> list[Mask]:
        """For the terms that give the most of the rows to select, the others."""
        some = [held for held in terms if not held.on_must.all()]
        most = sorted(some, key=lambda held: -int(held.on_must.sum()))[:_RESTS]
        return [~held.on_must for held in most]

    def _seeded(self, rests: list[Mask], room: int | None) -> Iterator[Held]:
        """Conjunctions for `rests`, and for parts of the rows that share a value."""
        known = all_features(self.state, self.table, self.budget, self.timezone)
        total, least = len(self.must_rows), None
        for tried, part in enumerate([*rests, *seed_masks(known, self.ground, _SEEDS)]):
            # Terms that are all too dear for the rows that they give will not add up to something short.
            if not self.budget.spend() or (
                tried >= _FIRST_SEEDS and least is not None and room is not None and least > _HOPE * room
            ):
                return
            share = _LONG_TERM if room is None else min(room, max(_FAIR * room * int(part.sum()) // total, _SHORT))
            share = min(share, _LONG_TERM)
            for conjunction, chosen in self._conjunctions(part, share, exceptions=False):
                on_must = np.logical_and.reduce([held.on_must for held in chosen])
                nowhere = np.zeros(len(self.must_not_rows), dtype=np.bool_)
                held = Held(conjunction, on_must, nowhere)
                worth = (held.size + _OR) * total / int(on_must.sum())
                least = worth if least is None else min(least, worth)
                yield held


def _best(problem: Covers, first: CoverSolution | None) -> list[CoverSolution]:
    """The cheapest cover and, if a list may help, for each of its atoms the cheapest without it."""
    if first is None:
        return []
    found = {first.atoms: first}
    for atom in first.atoms[:_ALTERNATIVES] if problem.listing is not None else ():
        if (other := problem.cheapest(atom, first.cost + _FURTHER)) is not None:
            found.setdefault(other.atoms, other)
    return sorted(found.values(), key=lambda solution: solution.cost)


def measure_selection(state: State, table: TableName, terms: _Terms) -> int:
    """The bytes of the shortest WHERE, with what its joins cost, in a statement on the table alone."""
    catalog = state.catalog
    target = source_of(catalog[table])
    empty = len(render(Delete(target)).encode())
    sizes = [
        len(render(Delete(target, way.sources, way.where)).encode()) - empty
        for way in lower(catalog, table, Selection(terms, 0), size_of=lambda name: state.frame(name).size)
    ]
    return min(sizes)


def _worth(held: Held, pure: bool) -> float:
    """Less is better: bytes a row that the atom settles, favouring those that settle many."""
    settled = int(held.on_must.sum()) if pure else int((~held.on_must_not).sum())
    return (held.price + AND) / math.sqrt(settled)


def _by_name(path: Path) -> tuple[str, ...]:
    return tuple(key.name for key in path)

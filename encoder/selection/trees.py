"""Atoms about trees: rows below or above a row, or below or above all rows with a property.

Trees are materialised paths (a text column whose values begin with one another) and foreign keys of a table to itself.
Rows that refer to a node of such a table are searched like the nodes themselves: `region_id IN(WITH RECURSIVE …)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial as bind
from typing import Protocol

import numpy as np

from emit.literal import quote
from emit.term import Part, Query, Source, Term, in_query, negate, op, raw, ref
from encoder.budget import Budget
from encoder.frame import Codes, Frame, State
from encoder.selection.forest import Forest
from encoder.selection.grouping import PEER
from encoder.selection.links import PAIRS_OF_ROWS, Ints
from encoder.selection.masks import Offers, equation, source
from encoder.selection.model import Labels, Mask, MaskedAtom
from scratch.catalog import ForeignKey
from stream.model import TableName

_TEXTS = frozenset({"text", "character varying"})
_LENGTHS = 16  # different lengths of the values of a path
_SAMPLE = 500  # values looked at before all are
_BEST = 2  # subtrees of a kind that are offered
_UNCOMPARABLE = frozenset({"json", "jsonb", "xml", "point", "bytea"})
# Atoms that exclude less than this part of the rows never pay for their length.
_SHARE = 100


def atoms(
    state: State,
    table: TableName,
    labels: Labels,
    budget: Budget,
    timezone: str | None,
    *,
    partial: bool = False,
    bound: int | None = None,
) -> Iterator[MaskedAtom]:
    """Atoms on trees; see encoder.selection.masks.Offers for which are taken."""
    offers = Offers(state.catalog[table], labels, budget, partial=partial, share=_SHARE, bound=bound)
    for spelling in _spellings(state, table, budget):
        _Search(spelling, offers, budget, timezone).run()
    yield from offers


class Spelling(Protocol):
    """How a kind of tree says its relations in SQL."""

    @property
    def frame(self) -> Frame:
        """The nodes."""

    @property
    def forest(self) -> Forest: ...

    @property
    def node(self) -> Codes:
        """The node of each row of the table that is searched, -1 for none."""

    def below(self, row: int) -> Term:
        """Is in the subtree of this row of `frame`."""

    def above(self, row: int) -> Term:
        """Is this row or one above it."""

    def below_any(self, where: Term) -> Term:
        """Is in the subtree of a row for which `where`, about PEER, holds."""

    def above_any(self, where: Term) -> Term:
        """Is a row for which `where` holds, or above one."""

    def deny(self, term: Term) -> Term:
        """The opposite of a `below`."""


@dataclass(frozen=True)
class Adjacent:
    """A foreign key of a table to itself, for the rows whose column `own` names a node."""

    frame: Frame
    forest: Forest
    key: ForeignKey
    own: str
    node: Codes

    def below(self, row: int) -> Term:
        return self._in(self._start(row), up=False)

    def above(self, row: int) -> Term:
        return self._in(self._start(row), up=True)

    def below_any(self, where: Term) -> Term:
        return self._in(self._query(where), up=False)

    def above_any(self, where: Term) -> Term:
        return self._in(self._query(where), up=True)

    def deny(self, term: Term) -> Term:
        place = term.parts.index("IN(")
        return Term((*term.parts[:place], "NOT IN(", *term.parts[place + 1 :]), term.prec)

    def _start(self, row: int) -> tuple[Part, ...]:
        """The first row of the walk, whose type has to be exactly that of the rows that follow."""
        column = self.frame.table.by_name[self.key.target_columns[0]]
        value = self.frame.texts(column.name)[row] or ""
        if column.base != "integer":
            short = {"bigint": "int8", "smallint": "int2", "text": "text", "uuid": "uuid"}.get(column.base)
            value = f"{short}{quote(value)}" if short else f"{quote(value)}::{column.type}"
        return ("SELECT", value, self._item)

    def _query(self, where: Term) -> tuple[Part, ...]:
        select = ref(PEER, self.key.target_columns[0])
        return (Query((select,), (source(self.frame.table, PEER),), where, names=(self._item,)),)

    @property
    def _item(self) -> str:
        """A name that is no column of the table."""
        return next(name for name in "ijklmn" if name not in self.frame.table.by_name)

    def _in(self, start: tuple[Part, ...], up: bool) -> Term:
        walk = Source(("walk",), "r", (self._item,))
        key, back = ref(PEER, self.key.target_columns[0]), ref(PEER, self.key.columns[0])
        met, next_ = (key, back) if up else (back, key)
        step = Query((next_,), (source(self.frame.table, PEER), walk), op(met, "=", ref(walk.key, self._item)))
        query: tuple[Part, ...] = ("WITH RECURSIVE r AS(", *start, "UNION", step, ")SELECT*FROM r")
        inner = in_query(ref((), self.own), Query((raw("1"),)))
        return Term((*inner.parts[:-2], *query, ")"), inner.prec)


@dataclass(frozen=True)
class Paths:
    """A text column that holds the way from the root."""

    frame: Frame
    forest: Forest
    column: str
    node: Codes

    def below(self, row: int) -> Term:
        return op(ref((), self.column), "^@", self._path(row))

    def above(self, row: int) -> Term:
        return op(self._path(row), "^@", ref((), self.column))

    def below_any(self, where: Term) -> Term:
        return self._exists(op(ref((), self.column), "^@", ref(PEER, self.column)), where)

    def above_any(self, where: Term) -> Term:
        return self._exists(op(ref(PEER, self.column), "^@", ref((), self.column)), where)

    def deny(self, term: Term) -> Term:
        return negate(term)

    def has_child(self) -> Term:
        longer = op(ref(PEER, self.column), ">", ref((), self.column))
        return self.above_any(longer)

    def _path(self, row: int) -> Term:
        return raw(quote(self.frame.texts(self.column)[row] or ""))

    def _exists(self, related: Term, where: Term) -> Term:
        condition = op(related, "AND", where)
        return Term(("EXISTS(", Query((), (source(self.frame.table, PEER),), condition), ")"))


class _Search:
    """The search in one tree.  A subtree is judged by the labelled rows in it, which the sums over the forest tell."""

    def __init__(self, spelling: Spelling, offers: Offers, budget: Budget, timezone: str | None) -> None:
        self.spelling = spelling
        self.offers = offers
        self.budget = budget
        self.timezone = timezone
        self.forest = spelling.forest
        self.must = self._weights(offers.labels.must)
        self.must_not = self._weights(offers.labels.must_not)

    def _weights(self, rows: Mask) -> Ints:
        nodes = self.spelling.node[rows]
        return np.bincount(nodes[nodes >= 0], minlength=self.forest.size)

    def run(self) -> None:
        if not self.budget.spend(8 * self.forest.size) or not self.must.any():
            return
        self._subtrees()
        self._ancestors()
        if isinstance(self.spelling, Paths):
            if self.forest.size**2 > PAIRS_OF_ROWS:
                return
            self._inner(self.spelling)
        self._properties()

    def _rows(self, nodes: Mask) -> Mask:
        """The rows of the table that are at one of the nodes."""
        return np.append(nodes, False)[self.spelling.node]

    def _one(self, row: int) -> Mask:
        seed = np.zeros(self.forest.size, dtype=np.bool_)
        seed[row] = True
        return seed

    def _subtrees(self) -> None:
        right, wrong = self.forest.counted(self.must), self.forest.counted(self.must_not)
        needed = int(self.offers.labels.must.sum())
        whole = np.flatnonzero(right == needed)
        # The least of the subtrees with all must rows, the greatest with no other, and those with none to deny.
        chosen = sorted(whole.tolist(), key=lambda row: (wrong[row], -self.forest.depth[row]))[:_BEST]
        if self.offers.partial:
            pure = np.flatnonzero((right > 0) & (wrong == 0))
            chosen += sorted(pure.tolist(), key=lambda row: (-right[row], self.forest.depth[row]))[:_BEST]
        for row in chosen:
            self.offers.offer(self._rows(self.forest.below(self._one(row))), bind(self.spelling.below, row))
        foreign = np.flatnonzero((right == 0) & (wrong > 0))
        for row in sorted(foreign.tolist(), key=lambda row: (-wrong[row], self.forest.depth[row]))[:_BEST]:
            inside = self._rows(self.forest.below(self._one(row)))
            self.offers.offer((self.spelling.node >= 0) & ~inside, bind(self._outside, row))

    def _outside(self, row: int) -> Term:
        return self.spelling.deny(self.spelling.below(row))

    def _ancestors(self) -> None:
        """Must rows on one way to a root are above the deepest of them."""
        nodes = np.flatnonzero(self.must)
        deepest = int(nodes[self.forest.depth[nodes].argmax()])
        above = self.forest.above(self._one(deepest))
        if above[nodes].all():
            self.offers.offer(self._rows(above), bind(self.spelling.above, deepest))

    def _inner(self, paths: Paths) -> None:
        parents = self.forest.parents()
        self.offers.offer(self._rows(parents), paths.has_child)
        self.offers.offer(self._rows(~parents), lambda: negate(paths.has_child()))

    def _properties(self) -> None:
        """What the topmost must rows have in common may be what the subtree hangs on, and the lowest likewise."""
        nodes, parent = self.must > 0, self.forest.parent
        tops = nodes & ~np.append(self.forest.below(nodes), False)[parent]
        inner = np.zeros(self.forest.size, dtype=np.bool_)
        inner[parent[nodes & (parent >= 0)]] = True
        lows = nodes & ~self.forest.above(inner)
        for where, seeds in self._shared(tops):
            self.offers.offer(self._rows(self.forest.below(seeds)), bind(self.spelling.below_any, where))
        for where, seeds in self._shared(lows):
            self.offers.offer(self._rows(self.forest.above(seeds)), bind(self.spelling.above_any, where))

    def _shared(self, rows: Mask) -> Iterator[tuple[Term, Mask]]:
        """Values that all these rows of the tree's table share, with all rows that have them."""
        frame = self.spelling.frame
        for column in frame.table.columns:
            if column.base in _UNCOMPARABLE or not rows.any() or not self.budget.spend(8 * frame.size):
                continue
            coded = frame.coded(column.name)
            codes = np.unique(coded.codes[rows])
            seeds = coded.codes == codes[0]
            if len(codes) > 1 or seeds.all():
                continue
            value = coded.values[codes[0]] if codes[0] >= 0 else None
            yield equation(ref(PEER, column.name), column, value, self.timezone), seeds


def _spellings(state: State, table: TableName, budget: Budget) -> Iterator[Spelling]:
    frame = state.frame(table)
    for column in frame.table.columns:
        if column.base in _TEXTS and budget.spend(frame.size):
            parent = _path_parents(frame, column.name)
            if parent is not None:
                known = np.where(frame.coded(column.name).codes >= 0, np.arange(frame.size), -1)
                yield Paths(frame, Forest(parent), column.name, known.astype(np.int32))
    for tree, key in _self_references(state, table):
        nodes = state.frame(tree)
        forest = Forest(nodes.parent(key))
        if tree == table:
            yield Adjacent(nodes, forest, key, key.target_columns[0], np.arange(nodes.size, dtype=np.int32))
        for link in frame.table.foreign_keys:
            if link.target == tree and link.target_columns == key.target_columns:
                yield Adjacent(nodes, forest, key, link.columns[0], frame.parent(link))


def _self_references(state: State, table: TableName) -> Iterator[tuple[TableName, ForeignKey]]:
    """The foreign keys to themselves of the table and of those that it refers to."""
    targets = dict.fromkeys([table, *(key.target for key in state.catalog[table].foreign_keys)])
    for target in targets:
        for key in state.catalog[target].foreign_keys:
            if key.target == target and len(key.columns) == 1 and any(state.frame(target).texts(key.columns[0])):
                yield target, key


def _path_parents(frame: Frame, column: str) -> Codes | None:
    """Every row's parent by the longest value that its own begins with; None if the column is no path."""
    texts = frame.texts(column)
    places = {text: place for place, text in enumerate(texts) if text}
    if len(places) < 3 or len(places) < sum(text is not None for text in texts):
        return None
    lengths = sorted({len(text) for text in places}, reverse=True)
    if not 1 < len(lengths) <= _LENGTHS:
        return None

    def above(text: str) -> int:
        return next((places[text[:length]] for length in lengths if length < len(text) and text[:length] in places), -1)

    # Of names, too, some begin with others; of paths most do, and of any some hundred of them.
    some = list(places)[:: len(places) // _SAMPLE + 1]
    if 4 * sum(above(text) >= 0 for text in some) < len(some):
        return None
    parent = np.full(frame.size, -1, dtype=np.int32)
    for text, place in places.items():
        parent[place] = above(text)
    return parent if 2 * np.count_nonzero(parent >= 0) >= len(places) else None

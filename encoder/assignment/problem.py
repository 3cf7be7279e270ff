"""What a search for a value works on: a sample of rows, with everything that a row reaches.

Families infer from the sample and propose; the server then checks all rows.  Rows that
refute a proposal join the sample and the search runs again (counterexample-guided synthesis, Solar-Lezama 2008).
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from emit.literal import literal
from emit.term import Part, Prec, Query, Ref, Term, raw, ref
from encoder.assignment.pathtree import path_trees
from encoder.frame import Frame, State
from encoder.selection.model import Path
from scratch.catalog import Column, ForeignKey, Table
from stream.model import Value

Floats: TypeAlias = NDArray[np.float64]
Texts: TypeAlias = tuple[Value, ...]

_SAMPLE = 40
_MAX_INPUTS = 120
_MAX_DEPTH = 3
# From one of so many rows of a table on, what all of them refer to is found at once.
_MANY = 4
# Bytes that a join costs beside its table's name: FROM, an alias, WHERE a.id=b.
_JOIN = 18

INTEGERS = frozenset({"smallint", "integer", "bigint", "oid"})
FLOATS = frozenset({"real", "double precision"})
STRINGS = frozenset({"text", "character varying", "character"})
TIMES = frozenset({"date", "timestamp without time zone", "timestamp with time zone"})

_SHORT = {
    "integer": "int",
    "bigint": "int8",
    "smallint": "int2",
    "boolean": "bool",
    "double precision": "float",
    "real": "float4",
    "character varying": "text",
    "character": "text",
    "timestamp with time zone": "timestamptz",
    "timestamp without time zone": "timestamp",
    "time without time zone": "time",
}


def short_type(base: str) -> str:
    """A short name for the type `base` (in format_type's spelling, no modifier)."""
    return _SHORT.get(base, base)


@dataclass(frozen=True)
class Input:
    """Something that every row has: a column of it, a column that a path leads to, or what follows from
    these.  `texts` are the sample's values; `kind` is pg_type.typcategory."""

    term: Term
    base: str
    kind: str
    texts: Texts
    cost: int
    own: bool = False
    is_key: bool = False

    @cached_property
    def numbers(self) -> Floats:
        """The sample's values as floats, NaN for NULL; times as microseconds from 2000."""
        return np.array([to_number(self.base, text) for text in self.texts], dtype=np.float64)

    @property
    def is_number(self) -> bool:
        return self.base in INTEGERS or self.base == "numeric" or self.base in FLOATS

    @property
    def is_integer(self) -> bool:
        return self.base in INTEGERS

    @property
    def is_text(self) -> bool:
        return self.base in STRINGS

    @property
    def is_time(self) -> bool:
        return self.base in TIMES


Proposals: TypeAlias = Iterator[Term]
Family: TypeAlias = Callable[["Problem"], Proposals]


@dataclass(eq=False)
class Problem:
    """One goal on a sample of its rows.

    `rows` are row indexes of the table's frame, `new` the wanted texts.  `hard` are the places in the
    sample that refuted proposals.  A `light` problem sees the row and the rows that it refers to directly, no others;
    `extra` is what it sees beside.
    """

    state: State
    table: Table
    column: Column
    rows: tuple[int, ...]
    new: Texts
    timezone: str | None
    hard: tuple[int, ...] = ()
    light: bool = False
    extra: tuple[Input, ...] = ()
    _found: dict[Hashable, list[Term]] = field(default_factory=dict, init=False, repr=False)

    def remember(self, key: Hashable, make: Callable[[], list[Term]]) -> list[Term]:
        """What `make` found on these inputs for `key` when it was first asked."""
        if key not in self._found:
            self._found[key] = make()
        return self._found[key]

    def with_inputs(self, items: Iterable[Input]) -> Problem:
        """The same problem with more things that every row has."""
        return self._beside(replace(self, extra=(*self.extra, *items)))

    def aiming(self, column: Column, new: Texts) -> Problem:
        """Another goal on the same rows, which knows what they reach."""
        return self._beside(replace(self, column=column, new=new))

    def _beside(self, other: Problem) -> Problem:
        other.__dict__["joined"] = self.joined
        return other

    @property
    def base(self) -> str:
        return self.column.base

    @property
    def frame(self) -> Frame:
        return self.state.frame(self.table.name)

    @cached_property
    def numbers(self) -> Floats:
        return np.array([to_number(self.base, text) for text in self.new], dtype=np.float64)

    @cached_property
    def own(self) -> tuple[Input, ...]:
        """The row's own columns, the assigned one first."""
        columns = sorted(self.table.columns, key=lambda c: c.name != self.column.name)
        return tuple(self._input((), self.frame, column, self.rows) for column in columns)

    @cached_property
    def joined(self) -> tuple[Input, ...]:
        """Columns up the foreign keys, near ones first."""
        found: list[Input] = []
        for path, rows in self.reached(1 if self.light else _MAX_DEPTH):
            if len(found) <= _MAX_INPUTS:
                found += self.columns_at(path, rows)
        return (*found, *self._tree_parents())

    def reached(self, depth: int) -> Iterator[tuple[Path, Sequence[int]]]:
        """Paths of up to `depth` foreign keys, near ones first, with the row that each row of the sample comes to
        (-1 for none); those that lead nowhere left out."""
        level: list[tuple[Path, Table, Sequence[int]]] = [((), self.table, self.rows)]
        for _ in range(depth):
            following: list[tuple[Path, Table, Sequence[int]]] = []
            for path, table, rows in level:
                for key in table.foreign_keys:
                    reached = self.follow(key, rows)
                    if any(row >= 0 for row in reached):
                        following.append(((*path, key), self.state.catalog[key.target], reached))
                        yield (*path, key), reached
            level = following

    def columns_at(self, path: Path, rows: Sequence[int]) -> Iterator[Input]:
        """The columns of the rows that `path` comes to, but for those that it goes by."""
        target = self.state.frame(path[-1].target)
        for column in target.table.columns:
            if column.name not in path[-1].target_columns:
                yield self._input(path, target, column, rows)

    def _tree_parents(self) -> Iterator[Input]:
        """Columns of the row above in a tree of paths."""
        for tree in () if self.light else path_trees(self.frame):
            parents = [tree.parent(row) for row in self.rows]
            if all(row < 0 for row in parents):
                continue
            for column in self.table.columns:
                if column.name not in self.table.primary_key:
                    texts = self.frame.texts(column.name)
                    values = tuple(texts[row] if row >= 0 else None for row in parents)
                    term = tree.of_parent(column)
                    yield Input(term, column.base, column.kind, values, self.cost(term))

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        return self.own + self.joined + self.extra

    def follow(self, key: ForeignKey, rows: Sequence[int]) -> list[int]:
        """The rows that `rows` (-1 for none) refer to by `key`, -1 for none."""
        frame, target = self.state.frame(key.table), self.state.frame(key.target)
        few = len(rows) * _MANY < frame.size and key.target_columns == target.table.row_key
        if few and not frame.knows_parent(key):
            columns, index = [frame.texts(name) for name in key.columns], target.index
            return [index.get(tuple(column[row] for column in columns), -1) if row >= 0 else -1 for row in rows]
        chosen = np.asarray(rows, dtype=np.intp)
        found: list[int] = np.where(chosen >= 0, frame.parent(key)[chosen], -1).tolist()
        return found

    def _input(self, path: Path, frame: Frame, column: Column, rows: Sequence[int]) -> Input:
        texts = frame.texts(column.name)
        values = tuple(texts[row] if row >= 0 else None for row in rows)
        term = ref(path, column.name)
        table = frame.table
        is_key = column.name in table.primary_key or any(column.name in key.columns for key in table.foreign_keys)
        return Input(term, column.base, column.kind, values, self.cost(term), not path, is_key)

    # -- spelling

    def cost(self, term: Term) -> int:
        """An estimate of the bytes of `term`, the joins that it needs counted."""
        paths: set[Path] = set()
        length = _length(term.parts, paths)
        tables = {path[: i + 1] for path in paths for i in range(len(path))}
        return length + sum(_JOIN + len(path[-1].target.name) for path in tables)

    def constant(self, value: Value, base: str | None = None) -> Term:
        """A literal for the goal's column, or beside something of the type `base`."""
        if base is None:
            return literal_term(literal(value, self.column.type, context="assign", timezone=self.timezone))
        return literal_term(literal(value, base, context="compare", timezone=self.timezone))

    @cached_property
    def scale(self) -> int | None:
        """The digits after the point that the column rounds to; None where it does not round."""
        if self.base in INTEGERS:
            return 0
        if self.base == "numeric" and "(" in self.column.type:
            inner = self.column.type[self.column.type.index("(") + 1 : -1].split(",")
            return int(inner[1]) if len(inner) > 1 else 0
        return None


def literal_term(text: str) -> Term:
    prec = Prec.UNARY if text.startswith("-") else Prec.CAST if "::" in text else Prec.ATOM
    return raw(text, prec)


def quoted(text: str) -> Term:
    return raw(literal(text, "text", context="compare"))


def _length(parts: Iterable[Part], paths: set[Path]) -> int:
    total = 0
    for part in parts:
        if isinstance(part, str):
            total += len(part.encode())
        elif isinstance(part, Ref):
            total += len(part.column)
            if isinstance(part.key, tuple) and part.key and isinstance(part.key[0], ForeignKey):
                paths.add(part.key)
        elif isinstance(part, Query):
            total += 14 + sum(len(s.text) if isinstance(s.text, str) else 10 for s in part.sources)
            for term in (*part.select, part.where, part.tail):
                if term is not None:
                    total += _length(term.parts, paths) + 6
    return total


@lru_cache(maxsize=100_000)
def to_number(base: str, text: Value) -> float:
    """A value as a number: times as microseconds from 2000-01-01 UTC; NaN for NULL and what has none."""
    if text is None:
        return math.nan
    try:
        if base in TIMES:
            moment = datetime.datetime.fromisoformat(text).replace(tzinfo=None)
            return float((moment - datetime.datetime(2000, 1, 1)) // datetime.timedelta(microseconds=1))
        if base == "boolean":
            return float(text == "t")
        return float(text)
    except (ValueError, OverflowError):
        return math.nan


def digits_after_point(text: str) -> int:
    return len(text.partition(".")[2])


def to_decimal(text: str) -> Decimal | None:
    """The finite number that a text spells."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def to_moment(text: str) -> datetime.datetime | None:
    """A date or timestamp as Python has it; None for infinity, years before 1 and after 9999."""
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        return None


def choose_sample(new: Sequence[Value], old: Sequence[Value] | None, extra: Sequence[int]) -> list[int]:
    """Places of a diverse sample, ascending: distinct values, extremes, an even spread, and `extra`."""
    count = len(new)
    if count <= _SAMPLE:
        return list(range(count))
    chosen: dict[int, None] = {}
    seen: set[tuple[Value, Value]] = set()
    for place in range(count):
        pair = (new[place], old[place] if old is not None else None)
        if pair not in seen:
            seen.add(pair)
            chosen.setdefault(place)
        if len(chosen) >= _SAMPLE // 2:
            break
    lengths = [len(text or "") for text in new]
    chosen.setdefault(lengths.index(max(lengths)))
    chosen.setdefault(lengths.index(min(lengths)))
    values = [to_number("numeric", text) for text in new]
    finite = [place for place in range(count) if math.isfinite(values[place])]
    if finite:
        chosen.setdefault(max(finite, key=values.__getitem__))
        chosen.setdefault(min(finite, key=values.__getitem__))
    step = count / (_SAMPLE - len(chosen)) if len(chosen) < _SAMPLE else count
    for i in range(max(0, _SAMPLE - len(chosen))):
        chosen.setdefault(min(count - 1, int(i * step + step / 2)))
    for place in extra:
        chosen.setdefault(place)
    return sorted(chosen)

"""A table as window functions see it: what its rows may be grouped by and sorted by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from emit.term import Part, Ref, Term, call, ref
from encoder.assignment.problem import INTEGERS, STRINGS, TIMES, Problem, quoted
from encoder.frame import Frame
from encoder.selection.model import Path
from scratch.catalog import Column, Table

NUMERIC = INTEGERS | {"numeric"}
ORDERED = NUMERIC | STRINGS | TIMES | {"boolean"}
_MAX_PARTITIONS = 16
# The share of distinct values up to which a column groups rows.
_MOST_DISTINCT = 0.9
_MAX_SEQUENCES = 16
_MAX_PARENT_KEYS = 120

Codes = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Partition:
    """What rows are grouped by: terms keyed by Path, and a code a row of the frame; where it is `joined`, by a row
    that they refer to, -1 for rows without one."""

    terms: tuple[Term, ...]
    codes: Codes
    joined: bool = False


@dataclass(frozen=True)
class SortKey:
    """A column to sort by, of the row itself (path ()) or of one that it refers to: its spelling, and a code a row
    of the frame that rises in this order, -1 in rows that have no such row (an inner join leaves those out)."""

    path: Path
    column: str
    descending: bool
    parts: tuple[Part, ...]
    codes: Codes

    @property
    def cost(self) -> int:
        """An estimate of the bytes that it takes."""
        joined = sum(12 + len(key.target.name) for key in self.path)
        return joined + sum(len(part) if isinstance(part, str) else len(self.column) for part in self.parts)


class Layout:
    """Partitions and orders of a table."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.table = frame.table

    @cached_property
    def key(self) -> Codes:
        """The rows in the order of the row key, as the frame has them."""
        return np.arange(self.frame.size, dtype=np.int64)

    @cached_property
    def links(self) -> frozenset[str]:
        return frozenset(name for key in self.table.foreign_keys for name in key.columns)

    @cached_property
    def partitions(self) -> tuple[Partition, ...]:
        """No partition, then columns with repeated values, years, and pairs of such columns."""
        size = self.frame.size
        single: list[Partition] = []
        for column in sorted(self.table.columns, key=lambda c: c.name not in self.links):
            # A part of the key groups rows, the whole key tells them apart.
            if self.table.row_key == (column.name,) or column.base not in ORDERED:
                continue
            distinct = len(set(self.frame.texts(column.name)))
            if 1 < distinct <= max(size * _MOST_DISTINCT, 2):
                single.append(Partition((ref((), column.name),), _last_null(self.frame, column)))
            if column.base in TIMES and distinct > 1:
                texts = self.frame.texts(column.name)
                years = np.array([int(text[:4]) if text and text[:4].isdigit() else 0 for text in texts])
                if len(np.unique(years)) > 1:
                    single.append(Partition((call("date_part", quoted("y"), ref((), column.name)),), years))
        single = single[:_MAX_PARTITIONS]
        pairs = [Partition((*a.terms, *b.terms), a.codes * (size + 2) + b.codes) for a, b in combinations(single, 2)]
        return (Partition((), np.zeros(size, dtype=np.int64)), *single, *pairs)

    @cached_property
    def parent_partitions(self) -> tuple[Partition, ...]:
        """By references of the rows that the table's rows refer to."""
        found: list[Partition] = []
        for link in self.table.foreign_keys:
            rows = self.frame.parent(link)
            target = self.frame.state.frame(link.target)
            for column in dict.fromkeys(name for key in target.table.foreign_keys for name in key.columns):
                if column not in link.target_columns and (rows >= 0).any():
                    codes = np.where(rows >= 0, _last_null(target, target.table.by_name[column])[rows], -1)
                    if len(np.unique(codes)) > 1:
                        found.append(Partition((ref((link,), column),), codes, True))
        return tuple(found[:_MAX_PARTITIONS])

    @cached_property
    def orders(self) -> tuple[SortKey, ...]:
        """The table's own columns in both directions, with NULLs where PostgreSQL puts them."""
        return tuple(key for column in self._varied(self.frame) for key in self._directions(column))

    @cached_property
    def keys(self) -> tuple[SortKey, ...]:
        """`orders`, and those with NULLs at the other end."""
        elsewhere = [key for column in self._varied(self.frame) for key in _nulls_moved(self.frame, column)]
        return (*self.orders, *elsewhere)

    @cached_property
    def parent_keys(self) -> tuple[SortKey, ...]:
        """Columns of the rows that the table's rows refer to."""
        found: list[SortKey] = []
        for link in self.table.foreign_keys:
            target = self.frame.state.frame(link.target)
            rows = self.frame.parent(link)
            if not (rows >= 0).any() or len(found) > _MAX_PARENT_KEYS:
                continue
            for column in self._varied(target):
                if column.name not in link.target_columns:
                    for key in (*_both(target, column), *_nulls_moved(target, column)):
                        parts = tuple(Ref((link,), p.column) if isinstance(p, Ref) else p for p in key.parts)
                        codes = np.where(rows >= 0, key.codes[rows] - key.codes.min(), -1)
                        found.append(SortKey((link,), column.name, key.descending, parts, codes))
        return tuple(found)

    @cached_property
    def sequences(self) -> tuple[SortKey, ...]:
        """Orders by the key, times and whole numbers, references last: what running values follow."""
        found = [order for order in self.orders if self.table.by_name[order.column].base in INTEGERS | TIMES]
        found.sort(key=lambda order: order.column in self.links)
        return tuple(found[:_MAX_SEQUENCES])

    def _varied(self, frame: Frame) -> Iterator[Column]:
        for column in frame.table.columns:
            if column.base in ORDERED and len(set(frame.texts(column.name))) > 1:
                yield column

    def _directions(self, column: Column) -> Iterator[SortKey]:
        return _both(self.frame, column)


def _last_null(frame: Frame, column: Column) -> Codes:
    codes = frame.coded(column.name).codes.astype(np.int64)
    return np.where(codes < 0, len(codes) + 1, codes)


def _both(frame: Frame, column: Column) -> Iterator[SortKey]:
    """Ascending, and descending in the shortest spelling."""
    codes, own = _last_null(frame, column), Ref((), column.name)
    yield SortKey((), column.name, False, (own,), codes)
    full = not (frame.coded(column.name).codes < 0).any()
    falling: tuple[Part, ...] = (own, "DESC")
    if full and column.base in NUMERIC:
        falling = ("-", own)
    elif full and column.base == "boolean":
        falling = ("NOT", own)
    yield SortKey((), column.name, True, falling, -codes)


def _nulls_moved(frame: Frame, column: Column) -> Iterator[SortKey]:
    """NULLs first when ascending, last when descending, where there are any."""
    codes, own = frame.coded(column.name).codes.astype(np.int64), Ref((), column.name)
    if (codes < 0).any():
        yield SortKey((), column.name, False, (own, "NULLS FIRST"), codes)
        falling = np.where(codes < 0, len(codes) + 1, -codes)
        minus = column.base in NUMERIC
        yield SortKey((), column.name, True, ("-", own) if minus else (own, "DESC NULLS LAST"), falling)


@lru_cache(maxsize=2)
def layout_of(problem: Problem) -> Layout:
    return Layout(problem.frame)


def monotone(groups: Codes, wanted: NDArray[np.float64], codes: Codes) -> bool:
    """Whether `codes` never fall while `wanted` rises inside of a group."""
    line = np.lexsort((codes, wanted, groups))
    same = np.diff(groups[line]) == 0
    rising = np.diff(wanted[line]) > 0
    return not bool((same & rising & (np.diff(codes[line]) < 0)).any())


def sorted_rows(partition: Partition, keys: Sequence[SortKey], members: Codes) -> tuple[Codes, Mask, Mask]:
    """Rows by partition, keys and row key; where a partition starts; where a row ties with the one before."""
    line = members[np.lexsort((members, *(key.codes[members] for key in reversed(keys)), partition.codes[members]))]
    starts = np.ones(len(line), dtype=np.bool_)
    starts[1:] = np.diff(partition.codes[line]) != 0
    ties = np.zeros(len(line), dtype=np.bool_)
    ties[1:] = ~starts[1:]
    for key in keys:
        ties[1:] &= np.diff(key.codes[line]) == 0
    return line, starts, ties


def order_parts(table: Table, keys: Sequence[SortKey], tied: bool) -> tuple[Part, ...]:
    """ORDER BY's list, with the row key where the keys leave rows `tied`."""
    parts: list[Part] = []
    for key in keys:
        parts += [*([","] if parts else []), *key.parts]
    for name in table.row_key if tied else ():
        parts += [",", Ref((), name)]
    return tuple(parts)


def over(function: Term, partition: Partition, order: Sequence[Part]) -> Term:
    parts: list[Part] = [*function.parts, "OVER("]
    if partition.terms:
        parts.append("PARTITION BY")
        for place, term in enumerate(partition.terms):
            parts += [*([","] if place else []), *term.parts]
    if order:
        parts += ["ORDER BY", *order]
    return Term((*parts, ")"))

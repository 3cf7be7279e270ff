"""Sort keys under which a source's rows come in the order of the stream."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from encoder.frame import State
from encoder.insertion.model import Indexes
from scratch.catalog import Table

_MAX_SINGLE = 4
_MAX_PAIRS = 3


@dataclass(frozen=True, slots=True)
class Order:
    """`keys`: columns with whether they descend; `rank`: every row of the frame by its place in that order."""

    keys: tuple[tuple[str, bool], ...]
    rank: NDArray[np.int64]


def orders(state: State, table: Table, rows: Indexes) -> list[Order]:
    """Orders of the frame of `table` in which `rows` rise strictly, simplest first."""
    if len(rows) < 1:
        return []
    frame = state.frame(table.name)
    strict: list[Order] = []
    weak: list[tuple[str, bool]] = []
    names = sorted((c.name for c in table.columns), key=lambda n: (n not in table.primary_key, len(n), n))
    for name in names:
        codes = frame.coded(name).codes
        for falls in (False, True):
            steps = np.diff(_directed(codes, falls)[rows])
            if (steps > 0).all():
                strict.append(Order(((name, falls),), _rank([_directed(codes, falls)])))
                break
            if (steps >= 0).all() and (steps > 0).any():
                weak.append((name, falls))
                break
    pairs: list[Order] = []
    for first in weak:
        head = _directed(frame.coded(first[0]).codes, first[1])
        for name in names:
            if len(pairs) == _MAX_PAIRS:
                break
            for falls in (False, True):
                tail = _directed(frame.coded(name).codes, falls)
                ties = np.diff(head[rows]) == 0
                if name != first[0] and (np.diff(tail[rows])[ties] > 0).all():
                    pairs.append(Order((first, (name, falls)), _rank([head, tail])))
                    break
    return strict[:_MAX_SINGLE] + pairs


def _directed(codes: NDArray[np.int32], falls: bool) -> NDArray[np.int64]:
    """Codes that rise in the order of the sort: NULL comes last in ascending order, first in descending."""
    wide = codes.astype(np.int64)
    wide[wide < 0] = int(wide.max(initial=0)) + 1
    return -wide if falls else wide


def _rank(columns: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    order = np.lexsort(columns[::-1])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank

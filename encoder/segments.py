"""Cut a transaction into segments: runs of changes that one statement most likely wrote.

Logical decoding keeps the order of row changes, so a statement's rows stand together.  Rows that BEFORE
triggers write are woven into a run and rows of AFTER triggers follow it; tables that alternate are
therefore taken as one.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from stream.model import Op, RowChange, TableName

# Beyond this many segments the order says little and the net effect of all is taken at once.
MAX_SEGMENTS = 10
# Tables that take turns this often are woven together by a trigger.
_TURNS = 3
_COLUMN_SET_RUNS = 4
# A run in which the rows' places start over so many times at most is of several scans, if each met so many rows.
_RESTARTS, _SCANNED = 2, 4

_Kind: TypeAlias = tuple[TableName, Op]
# Where the row that a change is about lies in its table; None if that is not known.
Place: TypeAlias = Callable[[RowChange], int | None]


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive changes of a transaction; segments of one `run` were cut on a weaker sign than a
    change of table or operation."""

    changes: tuple[RowChange, ...]
    run: int = 0


def segments(changes: Sequence[RowChange]) -> list[Segment]:
    """The segments of completed changes, in order; [] for none."""
    woven = _woven_kinds(changes)
    runs: list[list[RowChange]] = []
    last: frozenset[_Kind] | None = None
    for change in changes:
        kind = woven.get((change.table, change.op)) or frozenset({(change.table, change.op)})
        if kind != last:
            runs.append([])
            last = kind
        runs[-1].append(change)
    pieces = [(number, piece) for number, run in enumerate(runs) for piece in _cut_run(run)]
    if len(pieces) > MAX_SEGMENTS:
        pieces = list(enumerate(runs))
    if len(pieces) > MAX_SEGMENTS:
        pieces = [(0, list(changes))]
    return [Segment(tuple(piece), number) for number, piece in pieces]


def changed_columns(change: RowChange) -> frozenset[str]:
    """The columns that an update changed; {} for other operations."""
    if change.old is None or change.new is None:
        return frozenset()
    old = change.old
    return frozenset(name for name, value in change.new.items() if old.get(name) != value)


def _woven_kinds(changes: Sequence[RowChange]) -> dict[_Kind, frozenset[_Kind]]:
    """Kinds of change that take turns, joined into classes."""
    turns: Counter[frozenset[_Kind]] = Counter()
    for first, second in itertools.pairwise(changes):
        pair = frozenset({(first.table, first.op), (second.table, second.op)})
        if len(pair) == 2:
            turns[pair] += 1
    classes: dict[_Kind, set[_Kind]] = {}
    for pair, count in turns.items():
        if count >= _TURNS:
            joined = set(pair).union(*(classes.get(kind, set()) for kind in pair))
            for kind in joined:
                classes[kind] = joined
    return {kind: frozenset(joined) for kind, joined in classes.items()}


def _cut_run(run: list[RowChange]) -> list[list[RowChange]]:
    """Cut where the set of changed columns turns to a disjoint one, or where a row comes again."""
    pieces: list[list[RowChange]] = [[]]
    columns: frozenset[str] = frozenset()
    seen: set[tuple[object, ...]] = set()
    for change in run:
        here = changed_columns(change)
        identity = (change.table, *(sorted((change.old or {}).items(), key=lambda item: item[0])))
        if (columns and here and not columns & here) or identity in seen:
            pieces.append([])
            columns, seen = frozenset(), set()
        pieces[-1].append(change)
        columns |= here
        if change.new is not None and change.old is not None:
            # The row as it stands now would be the `old` of its next change.
            seen.add((change.table, *sorted(change.new.items(), key=lambda item: item[0])))
    return pieces if len(pieces) <= _COLUMN_SET_RUNS else [run]


def scans(segment: Segment, place: Place) -> list[Segment]:
    """The segment cut where the places of the rows start over, as they do for the next statement's scan of a table;
    a still weaker sign, since rows lie otherwise after another history."""
    piece = segment.changes
    if len({(change.table, change.op) for change in piece}) > 1 or len(piece) < 2 * _SCANNED:
        return [segment]
    places = [place(change) for change in piece]
    known = [at for at in places if at is not None]
    if len(known) < len(places):
        return [segment]
    cuts = [0]
    for i, (before, after) in enumerate(itertools.pairwise(known), start=1):
        # A row that was moved is met out of turn, but the scan goes on from where it was.
        if after < before and after < known[(cuts[-1] + i) // 2]:
            cuts.append(i)
    cuts.append(len(piece))
    if len(cuts) > _RESTARTS + 2 or any(b - a < _SCANNED for a, b in itertools.pairwise(cuts)):
        return [segment]
    return [Segment(piece[a:b], segment.run) for a, b in itertools.pairwise(cuts)]

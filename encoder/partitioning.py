"""Which intervals of a transaction's segments are solved as one block, and in which state each is searched.

A block owes the net effect of its segments and is searched in the state that the segments before it leave.
All intervals would be many; those are taken that may gain from being together, and those are left out that
a wider block has already settled.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

from encoder.block import Plan, solve_block
from encoder.context import Context
from encoder.effect import Origins, effect_of, key_of, stored_row, stream_origins
from encoder.frame import State
from encoder.segments import Place, Segment, scans
from encoder.trial import Position
from scratch.catalog import ALWAYS, Catalog
from scratch.changes import apply_changes
from stream.model import RowChange, TableName

# What a statement has beside its table's name, at the least: UPDATE t SET a=1 WHERE b=1;
_LEAST_STATEMENT = 26
# Searched statements of so many bytes for each table are not taken apart.
_PLAIN = 80
_SEARCHED = frozenset({"update", "delete", "insert", "shared"})
# The share of what is left of the work for a block of one run of changes, and of several.
_OF_ONE, _OF_SEVERAL = 0.6, 0.35

Interval: TypeAlias = tuple[int, int]
Blocks: TypeAlias = dict[Interval, list[Plan]]


def search_blocks(context: Context, pieces: Sequence[Segment]) -> Blocks:
    """Exact plans for intervals of `pieces` that together hold at least one partition of them, if there is one."""
    n = len(pieces)
    blocks: Blocks = {}
    settled: set[int] = set()
    for start in range(n):
        with _at(context, pieces[:start]):
            if start == 0 and n > 1:
                _solve(context, pieces, (0, n), blocks)
                if any(_is_plain(plan, len(_tables(pieces))) for plan in blocks[0, n]):
                    return blocks
            run_end = start + 1
            while run_end < n and pieces[run_end].run == pieces[start].run:
                run_end += 1
            first_of_run = start == 0 or pieces[start - 1].run != pieces[start].run
            if first_of_run and run_end > start + 1:
                _solve(context, pieces, (start, run_end), blocks)
                if _unsplittable(blocks[start, run_end], pieces[start:run_end]):
                    settled |= set(range(start, run_end))
            for end in _ends(context, pieces, start, settled, bool(blocks.get((0, n)))):
                if end - start > 1 and context.late:
                    continue
                _solve(context, pieces, (start, end), blocks)
    return blocks


def refined(context: Context, pieces: Sequence[Segment], blocks: Blocks) -> tuple[list[Segment], Blocks]:
    """`pieces` with those that no search said all of cut by the scans of their tables, and `blocks` with what is found
    for the parts."""
    place = _places(context.state)
    cut = [[piece] if _is_said(blocks, at) else scans(piece, place) for at, piece in enumerate(pieces)]
    if all(len(parts) == 1 for parts in cut):
        return list(pieces), blocks
    bounds = [0, *itertools.accumulate(map(len, cut))]
    finer = [part for parts in cut for part in parts]
    found: Blocks = {(bounds[start], bounds[end]): plans for (start, end), plans in blocks.items()}
    for first, last in itertools.pairwise(bounds):
        for start in range(first, last if last > first + 1 else first):
            with _at(context, finer[:start]):
                for end in range(start + 1, last + 1):
                    if not context.late:
                        _solve(context, finer, (start, end), found)
    return finer, found


def _is_said(blocks: Blocks, at: int) -> bool:
    """Whether searches found all statements of some plan for segment `at`."""
    plans = (plan for (start, end), plans in blocks.items() if start <= at < end for plan in plans)
    return any(all(candidate.kind in _SEARCHED for candidate in plan.candidates) for plan in plans)


def _places(state: State) -> Place:
    """Where the rows that are there before the transaction lie in a scan of their table."""

    def place(change: RowChange) -> int | None:
        table = state.catalog[change.table]
        frame = state.frame(change.table)
        row = None if change.old is None else frame.index.get(key_of(table, stored_row(table, change.old)))
        return None if row is None else int(frame.scan[row])

    return place


def _ends(context: Context, pieces: Sequence[Segment], start: int, settled: set[int], whole: bool) -> Iterator[int]:
    """The ends of further intervals from `start` that are worth a search."""
    if start not in settled and not (whole and start and _apart(context.catalog, pieces, start)):
        yield start + 1
    for end in range(start + 2, len(pieces)):
        inside = {start, end - 1} & settled and pieces[start].run == pieces[end - 1].run
        if not inside and _belong(context.catalog, pieces[start:end]):
            yield end
    if start and start + 2 <= len(pieces) and _belong(context.catalog, pieces[start:]):
        yield len(pieces)


def _solve(context: Context, pieces: Sequence[Segment], interval: Interval, blocks: Blocks) -> None:
    if interval in blocks:
        return
    inside = pieces[slice(*interval)]
    changes = [change for piece in inside for change in piece.changes]
    owed = effect_of(context.catalog, changes)
    # What several statements did together may be hard to tell; something is left for each of them.
    meter = context.meter.part(
        1.0 if len(pieces) == 1 else _OF_ONE if len({p.run for p in inside}) == 1 else _OF_SEVERAL
    )
    lent = replace(context, meter=meter)
    blocks[interval] = solve_block(lent, owed, origins_in(context.state, changes)) if owed else [Plan((), 0)]
    context.meter.pay(meter)


def _is_plain(plan: Plan, tables: int) -> bool:
    """Whether the plan says all so shortly that what is found for parts of it would hardly be shorter."""
    if len(plan.candidates) == 1 and plan.candidates[0].is_plain:
        return True
    return plan.size <= _PLAIN * tables and all(candidate.kind in _SEARCHED for candidate in plan.candidates)


def _unsplittable(plans: Sequence[Plan], pieces: Sequence[Segment]) -> bool:
    """Whether one statement a piece could not be shorter than what was found for all of them."""
    heads = sum(_LEAST_STATEMENT + len(piece.changes[0].table.name) for piece in pieces)
    return any(plan.size <= heads for plan in plans)


def _tables(pieces: Sequence[Segment]) -> frozenset[TableName]:
    return frozenset(change.table for piece in pieces for change in piece.changes)


def _linked(catalog: Catalog, first: frozenset[TableName], second: frozenset[TableName]) -> bool:
    """Whether a foreign key leads from a table of one to a table of the other."""
    return any(key.target in second for table in first for key in catalog[table].foreign_keys) or any(
        key.target in first for table in second for key in catalog[table].foreign_keys
    )


def _apart(catalog: Catalog, pieces: Sequence[Segment], start: int) -> bool:
    """Whether what stands before `start` is about other tables altogether, so that its state is as good as
    that of the transaction's start."""
    here, before = _tables(pieces[start : start + 1]), _tables(pieces[:start])
    return not here & before and not _linked(catalog, here, before)


def _belong(catalog: Catalog, pieces: Sequence[Segment]) -> bool:
    """Whether consecutive segments may gain from one block: a table in common, or a foreign key between."""
    tables = [_tables([piece]) for piece in pieces]
    if len(pieces) > 3:
        return len(frozenset().union(*tables)) <= 2
    return len(pieces) == 2 or all(
        first & second or _linked(catalog, first, second) for first, second in itertools.pairwise(tables)
    )


@contextmanager
def _at(context: Context, before: Sequence[Segment]) -> Iterator[None]:
    """The state after the segments `before`, sequences included."""
    if not before:
        yield
        return
    changes = [change for piece in before for change in piece.changes]
    lab = context.lab
    standing = lab.sequences()
    tables = sorted({change.table for change in changes})
    with lab.savepoint():
        apply_changes(lab.session, context.catalog, changes)
        context.state.forget(tables)
        lab.stand(implied_positions(context.catalog, changes, lab.next_value))
        yield
    context.state.forget(tables)
    lab.stand(standing)


def origins_in(state: State, changes: Sequence[RowChange]) -> Origins:
    """Origins of the rows that `changes` bring to the present state."""
    keyless = {change.table for change in changes if not state.catalog[change.table].row_key}
    twins = {name for name in keyless if len(state.frame(name).index) < state.frame(name).size}
    return stream_origins(state.catalog, changes, twins)


def skipped_positions(
    catalog: Catalog, changes: Sequence[RowChange], behind: Callable[[TableName, int], bool]
) -> dict[TableName, Position]:
    """Where sequences of ALWAYS identities must stand for the ids that `changes` insert.

    What was rolled back before took values that the stream does not show; the script takes them by a statement of
    its own (see tersql.sequencing).  Other columns need no sequence: their ids can be written out.
    """
    lowest: dict[TableName, int] = {}
    for change in changes:
        if change.old is not None or change.new is None:
            continue
        for column in catalog[change.table].columns:
            value = change.new.get(column.name)
            if column.identity == ALWAYS and column.sequence is not None and value is not None:
                lowest[column.sequence] = min(lowest.get(column.sequence, int(value)), int(value))
    return {sequence: (str(value), "f") for sequence, value in sorted(lowest.items()) if behind(sequence, value)}


def implied_positions(
    catalog: Catalog, changes: Sequence[RowChange], standing: Callable[[TableName], int]
) -> dict[TableName, Position]:
    """Where sequences stand after `changes`, if the ids of inserted rows came from them."""
    highest: dict[TableName, int] = {}
    for change in changes:
        if change.old is not None or change.new is None:
            continue
        for column in catalog[change.table].columns:
            value = change.new.get(column.name)
            # The owner of a sequence need not be a number ('x' || nextval('s')).
            if column.sequence is not None and value is not None and value.removeprefix("-").isdecimal():
                highest[column.sequence] = max(highest.get(column.sequence, int(value)), int(value))
    return {sequence: (str(value), "t") for sequence, value in sorted(highest.items()) if value >= standing(sequence)}

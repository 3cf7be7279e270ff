"""Solve one transaction: cut it into blocks, solve each in the state where it stands, prove the whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from encoder.block import Plan
from encoder.budget import Meter
from encoder.candidate import bytes_of
from encoder.context import Context, Effort
from encoder.effect import Effect, TableEffect, effect_of, table_effects
from encoder.frame import State
from encoder.numbering import is_settled
from encoder.partitioning import origins_in, refined, search_blocks, skipped_positions
from encoder.proof import settle, try_statements
from encoder.segments import segments
from encoder.spaced import spaced
from encoder.trial import Laboratory
from encoder.yardstick import baseline, starter
from scratch.catalog import ALWAYS, Catalog
from scratch.session import Session
from solver.blocks import BlockProblem, partition
from solver.greedy import Greedy
from stream.model import RowChange, TableName, Transaction


class Strategy(StrEnum):
    """How far to go: the yardsticks, or the search."""

    STARTER = "starter"
    BASELINE = "baseline"
    GREEDY = "greedy"
    OPTIMAL = "optimal"


@dataclass(frozen=True, slots=True)
class Variant:
    """One exact way to write a transaction; `starts` are the sequences that it moves, each with the
    value that nextval has to give first, `ends` the same with the value that it gives last."""

    statements: tuple[str, ...]
    kind: str
    starts: tuple[tuple[TableName, int], ...] = ()
    ends: tuple[tuple[TableName, int], ...] = ()

    @property
    def sequences(self) -> frozenset[TableName]:
        return frozenset(name for name, _ in self.starts)

    @property
    def size(self) -> int:
        return bytes_of(self.statements)


@dataclass(frozen=True, slots=True)
class Solved:
    """A transaction's variants, cheapest first, the literal ones last; sizes include BEGIN and COMMIT.

    `bound` is what no script made of the same candidates could go below; `work` is what the search took of its
    allowance, `cut` whether it would have taken more (see encoder.budget.Meter); `problem` holds the choice that each
    block left, None where nothing was searched.
    """

    index: int
    changes: int
    variants: tuple[Variant, ...]
    starter: int
    baseline: int
    bound: int
    consumes: frozenset[TableName]
    work: float = 0.0
    cut: bool = False
    seconds: float = field(default=0.0, compare=False)
    problem: BlockProblem | None = field(default=None, compare=False, repr=False)

    def joined(self, other: Solved) -> Solved:
        """The variants of both searches of one transaction, and the choice of the one that found the cheapest."""
        better, worse = sorted((self, other), key=lambda one: one.bound)
        return replace(
            better,
            variants=_ordered([*better.variants, *worse.variants]),
            work=self.work + other.work,
            cut=self.cut and other.cut,
            seconds=self.seconds + other.seconds,
        )


def _ordered(found: Sequence[Variant]) -> tuple[Variant, ...]:
    """Each script once, the cheapest first."""
    unique = {variant.statements: variant for variant in reversed(found)}
    return tuple(sorted(unique.values(), key=lambda v: (v.size, len(v.sequences), v.statements)))


DEFAULT_EFFORT = Effort()

FRAME_BYTES = len("BEGIN;COMMIT;")


def solve_transaction(
    session: Session,
    catalog: Catalog,
    lab: Laboratory,
    state: State,
    transaction: Transaction,
    *,
    strategy: Strategy = Strategy.OPTIMAL,
    timezone: str | None = None,
    effort: Effort = DEFAULT_EFFORT,
    steadily: bool = False,
) -> Solved:
    """All variants of `transaction` (completed, see scratch.changes) in the database's present state.

    `steadily`: rows may lie otherwise where the script will run, so what hangs on that is left out.

    Leaves the database as it was.  The session must be in autocommit.
    """
    started = time.monotonic()
    state.begin()
    owed = effect_of(catalog, transaction.changes)
    parts = table_effects(catalog, owed, origins_in(state, transaction.changes))
    meter = Meter(effort.allowance, lab.deadline)
    context = Context(state, lab, timezone, effort, meter, Greedy() if strategy == Strategy.GREEDY else None)
    rowwise = starter(catalog, transaction.changes, timezone)
    grouped = baseline(state, parts, timezone)
    found: list[Variant] = []
    problem: BlockProblem | None = None
    with session.transaction(force_rollback=True):
        lab.refresh()
        lab.stand(skipped_positions(catalog, transaction.changes, lab.behind))
        standing = lab.sequences()
        highest = _highest(catalog, lab, transaction.changes)
        if strategy not in (Strategy.STARTER, Strategy.BASELINE) and owed:
            found, problem = _search(context, transaction, owed, steadily)
        for statements, kind in ((grouped, "baseline"), (rowwise, "starter")):
            if strategy == Strategy.STARTER and kind == "baseline":
                continue
            # One literal script to fall back on is enough.
            if kind == "starter" and any(v.kind == "baseline" and not _wastes(v, highest) for v in found):
                continue
            variant = _literal(context, parts, owed, statements, kind)
            if kind == "starter" and (variant is None or _wastes(variant, highest)):
                steps = settle(context, owed, transaction.changes)
                lab.stand(standing)
                stepwise = _exact(context, owed, steps, "steps") if steps is not None else None
                found += [variant] if variant is not None else []
                variant = stepwise
                apart = spaced(catalog, lab, transaction.changes, timezone)
                if apart and (other := _exact(context, owed, tuple(apart), "spaced")) is not None:
                    found.append(other)
            if variant is not None:
                found.append(variant)
    state.forget(sorted(owed.tables))
    ordered = _ordered([variant for variant in found if not _wastes(variant, highest)] or found)
    return Solved(
        transaction.index,
        len(transaction.changes),
        ordered,
        FRAME_BYTES + bytes_of(rowwise),
        FRAME_BYTES + bytes_of(grouped),
        FRAME_BYTES + min((v.size for v in ordered), default=0),
        consumed_sequences(catalog, transaction.changes),
        context.meter.spent,
        context.meter.cut,
        time.monotonic() - started,
        problem,
    )


def _highest(catalog: Catalog, lab: Laboratory, changes: Sequence[RowChange]) -> dict[TableName, int]:
    """The last value that `changes` took of each sequence of an ALWAYS identity, as far as its rows show."""
    found: dict[TableName, int] = {}
    for name in catalog:
        for column in catalog[name].columns:
            if column.identity == ALWAYS and column.sequence is not None and lab.counts_by_one(column.sequence):
                taken = [int(c.new[column.name] or 0) for c in changes if c.table == name and c.old is None and c.new]
                found[column.sequence] = max(taken, default=lab.next_value(column.sequence) - 1)
    return found


def _wastes(variant: Variant, highest: Mapping[TableName, int]) -> bool:
    """Whether it takes ids that only the sequence can give and that the rows of a later transaction may need."""
    return any(last > highest.get(name, last) for name, last in variant.ends)


def _literal(
    context: Context, parts: Sequence[TableEffect], owed: Effect, statements: Sequence[str], kind: str
) -> Variant | None:
    """Literal statements, with what triggers do besides repaired behind them."""
    exact = _exact(context, owed, tuple(statements), kind)
    if exact is not None:
        return exact
    candidate, _ = try_statements(context, parts, statements, kind)
    return _exact(context, owed, candidate.statements, candidate.kind) if candidate is not None else None


def _exact(
    context: Context, owed: Effect, statements: tuple[str, ...], kind: str, *, hopeful: bool = False
) -> Variant | None:
    """The variant made of `statements` if they have exactly the effect that is owed, at COMMIT too; `hopeful`: but for
    which row got which number."""
    done = context.lab.observe(statements, constraints=True)
    if not isinstance(done, Effect) or not is_settled(context.catalog, owed, done, hopeful=hopeful):
        return None
    return _seen(context.lab, statements, kind)


def _seen(lab: Laboratory, statements: tuple[str, ...], kind: str) -> Variant:
    """The variant whose trial was the last one, with the sequences that it moved."""
    starts = tuple((name, lab.next_value(name)) for name in sorted(lab.moved))
    return Variant(statements, kind, starts, tuple(sorted(lab.reached.items())))


def consumed_sequences(catalog: Catalog, changes: Sequence[RowChange]) -> frozenset[TableName]:
    """Sequences behind columns of rows that the transaction inserts."""
    return frozenset(
        column.sequence
        for change in changes
        if change.old is None
        for column in catalog[change.table].columns
        if column.sequence is not None
    )


def _search(
    context: Context, transaction: Transaction, owed: Effect, steadily: bool
) -> tuple[list[Variant], BlockProblem]:
    """The best partition into blocks, proved as a whole, of all plans, of those that are right here, of those that move
    no sequence and of those that do not hang on the planner's choices (`steadily`: of the last alone); and what the
    blocks were chosen from."""
    pieces = segments(transaction.changes)
    blocks = search_blocks(context, pieces)
    pieces, blocks = refined(context, pieces, blocks)
    found = []
    kinds: tuple[Callable[[Plan], bool], ...] = (
        lambda plan: True,
        lambda plan: not plan.hopeful,
        lambda plan: not plan.sequences,
        lambda plan: not plan.shaky,
    )
    for fits in kinds[-1:] if steadily else kinds:
        chosen = {interval: plan for interval, plans in blocks.items() if (plan := _pick(plans, fits)) is not None}
        variant = _assemble(context, chosen, len(pieces), owed)
        if variant is not None and variant not in found:
            found.append(variant)
    problems = {interval: plans[0].problem for interval, plans in blocks.items() if plans}
    return found, BlockProblem(len(pieces), problems)


def _pick(plans: Sequence[Plan], fits: Callable[[Plan], bool]) -> Plan | None:
    return min(filter(fits, plans), key=lambda plan: plan.size, default=None)


def _assemble(context: Context, chosen: dict[tuple[int, int], Plan], n: int, owed: Effect) -> Variant | None:
    """The cheapest partition that proves exact from the transaction's start; bad blocks are dropped."""
    remaining = dict(chosen)
    for _ in range(6):
        try:
            path = partition({interval: plan.size for interval, plan in remaining.items()}, n)
        except Exception:
            return None
        statements = tuple(s for interval in path for s in remaining[interval].statements)
        kinds = sorted({c.kind for interval in path for c in remaining[interval].candidates})
        hopeful = any(remaining[interval].hopeful for interval in path)
        variant = _exact(context, owed, statements, ",".join(kinds), hopeful=hopeful)
        if variant is not None:
            return variant
        # The widest block is the likeliest to hold in isolation only; try without it.
        suspect = max(path, key=lambda interval: (interval[1] - interval[0], -interval[0]))
        del remaining[suspect]
    return None

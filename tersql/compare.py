"""The same candidates given to every strategy: what each makes of them, what it proves, how long it takes.

The candidates of each transaction are searched once, as `optimize` does, and the script that they end in is
proved.  Then every strategy chooses among the same candidates, behind the same reductions, with its own counted budget.
Instances written by an earlier run, or OR-Library's, can take the place of workloads.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from encoder.deadline import Deadline
from solver.blocks import solve_blocks
from solver.cp_sat import CpSat
from solver.greedy import Greedy
from solver.linear import Engine
from solver.local_search import LocalSearch
from solver.lp_rounding import LpRounding
from solver.mip import Mip
from solver.partial import RULES
from solver.problem import Budget, CoverProblem, Infeasible, NoSolution, Solution, Strategy
from stream.open import open_stream
from tersql.errors import InputError, server_errors
from tersql.instances import Instance, instance_of, read_instance
from tersql.optimize import Options, finished
from tersql.pool import Pool
from tersql.rounds import in_rounds
from tersql.stakes import stake
from tersql.worker import Task
from tersql.workloads import Workload, find_workloads
from tersql.workspace import Origin, workspace


@dataclass(frozen=True, slots=True)
class Alone:
    """A strategy without the cover that others would begin from, so that its own shows."""

    inner: Strategy

    @property
    def name(self) -> str:
        return self.inner.name

    def solve(self, problem: CoverProblem, budget: Budget, start: Collection[int] = ()) -> Solution:
        return self.inner.solve(problem, budget)


STRATEGIES: dict[str, Strategy] = {
    **{f"greedy-{rule.name}": Alone(Greedy((rule,))) for rule in RULES},
    "lp": Alone(LpRounding()),
    "local": LocalSearch(),
    "highs": Mip(Engine.HIGHS),
    "scip": Mip(Engine.SCIP),
    "cp-sat": CpSat(),
}
# Strategies that a larger budget does not change.
_UNBUDGETED = frozenset(name for name in STRATEGIES if name.startswith("greedy") or name == "lp")
# The shares of the whole budget at which an anytime curve is measured.
_LEVELS = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


@dataclass(frozen=True, slots=True)
class Run:
    """What a strategy made of an instance within `share` of its budget: bytes, a proven bound (0: none), seconds."""

    strategy: str
    share: float
    size: int
    bound: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Line:
    """One instance with all runs; `candidates` and `elements` are summed over its blocks."""

    instance: Instance
    candidates: int
    elements: int
    runs: tuple[Run, ...]

    @property
    def bound(self) -> int:
        """The best bound that any strategy proved."""
        return max((run.bound for run in self.runs), default=0)

    def run(self, strategy: str, share: float = 1.0) -> Run | None:
        """The run within `share`; that of a strategy without a budget is good for every share."""
        own = [run for run in self.runs if run.strategy == strategy]
        return next((run for run in own if run.share == share), own[0] if strategy in _UNBUDGETED and own else None)


@dataclass(frozen=True, slots=True)
class Total:
    """A strategy over all instances: bytes, the bound it proved itself (0: none), `gap` to the best bound that
    any proved, seconds, and for how many instances it reached the optimum that is proven."""

    strategy: str
    size: int
    bound: int
    gap: float
    seconds: float
    optimal: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """`known` are the bytes of the shortest replays known of all workloads, None if one lacks it."""

    lines: tuple[Line, ...]
    strategies: tuple[str, ...]
    known: int | None = None

    @property
    def bound(self) -> int:
        return sum(line.bound for line in self.lines)

    @property
    def shares(self) -> tuple[float, ...]:
        """The shares of the budget at which all strategies with one were run."""
        return tuple(sorted({run.share for line in self.lines for run in line.runs}))

    def total(self, strategy: str, share: float = 1.0) -> Total | None:
        """None where the strategy has no cover of some instance."""
        runs = [line.run(strategy, share) for line in self.lines]
        found = [run for run in runs if run is not None]
        if len(found) < len(runs):
            return None
        size = sum(run.size for run in found)
        return Total(
            strategy,
            size,
            sum(run.bound for run in found),
            gap(size, self.bound),
            sum(run.seconds for run in found),
            sum(run.size <= line.bound for run, line in zip(found, self.lines, strict=True)),
        )

    def yardstick(self, name: str) -> int | None:
        """The bytes of `starter`, `baseline` or the proved `script` in all, None if an instance lacks them."""
        sizes: list[int | None] = [getattr(line.instance, name) for line in self.lines]
        return None if None in sizes else sum(size or 0 for size in sizes)


def gap(size: int, bound: int) -> float:
    """How far `size` may be above the optimum, as a fraction of `bound`; infinite without one."""
    return max(0.0, size / bound - 1) if bound else math.inf


def compare(
    workloads: Iterable[Path | str],
    *,
    strategies: Sequence[str] = tuple(STRATEGIES),
    time_limit: float | None = 10.0,
    budget: Budget | None = None,
    anytime: bool = False,
    scratch: str | None = None,
    options: Options | None = None,
) -> Comparison:
    """Every strategy on every transaction of `workloads`: folders, or files of instances.

    `time_limit` (seconds a strategy and block) is a safety net on top of the counted `budget`; `anytime` measures
    smaller shares of the budget as well.  Of `options`, those of the search for candidates count, its time limit not.
    Raises OSError, InputError, StreamError, ScratchError, NotReplayable, InternalError.
    """
    if unknown := sorted(set(strategies) - STRATEGIES.keys()):
        raise InputError(f"no strategy {unknown[0]}; there are {', '.join(STRATEGIES)}")
    paths = [Path(path) for path in workloads]
    found = find_workloads(path for path in paths if not path.is_file())
    instances = [read_instance(path) for path in paths if path.is_file()]
    instances += [i for workload in found for i in search(workload, scratch=scratch, options=options)]
    known = [workload.known for workload in found]
    whole = replace(budget or Budget(), wall=time_limit)
    shares = _LEVELS if anytime else (1.0,)
    return Comparison(
        tuple(_line(instance, strategies, whole, shares) for instance in instances),
        tuple(strategies),
        sum(k or 0 for k in known) if known and None not in known and len(found) == len(paths) else None,
    )


def search(workload: Workload, *, scratch: str | None = None, options: Options | None = None) -> list[Instance]:
    """The choices that the transactions of `workload` leave, each with the bytes of its proved script."""
    options = options or Options()
    with ExitStack() as stack:
        stakes = [stake(transaction) for transaction in open_stream(workload.stream)]
        pool = stack.enter_context(Pool(min(max(1, options.jobs), len(stakes))))
        stack.enter_context(server_errors())
        place = stack.enter_context(workspace(Origin(workload.dump), scratch))
        task = Task(workload.stream, options.strategy, options.timezone, role=place.role)
        done = in_rounds(pool, place, task, stakes, options.effort, Deadline(), options.progress)
        result = finished(place, workload.stream, done, options.timezone)
    reports = zip(done, result.transactions, strict=True)
    return [instance_of(workload.name, one.solved, report.size) for one, report in reports]


def _line(instance: Instance, strategies: Sequence[str], budget: Budget, shares: Sequence[float]) -> Line:
    blocks = instance.problem.blocks.values()
    runs = (run for name in strategies for run in _runs(instance, name, budget, shares))
    return Line(
        instance,
        sum(len(block.candidates) for block in blocks),
        sum(len(block.unique) for block in blocks),
        tuple(runs),
    )


def _runs(instance: Instance, name: str, budget: Budget, shares: Sequence[float]) -> Iterator[Run]:
    for share in shares[-1:] if name in _UNBUDGETED else shares:
        part = replace(
            budget,
            work=budget.work * share,
            nodes=max(1, round(budget.nodes * share)),
            moves=max(1, round(budget.moves * share)),
        )
        begun = time.perf_counter()
        try:
            answer = solve_blocks(instance.problem, budget=part, strategy=STRATEGIES[name])
            size, bound = instance.frame + answer.cost, instance.frame + answer.bound
        except NoSolution as error:
            if instance.literal is None:
                continue
            size, bound = instance.literal, instance.literal if isinstance(error, Infeasible) else 0
        seconds = time.perf_counter() - begun
        if instance.literal is not None:
            size, bound = min(size, instance.literal), min(bound, instance.literal)
        yield Run(name, share, size, bound, seconds)

"""Strategies on OR-Library's set covering instances, against the known optima.

    python -m bench.solver_bench --folder ../shared/setcover --work 15 --wall 30 scp41 scp51 rail507

prints one row for each instance and strategy: value, proven bound, seconds, and how far the value is
from the best one known.  Without names it runs one instance of each size.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from solver.cp_sat import CpSat
from solver.greedy import Greedy
from solver.linear import Engine
from solver.local_search import LocalSearch
from solver.lp_rounding import LpRounding
from solver.mip import Mip
from solver.orlib import read_file
from solver.partial import RATIO
from solver.problem import Budget, NoSolution, Strategy
from solver.solve import solve

STRATEGIES: dict[str, Strategy] = {
    "chvatal": Greedy((RATIO,), prune=False),
    "greedy": Greedy(),
    "local": LocalSearch(),
    "lp": LpRounding(),
    "highs": Mip(Engine.HIGHS),
    "scip": Mip(Engine.SCIP),
    "cp-sat": CpSat(),
}
ONE_OF_EACH = ("scp41", "scp51", "scp61", "scpa1", "scpb1", "scpc1", "scpd1", "scpe1", "rail507")


def known_values(readme: str) -> dict[str, int]:
    """The best known value of each instance, from lines like "scp41–43: 1 2 3 · scpb1 69"."""
    values: dict[str, int] = {}
    for name, last, numbers in re.findall(r"((?:scp|rail)\w*\d)(?:–(\d+))?:? ((?:\d+ ?)+)", readme):
        found = [int(number) for number in numbers.split()]
        stem = name[:-1] if last else name
        for offset, value in enumerate(found if last else found[:1]):
            values.setdefault(f"{stem}{offset + 1}" if last else stem, value)
    return values


@dataclass(frozen=True, slots=True)
class Run:
    """What one strategy made of one instance; `value` and `bound` are 0 where it found no cover, `known` is None
    where nobody has told the best."""

    instance: str
    strategy: str
    value: int
    bound: int
    known: int | None
    seconds: float

    def __str__(self) -> str:
        gap = f"{100 * (self.value / self.known - 1):.1f}%" if self.known and self.value else ""
        return (
            f"{self.instance:9} {self.strategy:8} {self.value:6} {self.bound:6} {self.known or '':>6} {gap:>6} "
            f"{self.seconds:8.2f}"
        )


def runs(folder: Path, names: Sequence[str], strategies: Sequence[str], budget: Budget) -> Iterator[Run]:
    """Each as soon as it is measured; an instance that is not there is left out."""
    known = known_values((folder / "README.md").read_text(encoding="utf-8"))
    for name in names:
        path = folder / f"{name}.txt.gz"
        if not path.exists():
            print(f"{name:9} is not there, skipped", file=sys.stderr)
            continue
        problem = read_file(path)
        for label in strategies:
            begun = time.perf_counter()
            try:
                answer = solve(problem, budget=budget, strategy=STRATEGIES[label])
                value, bound = answer.cost, answer.bound
            except NoSolution:
                value, bound = 0, 0
            yield Run(name, label, value, bound, known.get(name), time.perf_counter() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(ONE_OF_EACH))
    parser.add_argument("--folder", type=Path, default=Path(__file__).parents[1] / "../shared/setcover")
    parser.add_argument("--strategies", nargs="+", default=list(STRATEGIES), choices=STRATEGIES)
    parser.add_argument("--work", type=float, default=10.0, help="CP-SAT's deterministic time")
    parser.add_argument("--nodes", type=int, default=100_000, help="nodes of a MIP solver")
    parser.add_argument("--moves", type=int, default=2_000, help="moves of the local search")
    parser.add_argument("--wall", type=float, default=30.0, help="safety limit in seconds")
    parser.add_argument("--json", type=Path, help="also write all runs to this file")
    arguments = parser.parse_args()
    if not (arguments.folder / "README.md").exists():
        sys.exit(f"no instances in {arguments.folder}")
    budget = Budget(arguments.work, arguments.nodes, arguments.moves, arguments.wall)
    print(f"{'instance':9} {'strategy':8} {'value':>6} {'bound':>6} {'known':>6} {'gap':>6} {'seconds':>8}")
    found = []
    for run in runs(arguments.folder, arguments.names, arguments.strategies, budget):
        print(run, flush=True)
        found.append(asdict(run))
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Recovery: for how many random statements is the script found at most as long as the statement.

    python -m bench.recovery --workload data/shop --families own,up --draws 20 --seed 1 --jobs 2

Several workloads may be named.  The same seed gives the same draws.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from bench.recovery.families import FAMILIES
from bench.recovery.model import Outcome
from bench.recovery.optimizers import OPTIMIZERS
from bench.recovery.report import as_json, brief, lines, losses, side_by_side, table
from bench.recovery.run import run


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="bench.recovery", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workload", type=Path, nargs="+", required=True, help="folders that hold before.sql.gz")
    parser.add_argument("--families", default=",".join(FAMILIES), help="comma-separated; all: %(default)s")
    parser.add_argument("--draws", type=int, default=20, help="draws a family and workload")
    parser.add_argument("--start", type=int, default=0, help="number of the first draw, to see one again")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--optimizer", choices=sorted(OPTIMIZERS), default="optimal")
    parser.add_argument("--losses", type=int, default=10, help="how many of the worst losses to print")
    parser.add_argument("--json", type=Path, help="write the figures and all losses to this file")
    options = parser.parse_args()
    families = options.families.split(",")
    if unknown := sorted(set(families) - set(FAMILIES)):
        parser.error(f"unknown families: {', '.join(unknown)}")
    found: list[Outcome] = []
    numbers = range(options.start, options.start + options.draws)
    for workload in options.workload:
        for task, outcome in run(workload, families, numbers, options.seed, options.jobs, options.optimizer):
            print(f"{task.workload} {task.family}/{task.number}: {brief(outcome)}", file=sys.stderr, flush=True)
            found += [] if outcome is None else [outcome]
    # Workers finish in any order.
    outcomes = sorted(found, key=lambda o: (o.workload, families.index(o.draw.family), o.number))
    print(table(lines(outcomes)))
    print(side_by_side(losses(outcomes)[: options.losses]))
    if options.json is not None:
        options.json.write_text(
            json.dumps({"seed": options.seed, **as_json(outcomes)}, ensure_ascii=False, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()

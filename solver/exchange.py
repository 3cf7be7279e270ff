"""Cover problems and solutions as JSON, to keep them, compare solvers, or send them elsewhere.

A problem is one object:

    {"format": "cover", "version": 1,
     "unique": [e, ...],                elements that may be covered only once
     "elements": E,
     "resource_costs": [c, ...],
     "precedence": [[a, b], ...],       a before b
     "candidates": [{"cost": c, "covers": [e, ...], "damages": [...], "repairs": [...],
                     "excludes": [...], "needs": [...]}, ...]}

where empty lists of a candidate are left out.  A solution is

    {"format": "cover-solution", "version": 1, "chosen": [c, ...], "cost": c, "bound": b,
     "status": "optimal" | "feasible", "method": "..."}

All lists are sorted except `candidates` and `chosen` (which is the order), so equal problems are equal
texts.
"""

from __future__ import annotations

import json
from typing import Any

from solver.problem import Candidate, CoverProblem, Solution

_SETS = ("covers", "damages", "repairs", "excludes", "needs")


def dump_problem(problem: CoverProblem) -> str:
    """The problem as JSON text."""
    return json.dumps(
        {
            "format": "cover",
            "version": 1,
            "elements": len(problem.unique),
            "unique": [e for e, once in enumerate(problem.unique) if once],
            "resource_costs": list(problem.resource_costs),
            "precedence": sorted(problem.precedence),
            "candidates": [_plain(candidate) for candidate in problem.candidates],
        }
    )


def _plain(candidate: Candidate) -> dict[str, int | list[int]]:
    sets = {name: sorted(getattr(candidate, name)) for name in _SETS}
    return {"cost": candidate.cost} | {name: members for name, members in sets.items() if members}


def load_problem(text: str) -> CoverProblem:
    """Reads what `dump_problem` writes; raises ValueError, in one line, on anything else."""
    data = _load(text, "cover")
    try:
        unique = set(data["unique"])
        candidates = tuple(
            Candidate(int(c["cost"]), **{name: frozenset(map(int, c.get(name, ()))) for name in _SETS})
            for c in data["candidates"]
        )
        return CoverProblem(
            candidates,
            tuple(e in unique for e in range(data["elements"])),
            tuple(map(int, data["resource_costs"])),
            frozenset((int(a), int(b)) for a, b in data["precedence"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a cover problem: {error!r}") from None


def dump_solution(solution: Solution) -> str:
    """The solution as JSON text."""
    return json.dumps(
        {
            "format": "cover-solution",
            "version": 1,
            "chosen": list(solution.chosen),
            "cost": solution.cost,
            "bound": solution.bound,
            "status": solution.status.value,
            "method": solution.method,
        }
    )


def load_solution(text: str) -> Solution:
    """Reads what `dump_solution` writes; raises ValueError, in one line, on anything else."""
    data = _load(text, "cover-solution")
    try:
        return Solution(tuple(map(int, data["chosen"])), int(data["cost"]), int(data["bound"]), str(data["method"]))
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a solution: {error!r}") from None


def _load(text: str, kind: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(data, dict) or data.get("format") != kind or data.get("version") != 1:
        raise ValueError(f'not of format "{kind}", version 1')
    return data

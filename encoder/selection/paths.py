"""Ways up foreign keys: which rows must be joined for them, and about what that costs."""

from __future__ import annotations

from collections.abc import Iterable, Set

from encoder.selection.model import Path


def foot(path: Path, used: Set[Path]) -> tuple[Path, tuple[str, ...]]:
    """From where `path` is joined, and by which columns.

    A step whose key is the very key that the step before referred to needs no row between, unless `used` has it.
    """
    at, names = path[:-1], path[-1].columns
    while at and at not in used and names == at[-1].target_columns:
        names = at[-1].columns
        at = at[:-1]
    return at, names


def steps(path: Path) -> tuple[Path, ...]:
    """The rows that must be joined for a condition on the row at `path`, which comes last."""
    found: list[Path] = []
    while path:
        found.append(path)
        path, _ = foot(path, frozenset())
    return tuple(reversed(found))


def step_cost(path: Path) -> int:
    """About the bytes of joining the last row of `path` to the one before."""
    key = path[-1]
    return 18 + len(key.target.name) + sum(len(name) for name in (*key.columns, *key.target_columns))


def join_cost(paths: Iterable[Path]) -> int:
    """About the bytes of joining the rows at all of `paths`."""
    return sum(map(step_cost, {step for path in paths for step in steps(path)}))

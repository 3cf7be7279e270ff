"""Guard the byte counts of known workloads: optimize them again and compare with a committed record.

The record is a TOML file:

    [shop.low]
    timezone = "UTC"
    bytes = [105, 92, 1310]

one table for each workload and effort, with the bytes of every transaction in the order of the stream (BEGIN and
COMMIT included).  `timezone` is what the replaying session was promised, "" for nothing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tersql.errors import InputError
from tersql.files import written
from tersql.optimize import Options, Result, optimize
from tersql.workloads import Workload, find_workloads

# A safety net, in seconds: what it cuts would not be the same elsewhere.
TIME_LIMIT = 900.0

_HEAD = """\
# Bytes of the scripts of known workloads by transaction; `tersql check` compares with them,
# `tersql check --update` writes them.
"""
_WIDTH = 16


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of one workload: bytes by transaction, for one promise of a time zone ("": none)."""

    sizes: tuple[int, ...]
    timezone: str = ""


# By workload and effort.
Record = Mapping[tuple[str, str], Entry]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One workload checked.  `recorded` is None where the record lacks it, `trouble` says in a line why the
    two cannot be compared, `late` that the time limit is why, `faults` which searches broke down.  Sizes are in
    bytes."""

    workload: str
    effort: str
    found: Entry
    recorded: Entry | None
    seconds: float
    trouble: str | None = None
    late: bool = False
    faults: tuple[str, ...] = ()

    @property
    def changes(self) -> list[tuple[int, int, int]]:
        """(transaction, recorded bytes, bytes now) where they differ."""
        if self.recorded is None or self.trouble is not None:
            return []
        pairs = zip(self.recorded.sizes, self.found.sizes, strict=True)
        return [(index, old, new) for index, (old, new) in enumerate(pairs, 1) if old != new]

    @property
    def grown(self) -> bool:
        return any(new > old for _, old, new in self.changes)

    @property
    def shrunk(self) -> bool:
        return any(new < old for _, old, new in self.changes)

    @property
    def good(self) -> bool:
        return self.recorded is not None and self.trouble is None and not self.grown


@dataclass(frozen=True, slots=True)
class CheckReport:
    """`updated` says that the record holds the found sizes now."""

    outcomes: tuple[Outcome, ...]
    updated: bool = False

    @property
    def good(self) -> bool:
        """Whether no transaction grew and everything was in the record."""
        return self.updated or all(outcome.good for outcome in self.outcomes)

    def __str__(self) -> str:
        """The readable diff."""
        return "\n".join(line for outcome in self.outcomes for line in _lines(outcome, self.updated))


def check(
    paths: Iterable[Path | str],
    record: Path | str,
    *,
    update: bool = False,
    scratch: str | None = None,
    options: Options | None = None,
    told: Callable[[Outcome], None] | None = None,
) -> CheckReport:
    """Optimize the workloads in `paths` and compare with the file `record`; with `update`, write it.

    `told` is called as each workload is done.  A record that is not there is an empty one.
    Raises OSError, InputError, StreamError, ScratchError, NotReplayable, InternalError.
    """
    options = options or Options(time_limit=TIME_LIMIT)
    workloads = find_workloads(paths)
    known = dict(read_record(Path(record)))
    outcomes = []
    for workload in workloads:
        result = optimize(workload.stream, dump=workload.dump, scratch=scratch, options=options)
        outcome = _outcome(workload, result, options, known.get((workload.name, options.effort)))
        outcomes.append(outcome)
        if told is not None:
            told(outcome)
    if update and not any(outcome.late for outcome in outcomes):
        known |= {(outcome.workload, outcome.effort): outcome.found for outcome in outcomes}
        write_record(known, Path(record))
        return CheckReport(tuple(replace(outcome, trouble=None) for outcome in outcomes), updated=True)
    return CheckReport(tuple(outcomes))


def _outcome(workload: Workload, result: Result, options: Options, recorded: Entry | None) -> Outcome:
    found = Entry(tuple(one.size for one in result.transactions), options.timezone or "")
    trouble = None
    if result.late:
        trouble = "the time limit cut the search, so its bytes say nothing: give it more"
    elif recorded is not None and recorded.timezone != found.timezone:
        trouble = f"the record is for {_zone(recorded)}, this run for {_zone(found)}"
    elif recorded is not None and len(recorded.sizes) != len(found.sizes):
        trouble = f"the record has {len(recorded.sizes)} transactions, the stream {len(found.sizes)}"
    return Outcome(workload.name, options.effort, found, recorded, result.seconds, trouble, result.late, result.faults)


def _zone(entry: Entry) -> str:
    return f"time zone {entry.timezone}" if entry.timezone else "none"


def _lines(outcome: Outcome, updated: bool) -> Iterator[str]:
    total = sum(outcome.found.sizes)
    head = f"{outcome.workload} ({outcome.effort}): {total} bytes in {len(outcome.found.sizes)} transactions"
    yield from (f"{outcome.workload}: {fault}" for fault in outcome.faults)
    if outcome.trouble is not None:
        yield f"{head}: {outcome.trouble}"
        return
    if outcome.recorded is None:
        yield f"{head}: {'recorded' if updated else 'not in the record; --update puts it there'}"
        return
    if not outcome.changes:
        yield f"{head}, as recorded"
        return
    before = sum(outcome.recorded.sizes)
    yield f"{head}, {total - before:+} from {before}"
    yield f"  {'transaction':>11} {'recorded':>9} {'now':>9} {'change':>8}"
    for index, old, new in outcome.changes:
        yield f"  {index:>11} {old:>9} {new:>9} {new - old:>+8}{'  grew' if new > old else ''}"
    if updated:
        yield "  recorded"
    elif not outcome.grown:
        yield "  shorter than recorded: --update keeps it so"


def read_record(path: Path) -> dict[tuple[str, str], Entry]:
    """The record in `path`; an empty one where there is no file.  Raises InputError where it is none."""
    if not path.exists():
        return {}
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        return {(name, effort): _entry(entry) for name, efforts in data.items() for effort, entry in efforts.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is no record of bytes: {error}") from error


def _entry(data: Mapping[str, Any]) -> Entry:
    return Entry(tuple(map(int, data["bytes"])), str(data.get("timezone", "")))


def write_record(record: Record, path: Path) -> None:
    """Write `record`, sorted, so that a change shows as a small diff."""
    with written(path) as file:
        file.write(_HEAD)
        for (name, effort), entry in sorted(record.items()):
            file.write(f"\n[{_key(name)}.{_key(effort)}]\ntimezone = {_string(entry.timezone)}\nbytes = [\n")
            for start in range(0, len(entry.sizes), _WIDTH):
                file.write("    " + " ".join(f"{size}," for size in entry.sizes[start : start + _WIDTH]) + "\n")
            file.write("]\n")


def _key(text: str) -> str:
    return text if text.isascii() and text.replace("-", "a").replace("_", "a").isalnum() else _string(text)


def _string(text: str) -> str:
    """A TOML basic string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'

"""Workloads: folders that hold a database before a stream, and the stream."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tersql.errors import InputError

_DUMPS = ("before.sql", "before.sql.gz")
_STREAMS = ("stream.jsonl", "stream.jsonl.gz")


@dataclass(frozen=True, slots=True)
class Workload:
    """`name` is the folder's; `known` the bytes of the shortest exact replay known ("k" in meta.json), if any."""

    name: str
    dump: Path
    stream: Path
    known: int | None = None


def find_workloads(paths: Iterable[Path | str]) -> list[Workload]:
    """The workload in each folder, or those in its direct subfolders, sorted by name.

    Raises FileNotFoundError for a path without one, InputError where two have the same name.
    """
    found: list[Workload] = []
    for path in map(Path, paths):
        own = _workload(path)
        inner = [own] if own else [w for w in map(_workload, sorted(_folders(path))) if w]
        if not inner:
            raise FileNotFoundError(errno.ENOENT, f"no {_DUMPS[1]} and {_STREAMS[1]} (or without .gz) here", str(path))
        found += inner
    names = [workload.name for workload in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"two workloads are named {twice}")
    return found


def _folders(path: Path) -> list[Path]:
    return [inner for inner in path.iterdir() if inner.is_dir()] if path.is_dir() else []


def _workload(folder: Path) -> Workload | None:
    dump = next((folder / name for name in _DUMPS if (folder / name).is_file()), None)
    stream = next((folder / name for name in _STREAMS if (folder / name).is_file()), None)
    if dump is None or stream is None:
        return None
    meta = folder / "meta.json"
    known = json.loads(meta.read_text(encoding="utf-8")).get("k") if meta.is_file() else None
    return Workload(folder.resolve().name, dump, stream, known)

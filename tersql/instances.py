"""Cover instances: the choice that a transaction leaves, to be solved, written and read.

An instance is one JSON object in a file of its own:

    {"format": "cover-blocks", "version": 1,
     "workload": "shop", "transaction": 3, "changes": 22,
     "starter": 2400, "baseline": 2400, "script": 120,    bytes with BEGIN and COMMIT, null where unknown
     "literal": 2400,                                     the cheapest script of literals alone, null where unknown
     "frame": 13,                                         bytes of BEGIN and COMMIT
     "segments": 2,
     "blocks": [{"from": 0, "to": 1, "problem": {"format": "cover", ...}}, ...]}

A solution takes blocks that partition [0, segments) and a cover of each; it costs `frame` and what the covers cost,
or `literal` where that is less.  `problem` is as in `solver.exchange`.  Elements that the same candidates cover are
one.  A block that is a plain set cover can also be written in OR-Library's scp format.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from encoder.transaction import FRAME_BYTES, Solved
from solver.blocks import BlockProblem
from solver.exchange import dump_problem, load_problem
from solver.orlib import read_file, write_scp
from tersql.errors import InputError
from tersql.files import written


@dataclass(frozen=True, slots=True)
class Instance:
    """One transaction's choice; sizes in bytes with `frame`, None where unknown."""

    workload: str
    transaction: int
    problem: BlockProblem
    changes: int = 0
    starter: int | None = None
    baseline: int | None = None
    script: int | None = None
    literal: int | None = None
    frame: int = 0


def instance_of(workload: str, solved: Solved, script: int) -> Instance:
    """The instance of a solved transaction of which `script` bytes are known to be exact."""
    # The search comes upon the grouped or rowwise script itself now and then.
    yardsticks = (solved.baseline - FRAME_BYTES, solved.starter - FRAME_BYTES)
    literals = [
        variant.size
        for variant in solved.variants
        if variant.kind.split("+")[0] in ("baseline", "starter", "steps") or variant.size in yardsticks
    ]
    return Instance(
        workload,
        solved.index,
        solved.problem or BlockProblem(1, {}),  # nothing was searched: literals are all there is
        solved.changes,
        solved.starter,
        solved.baseline,
        script,
        FRAME_BYTES + min(literals) if literals else None,
        FRAME_BYTES,
    )


def write_instances(instances: Iterable[Instance], folder: Path) -> list[Path]:
    """Each as JSON, and its plain set covers in the scp format, into `folder`, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for instance in instances:
        stem = f"{instance.workload}-{instance.transaction:03}"
        for name, text in ((f"{stem}.json", dump_instance(instance)), *_plain_covers(stem, instance.problem)):
            with written(folder / name) as file:
                file.write(text)
            made.append(folder / name)
    return made


def _plain_covers(stem: str, problem: BlockProblem) -> Iterator[tuple[str, str]]:
    for (start, end), block in sorted(problem.blocks.items(), key=lambda item: item[0]):
        if not block.unique:
            continue
        try:
            yield f"{stem}-{start}-{end}.scp.txt", write_scp(block)
        except ValueError:
            continue  # inserted rows are owed exactly once, which that format cannot say


def dump_instance(instance: Instance) -> str:
    """The instance as JSON text."""
    blocks = sorted(instance.problem.blocks.items(), key=lambda item: item[0])
    data = {
        "format": "cover-blocks",
        "version": 1,
        "workload": instance.workload,
        "transaction": instance.transaction,
        "changes": instance.changes,
        "starter": instance.starter,
        "baseline": instance.baseline,
        "script": instance.script,
        "literal": instance.literal,
        "frame": instance.frame,
        "segments": instance.problem.n,
        "blocks": [
            {"from": start, "to": end, "problem": json.loads(dump_problem(block))} for (start, end), block in blocks
        ],
    }
    return json.dumps(data) + "\n"


def read_instance(path: Path) -> Instance:
    """An instance from a file: as written here, a cover problem of `solver.exchange`, or OR-Library's formats.

    Raises OSError, and InputError in one line where the file is none of these.
    """
    try:
        if path.suffix != ".json":
            return Instance(path.name.split(".")[0], 1, BlockProblem(1, {(0, 1): read_file(path)}))
        text = path.read_text(encoding="utf-8")
        data = json.loads(text)
        if isinstance(data, dict) and data.get("format") == "cover-blocks" and data.get("version") == 1:
            return _loaded(data)
        return Instance(path.stem, 1, BlockProblem(1, {(0, 1): load_problem(text)}))
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: {error}") from error


def _loaded(data: dict[str, Any]) -> Instance:
    blocks = {
        (int(block["from"]), int(block["to"])): load_problem(json.dumps(block["problem"])) for block in data["blocks"]
    }
    return Instance(
        str(data["workload"]),
        int(data["transaction"]),
        BlockProblem(int(data["segments"]), blocks),
        **{name: data[name] for name in ("changes", "starter", "baseline", "script", "literal", "frame")},
    )

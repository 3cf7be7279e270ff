"""How near the literals come to the information that they carry.

    python -m bench.literals [--largest 100000] [--json FILE]

Random row sets (uniform, clustered, periodic; densities from 0.1% to 99%) and random row → value maps, each
compared with the entropy bound and with a plain IN or VALUES, and run on the embedded server.  The bound of a
set of n of N rows is log2 C(N, n) / 8 bytes, that of a map the empirical entropy of its values.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from emit.render import render
from emit.term import Delete, Update
from encoder.frame import State
from encoder.literals import by_keys, source_of, values_update
from encoder.rowset import row_set_atoms
from encoder.selection.model import Labels
from encoder.valuemap import value_map_updates
from scratch.catalog import read_catalog
from scratch.database import create_database, drop_database, with_database
from scratch.server import Server
from scratch.session import Session, connect
from stream.model import TableName

_SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
_DENSITIES = (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 0.99)
_TABLE = TableName("public", "t")
_GOAL_FACTOR, _GOAL_BYTES = 1.25, 60


@dataclass(frozen=True, slots=True)
class Result:
    """One measured literal; sizes in bytes, times in seconds."""

    kind: str
    rows: int
    listed: int
    bound: float
    plain: int
    best: int
    search: float
    replay: float
    form: str

    @property
    def within_goal(self) -> bool:
        return self.best <= _GOAL_FACTOR * self.bound + _GOAL_BYTES


def _chosen(kind: str, count: int, density: float) -> NDArray[np.bool_]:
    random = np.random.default_rng(count)
    if kind == "uniform":
        return np.less(random.random(count), density)
    if kind == "periodic":
        return np.equal(np.arange(count) % max(2, round(1 / density)), 1)
    # Runs of about twenty rows.
    on = np.zeros(count, dtype=np.bool_)
    for start in random.integers(0, count, max(1, int(-math.log1p(-density) * count / 20))).tolist():
        on[start : start + 20] = True
    return on


def _set_bound(count: int, listed: int) -> float:
    choices = math.lgamma(count + 1) - math.lgamma(listed + 1) - math.lgamma(count - listed + 1)
    return choices / math.log(2) / 8


def _row_sets(state: State, count: int) -> Iterator[Result]:
    frame = state.frame(_TABLE)
    for kind in ("uniform", "clustered", "periodic"):
        for density in _DENSITIES:
            must = _chosen(kind, count, density)
            listed = int(must.sum())
            if not 0 < listed < count:
                continue
            began = time.perf_counter()
            atom = row_set_atoms(frame, Labels(must, ~must), None, keep=1)[0]
            searched = time.perf_counter() - began
            keys = [frame.keys[row] for row in np.flatnonzero(must).tolist()]
            plain = Delete(source_of(frame.table), where=by_keys(frame.table, keys, None))
            where = render(Delete(source_of(frame.table), where=atom.term)).split("WHERE", 1)[1]
            yield Result(
                kind, count, listed, _set_bound(count, listed), len(render(plain).split("WHERE", 1)[1].strip()),
                atom.size, searched, _replay(state.session, f"DELETE FROM t WHERE{where}", listed), _form(where),
            )  # fmt: skip


def _value_maps(state: State, count: int) -> Iterator[Result]:
    frame = state.frame(_TABLE)
    random = np.random.default_rng(1)
    place = next(place for place, column in enumerate(frame.table.stored) if column.name == "v")
    stored = [frame.texts(column.name) for column in frame.table.stored]
    for words in (2, 5, 40, 1_000):
        for spread in (1, 3, 40):
            rows = np.flatnonzero(random.random(count) < 1 / spread)[:300].tolist()
            before = [tuple(texts[row] for texts in stored) for row in rows]
            values = [str(value) for value in random.integers(0, words, len(rows)).tolist()]
            after = [(*row[:place], value, *row[place + 1 :]) for row, value in zip(before, values, strict=True)]
            pairs = list(zip(before, after, strict=True))
            began = time.perf_counter()
            best = render(value_map_updates(state, frame.table, pairs, [place], None)[0])
            searched = time.perf_counter() - began
            plain = values_update(frame.table, pairs, [place], None)
            assert isinstance(plain, Update)
            entropy = -sum(n * math.log2(n / len(rows)) for n in Counter(values).values()) / 8
            span = rows[-1] + 1
            yield Result(
                f"map of {words}", span, len(rows), entropy + _set_bound(span, len(rows)), len(render(plain)),
                len(best.encode()), searched, _replay(state.session, best, len(rows)), _form(best),
            )  # fmt: skip


def _replay(session: Session, statement: str, listed: int) -> float:
    began = time.perf_counter()
    with session.transaction(force_rollback=True):
        done = session.execute(statement.encode()).rowcount
    assert done >= listed, (done, listed, statement[:200])
    return time.perf_counter() - began


def _form(text: str) -> str:
    """The statement with its long strings and lists cut."""
    shown = text if len(text) < 60 else text[:28] + "…" + text[-28:]
    return shown.encode("unicode_escape").decode()


def _measure(least: int, largest: int) -> Iterator[Result]:
    with Server.start() as server:
        for count in (size for size in _SIZES if least <= size <= largest):
            create_database(server.dsn(), "literals")
            with connect(with_database(server.dsn(), "literals")) as session:
                session.execute("CREATE TABLE t(id int PRIMARY KEY, v int)")
                session.execute(f"INSERT INTO t SELECT i,-1 FROM generate_series(1,{count})i".encode())
                session.execute("ANALYZE")
                state = State(session, read_catalog(session))
                yield from _row_sets(state, count)
                if count == 10_000:
                    yield from _value_maps(state, count)
            drop_database(server.dsn(), "literals")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--largest", type=int, default=100_000, help="the most rows of a table")
    parser.add_argument("--least", type=int, default=100, help="the fewest")
    parser.add_argument("--json", type=Path, help="also write all results to this file")
    arguments = parser.parse_args()
    print(f"{'kind':12}{'N':>8}{'n':>8}{'bound':>9}{'plain':>9}{'best':>8}{'x bound':>8} goal search replay  form")
    results = []
    for result in _measure(arguments.least, arguments.largest):
        results.append(asdict(result) | {"within_goal": result.within_goal})
        print(
            f"{result.kind:12}{result.rows:8}{result.listed:8}{result.bound:9.0f}{result.plain:9}{result.best:8}"
            f"{result.best / max(result.bound, 1):8.2f} {'yes' if result.within_goal else 'no':4}"
            f"{result.search:7.2f}{result.replay:7.2f}  {result.form}",
            flush=True,
        )
    if arguments.json:
        arguments.json.write_text("[\n" + ",\n".join(map(json.dumps, results)) + "\n]\n")


if __name__ == "__main__":
    main()

"""What the search costs: time and memory against rows, and against changes.

    python -m bench.scaling [--rows 1000 10000 100000] [--changes 10 100 1000] [--json FILE]

A schema of its own, an author for every fifty posts, and six bulk statements, one a transaction, each of which
changes about the same number of rows: 300 while the rows grow, and as many as asked of 100,000 rows.  Each point is
`optimize` with one worker in a fresh process, from the dump to the proved script.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psycopg

from emit.size import size as script_size
from scratch.database import create_database, drop_database, dump_source
from scratch.server import Server
from scratch.session import connect
from stream.capture import capture_script, column_types
from stream.write import write_wal2json
from tersql import Options, optimize

ROWS = (1_000, 10_000, 100_000, 1_000_000)
CHANGES = (10, 100, 1_000, 10_000, 30_000)
_CHANGES_OF_ROWS, _ROWS_OF_CHANGES = 300, 100_000
# Only a safety net: what it cuts is no measurement, and the point says so.
_TIME_LIMIT = 3_600.0
_CHILD = "import sys; from bench.scaling import child; child(*sys.argv[1:])"


@dataclass(frozen=True, slots=True)
class Point:
    """One measured run: `changes` of the whole stream, sizes in bytes (`written`: of the statements that made it),
    `search` the seconds of the six searches, `seconds` those of everything and `cpu` what of them this side of the
    server computed (the one figure for a busy machine); memory in MiB at its peak."""

    rows: int
    changes: int
    written: int
    baseline: int
    size: int
    search: float
    seconds: float
    cpu: float
    worker: int
    main: int
    late: bool
    faults: tuple[str, ...]


def schema(rows: int, changes: int) -> str:
    """A parent, its children with texts, numbers, times and documents, and a table to insert into.

    What looks random is a hash of the id; languages and marks are as many as leave `changes` rows to each.
    """
    kinds, authors = max(2, rows // changes), max(20, rows // 50)
    return f"""
CREATE FUNCTION draw(id int, salt text, below int) RETURNS int LANGUAGE sql IMMUTABLE
    RETURN ('x' || left(md5(salt || id), 7))::bit(28)::int % below;
CREATE TABLE author (id int PRIMARY KEY, name text NOT NULL, fame int NOT NULL, since date NOT NULL);
CREATE TABLE post (
    id int PRIMARY KEY, author_id int NOT NULL REFERENCES author, title text NOT NULL, state text NOT NULL,
    price numeric(9,2) NOT NULL, score int NOT NULL, made timestamptz NOT NULL, due date, live bool NOT NULL,
    extra jsonb NOT NULL
);
CREATE TABLE mention (post_id int PRIMARY KEY, author_id int NOT NULL, body text NOT NULL);
INSERT INTO author SELECT n, 'author ' || md5(n::text), draw(n, 'fame', 1000000),
    date '2000-1-1' + draw(n, 'since', 7300) FROM generate_series(1, {authors}) n;
INSERT INTO post SELECT n, 1 + draw(n, 'author', {authors}),
    initcap(left(md5(n::text), 8)) || ' #' || draw(n, 'mark', {kinds}),
    (ARRAY['new', 'open', 'done', 'late'])[1 + draw(n, 'state', 4)], draw(n, 'price', 1000000) / 100.0,
    draw(n, 'score', 1000), timestamptz '2020-1-1 UTC' + n * interval '10 minutes',
    CASE WHEN n % 3 > 0 THEN date '2024-1-1' + draw(n, 'due', 365) END, draw(n, 'live', 10) > 0,
    jsonb_build_object('lang', 'l' || draw(n, 'lang', {kinds}), 'rank', draw(n, 'rank', 100))
    FROM generate_series(1, {rows}) n;
DROP FUNCTION draw;
"""


def statements(rows: int, changes: int) -> tuple[str, ...]:
    """Bulk statements each of which changes about `changes` of the `rows` posts."""
    share = changes / rows
    first = f"timestamptz '2020-1-1 UTC' + {rows // 3} * interval '10 minutes'"
    return (
        f"UPDATE post SET price = price * 1.1 WHERE price < {10_000 * share:.2f}",
        f"UPDATE post SET state = 'archived', due = NULL "
        f"WHERE made >= {first} AND made < {first} + {changes} * interval '10 minutes' AND live",
        f"UPDATE post p SET score = 0 FROM author a WHERE a.id = p.author_id AND a.fame < {1_000_000 * share:.0f}",
        """UPDATE post SET extra = extra || '{"seen": true}' WHERE extra->>'lang' = 'l1'""",
        f"INSERT INTO mention SELECT p.id, a.id, p.title || ' by ' || a.name FROM post p JOIN author a "
        f"ON a.id = p.author_id WHERE p.price >= {10_000 * (1 - share):.2f}",
        "DELETE FROM post WHERE title LIKE '%#1'",
    )


def make(folder: Path, rows: int, changes: int) -> None:
    """`before.sql` and `stream.jsonl` in `folder`."""
    with Server.start() as server:
        create_database(server.dsn(), "scaling")
        try:
            dsn = psycopg.conninfo.make_conninfo(server.dsn("scaling"), options="-c synchronous_commit=on")
            with connect(dsn) as session:
                session.execute(schema(rows, changes).encode())
                types = column_types(session)  # type: ignore[arg-type]
            dump_source(dsn, folder / "before.sql")
            with (folder / "stream.jsonl").open("w", encoding="utf-8") as file:
                write_wal2json(capture_script(dsn, ";\n".join(statements(rows, changes))), file, types)
        finally:
            drop_database(server.dsn(), "scaling")


def child(folder: str, rows: str, changes: str) -> None:
    """Optimize what is in `folder` and print the point; in a process that does nothing else."""
    began = time.perf_counter()
    options = Options(timezone="UTC", jobs=1, time_limit=_TIME_LIMIT)
    result = optimize(Path(folder, "stream.jsonl"), dump=Path(folder, "before.sql"), options=options)
    # The worker is by far the largest of the processes that were waited for.
    worker, main = (resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF))
    point = Point(
        int(rows),
        sum(one.changes for one in result.transactions),
        script_size("".join(f"BEGIN;{statement};COMMIT;" for statement in statements(int(rows), int(changes)))),
        result.baseline,
        result.size,
        round(sum(one.seconds for one in result.transactions), 1),
        round(time.perf_counter() - began, 1),
        round(sum(one.ru_utime + one.ru_stime for one in (worker, main)), 1),
        worker.ru_maxrss >> 10,
        main.ru_maxrss >> 10,
        result.late,
        result.faults,
    )
    print(json.dumps(asdict(point)))


def measured(rows: int, changes: int) -> Point:
    with tempfile.TemporaryDirectory(prefix="tersql-scaling-") as folder:
        make(Path(folder), rows, changes)
        command = [sys.executable, "-c", _CHILD, folder, str(rows), str(changes)]
        told = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return Point(**{**told, "faults": tuple(told["faults"])})


_HEAD = "rows | changes | statements | baseline | script | search, s | all, s | CPU, s | worker, MiB | main, MiB | "


def table(points: Iterable[Point]) -> Iterator[str]:
    """Markdown, a line a point."""
    yield f"| {_HEAD}|"
    yield "|" + "---:|" * _HEAD.count("|") + "---|"
    for one in points:
        counts = (f"{n:,}" for n in (one.rows, one.changes, one.written, one.baseline, one.size))
        cost = f"{one.search:.1f} | {one.seconds:.1f} | {one.cpu:.1f} | {one.worker:,} | {one.main:,}"
        notes = "; ".join(["cut by the time limit"] * one.late + [*one.faults])
        yield f"| {' | '.join(counts)} | {cost} | {notes} |"


def exponent(points: Sequence[Point], axis: str) -> float:
    """e where time grows as `axis`^e between the first and the last of `points`; NaN of fewer than two sizes."""
    sizes = [getattr(points[0], axis), getattr(points[-1], axis)] if points else [0, 0]
    if sizes[0] == sizes[1]:
        return math.nan
    times = [max(0.1, one.seconds) for one in (points[0], points[-1])]
    return math.log(times[1] / times[0]) / math.log(sizes[1] / sizes[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="*", default=list(ROWS), help="sizes of the table; may be none")
    parser.add_argument("--changes", type=int, nargs="*", default=list(CHANGES), help="of each statement; may be none")
    parser.add_argument("--json", type=Path, help="also write all points to this file")
    arguments = parser.parse_args()
    sweeps = {
        "rows": [(rows, _CHANGES_OF_ROWS) for rows in arguments.rows],
        "changes": [(_ROWS_OF_CHANGES, changes) for changes in arguments.changes],
    }
    found: dict[str, list[Point]] = {axis: [] for axis in sweeps}

    def kept(axis: str) -> Iterator[Point]:
        """The points as they come; what was measured stays when a later one fails."""
        for rows, changes in sweeps[axis]:
            found[axis].append(measured(rows, changes))
            if arguments.json:
                data = {name: [asdict(one) for one in points] for name, points in found.items()}
                arguments.json.write_text(json.dumps(data, indent=1) + "\n")
            yield found[axis][-1]

    for axis, sizes in sweeps.items():
        for line in table(kept(axis)) if sizes else ():
            print(line, flush=True)
        if len(found[axis]) > 1:
            print(f"\nTime grows as {axis}^{exponent(found[axis], axis):.2f}.\n", flush=True)


if __name__ == "__main__":
    main()

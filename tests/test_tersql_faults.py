"""Processes killed at random points: the right script or none, one clear line, and nothing left behind."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from optimize_bed import sample
from processes import Place, needs_proc, place

from scratch.server import Server

SCHEMA = """
CREATE TABLE shop (id int PRIMARY KEY, city text);
CREATE TABLE item (id serial PRIMARY KEY, shop int REFERENCES shop ON DELETE CASCADE, price numeric(9,2), name text);
INSERT INTO shop SELECT g, 'c' || g % 4 FROM generate_series(1, 12) g;
INSERT INTO item (shop, price, name) SELECT 1 + g % 12, g * 1.25, 'n' || g % 50 FROM generate_series(1, 900) g;
"""
SCRIPT = ";".join(
    statement
    for n in range(4)
    for statement in (
        f"UPDATE item SET price=price*1.1 WHERE shop={n + 1} AND price>{n}00",
        f"UPDATE item i SET name=s.city FROM shop s WHERE s.id=i.shop AND s.city='c{n}' AND i.id%5={n}",
        f"INSERT INTO item(shop,price,name)SELECT id,{n}.5,city FROM shop WHERE city<>'c{n}'",
        f"DELETE FROM shop WHERE id={n + 9}",
    )
)
ROUNDS = 50


class Rig:
    """The same run again and again, in one folder."""

    def __init__(self, here: Place, stream: Path, dump: Path) -> None:
        self.here = here
        self.arguments = ("optimize", str(stream), "--dump", str(dump), "--effort", "low", "--jobs", "2")

    def run(self, disturb: Callable[[int], None]) -> tuple[int, str, str | None]:
        """Exit code, what was said, and the script if there is one."""
        output = self.here.folder / "out.sql"
        started = self.here.start(*self.arguments, "--output", str(output))
        disturb(started.pid)
        _, said = started.communicate(timeout=240)
        script = None
        if output.exists():
            script = output.read_text()
            output.unlink()
        return started.returncode, said, script

    def victims(self, kind: str, main: int) -> list[int]:
        if kind == "main":
            return [main]
        marks = {"worker": "import serve;serve(", "server": "/postgres -D ", "backend": "postgres: "}
        return self.here.matching(marks[kind])


@pytest.fixture(scope="module")
def rig(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("faults")
    with sample(server, folder, SCHEMA, SCRIPT) as found, place() as here:
        yield Rig(here, found.stream, found.dump(folder / "before.sql"))


@needs_proc
@pytest.mark.slow
def test_whatever_is_killed_the_script_is_whole_or_absent(rig: Rig) -> None:
    started = time.monotonic()
    code, said, script = rig.run(lambda main: None)
    usual = time.monotonic() - started
    assert (code, script is not None) == (0, True), said
    rng = random.Random(5)
    rounds = int(os.environ.get("TERSQL_FAULT_ROUNDS", ROUNDS))
    outcomes = []
    for number in range(rounds):
        kind = rng.choice(["main", "worker", "worker", "server", "backend", "backend"])
        moment, pick = rng.uniform(0, usual), rng.random()

        def disturb(main: int, kind: str = kind, moment: float = moment, pick: float = pick) -> None:
            time.sleep(moment)
            victims = rig.victims(kind, main)
            if victims:
                with suppress(ProcessLookupError):
                    os.kill(victims[int(pick * len(victims))], signal.SIGKILL)

        code, said, found = rig.run(disturb)
        what = f"round {number}: {kind} killed after {moment:.2f} s: {code} {said!r}"
        outcomes.append(f"{kind} {code}")
        if code == 0:
            assert found == script, what
        else:
            # Killed between the last byte of the script and its end, the run has written all of it.
            assert found is None or (kind == "main" and found == script), what
            assert code == (-signal.SIGKILL if kind == "main" else 1), what
            assert kind == "main" or (said.startswith("tersql: ") and said.count("\n") == 1), what
        assert rig.here.left() == [], what
    assert "worker 0" in outcomes or rounds < ROUNDS


@needs_proc
@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced(rig: Rig) -> None:
    _, _, script = rig.run(lambda main: None)

    def disturb(main: int) -> None:
        while not (working := rig.here.matching("tersql_worker_")):
            assert working == []
        time.sleep(0.5)
        os.kill(rig.victims("worker", main)[0], signal.SIGKILL)

    code, said, found = rig.run(disturb)
    assert (code, found) == (0, script), said
    assert "warning" not in said
    assert rig.here.left() == []

"""A script owes the same rows in sessions of any zone and style; what reads otherwise in one of them is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from optimize_bed import sample

from encoder.transaction import Strategy
from replay.sessions import odd_sessions
from replay.verify import verify
from scratch.server import Server
from stream.open import open_stream

SCHEMA = """
CREATE TABLE e (id int PRIMARY KEY, tz timestamptz, iv interval, day date, txt text);
INSERT INTO e SELECT g, '2024-05-01 05:00Z'::timestamptz+g*interval '24 hours 7 min', (9+g)*interval '1 hour'
  FROM generate_series(1,20) g
"""
READ_OTHERWISE = [
    "UPDATE e SET day=tz",
    "UPDATE e SET txt=iv",
    "UPDATE e SET txt=tz",
    "UPDATE e SET txt=to_char(tz,'-DD')",
    "UPDATE e SET txt=day WHERE id>5",
]


@pytest.mark.parametrize("statement", READ_OTHERWISE)
def test_what_sessions_read_otherwise_is_not_written(server: Server, tmp_path: Path, statement: str) -> None:
    first = "UPDATE e SET day='2024-05-03'"
    with sample(server, tmp_path, SCHEMA, f"BEGIN;{first};COMMIT;BEGIN;{statement};COMMIT;") as found:
        script = f"BEGIN;{first};COMMIT;BEGIN;{statement};COMMIT;"
        assert not verify(script, open_stream(found.stream), server.dsn(), found.template).exact
        # Something is found all the same, which `verify` accepts.
        assert statement not in found.optimized(Strategy.OPTIMAL).script


@pytest.mark.parametrize("statement", READ_OTHERWISE[:3])
def test_a_promised_zone_allows_what_it_decides(server: Server, tmp_path: Path, statement: str) -> None:
    with sample(server, tmp_path, SCHEMA, statement) as found:
        report = verify(f"BEGIN;{statement};COMMIT;", open_stream(found.stream), server.dsn(), found.template,
                        timezone="UTC")  # fmt: skip
        assert report.exact == (statement == "UPDATE e SET day=tz")


def test_every_session_differs_from_the_stream_s_in_both_styles() -> None:
    for timezone in (None, "UTC"):
        assert all(
            one["IntervalStyle"] != "postgres" and "ISO" not in one["DateStyle"] for one in odd_sessions(timezone)
        )

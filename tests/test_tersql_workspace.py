"""Templates: of the encoding and the locale that the source has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

import psycopg
import pytest

import tersql
from replay.verify import verify
from scratch.database import create_database, drop_database, with_database
from scratch.errors import ScratchError
from scratch.locales import Locale, read_locale
from scratch.server import Server
from scratch.session import connect, rows
from stream.capture import capture_script, column_types
from stream.open import open_stream
from stream.write import write_wal2json
from tersql.workspace import Origin, workspace

BUILTIN = Locale("UTF8", "C", "C", "b", "C")
LATIN = Locale("LATIN1", "C", "C")
SCHEMA = """
CREATE TABLE t(id int PRIMARY KEY, a text, b text);
INSERT INTO t SELECT g, (array['éa','öl','Ñu','ab','Cd'])[1+g%5]||g*7919%1000 FROM generate_series(1,60)g"""


@contextmanager
def source(server: Server, locale: Locale) -> Iterator[str]:
    """A database of that locale with SCHEMA."""
    name = f"source_{token_hex(4)}"
    try:
        create_database(server.dsn(), name, locale=locale)
    except ScratchError as error:
        pytest.skip(str(error))
    try:
        with connect(with_database(server.dsn(), name)) as session:
            session.execute(SCHEMA.encode())
        yield with_database(server.dsn(), name)
    finally:
        drop_database(server.dsn(), name)


@pytest.mark.parametrize("locale", [BUILTIN, LATIN], ids=str)
def test_a_live_database_keeps_its_encoding_and_locale(server: Server, locale: Locale) -> None:
    with source(server, locale) as dsn, workspace(Origin(database=dsn), server.dsn()) as place:
        copied = with_database(server.dsn(), place.template)
        assert read_locale(dsn) == read_locale(copied) == locale
        with connect(copied) as session:
            assert rows(session, "SELECT upper(a) FROM t WHERE id=5") == [("éA595",)]


@pytest.mark.parametrize("locale", [BUILTIN, LATIN], ids=str)
def test_scripts_are_made_under_it(server: Server, tmp_path: Path, locale: Locale) -> None:
    stream = tmp_path / "stream.jsonl"
    with source(server, locale) as dsn:
        with source(server, locale) as changed, stream.open("w", encoding="utf-8") as file:
            flushed = psycopg.conninfo.make_conninfo(changed, options="-c synchronous_commit=on")
            script = "UPDATE t SET b=upper(a);UPDATE t SET b='É'||a WHERE lower(a COLLATE \"C\") LIKE 'Ñ%'"
            with psycopg.connect(changed) as session:
                types = column_types(session)
            write_wal2json(capture_script(flushed, script), file, types)
        result = tersql.optimize(
            stream, database=dsn, scratch=server.dsn(), options=tersql.Options(effort="low", jobs=1, timezone="UTC")
        )
        assert result.faults == ()
        assert "upper(a)W" not in result.script
        result.script.encode(locale.encoding)
        with workspace(Origin(database=dsn), server.dsn()) as place:
            assert verify(result.script, open_stream(stream), server.dsn(), place.template, timezone="UTC").exact


def test_a_locale_that_the_scratch_server_lacks_is_told(server: Server) -> None:
    with pytest.raises(ScratchError, match=r"encoding UTF8 and locale xx_YY.UTF-8: .*xx_YY.UTF-8.*--scratch DSN"):
        create_database(server.dsn(), "never", locale=Locale("UTF8", "xx_YY.UTF-8", "xx_YY.UTF-8"))
    with pytest.raises(ScratchError, match=r"locale C, icu locale xx-nowhere-at-all: .*--scratch DSN"):
        create_database(server.dsn(), "never", locale=Locale("UTF8", "C", "C", "i", "xx-nowhere-at-all"))

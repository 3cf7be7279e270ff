"""Numbers that rows get as they lie: what else is right is tried, and decided where rows lie as they will."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from optimize_bed import sample

from encoder.effect import Effect
from encoder.numbering import as_numbered, is_settled
from encoder.transaction import Strategy
from replay.verify import verify
from scratch.catalog import read_catalog
from scratch.database import with_database
from scratch.server import Server
from scratch.session import connect
from stream.model import TableName
from stream.open import open_stream

LOGGED = """
CREATE TABLE item (id int PRIMARY KEY, kind int, note text, filler text);
CREATE TABLE log (id serial PRIMARY KEY, item int, at text);
CREATE FUNCTION logged() RETURNS trigger LANGUAGE plpgsql AS
  $$BEGIN INSERT INTO log(item,at) VALUES (NEW.id,NEW.note); RETURN NULL; END$$;
CREATE TRIGGER logged AFTER UPDATE OF note ON item FOR EACH ROW EXECUTE FUNCTION logged();
INSERT INTO item SELECT g, g%7, 'n'||g, repeat('x',200) FROM generate_series(1,100) g
"""
LOG = TableName("public", "log")


def test_only_numbers_are_exchanged(server: Server, tmp_path: Path) -> None:
    with (
        sample(server, tmp_path, LOGGED, "DELETE FROM item") as found,
        connect(with_database(server.dsn(), found.template)) as session,
    ):
        catalog = read_catalog(session)
    owed = {LOG: [("1", "5", "a"), ("2", "6", "a")]}
    swapped = Effect({LOG: Counter([("1", "6", "a"), ("2", "5", "a")])})
    assert as_numbered(catalog, owed, swapped) == Effect({LOG: Counter(owed[LOG])})
    assert as_numbered(catalog, owed, Effect({LOG: Counter(owed[LOG])})) is None
    # Another row, another number, a row too few.
    for other in ([("1", "6", "a"), ("2", "5", "b")], [("1", "6", "a"), ("3", "5", "a")], [("2", "5", "a")]):
        assert as_numbered(catalog, owed, Effect({LOG: Counter(other)})) is None
    whole = Effect({LOG: Counter(owed[LOG])})
    assert is_settled(catalog, whole, swapped, hopeful=True)
    assert not is_settled(catalog, whole, swapped, hopeful=False)


def test_numbers_given_by_pages_are_written_out(server: Server, tmp_path: Path) -> None:
    """New versions of rows fill the room that older ones left in their pages, sooner or later: the rows of the log are
    right by the statement, their order is not."""
    moving = ["UPDATE item SET kind=kind+7 WHERE id%9=4", "UPDATE item SET kind=kind+7 WHERE id%8=3"]
    moving += ["UPDATE item SET kind=kind-7 WHERE id%9=4", "UPDATE item SET kind=kind-7 WHERE id%8=3"]
    script = "".join(f"BEGIN;{statement};COMMIT;" for statement in [*moving, "UPDATE item SET note='' WHERE kind=3"])
    with sample(server, tmp_path, LOGGED, script) as found:
        assert "UPDATE item SET note=''WHERE kind=3;UPDATE log SET item=" in found.optimized(Strategy.OPTIMAL).script


def test_room_may_be_freed_between_transactions(server: Server, tmp_path: Path) -> None:
    """An INSERT behind a DELETE puts rows at the end, or in front where autovacuum came by meanwhile."""
    schema = """
    CREATE TABLE part (id int PRIMARY KEY, filler text);
    CREATE TABLE told (id serial PRIMARY KEY, part int);
    INSERT INTO part SELECT g, repeat('x',200) FROM generate_series(1,100) g
    """
    first = "BEGIN;DELETE FROM part WHERE id<60;COMMIT;BEGIN;INSERT INTO part SELECT 3,repeat('x',200);COMMIT;"
    with sample(server, tmp_path, schema, first + "BEGIN;INSERT INTO told(part) SELECT id FROM part;COMMIT;") as found:
        for statement, exact in (("SELECT id FROM part", False), ("SELECT id FROM part ORDER BY id<9,id", True)):
            script = f"{first}BEGIN;INSERT INTO told(part){statement};COMMIT;"
            assert verify(script, open_stream(found.stream), server.dsn(), found.template).exact == exact

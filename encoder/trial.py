"""Run statements on the scratch database and observe all that they do.

Capture triggers on every table log each changed row, those that other triggers and foreign-key actions
change included.  A trial runs inside a savepoint and is rolled back; sequences, which no rollback
touches, are set back by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import psycopg

from encoder.composite import parse_record
from encoder.deadline import Deadline
from encoder.effect import Effect
from encoder.frame import table_sql
from scratch.catalog import Catalog
from scratch.session import Session, columns, rows
from stream.canonical import CANONICAL
from stream.model import TableName, Value

_INSTALL = """
CREATE SCHEMA tersql;
CREATE UNLOGGED TABLE tersql.log (relation oid, old text, new text);
CREATE FUNCTION tersql.capture() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
{settings} AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN INSERT INTO tersql.log VALUES (TG_RELID, NULL, NEW::text);
  ELSIF TG_OP = 'UPDATE' THEN INSERT INTO tersql.log VALUES (TG_RELID, OLD::text, NEW::text);
  ELSE INSERT INTO tersql.log VALUES (TG_RELID, OLD::text, NULL);
  END IF;
  RETURN NULL;
END $$;
REVOKE ALL ON SCHEMA tersql FROM PUBLIC;
"""

# A plan dearer than this (in the planner's units) would not end in time, so it is not begun.
MAX_PLAN_COST = 3e7
# Seconds.
STATEMENT_TIMEOUT = 20.0
# Logged rows that are kept as they were read.
_MAX_RECORDS = 20_000


def install_capture(session: Session, catalog: Catalog) -> None:
    """Make the capture schema and its triggers in a scratch database, and gather statistics.

    The last pass runs without statistics, as after a plain restore: what depends on the planner's choice (an
    order of rows that nothing states) is so proved under two different states of mind.
    """
    session.execute(b"ANALYZE")
    # Rows are logged as they are read, whatever the settings under which a trial writes them.
    pinned = "\n".join(f"SET {name} = {value}" for name, value in _quoted(CANONICAL) if name != "client_encoding")
    session.execute(_INSTALL.replace("{settings}", pinned).encode())
    for name in catalog:
        session.execute(
            (
                f'CREATE TRIGGER "~tersql" AFTER INSERT OR UPDATE OR DELETE ON {table_sql(name)} '
                "FOR EACH ROW EXECUTE FUNCTION tersql.capture()"
            ).encode()
        )


# As COMMIT does.
_ALL_NOW = "SET CONSTRAINTS ALL IMMEDIATE"

Position: TypeAlias = tuple[Value, Value]


class Laboratory:
    """Trials on one session whose transaction is open; none of a search outlasts `deadline` by much.

    Statements run as `role` ("" for the session's own) and under the settings of `sessions`, which may replay them, the
    first unless another is asked for; all else is read under the session's own.
    """

    def __init__(
        self,
        session: Session,
        catalog: Catalog,
        deadline: Deadline | None = None,
        sessions: Sequence[Mapping[str, str]] = ({},),
        role: str = "",
    ) -> None:
        self.session = session
        # Triggers and defaults may tell who runs a statement.
        person = f"SET LOCAL session_authorization = '{role}';" if role else ""
        self._replaying = [_set_local(settings) + person for settings in sessions]
        names = sorted({name for settings in sessions for name in settings})
        back = "SET LOCAL session_authorization = DEFAULT;" if role else ""
        self._reading = back + _set_local({name: CANONICAL[name] for name in names} | {"statement_timeout": "0"})
        self.deadline = deadline or Deadline()
        self.catalog = catalog
        self.trials = 0
        # The sequences that the last trial moved, and the value that each gave last.
        self.moved: frozenset[TableName] = frozenset()
        self.reached: dict[TableName, int] = {}
        self._relations = _relations(session, catalog)
        self._deferred = _fire_deferred(session)
        # Trials write the same rows over and over.
        self._records: dict[str, tuple[Value, ...]] = {}
        query = "SELECT schemaname, sequencename, increment_by FROM pg_sequences ORDER BY 1, 2"
        steps = {TableName(schema or "", name or ""): step for schema, name, step in rows(session, query)}
        self._untold = _unlogged_sequences(session, catalog)
        self._sequences = list(steps)
        self._by_one = frozenset(name for name, step in steps.items() if step == "1")
        self._standing: dict[TableName, Position] = {}
        self._marks: list[tuple[str | None, ...]] = []
        self.refresh()

    # -- sequences

    def refresh(self) -> None:
        """Take the sequences as they are for where trials start."""
        self._standing = self.sequences()
        self._marks = self._last_values()

    def sequences(self) -> dict[TableName, Position]:
        """(last_value, is_called) of every sequence."""
        if not self._sequences:
            return {}
        query = " UNION ALL ".join(
            f"SELECT {place}, last_value, is_called FROM {table_sql(name)}"
            for place, name in enumerate(self._sequences)
        )
        return {self._sequences[int(place or 0)]: (last, called) for place, last, called in rows(self.session, query)}

    def stand(self, wanted: Mapping[TableName, Position]) -> None:
        """Put sequences where `wanted` says; every trial starts from there."""
        self._set(wanted)
        self.refresh()

    def next_value(self, sequence: TableName) -> int:
        """What nextval would give (for an increment of 1)."""
        last, called = self._standing[sequence]
        return int(last or 0) + (called == "t")

    def counts_by_one(self, sequence: TableName) -> bool:
        return sequence in self._by_one

    def behind(self, sequence: TableName, value: int) -> bool:
        """Whether the sequence counts by one and has values to give before `value`."""
        return sequence in self._by_one and self.next_value(sequence) < value

    def next_values(self) -> dict[TableName, int]:
        """`next_value` of every sequence."""
        return {name: self.next_value(name) for name in self._sequences}

    def _set(self, wanted: Mapping[TableName, Position]) -> None:
        for name, (last, called) in wanted.items():
            self.session.execute(
                b"SELECT setval(%s::regclass, %s::bigint, %s::boolean)", [table_sql(name), last, called]
            )

    def _last_values(self) -> list[tuple[str | None, ...]]:
        """Changes whenever a sequence moves; far cheaper than `sequences`."""
        return rows(self.session, "SELECT seqrelid, pg_sequence_last_value(seqrelid) FROM pg_sequence ORDER BY 1")

    def settle(self) -> None:
        """Put back the sequences that something other than a trial moved."""
        self._restore_positions()

    def _restore_positions(self) -> None:
        self.moved, self.reached = frozenset(), {}
        if self._sequences and self._last_values() != self._marks:
            now = self.sequences()
            back = {name: where for name, where in self._standing.items() if now[name] != where}
            self.moved = frozenset(back) - self._untold
            self.reached = {name: int(now[name][0] or 0) for name in self.moved}
            self._set(back)

    # -- trials

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """All that happens inside is rolled back, sequences apart; savepoints nest."""
        self.session.execute(b"SAVEPOINT trial")
        try:
            yield
        finally:
            self.session.execute(b"ROLLBACK TO SAVEPOINT trial; RELEASE SAVEPOINT trial")

    def perform(self, statement: str) -> Effect | str:
        """Run `statement` for good within the open transaction; an error undoes this one alone."""
        self.session.execute(b"SAVEPOINT step")
        try:
            effect = self.run([statement])
        except psycopg.Error as error:
            self.session.execute(b"ROLLBACK TO SAVEPOINT step; RELEASE SAVEPOINT step")
            return _one_line(error)
        self.session.execute(b"RELEASE SAVEPOINT step")
        self.refresh()
        return effect

    def observe(
        self, statements: Sequence[str], *, constraints: bool = False, settings: Sequence[str] = (), session: int = 0
    ) -> Effect | str:
        """The whole effect of running `statements` here, or the server's error in one line.

        With `constraints`, all deferred ones are checked at the end as COMMIT would; `settings` (`name=value`) hold
        for this trial, which is made as by the session of that number.
        """
        self.trials += 1
        try:
            with self.savepoint():
                for setting in settings:
                    self.session.execute(f"SET LOCAL {setting}".encode())
                return self.run(statements, session, ending=_ALL_NOW if constraints else None)
        except psycopg.Error as error:
            return _one_line(error)
        finally:
            self._restore_positions()

    @property
    def other_sessions(self) -> range:
        """The numbers of the sessions beside the first."""
        return range(1, len(self._replaying))

    def run(self, statements: Sequence[str], session: int = 0, *, ending: str | None = None) -> Effect:
        """Run `statements` for good and give their effect, that of deferred triggers included.  Raises psycopg.Error.

        `ending` runs behind them, in the place of what fires those triggers.
        """
        connection = self.session
        left = self.deadline.left
        # Past the deadline only literal forms are tried, and those have to be.
        seconds = min(STATEMENT_TIMEOUT, left + 1) if left > 0 else STATEMENT_TIMEOUT
        timeout = _set_local({"statement_timeout": f"{seconds * 1000:.0f}"})
        connection.execute(f"DELETE FROM tersql.log;{self._replaying[session]}{timeout}".encode())
        for statement in statements:
            connection.execute(statement.encode())
        if last := self._deferred if ending is None else ending:
            connection.execute(last.encode())
        connection.execute(self._reading.encode())
        return self._logged()

    def returned(self, statement: str) -> list[tuple[Value, ...]]:
        """Run `statement` for good within the open transaction and give what it returns.  Raises psycopg.Error."""
        self.session.execute(self._replaying[0].encode() or b"SELECT")
        found = rows(self.session, statement)
        self.session.execute(self._reading.encode())
        self.refresh()
        return found

    def plan_cost(self, statement: str) -> float:
        """The planner's estimate, infinite for what it refuses."""
        try:
            with self.savepoint():
                found = rows(self.session, "EXPLAIN " + statement)
            cost = (found[0][0] or "").split("cost=", 1)[1].split("..", 1)[1].split(" ", 1)[0]
            return float(cost)
        except (psycopg.Error, IndexError, ValueError):
            return float("inf")

    def plan(self, statement: str, settings: Sequence[str] = ()) -> list[Value] | None:
        """The lines of the plan under `settings`, without its costs; None for what the planner refuses."""
        try:
            with self.savepoint():
                for setting in settings:
                    self.session.execute(f"SET LOCAL {setting}".encode())
                return columns(self.session, "EXPLAIN (COSTS OFF) " + statement)[0]
        except psycopg.Error:
            return None

    def _logged(self) -> Effect:
        effect = Effect()
        for relation, old, new in rows(self.session, "SELECT relation, old, new FROM tersql.log"):
            if relation not in self._relations:
                continue
            table, places = self._relations[relation]
            for text, count in ((old, -1), (new, 1)):
                if text is not None:
                    record = self._record(text)
                    effect.add(table, record if places is None else tuple(record[place] for place in places), count)
        return effect

    def _record(self, text: str) -> tuple[Value, ...]:
        known = self._records.get(text)
        if known is None:
            if len(self._records) >= _MAX_RECORDS:
                self._records.clear()
            known = self._records[text] = parse_record(text)
        return known


def _quoted(settings: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(name, ",".join(f"'{part.strip()}'" for part in value.split(","))) for name, value in settings.items()]


def _set_local(settings: Mapping[str, str]) -> str:
    return "".join(f"SET LOCAL {name} = {value};" for name, value in _quoted(settings))


_RELATIONS = """
SELECT c.oid, n.nspname, r.relname, a.attname
FROM pg_class c
JOIN pg_class r ON r.oid = coalesce(pg_partition_root(c.oid), c.oid)
JOIN pg_namespace n ON n.oid = r.relnamespace
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relkind IN ('r', 'p') ORDER BY c.oid, a.attnum"""


def _relations(session: Session, catalog: Catalog) -> dict[Value, tuple[TableName, tuple[int, ...] | None]]:
    """By oid the table that statements name (a partition's root), and where the records of this relation
    hold its stored columns, None for as they come: partitions may have them in an order of their own."""
    found: dict[Value, tuple[TableName, list[Value]]] = {}
    for oid, schema, name, column in rows(session, _RELATIONS):
        names = found.setdefault(oid, (TableName(schema or "", name or ""), []))[1]
        if column is not None:
            names.append(column)
    return {
        oid: (table, None if names and names == stored else tuple(map(names.index, stored)))
        for oid, (table, names) in found.items()
        if table in catalog
        for stored in ([column.name for column in catalog[table].stored],)
    }


_UNLOGGED_SEQUENCES = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'S' AND c.relpersistence = 'u' ORDER BY 1, 2"""


def _unlogged_sequences(session: Session, catalog: Catalog) -> frozenset[TableName]:
    """Sequences of UNLOGGED tables, which no stream tells of: where they stand does not matter."""
    found = {TableName(schema or "", name or "") for schema, name in rows(session, _UNLOGGED_SEQUENCES)}
    return frozenset(found.difference(column.sequence for name in catalog for column in catalog[name].columns))


# Constraint triggers that wait for COMMIT; a name that one beside them has as well would fire that too.
_DEFERRED_TRIGGERS = """
SELECT n.nspname, c.conname FROM pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace
WHERE n.nspname NOT IN ('pg_catalog', 'information_schema')
GROUP BY 1, 2 HAVING bool_and(c.contype = 't' AND c.condeferred) ORDER BY 1, 2"""


def _fire_deferred(session: Session) -> str:
    """What fires the user's deferred triggers and leaves them deferred; "" where there are none."""
    names = [table_sql(TableName(schema or "", name or "")) for schema, name in rows(session, _DEFERRED_TRIGGERS)]
    if not names:
        return ""
    listed = ",".join(names)
    return f"SET CONSTRAINTS {listed} IMMEDIATE;SET CONSTRAINTS {listed} DEFERRED"


def _one_line(error: psycopg.Error) -> str:
    return (error.diag.message_primary or str(error)).splitlines()[0] if str(error) else type(error).__name__

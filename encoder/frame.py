"""A table's rows in one state as arrays of codes.

The server decides what is equal and what comes first: a column's codes are dense ranks under the
order of its type, so that comparing codes is comparing values.  NULL is code -1.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from scratch.catalog import Catalog, Column, ForeignKey, Table
from scratch.session import Session, columns, rows
from stream.model import TableName, Value

Codes = NDArray[np.int32]
Floats = NDArray[np.float64]
Key = tuple[Value, ...]
_Found = TypeVar("_Found")

# One fetch for all columns below this many cells; column by column above it, to bound memory.
_CELLS_AT_ONCE = 2_000_000

_INTEGERS = frozenset({"smallint", "integer", "bigint", "oid"})
# Types whose canonical text sorts as their values do, for every value without BC and infinity.
_TEXT_SORTS = frozenset({"date", "timestamp without time zone", "timestamp with time zone", "uuid", "boolean"})
_NUMBERS = _INTEGERS | {"numeric", "real", "double precision"}
_TIMES = frozenset({"date", "timestamp without time zone", "timestamp with time zone"})


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of values: `codes[i]` is the place of row i's value in `values`, -1 for NULL.

    `values` are the distinct values in ascending order of the type.
    """

    codes: Codes
    values: tuple[str, ...]

    def texts(self) -> list[Value]:
        """The value of every row as text."""
        return [self.values[code] if code >= 0 else None for code in self.codes.tolist()]


def identifier_sql(name: str) -> str:
    """A name quoted for queries that only the scratch server sees."""
    return '"' + name.replace('"', '""') + '"'


def table_sql(table: TableName) -> str:
    return f"{identifier_sql(table.schema)}.{identifier_sql(table.name)}"


def rows_sql(table: Table) -> str:
    """What holds the rows of `table` itself, as FROM and DELETE name it."""
    return f"{'ONLY ' if table.heirs else ''}{table_sql(table.name)}"


class Frame:
    """The rows of `table`, in ascending order of its row key; columns are fetched when asked for."""

    def __init__(self, state: State, table: Table) -> None:
        self.state = state
        self.table = table
        self._texts: dict[str, list[Value]] = {}
        self._coded: dict[str, Coded] = {}
        self._numbers: dict[str, Floats] = {}
        # What searches made of the rows, to go with them.
        self.made: dict[Hashable, Any] = {}
        self.size = int(rows(state.session, f"SELECT count(*) FROM {rows_sql(table)}")[0][0] or 0)

    def texts(self, column: str) -> list[Value]:
        """The canonical text of `column` in every row."""
        if column not in self._texts:
            self._fetch(column)
        return self._texts[column]

    def coded(self, column: str) -> Coded:
        """`column` as codes in the order of its type."""
        if column not in self._coded:
            self._coded[column] = encode(self.state.session, self.table.by_name[column], self.texts(column))
        return self._coded[column]

    def numbers(self, column: str) -> Floats:
        """`column` as float64: numbers, booleans as 0 and 1, dates and timestamps as seconds from 1970
        in UTC; NaN for NULL and for what has no number."""
        if column not in self._numbers:
            self._numbers[column] = to_numbers(self.table.by_name[column].base, self.coded(column))
        return self._numbers[column]

    @cached_property
    def keys(self) -> list[Key]:
        """The row key of every row; all columns where the table has none."""
        names = self.table.row_key or tuple(column.name for column in self.table.stored)
        if not names:
            return [()] * self.size
        return list(zip(*(self.texts(name) for name in names), strict=True))

    @cached_property
    def index(self) -> dict[Key, int]:
        """Row key → row; of several equal rows without a key the last one."""
        return {key: place for place, key in enumerate(self.keys)}

    @cached_property
    def scan(self) -> NDArray[np.int64]:
        """For every row its place in a scan of the whole table, the order in which a statement without ORDER BY
        most likely reads it."""
        query = f"SELECT row_number() OVER (ORDER BY tableoid, ctid) FROM {rows_sql(self.table)}{self._order}"
        (places,) = columns(self.state.session, query)
        return np.array([int(place or 0) for place in places], dtype=np.int64)

    @cached_property
    def touched(self) -> bool:
        """Whether the open transaction wrote rows: where those stand in a scan is not the same everywhere."""
        written = "age(xmin) <= age(pg_current_xact_id()::xid)"
        found = rows(self.state.session, f"SELECT FROM {rows_sql(self.table)} WHERE {written} LIMIT 1")
        return bool(found)

    @property
    def _order(self) -> str:
        order = ", ".join(identifier_sql(name) for name in self.table.row_key)
        if not order:
            order = ", ".join(f'{identifier_sql(c.name)}::text COLLATE "C"' for c in self.table.columns)
        return f" ORDER BY {order}" if order else ""

    def parent(self, key: ForeignKey) -> Codes:
        """For every row the row of `key.target` that it refers to, -1 for none."""
        target = self.state.frame(key.target)
        if not self.knows_parent(key):
            index = target.places(key.target_columns)
            own = zip(*(self.texts(name) for name in key.columns), strict=True)
            codes = np.fromiter((index.get(value, -1) for value in own), dtype=np.int32, count=self.size)
            codes.flags.writeable = False
            self.made["parent", key] = target, codes
        found: Codes = self.made["parent", key][1]
        return found

    def knows_parent(self, key: ForeignKey) -> bool:
        """Whether `parent` has been asked for this key, and the rows referred to are still the same."""
        known = self.made.get(("parent", key))
        return known is not None and known[0] is self.state.frame(key.target)

    def places(self, columns: tuple[str, ...]) -> Mapping[Key, int]:
        """Values of `columns` → row; of several rows with the same the last one."""
        if columns == self.table.row_key:
            return self.index
        key = "places", columns
        if key not in self.made:
            values = zip(*(self.texts(name) for name in columns), strict=True)
            self.made[key] = {value: place for place, value in enumerate(values)}
        found: Mapping[Key, int] = self.made[key]
        return found

    def _fetch(self, column: str) -> None:
        wanted = [column]
        if self.size * len(self.table.columns) <= _CELLS_AT_ONCE:
            wanted = [c.name for c in self.table.columns if c.name not in self._texts]
        listed = ", ".join(identifier_sql(name) for name in wanted)
        query = f"SELECT {listed} FROM {rows_sql(self.table)}{self._order}"
        shared: dict[str, str] = {}
        for name, texts in zip(wanted, columns(self.state.session, query), strict=True):
            # Equal texts share one string, which keeps wide tables small.
            self._texts[name] = [text if text is None else shared.setdefault(text, text) for text in texts]


class State:
    """The scratch database as it stands, with the frames read so far.

    Whoever changes rows calls `forget` with the tables concerned.
    """

    def __init__(self, session: Session, catalog: Catalog) -> None:
        self.session = session
        self.catalog = catalog
        self._frames: dict[TableName, Frame] = {}
        # What searches found in exactly this state, by what they were asked.
        self.memo: dict[Hashable, Any] = {}
        # For every table that was changed a mark of its rows as they are now.
        self._marks: dict[TableName, object] = {}

    def remember(self, key: Hashable, search: Callable[[], _Found]) -> _Found:
        """What `search` gave when it was first asked for under `key` in this state."""
        if key not in self.memo:
            self.memo[key] = search()
        found: _Found = self.memo[key]
        return found

    @property
    def marks(self) -> Mapping[TableName, object]:
        """For every table that was changed a mark of its rows as they are now: another one, other rows."""
        return self._marks

    def begin(self) -> None:
        """Keep nothing but rows, so that what is found in a transaction does not hang on those searched before."""
        self.memo.clear()
        self._marks.clear()
        for frame in self._frames.values():
            frame.made.clear()

    def frame(self, table: TableName) -> Frame:
        if table not in self._frames:
            self._frames[table] = Frame(self, self.catalog[table])
        return self._frames[table]

    def successor(self, changed: Collection[TableName]) -> State:
        """The state in which the tables `changed` hold other rows now, all others the same."""
        after = State(self.session, self.catalog)
        after._frames = {name: frame for name, frame in self._frames.items() if name not in changed}
        after._marks = self._marks | {name: object() for name in changed}
        return after

    def under(self, catalog: Catalog) -> State:
        """The same state, with `catalog` telling of more tables, or more of some."""
        other = State(self.session, catalog)
        other._frames = {name: frame for name, frame in self._frames.items() if catalog[name] is frame.table}
        other._marks = dict(self._marks)
        return other

    def forget(self, tables: Sequence[TableName] | None = None) -> None:
        """Drop what is known of `tables`, or of all, and whatever was found with it."""
        self.memo.clear()
        self._marks.update((table, object()) for table in tables or ())
        for table in list(self._frames) if tables is None else tables:
            self._frames.pop(table, None)


def encode(session: Session, column: Column, texts: Sequence[Value]) -> Coded:
    """Dense ranks of `texts` under the order of the column's type."""
    distinct = sorted({text for text in texts if text is not None})
    ranks, values = _rank(session, column, distinct)
    codes = np.fromiter((-1 if text is None else ranks[text] for text in texts), dtype=np.int32, count=len(texts))
    return Coded(codes, values)


def _rank(session: Session, column: Column, distinct: list[str]) -> tuple[dict[str, int], tuple[str, ...]]:
    if column.base in _INTEGERS:
        ordered = sorted(distinct, key=int)
    elif column.base in _TEXT_SORTS and not any("BC" in text or "infinity" in text for text in distinct):
        ordered = distinct
        if column.base != "uuid" and column.base != "boolean" and any(len(t.split("-")[0]) > 4 for t in distinct):
            return _rank_on_server(session, column, distinct)
    else:
        return _rank_on_server(session, column, distinct)
    return {text: place for place, text in enumerate(ordered)}, tuple(ordered)


def _rank_on_server(session: Session, column: Column, distinct: list[str]) -> tuple[dict[str, int], tuple[str, ...]]:
    collate = f" COLLATE {identifier_sql(column.collation)}" if column.collation else ""
    query = (
        f"SELECT v, dense_rank() OVER (ORDER BY v::{column.type}{collate}) - 1 "
        'FROM unnest(%s::text[]) v ORDER BY 2, v COLLATE "C"'
    )
    if not distinct:
        return {}, ()
    try:
        with session.transaction():  # an error must not end the transaction that is open
            found = session.execute(query.encode(), [distinct]).fetchall()
    except Exception:  # a type without an order (json, xml, point): text stands for it
        return {text: place for place, text in enumerate(distinct)}, tuple(distinct)
    ranks = {text or "": int(rank or 0) for text, rank in found}
    values: dict[int, str] = {}
    for text, rank in found:
        values.setdefault(int(rank or 0), text or "")
    return ranks, tuple(values[place] for place in range(len(values)))


def to_numbers(base: str, coded: Coded) -> Floats:
    """See Frame.numbers."""
    return np.append(_numbers_of(base, coded.values), np.nan)[coded.codes]  # code -1 picks the NaN at the end


def _numbers_of(base: str, values: Sequence[str]) -> Floats:
    try:  # all at once, which values such as infinity and BC do not allow for times
        if base in _NUMBERS:
            return np.fromiter(map(float, values), dtype=np.float64, count=len(values))
        if base in _TIMES and values:
            moments = np.array([value.removesuffix("+00") for value in values], dtype="datetime64[us]")
            found: Floats = moments.astype(np.int64) / 1e6
            return found
    except ValueError:
        pass
    return np.array([_number(base, value) for value in values], dtype=np.float64)


def _number(base: str, text: str) -> float:
    try:
        if base in _NUMBERS:
            return float(text)
        if base == "boolean":
            return float(text == "t")
        if base in _TIMES:
            moment = datetime.datetime.fromisoformat(text)
            return moment.replace(tzinfo=moment.tzinfo or datetime.UTC).timestamp()
    except ValueError:
        pass
    return float("nan")

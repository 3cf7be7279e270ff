"""The factors of a product: tables with a selection each, and lists of values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from emit.render import render
from emit.term import Part, Query, Ref, Source, Term, Whole, ref
from encoder.frame import encode
from encoder.insertion.evidence import Link, compatible
from encoder.insertion.layout import source_of
from encoder.insertion.model import Indexes
from encoder.insertion.order import orders
from encoder.insertion.relation import Given, Upward
from encoder.insertion.slots import Slot
from encoder.insertion.spell import INT, class_of
from encoder.insertion.task import CELLS, From, Task
from encoder.insertion.vectors import spell_rows
from encoder.selection.model import Labels, Mask, Path
from scratch.session import rows
from stream.model import Value


@dataclass(frozen=True, slots=True)
class Key:
    """`terms` to sort by, each with whether it falls, and the rank of every item of the side under them."""

    terms: tuple[tuple[Term, bool], ...]
    rank: NDArray[np.int64]


# The types of a list's columns for whole numbers and texts; columns of other types may be cast.
_LISTED = {INT: ("integer", "N"), "S": ("text", "S")}


class Side(Protocol):
    """`items[i]`: the item of this side that inserted row i was made from; items count from 0 to `size`."""

    items: Indexes
    size: int

    def express(self, slot: Slot) -> Term | None: ...

    def keys(self, items: Indexes) -> list[Key]: ...

    def origins(self) -> list[From]: ...

    def given(self) -> tuple[list[Given], list[Upward]]:
        """What every inserted row has of this side; the columns of an Upward are places in the first list."""

    def reach(self, key: Hashable) -> None:
        """Bring the row that is known under `key` into what `origins` gives."""


def determined(slot: Slot, items: Indexes) -> bool:
    """Whether rows of one item hold one value."""
    seen: dict[int, Value] = {}
    return all(seen.setdefault(item, value) == value for item, value in zip(items.tolist(), slot.values, strict=True))


@dataclass
class TableSide:
    """Rows of a table: those of `link`, then the `extra` ones, which are to be selected too although no inserted row
    came of them; rows outside `must_not` may be selected or not (None: no others may)."""

    task: Task
    link: Link
    place: int
    extra: tuple[int, ...] = ()
    must_not: Mask | None = None
    items: Indexes = field(init=False)
    size: int = field(init=False)
    rows: Indexes = field(init=False)
    _paths: frozenset[Path] = field(init=False, default=frozenset())
    _known: dict[str, Term | None] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        distinct, inverse = np.unique(self.link.rows, return_inverse=True)
        self.items = inverse.astype(np.int64)
        self.rows = np.concatenate([distinct, np.array(self.extra, dtype=np.int64)])
        self.size = len(self.rows)

    def values(self, slot: Slot) -> list[Value] | None:
        """The value that each row of the table would give to `slot`, where it is read as it stands."""
        column = self.link.equal.get(slot.name)
        return None if column is None else self.task.state.frame(self.link.table.name).texts(column)

    def express(self, slot: Slot) -> Term | None:
        if slot.name not in self._known:
            self._known[slot.name] = None
            if determined(slot, self.items):
                expression = self.task.express(self.link, slot)
                if expression is not None:
                    self._paths |= expression.paths
                    self._known[slot.name] = rekeyed(expression.term, self._key)
        return self._known[slot.name]

    def keys(self, items: Indexes) -> list[Key]:
        found = orders(self.task.state, self.link.table, self.rows[items])
        return [
            Key(tuple((Term((Ref(self._key(()), name),)), falls) for name, falls in order.keys), order.rank[self.rows])
            for order in found
        ]

    def origins(self) -> list[From]:
        must = np.zeros(self.task.state.frame(self.link.table.name).size, dtype=bool)
        must[self.rows] = True
        pool = self.link.pool
        others = ~must if self.must_not is None else self.must_not & ~must
        if pool is not None and pool.cte is not None:
            inside = np.zeros(len(must), dtype=bool)
            inside[pool.rows] = True
            others &= inside
        selections = self.task.selections(self.link.table, Labels(must, others), keep=2)
        return [
            From(
                tuple(_source(source, self._key) for source in origin.sources),
                None if origin.where is None else rekeyed(origin.where, self._key),
            )
            for origin in self.task.origins(self.link, selections, self._paths)
        ]

    def but(self, keys: Sequence[Value], met: Collection[Value]) -> TableSide:
        """The same side, which may select other rows only where their key is not `met`."""
        other = copy(self)
        other.must_not = np.array([key is not None and key in met for key in keys], dtype=bool)
        return other

    def selected(self, origin: From) -> list[int]:
        """The rows that one of `origins` selects, asked of the server; those wanted where that cannot be asked."""
        key, pool = self.link.table.row_key, self.link.pool
        if not key or (pool is not None and pool.cte is not None):
            return [int(row) for row in self.rows]
        frame = self.task.state.frame(self.link.table.name)
        self.task.budget.spend(1 + frame.size // CELLS)
        query = render(Query(tuple(Term((Ref(self._key(()), name),)) for name in key), origin.sources, origin.where))
        return [frame.index[found] for found in rows(self.task.state.session, query)]

    def given(self) -> tuple[list[Given], list[Upward]]:
        frame = self.task.state.frame(self.link.table.name)
        places = self.link.rows.tolist()
        columns = self.link.table.columns
        found = []
        for column in columns:
            texts = frame.texts(column.name)
            found.append(Given(column, Term((Ref(self._key(()), column.name),)), [texts[row] for row in places]))
        at = {column.name: place for place, column in enumerate(columns)}
        upwards = [
            Upward(tuple(at[name] for name in foreign.columns), foreign, self._key)
            for foreign in (self.link.table.foreign_keys if self.link.pool is None else ())
        ]
        return found, upwards

    def reach(self, key: Hashable) -> None:
        if isinstance(key, tuple) and key[0] == self.place:
            self._paths |= {key[1]}

    def _key(self, key: Hashable) -> Hashable:
        return (self.place, key)


_Spelled: TypeAlias = tuple[Source, dict[str, Term]]
_HELD, _INNER = "held", "holder"


def _length(spelled: _Spelled) -> int:
    source, terms = spelled
    return len(render(Query(tuple(terms.values()), (source,))).encode())


@dataclass
class ListSide:
    """The distinct values of `slots`, in the order in which they first occur."""

    task: Task
    slots: tuple[Slot, ...]
    items: Indexes = field(init=False)
    size: int = field(init=False)
    _distinct: tuple[Slot, ...] = field(init=False)

    def __post_init__(self) -> None:
        numbers: dict[tuple[Value, ...], int] = {}
        lines = zip(*(slot.values for slot in self.slots), strict=True)
        self.items = np.array([numbers.setdefault(line, len(numbers)) for line in lines], dtype=np.int64)
        self.size = len(numbers)
        columns = list(zip(*numbers, strict=True))
        self._distinct = tuple(
            replace(slot, values=tuple(values)) for slot, values in zip(self.slots, columns, strict=True)
        )

    def _spelled(self) -> _Spelled | None:
        constant = {slot.name for slot in self._distinct if slot.constant}
        varying = [slot for slot in self._distinct if slot.name not in constant]
        found = spell_rows(varying, self.size, self.task.spell, counting=False)
        if not found or not found[0].sources:
            return None
        listed = found[0].sources[0], found[0].terms
        held = self._held(varying[0]) if len(varying) == 1 else None
        return listed if held is None or _length(held) >= _length(listed) else held

    def _held(self, slot: Slot) -> _Spelled | None:
        """The values as all that stand in the column of some table."""
        wanted = set(slot.values)
        tables = self.task.state.catalog.tables.values()
        for table in sorted(tables, key=lambda table: table.name != self.task.target.name):
            for column in table.columns:
                if compatible(column, slot.column) and column.base == slot.column.base:
                    frame = self.task.state.frame(table.name)
                    if self.size < frame.size and set(frame.texts(column.name)) == wanted:
                        inner = Query((ref(_INNER, column.name),), (source_of(table, _INNER),), distinct=True)
                        source = Source(_HELD, inner, (column.name,))
                        return source, {slot.name: ref(_HELD, column.name)}
        return None

    def express(self, slot: Slot) -> Term | None:
        spelled = self._spelled()
        return spelled[1].get(slot.name) if spelled is not None else None

    def keys(self, items: Indexes) -> list[Key]:
        found = []
        for slot in self._distinct:
            term = self.express(slot)
            if term is None:
                continue
            codes = encode(self.task.state.session, slot.column, slot.values).codes.astype(np.int64)
            for falls in (False, True):
                rank = -codes if falls else codes
                if (np.diff(rank[items]) > 0).all():
                    found.append(Key(((term, falls),), rank))
        return found

    def origins(self) -> list[From]:
        spelled = self._spelled()
        return [From((spelled[0],), None)] if spelled is not None else []

    def given(self) -> tuple[list[Given], list[Upward]]:
        found = []
        for slot in self.slots:
            term = self.express(slot)
            kind = _LISTED.get("S" if slot.column.kind == "S" else class_of(slot.column))
            if term is not None and kind is not None:
                found.append(Given(replace(slot.column, type=kind[0], base=kind[0], kind=kind[1]), term, slot.values))
        return found, []

    def reach(self, key: Hashable) -> None:
        """Nothing can be reached from here."""


def rekeyed(term: Term, key: Callable[[Hashable], Hashable]) -> Term:
    """`term` with every source's key changed."""
    return Term(tuple(_part(part, key) for part in term.parts), term.prec)


def _part(part: Part, key: Callable[[Hashable], Hashable]) -> Part:
    if isinstance(part, Ref):
        return Ref(key(part.key), part.column)
    if isinstance(part, Whole):
        return Whole(key(part.key))
    return _query(part, key) if isinstance(part, Query) else part


def _query(query: Query, key: Callable[[Hashable], Hashable]) -> Query:
    return replace(
        query,
        select=tuple(rekeyed(term, key) for term in query.select),
        sources=tuple(_source(source, key) for source in query.sources),
        where=None if query.where is None else rekeyed(query.where, key),
        tail=None if query.tail is None else rekeyed(query.tail, key),
    )


def _source(source: Source, key: Callable[[Hashable], Hashable]) -> Source:
    text = source.text
    if isinstance(text, Query):
        text = _query(text, key)
    elif isinstance(text, Term):
        text = rekeyed(text, key)
    return replace(source, key=key(source.key), text=text)


def runs(groups: Sequence[Indexes], count: int) -> Iterator[Indexes]:
    """The places of rows that agree in all of `groups`, in the order of the stream; each run is consecutive."""
    changes = np.zeros(max(count - 1, 0), dtype=bool)
    for items in groups:
        changes |= np.diff(items) != 0
    yield from np.split(np.arange(count), np.flatnonzero(changes) + 1)

"""Aggregates over groups of a table's rows, computed by the server, and those that give an inserted column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from itertools import chain, permutations
from typing import TypeAlias

import numpy as np
from psycopg import Error

from emit.term import Part, Term, call, raw
from encoder.frame import Coded
from encoder.insertion.cells import Cell
from encoder.insertion.derive import size_of
from encoder.insertion.slots import Slot
from encoder.insertion.spell import INT, INTEGERS, NUMBER, class_of
from scratch.catalog import Column
from scratch.session import Session
from stream.model import Value

_FLOATS = frozenset({"real", "double precision"})
# Sums and means of floats depend on the order of the rows; the proof has the last word.
_TOLERANCE = 1e-5
_PLACES = 3
_TIMES = frozenset({"date", "timestamp without time zone", "timestamp with time zone"})
_MAX_TIMES = 4
Groups: TypeAlias = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Fold:
    """An aggregate, the type of its value, and the value in every group."""

    term: Term
    column: Column
    values: Sequence[Value]


def folds(session: Session, cells: Sequence[Cell], slots: Sequence[Slot], members: Groups) -> list[Fold]:
    """Aggregates of `cells` over the groups `members` of a frame's rows that may have a part in `slots`, the shortest
    first of those that are equal everywhere; none where the server cannot compute them."""
    cells = [cell for cell in cells if _foldable(cell.column)]
    terms = list(_terms(cells, slots))
    made = _computed(session, cells, terms, members)
    found: dict[tuple[str, tuple[Value, ...]], Fold] = {}
    for (term, column), values in sorted(zip(terms, made, strict=False), key=lambda pair: size_of(pair[0][0])):
        found.setdefault((kind_of(column), tuple(values)), Fold(term, column, values))
    return list(found.values())


def giving(found: Sequence[Fold], slot: Slot) -> Term | None:
    """The shortest of the aggregates whose values, inserted into the column of `slot`, are about its own."""
    fits = [
        fold.term
        for fold in found
        if kind_of(fold.column) == kind_of(slot.column)
        and all(_same(got, wanted, slot.column) for got, wanted in zip(fold.values, slot.values, strict=True))
    ]
    return min(fits, key=size_of, default=None)


def telling(fold: Fold) -> tuple[int, int]:
    """Sorts aggregates by how likely a text or a computed number is made of them."""
    function = str(fold.term.parts[0]).strip("(")
    if "*" in fold.term.parts:
        return 0, 0
    if fold.column.base in _TIMES:
        return 1, size_of(fold.term)
    return {"sum": 2, "max": 3, "min": 3}.get(function, 4), size_of(fold.term)


def kind_of(column: Column) -> str:
    """What decides which aggregates may stand in a column: numbers of all types together, else the type."""
    return NUMBER if class_of(column) in (INT, NUMBER) else column.base


def _foldable(column: Column) -> bool:
    return class_of(column) in (INT, NUMBER) or column.kind in "DS" or column.base == "boolean"


def _terms(cells: Sequence[Cell], slots: Sequence[Slot]) -> Iterator[tuple[Term, Column]]:
    """Aggregates with the type of their value, for the kinds of `slots`; texts may be made of any."""
    kinds = {kind_of(slot.column) for slot in slots}
    shown = any(slot.column.kind == "S" for slot in slots)
    if NUMBER in kinds or shown:
        yield call("count", raw("*")), _typed("bigint")
    for cell in cells:
        own, column = cell.term, cell.column
        if NUMBER in kinds or shown:
            yield call("count", own), _typed("bigint")
            yield Term(("count(", "DISTINCT", *own.parts, ")")), _typed("bigint")
        kind = kind_of(column)
        if kind not in kinds and not (shown and (column.base in _TIMES or kind == NUMBER)):
            continue
        if column.base == "boolean":
            yield from ((call(function, own), column) for function in ("bool_or", "bool_and"))
            continue
        yield from ((call(function, own), column) for function in ("min", "max"))
        if kind == NUMBER:
            mean = call("avg", own)
            total = "bigint" if column.base in ("integer", "smallint") else "numeric"
            of = _typed("double precision" if column.base in _FLOATS else "numeric")
            yield call("sum", own), of if column.base in _FLOATS else _typed(total)
            yield from ((term, of) for term in (mean, call("round", mean)))
            if column.base not in _FLOATS:
                yield from ((call("round", mean, raw(str(places))), of) for places in range(1, _PLACES))
    if NUMBER in kinds:
        yield from _durations(cells)


def _durations(cells: Sequence[Cell]) -> Iterator[tuple[Term, Column]]:
    """Seconds between two times of a row, summed up."""
    times = [cell for cell in cells if not cell.paths and cell.column.base in _TIMES and cell.column.base != "date"]
    for one, other in permutations(times[:_MAX_TIMES], 2):
        if one.column.base == other.column.base:
            spent = Term(("extract(", "epoch FROM", *other.term.parts, "-", *one.term.parts, ")"))
            yield call("sum", spent), _typed("numeric")


def _typed(base: str) -> Column:
    return Column("aggregate", base, base, "N", False, None, False, "", None)


def _computed(
    session: Session, cells: Sequence[Cell], terms: Sequence[tuple[Term, Column]], members: Groups
) -> list[list[Value]]:
    """The values of every term, one a group; [] where there is an error."""
    flat = np.fromiter(chain.from_iterable(members), dtype=np.intp)
    numbers: list[Value] = [str(place) for place, group in enumerate(members) for _ in group]
    arrays = ",".join(["%s::int[]", *(f"%s::{cell.column.base}[]" for cell in cells)])
    names = ",".join(["g", *(f"c{place}" for place in range(len(cells)))])
    spelled: dict[Part, str] = {cell.term.parts[0]: f"c{place}" for place, cell in enumerate(cells)}
    listed = ",".join(_spelled(term, spelled) for term, _ in terms)
    query = f"SELECT {listed} FROM unnest({arrays})t({names})GROUP BY g ORDER BY g"
    given = [numbers, *(Coded(cell.coded.codes[flat], cell.coded.values).texts() for cell in cells)]
    try:
        with session.transaction():
            found = session.execute(query.encode(), given).fetchall()
    except Error:
        return []
    return [list(values) for values in zip(*found, strict=True)]


def _spelled(term: Term, names: Mapping[Part, str]) -> str:
    return " ".join(part if isinstance(part, str) else names[part] for part in term.parts)


def _same(got: Value, wanted: Value, column: Column) -> bool:
    """Whether `got`, inserted into the column, is about `wanted`."""
    if got is None or wanted is None:
        return got is wanted
    if class_of(column) not in (INT, NUMBER):
        return got == wanted
    try:
        one, other = Decimal(got), Decimal(wanted)
    except InvalidOperation:
        return got == wanted
    if not one.is_finite() or not other.is_finite():
        return got == wanted
    if column.base in _FLOATS or "E" in wanted.upper():
        return abs(one - other) <= Decimal(_TOLERANCE) * max(abs(one), abs(other))
    if column.base in INTEGERS or "(" in column.type:
        return one.quantize(other, ROUND_HALF_UP) == other
    return one == other

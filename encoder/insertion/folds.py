"""Aggregates over groups of a table's rows, computed by the server, and the one that gives an inserted column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation

from psycopg import Error

from emit.term import Term, call, raw, ref
from encoder.frame import Frame
from encoder.insertion.derive import size_of
from encoder.insertion.slots import Slot
from encoder.insertion.spell import INT, INTEGERS, NUMBER, class_of
from scratch.catalog import Column
from stream.model import Value

_FLOATS = frozenset({"real", "double precision"})
# Sums and means of floats depend on the order of the rows; the proof has the last word.
_TOLERANCE = 1e-5
_PLACES = 3


def folds(frame: Frame, slots: Sequence[Slot], members: Sequence[Sequence[int]]) -> dict[str, Term] | None:
    """For each of `slots` the shortest aggregate that gives its value i over the frame's rows `members[i]`; None
    where one has none."""
    terms = list(_terms(frame, slots))
    made = _computed(frame, [column for column in frame.table.columns if _foldable(column)], terms, members)
    if made is None:
        return None
    found: dict[str, Term] = {}
    for slot in slots:
        fits = [
            term
            for (term, kind), values in zip(terms, made, strict=True)
            if kind == _kind(slot.column)
            and all(_same(got, wanted, slot.column) for got, wanted in zip(values, slot.values, strict=True))
        ]
        best = min(fits, key=size_of, default=None)
        if best is None:
            return None
        found[slot.name] = best
    return found


def _kind(column: Column) -> str:
    """What decides which aggregates may stand in a column: numbers of all types together, else the type."""
    return NUMBER if class_of(column) in (INT, NUMBER) else column.base


def _foldable(column: Column) -> bool:
    return class_of(column) in (INT, NUMBER) or column.kind in "DS" or column.base == "boolean"


def _terms(frame: Frame, slots: Sequence[Slot]) -> Iterator[tuple[Term, str]]:
    """Aggregates with the kind of their value, for the kinds of `slots`."""
    kinds = {_kind(slot.column) for slot in slots}
    if NUMBER in kinds:
        yield call("count", raw("*")), NUMBER
    for column in frame.table.columns:
        own = ref((), column.name)
        if not _foldable(column):
            continue
        if NUMBER in kinds:
            yield call("count", own), NUMBER
            yield Term(("count(", "DISTINCT", *own.parts, ")")), NUMBER
        kind = _kind(column)
        if kind not in kinds:
            continue
        if column.base == "boolean":
            yield from ((call(function, own), kind) for function in ("bool_or", "bool_and"))
            continue
        yield from ((call(function, own), kind) for function in ("min", "max"))
        if kind == NUMBER:
            mean = call("avg", own)
            yield from ((term, kind) for term in (call("sum", own), mean, call("round", mean)))
            if column.base not in _FLOATS:
                yield from ((call("round", mean, raw(str(places))), kind) for places in range(1, _PLACES))


def _computed(
    frame: Frame, columns: Sequence[Column], terms: Sequence[tuple[Term, str]], members: Sequence[Sequence[int]]
) -> list[list[Value]] | None:
    """The values of every term, one a group."""
    texts = [frame.texts(column.name) for column in columns]
    flat = [row for group in members for row in group]
    numbers: list[Value] = [str(place) for place, group in enumerate(members) for _ in group]
    arrays = ",".join(["%s::int[]", *(f"%s::{column.base}[]" for column in columns)])
    names = ",".join(["g", *(f"c{place}" for place in range(len(columns)))])
    spelled = {column.name: f"c{place}" for place, column in enumerate(columns)}
    listed = ",".join(f"({_spelled(term, spelled)})::text" for term, _ in terms)
    query = f"SELECT {listed} FROM unnest({arrays})t({names})GROUP BY g ORDER BY g"
    given: list[list[Value]] = [numbers, *([column[row] for row in flat] for column in texts)]
    try:
        with frame.state.session.transaction():
            found = frame.state.session.execute(query.encode(), given).fetchall()
    except Error:
        return None
    return [list(values) for values in zip(*found, strict=True)]


def _spelled(term: Term, names: dict[str, str]) -> str:
    return "".join(part + " " * part.isupper() if isinstance(part, str) else names[part.column] for part in term.parts)  # type: ignore[union-attr]


def _same(got: Value, wanted: Value, column: Column) -> bool:
    """Whether `got`, inserted into the column, is about `wanted`."""
    if got is None or wanted is None:
        return got is wanted
    if class_of(column) not in (INT, NUMBER):
        return _short_bool(got, column) == wanted
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


def _short_bool(text: str, column: Column) -> str:
    return text[0] if column.base == "boolean" else text


__all__ = ["folds"]

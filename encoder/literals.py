"""Statements that name every row and value: the floor that always exists.

Rows are named by their key, new values by literals.  Grouped where several rows change alike, joined
to a VALUES list where they do not.  Tables without a key are handled by whole rows: what goes is
deleted by its full description, with all its twins, and what should stay of them is put back.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from emit.literal import literal, table_name
from emit.render import render
from emit.term import (
    Delete,
    Insert,
    Prec,
    Source,
    Statement,
    Term,
    Update,
    cast,
    conjoin,
    disjoin,
    in_values,
    is_null,
    op,
    raw,
    ref,
    row_values,
    separate,
    tuple_of,
)
from encoder.effect import Key, RowTuple, TableEffect, key_of
from encoder.frame import Frame
from scratch.catalog import ALWAYS, Column, Table
from stream.model import Value

# Types that have no equality operator, or one that says less than identity.
_BY_TEXT = frozenset({"json", "jsonpath", "xml", "point", "polygon", "path", "line", "lseg", "box", "circle"})


def source_of(table: Table, key: object = ()) -> Source:
    """`table` as a row source."""
    return Source(key, table_name(*table.name), tuple(column.name for column in table.columns), only=table.heirs)


def constant(value: Value, column: Column, timezone: str | None, context: str = "assign") -> Term:
    """`value` as a literal of the column's type.

    The zone may be left out of a timestamptz only under a promised `timezone`.
    """
    text = literal(value, column.type, context=context, timezone=timezone)  # type: ignore[arg-type]
    prec = Prec.UNARY if text.startswith("-") else Prec.CAST if "::" in text else Prec.ATOM
    return raw(text, prec)


def equals(column: Column, value: Value, timezone: str | None) -> Term:
    """A condition that holds for exactly this value of the column."""
    own = ref((), column.name)
    if value is None:
        return is_null(own)
    # A literal beside a regclass or one of its kin is read as an oid.
    if column.base in _BY_TEXT or column.base.startswith("reg"):
        return op(cast(own, "text"), "=", raw(literal(value, "text", context="compare", timezone=timezone)))
    value_term = constant(value, column, timezone, "compare")
    # A bare literal beside a composite is read as a row of no known type.
    return op(own, "=", cast(value_term, column.type) if column.kind == "C" else value_term)


def by_keys(table: Table, keys: Sequence[Key], timezone: str | None) -> Term:
    """The condition that names rows by their key: IN, or row values for a key of several columns; by all
    their columns where the table has no key."""
    if not table.row_key:
        described = disjoin([whole_row(table, key, timezone) for key in keys])
        assert described is not None
        return described
    columns = [table.by_name[name] for name in table.row_key]
    left = tuple_of([ref((), column.name) for column in columns])
    values = [
        tuple_of([constant(value, column, timezone, "compare") for value, column in zip(key, columns, strict=True)])
        for key in keys
    ]
    return in_values(left, values)


def whole_row(table: Table, row: RowTuple, timezone: str | None) -> Term:
    """The condition that describes a row by all its columns."""
    term = conjoin([equals(column, value, timezone) for column, value in zip(table.stored, row, strict=True)])
    return raw("true") if term is None else term


def insert_rows(table: Table, inserted: Sequence[RowTuple], timezone: str | None) -> Insert:
    """One INSERT of all rows in order, columns that are null in every row and have no default left out."""
    kept = [
        place
        for place, column in enumerate(table.stored)
        if column.identity != ALWAYS
        and not (column.default is None and not column.identity and all(row[place] is None for row in inserted))
    ]
    if not kept:  # an INSERT names at least one value
        kept = [place for place, column in enumerate(table.stored) if column.identity != ALWAYS][:1]
    if not kept:
        # No column may be given at all; a SELECT of nothing leaves all of them to their defaults.
        count = len(inserted)
        return Insert(source_of(table), (), raw("SELECT" if count == 1 else f"SELECT FROM generate_series(1,{count})"))
    columns = [table.stored[place] for place in kept]
    lines = [
        [constant(row[place], column, timezone) for place, column in zip(kept, columns, strict=True)]
        for row in inserted
    ]
    names = tuple(column.name for column in columns)
    all_names = tuple(column.name for column in table.columns)
    return Insert(
        source_of(table),
        () if names == all_names[: len(names)] else names,
        row_values(lines),
    )


def delete_rows(
    table: Table, deleted: Sequence[RowTuple], frame: Frame | None, timezone: str | None
) -> list[Statement]:
    """DELETE by key; by full description, with twins put back, where there is no key."""
    if table.row_key:
        keys = [key_of(table, row) for row in deleted]
        return [Delete(source_of(table), where=by_keys(table, keys, timezone))]
    standing = Counter(frame.keys) if frame is not None else Counter()
    statements: list[Statement] = []
    back: list[RowTuple] = []
    for row, count in Counter(deleted).items():
        statements.append(Delete(source_of(table), where=whole_row(table, row, timezone)))
        back.extend([row] * max(0, standing[row] - count))
    if back:
        statements.append(insert_rows(table, back, timezone))
    return statements


def changed_places(before: RowTuple, after: RowTuple) -> tuple[int, ...]:
    return tuple(place for place, (old, new) in enumerate(zip(before, after, strict=True)) if old != new)


def grouped_updates(
    table: Table, pairs: Sequence[tuple[RowTuple, RowTuple]], timezone: str | None
) -> list[tuple[Update, tuple[tuple[RowTuple, RowTuple], ...]]]:
    """One UPDATE for the rows that get the same new values in the same columns, with its rows."""
    groups: dict[tuple[tuple[int, Value], ...], list[tuple[RowTuple, RowTuple]]] = {}
    for before, after in pairs:
        change = tuple((place, after[place]) for place in changed_places(before, after))
        groups.setdefault(change, []).append((before, after))
    return [
        (
            set_constants(table, change, by_keys(table, [key_of(table, row) for row, _ in rows], timezone), timezone),
            tuple(rows),
        )
        for change, rows in groups.items()
    ]


def set_constants(
    table: Table, change: Iterable[tuple[int, Value]], where: Term | None, timezone: str | None
) -> Update:
    sets = tuple(
        ((table.stored[place].name,), constant(value, table.stored[place], timezone)) for place, value in change
    )
    return Update(source_of(table), sets, where=where)


_VALUE_NAMES = "vwyzpqrstuabcdefghjklmn"
# Types whose literals in a VALUES list keep their type without a cast.
_INTEGER_BASES = frozenset({"smallint", "integer", "bigint"})
_TEXT_BASES = frozenset({"text", "character varying"})
_DECIMAL = re.compile(r"-?\d+(\.\d+)?")


def values_update(
    table: Table, pairs: Sequence[tuple[RowTuple, RowTuple]], places: Sequence[int], timezone: str | None
) -> Update | None:
    """UPDATE … FROM(VALUES(key,new…),…): the given columns of each row by its own values.

    None for a table without a single-column key, or where rows change their key.
    """
    if not table.row_key or len(places) + len(table.row_key) > len(_VALUE_NAMES):
        return None
    stored = {column.name: place for place, column in enumerate(table.stored)}
    key_places = [stored[name] for name in table.row_key]
    taken = {column.name for column in table.columns}
    letters = [letter for letter in ("i", *_VALUE_NAMES, "o", "x") if letter not in taken]
    if len(letters) < len(key_places) + len(places) + 1:
        return None
    names = letters[: len(key_places) + len(places)]
    listed = [*key_places, *places]
    lines = []
    for index, (before, after) in enumerate(pairs):
        cells = [
            _listed_value((before if place in key_places else after)[place], table.stored[place], timezone, index == 0)
            for place in listed
        ]
        lines.append(Term(("(", *separate(cells), ")")))
    source = Source("v", Term(("(", "VALUES", *separate(lines), ")")), tuple(names), "x", tuple(names))
    sets = tuple(
        ((table.stored[place].name,), _cast_back(ref("v", name), table.stored[place]))
        for place, name in zip(places, names[len(key_places) :], strict=True)
    )
    where = conjoin(
        [
            op(_cast_back(ref("v", name), table.stored[place]), "=", ref((), table.stored[place].name))
            for place, name in zip(key_places, names, strict=False)
        ]
    )
    return Update(source_of(table), sets, (source,), where)


def _listed_value(value: Value, column: Column, timezone: str | None, first: bool) -> Term:
    """A value in a VALUES list, where no column gives it its type."""
    if value is None:
        typed = first and column.base in _INTEGER_BASES | {"numeric"}
        return raw("null::" + column.base, Prec.CAST) if typed else raw("null")
    if column.base in _INTEGER_BASES or (column.base == "numeric" and _DECIMAL.fullmatch(value)):
        return raw(value, Prec.UNARY if value.startswith("-") else Prec.ATOM)
    return raw(literal(value, "text", context="text", timezone=timezone))


def _cast_back(term: Term, column: Column) -> Term:
    if column.base in _INTEGER_BASES or column.base in _TEXT_BASES or column.base == "numeric":
        return term
    return cast(term, column.type if column.base in ("bit", "character") else column.base)


def floor(effect: TableEffect, frame: Frame | None, timezone: str | None) -> list[Statement]:
    """The whole net effect on one table by literals: deletes, updates, inserts."""
    table = effect.table
    statements: list[Statement] = []
    if effect.deletes:
        statements += delete_rows(table, effect.deletes, frame, timezone)
    if effect.updates:
        statements += [update for update, _ in grouped_updates(table, effect.updates, timezone)]
    if effect.inserts:
        statements.append(insert_rows(table, effect.inserts, timezone))
    return statements


def compact_floor(effect: TableEffect, timezone: str | None) -> list[Statement]:
    """`floor` with the updates joined to one VALUES list where that is shorter than grouped statements."""
    table = effect.table
    places = sorted({place for pair in effect.updates for place in changed_places(*pair)})
    joined = values_update(table, effect.updates, places, timezone) if len(effect.updates) > 1 else None
    grouped = [update for update, _ in grouped_updates(table, effect.updates, timezone)]
    if joined is None or len(render(joined)) >= sum(len(render(update)) for update in grouped):
        return floor(effect, None, timezone)
    rest = floor(TableEffect(table, effect.inserts, effect.deletes), None, timezone)
    split = len(rest) - bool(effect.inserts)
    return [*rest[:split], joined, *rest[split:]]

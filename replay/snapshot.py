"""Compares tables of two databases by digests that the servers compute.

A digest covers every column of every row as its exact text (so json formatting, -0, and NULL against
the empty string count) in no order.  Both sessions must have the settings `scratch.session.CANONICAL`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from replay.difference import Kind, RowDifference
from scratch.arrays import ident, own_rows
from scratch.catalog import Catalog, Table
from scratch.session import Session, rows
from stream.model import TableName, Value


class Digest(NamedTuple):
    """Row count and two independent sums of 64-bit hashes of the rows' texts."""

    rows: int
    first: int
    second: int


def _record(table: Table) -> str:
    """The text of a whole row: NULL, '' and quotes stay apart in it, so it is one-to-one with the values.

    The collation is C so that a nondeterministic one does not hash what it calls equal alike.
    """
    return f'(ROW({",".join(f"t.{ident(column.name)}" for column in table.columns)})::text COLLATE "C")'


def digests(session: Session, catalog: Catalog, names: Iterable[TableName]) -> dict[TableName, Digest]:
    """The digest of each table that `names` gives, as the session sees it now."""
    ordered = sorted(set(names))
    if not ordered:
        return {}
    # OFFSET 0 keeps the row's text from being computed once for each hash.
    parts = [
        f"SELECT {number},count(*),sum(hashtextextended(r,0)),sum(hashtextextended(r,1)) "
        f"FROM(SELECT {_record(catalog[name])} r FROM {own_rows(catalog[name])} t OFFSET 0)t"
        for number, name in enumerate(ordered)
    ]
    found = rows(session, " UNION ALL ".join(parts), [])
    return {
        ordered[int(number or 0)]: Digest(int(count or 0), int(first or 0), int(second or 0))
        for number, count, first, second in found
    }


_TOUCHED = """
SELECT DISTINCT n.nspname, c.relname
FROM pg_catalog.pg_stat_xact_user_tables s
JOIN pg_catalog.pg_class c ON c.oid = coalesce(pg_catalog.pg_partition_root(s.relid), s.relid)
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE s.n_tup_ins + s.n_tup_upd + s.n_tup_del > 0
ORDER BY 1, 2"""


def touched(session: Session, catalog: Catalog) -> list[TableName]:
    """The tables that the session's open transaction wrote to, triggers and cascades included.

    May name tables of the session's earlier transactions too: the server counts them together for a while.
    """
    found = (TableName(schema or "", name or "") for schema, name in rows(session, _TOUCHED))
    return [name for name in found if name in catalog]


def first_difference(
    expected: Session, actual: Session, catalog: Catalog, names: Iterable[TableName]
) -> RowDifference | None:
    """The first row in which the tables `names` of the two databases differ; None where all are equal."""
    ordered = sorted(set(names))
    wanted = digests(expected, catalog, ordered)
    return difference_from(wanted, expected, actual, catalog)


def difference_from(
    wanted: Mapping[TableName, Digest], expected: Session, actual: Session, catalog: Catalog
) -> RowDifference | None:
    """The same, with the digests of the expected tables known."""
    found = digests(actual, catalog, wanted)
    for name in sorted(wanted):
        if wanted[name] != found[name]:
            return _differing_row(expected, actual, catalog[name])
    return None


def _differing_row(expected: Session, actual: Session, table: Table) -> RowDifference:
    sides = [_hashes(session, table) for session in (expected, actual)]
    missing, extra = sides[0] - sides[1], sides[1] - sides[0]
    wanted = _rows_by_key(expected, table, missing)
    found = _rows_by_key(actual, table, extra)
    keys = sorted({*wanted, *found}, key=_order)
    key = next((key for key in keys if wanted.get(key) != found.get(key)), keys[0])
    named = dict(zip(table.row_key or wanted.get(key) or found[key], key, strict=True))
    if key not in found:
        return RowDifference(Kind.MISSING, table.name, named)
    if key not in wanted:
        return RowDifference(Kind.UNEXPECTED, table.name, named)
    for name, value in wanted[key].items():
        if found[key][name] != value:
            return RowDifference(Kind.VALUE, table.name, named, name, value, found[key][name])
    raise AssertionError("rows with different hashes are different")


def _order(key: tuple[Value, ...]) -> list[tuple[bool, int, str]]:
    """Keys in an order that people expect: numbers by size, NULL last."""
    return [(value is None, len(value or ""), value or "") for value in key]


def _hashes(session: Session, table: Table) -> Counter[str]:
    query = f"SELECT hashtextextended({_record(table)},0) FROM {own_rows(table)} t"
    return Counter(row[0] or "" for row in rows(session, query, []))


def _rows_by_key(session: Session, table: Table, hashes: Counter[str]) -> dict[tuple[Value, ...], dict[str, Value]]:
    """The rows with the given hashes, by the table's key; by all their values where it has none."""
    names = [column.name for column in table.columns]
    cells = ",".join(f"t.{ident(name)}" for name in names)
    # An array's own text: no adapter is needed for what is but digits and commas.
    query = f"SELECT {cells} FROM {own_rows(table)} t WHERE hashtextextended({_record(table)},0)=ANY(%s::bigint[])"
    wanted = "{" + ",".join(sorted(hashes)) + "}"
    found = [dict(zip(names, row, strict=True)) for row in rows(session, query, [wanted])]
    return {tuple(row[name] for name in table.row_key or names): row for row in found}

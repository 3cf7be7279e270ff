"""Changes of partitions as changes of the partitioned table, which is what statements name.

Streams name the partition that holds the row (unless publish_via_partition_root is set).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scratch.arrays import table_ident
from scratch.catalog import Catalog
from scratch.session import Session, rows
from stream.model import RowChange, TableName

_ROOT = """
SELECT n.nspname, c.relname
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = pg_catalog.pg_partition_root(pg_catalog.to_regclass(%s))"""


def at_roots(session: Session, catalog: Catalog, changes: Sequence[RowChange]) -> list[RowChange]:
    """`changes` with every partition's name replaced by that of its topmost table."""
    roots: dict[TableName, TableName] = {}
    for name in sorted({change.table for change in changes if change.table not in catalog}):
        for schema, table in rows(session, _ROOT, [table_ident(name).replace("%%", "%")]):
            roots[name] = TableName(schema or "", table or "")
    if not roots:
        return list(changes)
    return [replace(change, table=roots.get(change.table, change.table)) for change in changes]

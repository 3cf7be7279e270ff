"""What the database's catalog says of its tables: read once, immutable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from scratch.session import Session, rows
from stream.model import TableName

# Identity kinds of pg_attribute.attidentity.
ALWAYS = "a"


@dataclass(frozen=True, slots=True)
class Column:
    """One column.  `type` is format_type with its modifier, `base` the same of a domain's base type
    without modifier, `kind` pg_type.typcategory, `default` the default's expression, if any."""

    name: str
    type: str
    base: str
    kind: str
    not_null: bool
    default: str | None
    generated: bool
    identity: str
    sequence: TableName | None
    collation: str | None = None


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """`columns` of `table` refer to `target_columns` of `target`; actions as in pg_constraint."""

    name: str
    table: TableName
    columns: tuple[str, ...]
    target: TableName
    target_columns: tuple[str, ...]
    on_delete: str
    on_update: str
    deferrable: bool
    deferred: bool


@dataclass(frozen=True, slots=True)
class Trigger:
    """A user's trigger; `definition` is pg_get_triggerdef."""

    name: str
    definition: str
    enabled: str


@dataclass(frozen=True)
class Table:
    """One table.  `heirs` says that others INHERIT from it (partitions do not count): its own rows are those of ONLY
    it."""

    name: TableName
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]
    unique_keys: tuple[tuple[str, ...], ...]
    foreign_keys: tuple[ForeignKey, ...]
    triggers: tuple[Trigger, ...]
    replica_identity: str
    heirs: bool = False

    @cached_property
    def by_name(self) -> Mapping[str, Column]:
        return {column.name: column for column in self.columns}

    @cached_property
    def stored(self) -> tuple[Column, ...]:
        """The columns that a statement may write."""
        return tuple(column for column in self.columns if not column.generated)

    @cached_property
    def row_key(self) -> tuple[str, ...]:
        """The columns that name one row: primary key, else a NOT NULL unique key, else ()."""
        if self.primary_key:
            return self.primary_key
        for key in self.unique_keys:
            if all(self.by_name[name].not_null for name in key):
                return key
        return ()


@dataclass(frozen=True)
class Catalog:
    """All ordinary tables of the user's schemas whose changes a stream may hold, by name, sorted."""

    tables: Mapping[TableName, Table]
    referenced_by: Mapping[TableName, tuple[ForeignKey, ...]]

    def __getitem__(self, name: TableName) -> Table:
        return self.tables[name]

    def __contains__(self, name: object) -> bool:
        return name in self.tables

    def __iter__(self) -> Iterator[TableName]:
        return iter(self.tables)

    def below(self, name: TableName) -> tuple[ForeignKey, ...]:
        """The foreign keys that refer to the table, and those that do so by way of rows that have their key from it
        (inheritance by tables), as if they referred to it themselves."""
        children = self.referenced_by.get(name, ())
        handed = (key for key in children if key.columns == self[key.table].primary_key)
        further = (
            replace(key, target=name, target_columns=by.target_columns)
            for by in handed
            for key in self.referenced_by.get(by.table, ())
            if key.target_columns == by.columns
        )
        return (*children, *further)


# What happens to UNLOGGED tables is in no stream (that a partitioned table is one means nothing).
_USER_TABLES = """
    c.relkind IN ('r', 'p') AND NOT c.relispartition AND (c.relpersistence = 'p' OR c.relkind = 'p')
    AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'tersql') AND n.nspname !~ '^pg_'
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
                    AND d.deptype = 'e')"""

_COLUMNS = f"""
SELECT n.nspname, c.relname, c.relreplident, a.attname, format_type(a.atttypid, a.atttypmod),
       format_type(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END, NULL), t.typcategory,
       a.attnotnull, pg_get_expr(d.adbin, d.adrelid), a.attgenerated, a.attidentity, sn.nspname, s.relname,
       CASE WHEN a.attcollation <> t.typcollation THEN co.collname END,
       c.relkind = 'r' AND EXISTS(SELECT FROM pg_inherits i WHERE i.inhparent = c.oid)
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
LEFT JOIN pg_class s ON s.oid = pg_get_serial_sequence(
    quote_ident(n.nspname) || '.' || quote_ident(c.relname), a.attname)::regclass
LEFT JOIN pg_namespace sn ON sn.oid = s.relnamespace
LEFT JOIN pg_collation co ON co.oid = a.attcollation
WHERE {_USER_TABLES}
ORDER BY n.nspname COLLATE "C", c.relname COLLATE "C", a.attnum"""

_KEYS = f"""
SELECT n.nspname, c.relname, i.indisprimary, a.attname
FROM pg_index i
JOIN pg_class c ON c.oid = i.indrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN LATERAL unnest(i.indkey) WITH ORDINALITY k(attnum, place) ON k.place <= i.indnkeyatts
JOIN pg_class x ON x.oid = i.indexrelid
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
WHERE i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL AND {_USER_TABLES}
ORDER BY n.nspname COLLATE "C", c.relname COLLATE "C", i.indisprimary DESC, x.relname COLLATE "C", k.place"""

_FOREIGN_KEYS = f"""
SELECT f.conname, n.nspname, c.relname, tn.nspname, tc.relname, f.confdeltype, f.confupdtype,
       f.condeferrable, f.condeferred, a.attname, ta.attname
FROM pg_constraint f
JOIN pg_class c ON c.oid = f.conrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class tc ON tc.oid = f.confrelid
JOIN pg_namespace tn ON tn.oid = tc.relnamespace
JOIN LATERAL unnest(f.conkey, f.confkey) WITH ORDINALITY k(attnum, target, place) ON true
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
JOIN pg_attribute ta ON ta.attrelid = tc.oid AND ta.attnum = k.target
WHERE f.contype = 'f' AND f.conparentid = 0 AND {_USER_TABLES}
ORDER BY n.nspname COLLATE "C", c.relname COLLATE "C", f.conname COLLATE "C", k.place"""

_TRIGGERS = f"""
SELECT n.nspname, c.relname, g.tgname, pg_get_triggerdef(g.oid), g.tgenabled
FROM pg_trigger g
JOIN pg_class c ON c.oid = g.tgrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE NOT g.tgisinternal AND {_USER_TABLES}
ORDER BY n.nspname COLLATE "C", c.relname COLLATE "C", g.tgname COLLATE "C" """


def read_catalog(session: Session) -> Catalog:
    """The catalog of the database that `session` is connected to."""
    keys = _read_keys(session)
    triggers: dict[TableName, list[Trigger]] = {}
    for schema, name, trigger, definition, enabled in rows(session, _TRIGGERS):
        triggers.setdefault(TableName(schema or "", name or ""), []).append(
            Trigger(trigger or "", definition or "", enabled or "")
        )
    identity: dict[TableName, str] = {}
    heirs: set[TableName] = set()
    columns: dict[TableName, list[Column]] = {}
    for row in rows(session, _COLUMNS):
        table = TableName(row[0] or "", row[1] or "")
        identity[table] = row[2] or ""
        if row[14] == "t":
            heirs.add(table)
        columns.setdefault(table, [])
        if row[3] is not None:
            columns[table].append(_column(row))
    known = {
        name: [key for key in found if key.target in columns] for name, found in _read_foreign_keys(session).items()
    }
    foreign_keys = {name: found for name, found in known.items() if found}
    tables = {
        name: Table(
            name,
            tuple(found),
            keys.get(name, ((), ()))[0],
            keys.get(name, ((), ()))[1],
            tuple(foreign_keys.get(name, ())),
            tuple(triggers.get(name, ())),
            identity[name],
            name in heirs,
        )
        for name, found in sorted(columns.items())
    }
    referenced: dict[TableName, list[ForeignKey]] = {}
    for table in sorted(foreign_keys):
        for key in foreign_keys[table]:
            referenced.setdefault(key.target, []).append(key)
    return Catalog(tables, {name: tuple(found) for name, found in referenced.items()})


def _column(row: tuple[str | None, ...]) -> Column:
    sequence = TableName(row[11] or "", row[12] or "") if row[12] is not None else None
    return Column(
        name=row[3] or "",
        type=row[4] or "",
        base=row[5] or "",
        kind=row[6] or "",
        not_null=row[7] == "t",
        default=row[8],
        generated=bool(row[9]),
        identity=row[10] or "",
        sequence=sequence,
        collation=row[13],
    )


_Keys = tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]


def _read_keys(session: Session) -> dict[TableName, _Keys]:
    """Primary key and unique keys a table; rows of one index are consecutive."""
    query = _KEYS.replace("SELECT n.nspname", "SELECT x.relname, n.nspname", 1)
    indexes: dict[tuple[TableName, str], tuple[bool, list[str | None]]] = {}
    for index, schema, name, primary, column in rows(session, query):
        where = (TableName(schema or "", name or ""), index or "")
        indexes.setdefault(where, (primary == "t", []))[1].append(column)
    found: dict[TableName, tuple[tuple[str, ...], list[tuple[str, ...]]]] = {}
    for (table, _), (primary_index, names) in indexes.items():
        key = tuple(name for name in names if name is not None)
        if len(key) != len(names):
            continue
        current = found.setdefault(table, ((), []))
        if primary_index:
            found[table] = (key, current[1])
        else:
            current[1].append(key)
    return {table: (primary, tuple(unique)) for table, (primary, unique) in found.items()}


def _read_foreign_keys(session: Session) -> dict[TableName, list[ForeignKey]]:
    grouped: dict[tuple[str | None, ...], tuple[list[str], list[str]]] = {}
    for row in rows(session, _FOREIGN_KEYS):
        own, target = grouped.setdefault(row[:9], ([], []))
        own.append(row[9] or "")
        target.append(row[10] or "")
    found: dict[TableName, list[ForeignKey]] = {}
    for head, (own, target) in grouped.items():
        key = ForeignKey(
            name=head[0] or "",
            table=TableName(head[1] or "", head[2] or ""),
            columns=tuple(own),
            target=TableName(head[3] or "", head[4] or ""),
            target_columns=tuple(target),
            on_delete=head[5] or "a",
            on_update=head[6] or "a",
            deferrable=head[7] == "t",
            deferred=head[8] == "t",
        )
        found.setdefault(key.table, []).append(key)
    return found

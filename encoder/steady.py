"""Statements whose effect must not hang on the planner's choice.

Ids from a sequence go to rows in the order in which a plan happens to visit them, in a trigger as in an
INSERT without ORDER BY.  A statement is steady if it has the same effect under plans of other kinds; one that
is not can often be made so by keeping its condition on the key away from the index, so that rows come in the
order of the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from emit.literal import identifier, literal, table_name
from emit.render import render
from emit.term import Delete, Insert, Part, Query, Ref, Statement, Term, Update
from encoder.context import Context
from encoder.effect import Effect, Key, key_of
from encoder.observed import observed
from scratch.catalog import ALWAYS, Catalog, Table
from stream.model import Value

_SCANNING = ("enable_indexscan=off", "enable_bitmapscan=off", "enable_indexonlyscan=off")
_OTHER_PLANS: tuple[tuple[str, ...], ...] = (
    ("enable_seqscan=off",),
    ("enable_seqscan=off", "enable_bitmapscan=off"),
    _SCANNING,
    ("enable_hashjoin=off", "enable_hashagg=off"),
    ("enable_nestloop=off", "enable_sort=off"),
)
_INTEGERS = frozenset({"smallint", "integer", "bigint"})
_TEXTS = frozenset({"text", "character varying"})
# What may stand after an operand of + or ||, neither taking it apart nor being taken in.
_LOOSER = ("IN(", "NOT IN(", "=", "<", ">", "BETWEEN", "AND", "OR")


def order_matters(text: str) -> bool:
    """Whether a statement that moves no sequence may still depend on the order in which it meets rows."""
    return "OVER(" in text or "LIMIT" in text or "string_agg(" in text or "array_agg(" in text


def moves_keys(catalog: Catalog, tree: Statement | None) -> bool:
    """Whether an UPDATE sets a column of a unique key: rows may then be in each other's way, in one order and not in
    another."""
    if not isinstance(tree, Update):
        return False
    table = _target(catalog, tree)
    keys = () if table is None else (table.primary_key, *table.unique_keys)
    unique = {column for key in keys for column in key}
    return any(name in unique for names, _ in tree.sets for name in names)


def is_unordered_join(tree: Statement) -> bool:
    """Whether rows are inserted from a join that states no order: which side leads is the planner's choice, by
    statistics that the replaying database may not have."""
    rows = tree.rows if isinstance(tree, Insert) else None
    if not isinstance(rows, Query) or len(rows.sources) < 2:
        return False
    return "ORDER BY" not in render(rows)


def is_steady(context: Context, *texts: str) -> bool:
    """Whether the statements `texts` do the same under every kind of plan that can be asked for."""
    usual, _ = observed(context, texts)
    if not isinstance(usual, Effect):
        return False
    return all(
        isinstance(done, Effect) and not usual.minus(done)
        for done in (context.lab.observe(texts, settings=plan) for plan in _distinct_plans(context, texts))
    )


def outcomes_of(context: Context, text: str, table: Table) -> list[Effect]:
    """What `text`, a statement on `table`, does under the usual plan and under the other kinds, and where every second
    row that it changes lies elsewhere on disk, as after another history.  [] if it fails."""
    lab = context.lab
    usual, _ = observed(context, [text])
    outcomes = [usual, *(lab.observe([text], settings=plan) for plan in _distinct_plans(context, [text]))]
    rows = usual.tables.get(table.name, Counter()) if isinstance(usual, Effect) else Counter()
    keys = sorted((key_of(table, row) for row, count in rows.items() if count < 0), key=_nulls_last)[::2]
    if len(table.row_key) == 1 and keys:
        with lab.savepoint():
            _rewrite(context, table, [key[0] for key in keys])
            outcomes += [lab.observe([text], settings=plan) for plan in ((), _SCANNING)]
    return [done for done in outcomes if isinstance(done, Effect)]


def _distinct_plans(context: Context, texts: Sequence[str]) -> list[tuple[str, ...]]:
    """The settings under which the plan is neither the usual one nor that under settings before."""
    if len(texts) > 1:  # the later ones are planned for what the first leave
        return list(_OTHER_PLANS)
    plans = [context.lab.plan(texts[0], settings) for settings in ((), *_OTHER_PLANS)]
    return [
        settings
        for place, settings in enumerate(_OTHER_PLANS, start=1)
        if plans[place] is None or plans[place] not in plans[:place]
    ]


def _rewrite(context: Context, table: Table, keys: Sequence[Value]) -> None:
    """Have the rows with `keys` written anew without a change, where no trigger sees it."""
    column = table.by_name[table.row_key[0]]
    spared = next((other for other in table.stored if other.name not in table.row_key), column)
    if spared.identity == ALWAYS:
        return
    same = f"{identifier(spared.name)}={identifier(spared.name)}"
    listed = ",".join(literal(key, column.type, context="compare") for key in keys)
    query = (
        "SET LOCAL session_replication_role=replica;"
        f"UPDATE {table_name(*table.name)} SET {same} WHERE {identifier(column.name)} IN({listed});"
        "SET LOCAL session_replication_role=origin"
    )
    context.lab.session.execute(query.encode())


def unindexed(catalog: Catalog, statement: Statement) -> Statement | None:
    """`statement` with the target's columns in its WHERE as expressions that no index is on; None where
    there is nothing to change."""
    if not isinstance(statement, Update | Delete) or statement.where is None:
        return None
    table = _target(catalog, statement)
    columns = table.by_name if table is not None else {}
    parts: list[Part] = []
    changed = False
    for place, part in enumerate(statement.where.parts):
        neutral = None
        if isinstance(part, Ref) and part.key == () and part.column in columns:
            base = columns[part.column].base
            neutral = "+0" if base in _INTEGERS else "||''" if base in _TEXTS else None
        following = statement.where.parts[place + 1] if place + 1 < len(statement.where.parts) else "AND"
        before = statement.where.parts[place - 1] if place else "AND"
        if neutral is None or not _is_loose(following) or not _is_loose(before, ending=True):
            parts.append(part)
        else:
            parts += [part, neutral]
            changed = True
    return replace(statement, where=Term(tuple(parts), statement.where.prec)) if changed else None


def _target(catalog: Catalog, statement: Update | Delete) -> Table | None:
    spelled = statement.target.text
    return next((table for table in catalog.tables.values() if table_name(*table.name) == spelled), None)


def _is_loose(part: Part, *, ending: bool = False) -> bool:
    if not isinstance(part, str):
        return False
    return part.endswith(("AND", "OR", "(", ",")) if ending else part.startswith(_LOOSER)


def _nulls_last(key: Key) -> list[tuple[bool, str]]:
    """Orders keys; those of a table without a key are its whole rows."""
    return [(value is None, value or "") for value in key]

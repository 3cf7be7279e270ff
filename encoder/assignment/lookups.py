"""A value of another table found by a natural key: (SELECT id FROM other WHERE name=c)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from emit.term import Query, Term, conjoin, op, ref, subquery
from encoder.assignment.problem import INTEGERS, STRINGS, Input, Problem
from encoder.literals import source_of
from scratch.catalog import Table
from stream.model import Value

_MAX_TABLES = 12
_MAX_ROWS = 30_000
_LEAST_NAMES = 3
_MAX_NAMESAKES = 60


def lookups(problem: Problem) -> Iterator[Term]:
    """The row of another table that one or two of its columns name."""
    known = {text for text in problem.new if text is not None}
    if len(known) < 2:
        return
    for table, column in _targets(problem):
        frame = problem.state.frame(table.name)
        if frame.size > _MAX_ROWS:
            continue
        texts = frame.texts(column)
        if not known <= set(texts):
            continue
        yield from _by_one(problem, table, column, texts)


def _targets(problem: Problem) -> Iterator[tuple[Table, str]]:
    """Where the value may come from: what the column refers to, then near tables' columns of its type."""
    catalog = problem.state.catalog
    owner = problem.table if problem.column.name in problem.table.by_name else None
    found: list[tuple[Table, str]] = []
    for key in owner.foreign_keys if owner is not None else ():
        if key.columns == (problem.column.name,):
            found.append((catalog[key.target], key.target_columns[0]))
    near = [problem.table.name]
    near += [key.target for key in problem.table.foreign_keys]
    near += [key.table for key in catalog.referenced_by.get(problem.table.name, ())]
    for name in list(dict.fromkeys(near))[:_MAX_TABLES]:
        table = catalog[name]
        for column in table.columns:
            same = column.base == problem.base or (column.base in STRINGS and problem.base in STRINGS)
            if same and column.base != "boolean" and (table, column.name) not in found:
                found.append((table, column.name))
    yield from found


def _by_one(problem: Problem, table: Table, column: str, texts: Sequence[Value]) -> Iterator[Term]:
    frame = problem.state.frame(table.name)
    key = f"lookup:{table.name}"
    usable = [item for item in problem.inputs if item.is_text or (item.own and item.base in INTEGERS)]
    for candidate in table.columns:
        if (candidate.base not in STRINGS and candidate.base not in INTEGERS) or candidate.name == column:
            continue
        names = frame.texts(candidate.name)
        rows: dict[Value, list[int]] = {}
        for row, text in enumerate(names):
            rows.setdefault(text, []).append(row)
        for item in usable:
            if item.is_text != (candidate.base in STRINGS):
                continue
            if len(set(item.texts)) < _LEAST_NAMES or not _reaches(problem, item, rows, texts):
                continue
            match = op(ref(key, candidate.name), "=", item.term)
            source = source_of(table, key)
            if all(len(rows.get(text, ())) <= 1 for text in item.texts):
                yield subquery(Query((ref(key, column),), (source,), match))
            elif max(len(rows.get(text, ())) for text in item.texts) <= _MAX_NAMESAKES:
                yield from _narrowed(problem, table, column, item, rows, texts, match)


def _reaches(problem: Problem, item: Input, rows: dict[Value, list[int]], texts: Sequence[Value]) -> bool:
    """Whether every wanted value stands in a row that the input names."""
    for name, new in zip(item.texts, problem.new, strict=True):
        found = rows.get(name, ()) if name is not None else ()
        if (new is None) != (not found) or (new is not None and all(texts[row] != new for row in found)):
            return False
    return True


def _narrowed(
    problem: Problem,
    table: Table,
    column: str,
    item: Input,
    rows: dict[Value, list[int]],
    texts: Sequence[Value],
    match: Term,
) -> Iterator[Term]:
    """The same with a second pair of equal columns."""
    key = f"lookup:{table.name}"
    frame = problem.state.frame(table.name)
    for second in table.columns:
        if second.base not in STRINGS | INTEGERS or second.name == column:
            continue
        values = frame.texts(second.name)
        for other in problem.own:
            if other.base != second.base or other.term == item.term:
                continue
            for name, wanted, new in zip(item.texts, other.texts, problem.new, strict=True):
                hits = [row for row in rows.get(name, ()) if values[row] == wanted and wanted is not None]
                if [texts[row] for row in hits] != ([] if new is None else [new]):
                    break
            else:
                both = conjoin([match, op(ref(key, second.name), "=", other.term)])
                yield subquery(Query((ref(key, column),), (source_of(table, key),), both))

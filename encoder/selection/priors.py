"""What earlier searches for the same rows of a table found, as long as the table stands as it did.

The blocks of a transaction are searched in several states, which differ in other tables than the one whose rows are
asked for.  Conditions that do not look at those are as good as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from emit.literal import table_name
from emit.term import Query, Source, Term
from encoder.frame import State
from encoder.selection.model import Labels, Selection
from stream.model import TableName

_KEY = "selected"


@dataclass(frozen=True, eq=False, slots=True)
class _Search:
    labels: Labels
    marks: Mapping[TableName, object]
    found: list[Selection]


@dataclass(frozen=True, slots=True)
class Prior:
    """`found` are selections of all rows that must be selected and of none that must not, shortest first.  `changed`
    are the tables that stand otherwise than when all was searched for the very same labels; None where it was not."""

    found: list[Selection]
    changed: frozenset[TableName] | None


def remember(state: State, table: TableName, labels: Labels, found: list[Selection]) -> None:
    """Keep what a whole search found in the present state."""
    searches: list[_Search] = state.frame(table).made.setdefault(_KEY, [])
    searches.append(_Search(labels, dict(state.marks), found))


def recall(state: State, table: TableName, labels: Labels) -> Prior:
    """What earlier searches tell."""
    found: dict[Selection, None] = {}
    unchanged: frozenset[TableName] | None = None
    searches: list[_Search] = state.frame(table).made.get(_KEY, [])
    for search in searches:
        if (search.labels.must != labels.must).any() or (labels.must_not & ~search.labels.must_not).any():
            continue
        tables = search.marks.keys() | state.marks.keys()
        changed = frozenset(name for name in tables if search.marks.get(name) is not state.marks.get(name))
        names = {table_name(*name) for name in changed}
        found.update((selection, None) for selection in search.found if names.isdisjoint(_tables(selection)))
        same = not (search.labels.must_not & ~labels.must_not).any()
        if same and (unchanged is None or len(changed) < len(unchanged)):
            unchanged = changed
    return Prior(sorted(found, key=lambda selection: selection.size), unchanged)


def _tables(selection: Selection) -> set[str]:
    """The tables that a selection looks at, as they are spelled."""
    above = {table_name(*key.target) for path in selection.paths for key in path}
    nested = (name for atoms in selection.terms for atom in atoms for name in _mentioned(atom.term))
    return above.union(nested)


def _mentioned(node: Term | Query) -> Iterator[str]:
    if isinstance(node, Term):
        for part in node.parts:
            if isinstance(part, Query):
                yield from _mentioned(part)
        return
    for source in node.sources:
        yield from _named(source)
    for term in (*node.select, *(each for each in (node.where, node.tail) if each is not None)):
        yield from _mentioned(term)


def _named(source: Source) -> Iterator[str]:
    if isinstance(source.text, str):
        yield source.text
    else:
        yield from _mentioned(source.text)

"""Conditions that only an INSERT suggests: rows of the source for which the target has none yet."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from emit.render import render
from emit.term import Query, Ref, Term, in_query, negate, op, ref
from encoder.insertion.evidence import Link
from encoder.insertion.layout import source_of
from encoder.insertion.task import Task
from encoder.selection.model import Atom, MaskedAtom

_INNER = "missing"


def missing_atoms(task: Task, link: Link) -> list[MaskedAtom]:
    """`column NOT IN(SELECT key FROM target WHERE …)` for the columns of the link that inserted columns equal;
    the inner condition, if any, is one of the constants that are inserted too."""
    found: list[MaskedAtom] = []
    frame = task.state.frame(task.target.name)
    outer = task.state.frame(link.table.name)
    for slot in task.slots:
        column = link.equal.get(slot.name)
        if column is None or slot.constant or None in frame.texts(slot.name):
            continue
        seen: set[bytes] = set()
        for condition, rows in _conditions(task):
            keys = frame.texts(slot.name)
            there = set(keys if rows is None else (keys[row] for row in rows))
            holds = np.array([text is not None and text not in there for text in outer.texts(column)], dtype=bool)
            if holds[link.rows].all() and not holds.all() and holds.tobytes() not in seen:
                seen.add(holds.tobytes())
                inner = Query((Term((Ref(_INNER, slot.name),)),), (source_of(task.target, _INNER),), condition)
                term = in_query(ref((), column), inner, yes=False)
                found.append(MaskedAtom(Atom(term, frozenset(), _size(link, term)), holds))
    return found


def _conditions(task: Task) -> Iterator[tuple[Term | None, list[int] | None]]:
    """Conditions on the target's rows, with the rows that meet them; none at all first."""
    yield None, None
    frame = task.state.frame(task.target.name)
    for slot in task.slots:
        value = slot.values[0]
        if slot.explicit and slot.constant and value is not None:
            rows = [row for row, text in enumerate(frame.texts(slot.name)) if text == value]
            left = ref(_INNER, slot.name)
            if slot.column.base == "boolean":
                yield (left if value == "t" else negate(left)), rows
            else:
                yield op(left, "=", task.spell.compared(value, slot.column)), rows


def _size(link: Link, term: Term) -> int:
    sources = (source_of(link.table, ()),)
    bare = render(Query((), sources))
    return len(render(Query((), sources, term)).encode()) - len(bare.encode()) - len(" WHERE")

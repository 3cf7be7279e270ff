"""Rows by their keys: the selection that is always there."""

from __future__ import annotations

from collections.abc import Sequence

from emit.literal import literal
from emit.term import Prec, Term, in_values, raw, ref, separate, tuple_of
from encoder.frame import Frame
from encoder.selection.model import Atom
from encoder.selection.spelling import make_atom


def key_atom(frame: Frame, rows: Sequence[int], yes: bool, timezone: str | None) -> Atom | None:
    """`key IN(…)` or `key NOT IN(…)` for these rows; None where the table has no row key or there is no row."""
    names = frame.table.row_key
    if not names or not len(rows):
        return None
    values = [_value(frame, names, row, timezone) for row in rows]
    return make_atom(in_values(tuple_of([ref((), name) for name in names]), values, yes), frozenset())


def _value(frame: Frame, names: Sequence[str], row: int, timezone: str | None) -> Term:
    terms = []
    for name, text in zip(names, frame.keys[row], strict=True):
        spelled = literal(text, frame.table.by_name[name].base, context="compare", timezone=timezone)
        terms.append(raw(spelled, Prec.UNARY if spelled.startswith("-") else Prec.ATOM))
    return terms[0] if len(terms) == 1 else Term(("(", *separate(terms), ")"))


def key_bytes(frame: Frame, row: int) -> int:
    """About what naming one more row costs."""
    names = frame.table.row_key
    quoted = sum(2 for name in names if frame.table.by_name[name].kind != "N")
    lengths = sum(len(text or "") for text in frame.keys[row])
    return lengths + quoted + len(names) + (2 if len(names) > 1 else 0)

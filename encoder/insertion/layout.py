"""Which columns an INSERT names, and which values it then gives: in order from the first, or a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from emit.literal import table_name
from emit.term import Source, Term
from encoder.insertion.slots import Slot, nextval
from scratch.catalog import Table
from stream.model import TableName


@dataclass(frozen=True, slots=True)
class Layout:
    """`columns` () means from the first on; `select` gives a term each; `uses` are the sequences drawn from."""

    columns: tuple[str, ...]
    select: tuple[Term, ...]
    uses: frozenset[TableName]


def layouts(slots: Sequence[Slot], terms: Mapping[str, Term], draws: bool) -> list[Layout]:
    """All ways worth writing.  `terms` has a term for every column that a SELECT can give; `draws`
    tells whether sequences give what is wanted when their columns are left out."""
    found: list[Layout] = []
    drawing = [slot for slot in slots if slot.sequence is not None]
    for by_sequence in (True, False) if drawing else (False,):
        if by_sequence and not draws:
            continue
        uses = frozenset(slot.sequence for slot in drawing if slot.sequence) if by_sequence else frozenset()
        given: list[tuple[Slot, Term | None, bool]] = []
        for slot in slots:
            drawn = by_sequence and slot.sequence is not None
            term = nextval(slot.sequence) if drawn and slot.sequence else terms.get(slot.name)
            given.append((slot, term if slot.explicit else None, slot.default or drawn))
        for columns, chosen in (_positional(given), _listed(given)):
            if chosen and all(term is not None for term in chosen):
                found.append(Layout(columns, tuple(term for term in chosen if term is not None), uses))
    return list(dict.fromkeys(found))


def _positional(given: list[tuple[Slot, Term | None, bool]]) -> tuple[tuple[str, ...], list[Term | None]]:
    last = max((place for place, (_, _, omitted) in enumerate(given) if not omitted), default=0)
    return (), [term for _, term, _ in given[: last + 1]]


def _listed(given: list[tuple[Slot, Term | None, bool]]) -> tuple[tuple[str, ...], list[Term | None]]:
    needed: list[tuple[str, Term | None]] = [(slot.name, term) for slot, term, omitted in given if not omitted]
    if not needed:
        needed = [(slot.name, term) for slot, term, _ in given[:1]]  # at least one must be named
    return tuple(name for name, _ in needed), [term for _, term in needed]


def source_of(table: Table, key: object, text: str | None = None) -> Source:
    """`table` as a source under `key`; `text` names another relation with the same columns."""
    columns = tuple(column.name for column in table.columns)
    if text is not None:
        return Source(key, text, columns)
    return Source(key, table_name(*table.name), columns, only=table.heirs)

"""What is left of inserted values without those that a source's rows hold: 'SUN5-1' without the row's id 5, the place
of an address in the row's network."""

from __future__ import annotations

from collections.abc import Iterator

from encoder.assignment.addresses import NETWORKS, Address, address
from encoder.frame import State
from encoder.insertion.evidence import Link
from encoder.insertion.slots import Slot
from encoder.insertion.spell import common_ends
from scratch.catalog import Column
from stream.model import Value

# What is left holds few values; each may stand with every row of the source.
_MAX_VALUES = 40
# No column has this name.
_NAME = "?left"
_BLANK = "\0"


def remainders(state: State, link: Link, slot: Slot) -> Iterator[Slot]:
    """Columns that no table has, each of the parts of `slot` that vary when a column of the source is taken out."""
    if slot.column.base in NETWORKS:
        yield from _offsets(state, link, slot)
    if slot.column.kind != "S" or None in slot.values:
        return
    texts = [value or "" for value in slot.values]
    frame = state.frame(link.table.name)
    seen: set[tuple[str, ...]] = set()
    for column in link.table.columns:
        own = frame.texts(column.name)
        held = [own[row] for row in link.rows.tolist()]
        left = _without(texts, held)
        if left is None or not 1 < len(set(left)) <= _MAX_VALUES:
            continue
        start, end = common_ends(sorted(set(left)))
        parts = tuple(text[start : len(text) - end] for text in left)
        if parts not in seen and not any(_BLANK in part for part in parts):
            seen.add(parts)
            yield _slot(parts)


def _offsets(state: State, link: Link, slot: Slot) -> Iterator[Slot]:
    """How far addresses are from those of a column."""
    frame = state.frame(link.table.name)
    for column in link.table.columns:
        if column.base not in NETWORKS:
            continue
        own = frame.texts(column.name)
        pairs = [(_address(value), _address(own[row])) for value, row in zip(slot.values, link.rows, strict=True)]
        steps = {
            int(a.ip) - int(b.ip) if a and b and a.network.prefixlen == b.network.prefixlen else -1 for a, b in pairs
        }
        if min(steps) >= 0 and 1 < len(steps) <= _MAX_VALUES:
            yield _slot(tuple(str(int(a.ip) - int(b.ip)) for a, b in pairs if a and b))


def _address(text: Value) -> Address | None:
    return None if text is None else address(text)


def _without(texts: list[str], held: list[str | None]) -> list[str] | None:
    """`texts` with a blank where they hold the row's own text for the first time; None where one does not."""
    left = []
    for text, part in zip(texts, held, strict=True):
        if not part or part not in text:
            return None
        left.append(text.replace(part, _BLANK, 1))
    return left


def _slot(parts: tuple[str, ...]) -> Slot:
    counts = all(part.isdecimal() and (part == "0" or part[0] != "0") for part in parts)
    base, kind = ("integer", "N") if counts else ("text", "S")
    return Slot(Column(_NAME, base, base, kind, True, None, False, "", None), parts)

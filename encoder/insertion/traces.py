"""Sources of addresses: rows with the networks that inserted addresses lie in."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import replace

from encoder.assignment.addresses import NETWORKS, address
from encoder.budget import Budget
from encoder.frame import State
from encoder.insertion.evidence import Link, link_by
from encoder.insertion.slots import Slot
from scratch.catalog import Table
from stream.model import TableName

_MAX_LENGTHS = 8
# What an address costs that a hypothesis does not explain, for the most part: here it led to the source.
_TRACED = 30


def traced(state: State, target: Table, slots: Sequence[Slot], budget: Budget) -> list[Link]:
    """Hypotheses that start from the networks in which the addresses of a column lie, the likeliest first."""
    found: list[Link] = []
    for slot in slots:
        if not slot.explicit or slot.constant or None in slot.values or slot.column.base not in NETWORKS:
            continue
        for name, column, held in _networks(state, slot):
            link = link_by(state, target, slots, budget, state.catalog[name], held, column)
            if link is not None and (name, column) != (target.name, slot.name):
                found.append(replace(link, score=link.score - _TRACED))
    return sorted(found, key=lambda link: (link.score, link.table.name, link.column))


def _networks(state: State, slot: Slot) -> Iterator[tuple[TableName, str, Slot]]:
    """Tables with a column of networks, and what it then held."""
    values = [value or "" for value in slot.values]
    for name in state.catalog:
        for column in state.catalog[name].columns:
            if column.base in NETWORKS:
                for length in _lengths(state, name, column.name):
                    if networks := _within(values, length):
                        yield name, column.name, replace(slot, values=tuple(networks))


def _lengths(state: State, table: TableName, column: str) -> list[int]:
    """The lengths of the masks in a column, the longest first."""

    def count() -> list[int]:
        texts = {text.rpartition("/")[2] for text in state.frame(table).texts(column) if text and "/" in text}
        return sorted(map(int, texts), reverse=True)[:_MAX_LENGTHS]

    return state.remember(("mask lengths", table, column), count)


def _within(values: Sequence[str], length: int) -> list[str]:
    """The networks of this length that the addresses lie in, as long as these are different ones."""
    found = []
    for value in values:
        one = address(value)
        if length > one.max_prefixlen:
            return []
        found.append(str(ipaddress.ip_network((int(one.ip), length), strict=False)))
    return found if len(set(found)) == len(set(values)) else []

"""Which values lie within which: texts that begin with others, networks in networks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from encoder.assignment.addresses import address
from stream.model import Value

Key: TypeAlias = tuple[int, int, int]


def containing(operator: str, own: Sequence[Value], others: Sequence[Value]) -> list[list[int]]:
    """For each of `own` the places of the `others` with own `operator` other, which is ^@ (texts), << or >> (inet)."""
    if operator == ">>":
        return _below(own, others)
    keys: Callable[[str], Iterator[object]] = _beginnings if operator == "^@" else _networks_above
    places: dict[object, list[int]] = {}
    for place, text in enumerate(others):
        if text is not None:
            places.setdefault(text if operator == "^@" else _network(text), []).append(place)
    return [
        [] if text is None else sorted(place for key in keys(text) for place in places.get(key, ())) for text in own
    ]


def _beginnings(text: str) -> Iterator[object]:
    for length in range(len(text) + 1):
        yield text[:length]


def _network(text: str) -> Key:
    """The version, the length of the mask and the bits before its end."""
    value = address(text)
    length = value.network.prefixlen
    return value.version, length, int(value.ip) >> (value.max_prefixlen - length)


def _networks_above(text: str) -> Iterator[object]:
    version, length, bits = _network(text)
    for shorter in range(length):
        yield version, shorter, bits >> (length - shorter)


def _below(own: Sequence[Value], others: Sequence[Value]) -> list[list[int]]:
    keys = [None if text is None else _network(text) for text in own]
    rows: dict[Key, list[int]] = {key: [] for key in keys if key is not None}
    lengths = sorted({key[1] for key in rows})
    for place, text in enumerate(others):
        if text is not None:
            version, length, bits = _network(text)
            for shorter in lengths:
                if shorter < length and (found := rows.get((version, shorter, bits >> (length - shorter)))) is not None:
                    found.append(place)
    return [[] if key is None else rows[key] for key in keys]

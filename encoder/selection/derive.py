"""Features computed of one value: lengths, remainders, date parts, jsonb keys, elements, networks.

They are computed on the distinct values only.  What Python computes may differ from what the server would say in
rare values; a selection built on such a value fails its proof and costs nothing but that.
"""

from __future__ import annotations

import datetime
import ipaddress
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np

from emit.literal import quote
from emit.term import Prec, Term, call, op, raw, separate
from encoder.frame import Coded
from encoder.selection.features import Feature, compact
from encoder.selection.scales import INTEGERS, JSON_NUMBERS, TEXTS

_Interface: TypeAlias = ipaddress.IPv4Interface | ipaddress.IPv6Interface
_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_MAX_VALUES = 20_000
_MAX_KEYS = 12
_FLAG_SETS = 256
_MODULI = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 100)
_DECIMAL_MODULI = (1, 2, 5, 7, 10)
_DATE_PARTS = ("Q", "MM", "DD", "D", "HH24")
_UTC = frozenset({"UTC", "Etc/UTC", "GMT", "Zulu"})


def derived(feature: Feature, timezone: str | None) -> Iterator[Feature]:
    """What can be computed of `feature`, cheapest to spell first."""
    values, base = feature.coded.values, feature.base
    if not 1 < len(values) <= _MAX_VALUES and base not in ("jsonb", "json"):
        return
    if base in TEXTS:
        yield from _of(feature, call("length", feature.term), "integer", lambda v: str(len(v)))
    elif base in INTEGERS or base == "numeric":
        yield from _remainders(feature)
        yield from _bits(feature)
    elif base in ("date", "timestamp without time zone") or (base == "timestamp with time zone" and timezone in _UTC):
        yield from _date_parts(feature)
    elif base in ("jsonb", "json"):
        yield from _json(feature)
    elif base.endswith("[]"):
        yield from _array(feature)
    elif base in ("inet", "cidr"):
        yield from _network(feature)


def _of(feature: Feature, term: Term, base: str, compute: Callable[[str], str | None]) -> Iterator[Feature]:
    """The feature `term`, whose value `compute` gives of each value; nothing where it is constant."""
    results = [compute(value) for value in feature.coded.values]
    made = _recode(feature, results, base)
    if len(made.values) + any(result is None for result in results) > 1:
        yield Feature(term, feature.path, base, made)


def _recode(feature: Feature, results: Sequence[str | None], base: str) -> Coded:
    distinct = {result for result in results if result is not None}
    if base in INTEGERS:
        ordered = sorted(distinct, key=int)
    elif base == JSON_NUMBERS or base == "numeric":
        ordered = sorted(distinct, key=Decimal)
    else:
        ordered = sorted(distinct)
    place: dict[str | None, int] = {value: code for code, value in enumerate(ordered)}
    place[None] = -1
    table = np.array([place[result] for result in results] + [-1], dtype=np.int32)
    return compact(Coded(table[feature.coded.codes], tuple(ordered)))


def _remainders(feature: Feature) -> Iterator[Feature]:
    numbers = {value: Decimal(value) for value in feature.coded.values}
    if len(numbers) < 4 or feature.path or not all(number.is_finite() for number in numbers.values()):
        return
    for modulus in _MODULI if feature.base in INTEGERS else _DECIMAL_MODULI:
        term = op(feature.term, "%", raw(str(modulus)))
        # As PostgreSQL's, the remainder of a Decimal has the sign of the dividend.
        results = {value: format(number % modulus, "f") for value, number in numbers.items()}
        yield from _of(feature, term, feature.base, results.__getitem__)


def _bits(feature: Feature) -> Iterator[Feature]:
    """`a&4` for the bits of a number that looks like a set of flags: few values, and no reference."""
    numbers = feature.integers
    if numbers is None or len(numbers) > _FLAG_SETS or (feature.column or "id").endswith("id") or numbers[0] < 0:
        return
    bits = [1 << place for place in range(int(numbers[-1]).bit_length())]
    used = [bit for bit in bits if 0 < np.count_nonzero(numbers & bit) < len(numbers)]
    # The lowest is told by a remainder as well.
    for bit in [bit for bit in used if bit > 1][:_MAX_KEYS]:
        results = {value: str(int(value) & bit) for value in feature.coded.values}
        yield from _of(feature, op(feature.term, "&", raw(str(bit))), feature.base, results.__getitem__)


def _date_parts(feature: Feature) -> Iterator[Feature]:
    moments: dict[str, datetime.datetime] = {}
    for value in feature.coded.values:
        try:
            moments[value] = datetime.datetime.fromisoformat(value)
        except ValueError:
            return
    compute: dict[str, Callable[[datetime.datetime], str]] = {
        "Q": lambda m: str((m.month + 2) // 3),
        "MM": lambda m: f"{m.month:02}",
        "DD": lambda m: f"{m.day:02}",
        "D": lambda m: str(m.isoweekday() % 7 + 1),
        "HH24": lambda m: f"{m.hour:02}",
    }
    for part in _DATE_PARTS:
        term = call("to_char", feature.term, raw(quote(part)))
        results = {value: compute[part](moment) for value, moment in moments.items()}
        yield from _of(feature, term, "text", results.__getitem__)


def _json(feature: Feature) -> Iterator[Feature]:
    documents = {}
    for value in feature.coded.values:
        try:
            documents[value] = json.loads(value)
        except ValueError:
            return
    paths: Counter[tuple[str, ...]] = Counter()
    for document in documents.values():
        if not isinstance(document, dict):
            continue
        for key, inner in document.items():
            paths[(key,)] += 1
            if isinstance(inner, dict):
                paths.update((key, below) for below in inner)
    common = sorted(paths, key=lambda path: (-paths[path], path))[:_MAX_KEYS]
    for path in common:
        yield from _json_path(feature, documents, path)
    if all(isinstance(document, list) for document in documents.values()):
        name = f"{feature.base}_array_length"
        yield from _of(feature, call(name, feature.term), "integer", lambda v: str(len(documents[v])))


def _json_path(feature: Feature, documents: dict[str, Any], path: tuple[str, ...]) -> Iterator[Feature]:
    found = {value: _dig(document, path) for value, document in documents.items()}
    if len(path) == 1:
        at, text_at = raw(quote(path[0])), ("->", "->>")
        if feature.base == "jsonb" and any(f is _ABSENT for f in found.values()):
            yield from _of(feature, op(feature.term, "?", at), "boolean", lambda v: _json_has(documents[v], path[0]))
    else:
        if any(not key or set(key) & set('{},"\\ ') or key.lower() == "null" for key in path):
            return
        at, text_at = raw(quote("{" + ",".join(path) + "}")), ("#>", "#>>")
    present = [value for value in found.values() if value is not _ABSENT]
    numeric = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in present)
    if numeric and feature.base == "jsonb":
        yield from _of(feature, op(feature.term, text_at[0], at), JSON_NUMBERS, lambda v: _json_text(found[v]))
    else:
        yield from _of(feature, op(feature.term, text_at[1], at), "text", lambda v: _json_text(found[v]))


_ABSENT = object()


def _dig(document: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        if not isinstance(document, dict) or key not in document:
            return _ABSENT
        document = document[key]
    return document


def _json_has(document: Any, key: str) -> str:
    if isinstance(document, str):
        return "t" if document == key else "f"
    return "t" if isinstance(document, (dict, list)) and key in document else "f"


def _json_text(value: Any) -> str | None:
    """What ->> gives."""
    if value is _ABSENT or value is None:
        return None
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def elements(value: str) -> list[str | None] | None:
    """The elements of a one-dimensional array's text; None where it has quotes or more dimensions."""
    if value[:1] != "{" or '"' in value or "{" in value[1:]:
        return None
    inner = value[1:-1]
    return [None if part == "NULL" else part for part in inner.split(",")] if inner else []


def _array(feature: Feature) -> Iterator[Feature]:
    lists = {value: elements(value) for value in feature.coded.values}
    if any(found is None for found in lists.values()):
        return
    yield from _of(feature, call("cardinality", feature.term), "integer", lambda v: str(len(lists[v] or ())))
    counts = Counter(element for found in lists.values() for element in set(found or ()) if element is not None)
    for element in sorted(counts, key=lambda e: (-counts[e], e))[:_MAX_KEYS]:
        numeric = feature.base.removesuffix("[]") in INTEGERS
        term = Term(
            (element if numeric else quote(element), "=", "ANY", "(", *separate([feature.term]), ")"), Prec.COMPARE
        )
        results = {value: _holds(found or [], element) for value, found in lists.items()}
        yield from _of(feature, term, "boolean", results.__getitem__)


def _holds(found: list[str | None], element: str) -> str | None:
    """What `element=ANY(found)` gives."""
    if element in found:
        return "t"
    return None if None in found else "f"


def _network(feature: Feature) -> Iterator[Feature]:
    try:
        addresses = {value: ipaddress.ip_interface(value) for value in feature.coded.values}
    except ValueError:
        return
    yield from _of(feature, call("family", feature.term), "integer", lambda v: str(addresses[v].version))
    yield from _of(feature, call("masklen", feature.term), "integer", lambda v: str(addresses[v].network.prefixlen))
    nets: Counter[str] = Counter()
    for address in addresses.values():
        if address.version == 4:
            for bits in (8, 16, 24):
                if bits < address.network.prefixlen:
                    nets[str(ipaddress.ip_network((address.ip, bits), strict=False))] += 1
    for net in sorted(nets, key=lambda n: (-nets[n], n))[: 2 * _MAX_KEYS]:
        network = ipaddress.ip_network(net)
        octets = net.split("/")[0].split(".")[: network.prefixlen // 8]
        term = op(feature.term, "<<", raw(quote(f"{'.'.join(octets)}/{network.prefixlen}")))
        results = {value: _within(address, network) for value, address in addresses.items()}
        yield from _of(feature, term, "boolean", results.__getitem__)


def _within(address: _Interface, network: _Network) -> str:
    """What `address<<network` gives."""
    inside = address.version == network.version and address.network.prefixlen > network.prefixlen
    return "t" if inside and address.ip in network else "f"

"""Short ways to write down rows that no table helps with: few columns said, the others derived.

The varying columns of n rows are vectors.  Some are *bases*: they stand in FROM(VALUES…), in unnest or
in generate_series, once.  The others follow from a base by an expression.  Which ones should be
bases is a small facility location problem, solved by local search on estimated bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from emit.literal import quote
from emit.term import Query, Source, Term, raw, ref
from encoder.insertion.derive import Derived, derive, size_of
from encoder.insertion.slots import Slot
from encoder.insertion.spell import BOOL, INT, NUMBER, TEXT, Speller, array, cell, class_of, common_ends, kinds_of
from stream.model import Value

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
# The text around a source with its alias: FROM, parentheses.
_SOURCE = 18
_MAX_BASES = 60
# A text that is said once must be so long, and is looked for in texts up to so long.
_MIN_REPEAT = 12
_MAX_TEXT = 5000


@dataclass(frozen=True, slots=True)
class Base:
    """A vector that FROM may hold.  `cost` estimates its bytes there, `shared` those beside other bases, where
    generate_series cannot say it."""

    values: tuple[Value, ...]
    kind: str
    cost: int
    shared: int


@dataclass(frozen=True, slots=True)
class Spelled:
    """`sources` of a FROM (its rows in the order of the goal's) and a term for every varying column."""

    sources: tuple[Source, ...]
    terms: dict[str, Term]


def spell_rows(slots: Sequence[Slot], count: int, spell: Speller, *, counting: bool = True) -> list[Spelled]:
    """Ways to write `count` rows of the columns `slots`, likely shortest first; empty where VALUES is no worse.
    `counting`: a column may be the row's number, which it is not where the rows stand beside others."""
    if not slots:
        return []
    bases = _bases(slots, count)
    table = [[derive(base.values, base.kind, slot, spell) for slot in slots] for base in bases]
    alone = [derive((), INT, slot, spell) if counting else None for slot in slots]
    chosen = _choose(bases, table, alone, len(slots))
    if not chosen:
        return []
    used = sorted(chosen)
    names = list(_LETTERS[: len(used)])
    if len(used) > len(_LETTERS):
        return []
    terms: dict[str, Term] = {}
    for place, slot in enumerate(slots):
        options = [(d.cost, i, d) for i in used if (d := table[i][place]) is not None]
        own = alone[place]
        if own is not None:
            options.append((own.cost, -1, own))
        _, base, derived = min(options, key=lambda option: option[:2])
        operand = raw("?") if base < 0 else ref("v", names[used.index(base)])
        terms[slot.name] = derived.build(operand)
    return [Spelled((source,), terms) for source in _sources([bases[i] for i in used], names, count)]


def counted(count: int) -> Spelled:
    """`count` rows without any column that varies."""
    return Spelled((Source("v", f"generate_series(1,{count})", ()),), {})


def _bases(slots: Sequence[Slot], count: int) -> list[Base]:
    """Every distinct column, what is left of texts without their common ends, and the row's number."""
    found: dict[tuple[str, tuple[Value, ...]], Base] = {}

    def add(values: tuple[Value, ...], kind: str) -> None:
        if (kind, values) not in found and len(found) < _MAX_BASES:
            shared = 3 + sum(len(text.encode()) + 1 for text in _cells(values, kind))
            short = 8 if kind == INT and _progression(values) is not None else shared
            found[kind, values] = Base(values, kind, short, shared)

    for slot in slots:
        add(slot.values, kinds_of(slot.column, slot.values)[0])
    for slot in slots:
        for kind in kinds_of(slot.column, slot.values)[1:]:
            add(slot.values, kind)
    for slot in slots:
        if class_of(slot.column) == TEXT and None not in slot.values:
            texts = [value or "" for value in slot.values]
            start, end = common_ends(texts)
            if start + end > 4 and count > 1:
                add(tuple(text[start : len(text) - end] for text in texts), TEXT)
                digits = tuple(text[start : len(text) - end] for text in texts)
                if all(digit.isdecimal() and (digit == "0" or digit[0] != "0") for digit in digits):
                    add(digits, INT)
    if count == 1:
        for text in _repeated([slot.values[0] or "" for slot in slots if class_of(slot.column) == TEXT]):
            add((text,), TEXT)
    elif count > 2:
        for first in (0, 1):
            add(tuple(str(first + place) for place in range(count)), INT)
    return list(found.values())


def _repeated(texts: Sequence[str]) -> list[str]:
    """Long parts that occur twice, in two of the texts or in one, longest first."""
    short = [text for text in texts if _MIN_REPEAT <= len(text) <= _MAX_TEXT]
    found = set()
    for place, one in enumerate(short):
        for other in short[place:]:
            found.add(_longest_common(one, None if other is one else other))
    return sorted(found - {""}, key=lambda part: (-len(part), part))[:8]


def _longest_common(one: str, other: str | None) -> str:
    """The longest part of `one` that is also in `other`, or without that occurs in `one` once more; "" if short."""

    def common(length: int) -> str | None:
        if other is not None:
            parts = {other[i : i + length] for i in range(len(other) - length + 1)}
            return next((p for i in range(len(one) - length + 1) if (p := one[i : i + length]) in parts), None)
        first: dict[str, int] = {}
        for i in range(len(one) - length + 1):
            if first.setdefault(one[i : i + length], i) + length <= i:
                return one[i : i + length]
        return None

    best, low, high = "", _MIN_REPEAT, len(one)
    while low <= high:
        middle = (low + high) // 2
        part = common(middle)
        if part is None:
            high = middle - 1
        else:
            best, low = part, middle + 1
    return best


def _progression(values: tuple[Value, ...]) -> tuple[int, int, int] | None:
    """First, last and step of an arithmetic progression of integers."""
    if len(values) < 3 or None in values:
        return None
    numbers = [int(value or 0) for value in values]
    step = numbers[1] - numbers[0]
    if step == 0 or any(b - a != step for a, b in pairwise(numbers)):
        return None
    return numbers[0], numbers[-1], step


def _choose(
    bases: Sequence[Base],
    table: Sequence[Sequence[Derived | None]],
    alone: Sequence[Derived | None],
    width: int,
) -> set[int] | None:
    """The bases to write: add or drop one at a time while that saves bytes."""

    def total(chosen: set[int]) -> float:
        many = len(chosen) > 1
        cost = float(_SOURCE * bool(chosen) + sum(bases[i].shared if many else bases[i].cost for i in chosen))
        for place in range(width):
            own = alone[place]
            costs = [d.cost for i in chosen if (d := table[i][place]) is not None]
            if own is not None:
                costs.append(own.cost)
            if not costs:
                return float("inf")
            cost += min(costs)
        return cost

    starts = [set(range(min(width, len(bases))))]
    starts += [{i} for i in range(len(bases))]
    best: set[int] | None = None
    best_cost = float("inf")
    for start in starts:
        chosen, cost = set(start), total(start)
        while cost < float("inf"):
            moves = [chosen ^ {i} for i in range(len(bases))]
            costs = [total(move) for move in moves]
            at = min(range(len(moves)), key=costs.__getitem__)
            if costs[at] >= cost:
                break
            chosen, cost = moves[at], costs[at]
        if cost < best_cost:
            best, best_cost = chosen, cost
    return best


def _cells(values: Sequence[Value], kind: str) -> list[str]:
    """The cells of a column of VALUES; the first one that is not null gives the type."""
    first = next((place for place, value in enumerate(values) if value is not None), 0)
    return [cell(value, kind, first=place == first) for place, value in enumerate(values)]


def _sources(bases: Sequence[Base], names: list[str], count: int) -> list[Source]:
    """The sources that hold `bases` as columns `names`."""
    columns = tuple(names)
    if count == 1:
        select = tuple(raw(text) for base in bases for text in _cells(base.values, base.kind))
        return [Source("v", Query(select, names=columns), columns)]
    lines = zip(*(_cells(base.values, base.kind) for base in bases), strict=True)
    values = "(VALUES" + ",".join(f"({','.join(line)})" for line in lines) + ")"
    found = [_aliased(values, columns, single=False)]
    # unnest would take arrays of arrays apart.
    if all(base.kind not in (NUMBER, BOOL) and not base.kind.endswith("[]") for base in bases):
        arrays = ",".join(array(base.values, base.kind) for base in bases)
        found.append(_aliased(f"unnest({arrays})", columns, single=len(bases) == 1))
    if len(bases) == 2:
        found.extend(_grouped(bases, columns))
    if len(bases) == 1:
        found.extend(_aliased(text, columns, single=True) for text in _functions(bases[0]))
    return sorted(found, key=lambda source: _source_size(source))


def _grouped(bases: Sequence[Base], columns: tuple[str, ...]) -> list[Source]:
    """Pairs of which one side repeats over runs of rows: that side once a run, with a list of the others."""
    found: list[Source] = []
    for outer, inner in ((0, 1), (1, 0)):
        runs = [(key, [bases[inner].values[i] for i in places]) for key, places in _runs(bases[outer].values)]
        if len(runs) * 2 > len(bases[0].values) or bases[inner].kind not in (INT, TEXT):
            continue
        keys = _cells([key for key, _ in runs], bases[outer].kind)
        kind = bases[inner].kind
        spans = [_progression(tuple(values)) if kind == INT else None for _, values in runs]
        if all(span is not None and span[2] == 1 for span in spans):
            ends = (f"{span[0]},{span[1]}" for span in spans if span is not None)
            lines = ",".join(f"({key},{end})" for key, end in zip(keys, ends, strict=True))
            names, unfolded = "y,z", "generate_series(y,z)"
        else:
            lists = [array(values, kind) for _, values in runs]
            # The first list gives the column its type.
            lists[1:] = [text.rpartition("::")[0] for text in lists[1:]]
            lines = ",".join(f"({key},{text})" for key, text in zip(keys, lists, strict=True))
            names, unfolded = "y", "unnest(y)"
        text = f"(VALUES{lines})x({columns[outer]},{names}),{unfolded}"
        found.append(Source("v", raw(text), columns, alias=columns[inner]))
    return found


def _runs(values: Sequence[Value]) -> list[tuple[Value, list[int]]]:
    """Each run of equal neighbours with its places."""
    return [(key, [place for place, _ in run]) for key, run in groupby(enumerate(values), key=lambda pair: pair[1])]


def _functions(base: Base) -> list[str]:
    """Set-returning functions that give the values of one base in order."""
    if base.kind == INT and (progression := _progression(base.values)) is not None:
        first, last, step = progression
        return [f"generate_series({first},{last}{'' if step == 1 else f',{step}'})"]
    if base.kind != TEXT or None in base.values:
        return []
    texts = [value or "" for value in base.values]
    separator = next((mark for mark in ",;|~ " if not any(mark in text for text in texts)), None)
    if separator is None:
        return []
    return [f"string_to_table({quote(separator.join(texts))},'{separator}')"]


def _aliased(text: str, columns: tuple[str, ...], *, single: bool) -> Source:
    if single:  # a function's alias names its one column too
        return Source("v", raw(text), columns, alias=columns[0])
    return Source("v", raw(text), columns, alias="v", alias_columns=columns)


def _source_size(source: Source) -> int:
    text = source.text
    assert isinstance(text, Term)
    return size_of(text) + len(source.alias or "") + 2 * len(source.alias_columns) + bool(source.alias_columns)

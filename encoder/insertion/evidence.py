"""Which rows of which table the inserted rows were made from.

A hypothesis starts with one column of the inserted rows and one column of a table that holds all its
values: a foreign key and the key that it refers to, two foreign keys to one table, two columns of one
name.  Where a value stands in several rows, the other columns that agree decide.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, permutations
from typing import TypeAlias

import numpy as np

from encoder.assignment.addresses import NETWORKS, address
from encoder.budget import Budget
from encoder.frame import Floats, Frame, State, identifier_sql, rows_sql
from encoder.insertion.model import DriverRows, Indexes
from encoder.insertion.slots import Slot
from encoder.insertion.spell import INT, NUMBER, TEXT, class_of, common_ends
from encoder.keyed import keyed
from scratch import session as database
from scratch.catalog import Column, Table
from stream.model import TableName, Value

# A value of the primary pair may stand in so many rows on average.
_MAX_SPREAD = 200
_UNEXPLAINED = 40
_MAX_BESIDE = 4
# Values of so many bytes are looked for in columns of any name.
_PROBED = 60
# Groups that rows are taken from in turn, and how far a rounded multiple may be off, as a share too.
_MAX_GROUPS = 6
_ROUNDED = 0.006
# What it says for a table that a constant names it.
_NAMED = 60
# Characters of a constant before or behind what a text was made of.
_AFFIX = 20
_WORD = re.compile(r"\w+")
# Texts that spell keys: how many different ones at least, and how many are asked for.
_NUMBER = re.compile(r"0|[1-9]\d{0,8}")
_LEAST_SPELLED, _SPELLED = 4, 12
_CELLS = 1000  # for one unit of the budget


@dataclass(frozen=True, slots=True)
class Link:
    """Inserted row i was made from row `rows[i]` of the frame of `table`; with `pool` these are rows of it.

    `equal` maps each inserted column that a column of `table` always equals to that column; `column` is
    the inserted column that the hypothesis started from; `score` estimates the bytes that are left to explain.
    `beside`: the row was told from others with the same value by a column that it shares with this other link's.
    """

    table: Table
    rows: Indexes
    pool: DriverRows | None
    column: str
    equal: Mapping[str, str]
    score: float
    beside: Link | None = None

    @property
    def distinct(self) -> bool:
        return len(np.unique(self.rows)) == len(self.rows)


def links(
    state: State,
    target: Table,
    slots: Sequence[Slot],
    pool: Sequence[DriverRows],
    budget: Budget,
    *,
    returned: bool = False,
) -> list[Link]:
    """All hypotheses that hold, those with the least left to explain first; with `returned` only those on rows of
    `pool`."""
    finder = _Finder(state, target, slots, budget)
    found: dict[tuple[TableName, int, bytes], Link] = {}
    sources = [*([] if returned else [(None, None)]), *((p.table, p) for p in pool)]
    for place, (table, rows) in enumerate(sources):
        for link in finder.matched(rows) if rows is not None else ():
            found[link.table.name, place, link.rows.tobytes()] = link
        for slot in slots:
            for name, column in (*_pairs(state, target, slot, table), *(finder.spelled(slot) if rows is None else ())):
                told = finder.link(state.catalog[name], slot, column, rows)
                if told is None:
                    continue
                key = (name, place, told.rows.tobytes())
                if key not in found or found[key].score > told.score:
                    found[key] = told
        for told in (*finder.affixed(), *finder.networked()) if rows is None else ():
            found.setdefault((told.table.name, place, told.rows.tobytes()), told)
    ordered = sorted(found.values(), key=lambda link: (link.score, link.table.name, link.column))
    return ordered if returned else [*ordered, *_beside(finder, ordered)]


def _beside(finder: _Finder, known: Sequence[Link]) -> Iterator[Link]:
    """Links to rows that only a join with another link's rows tells apart."""
    repeated = [link for link in known if 1 < len(np.unique(link.rows)) < len(link.rows)]
    for other in repeated[:_MAX_BESIDE]:
        for slot in finder.slots:
            for name, column in _pairs(finder.state, finder.target, slot, None):
                link = finder.link_beside(other, finder.state.catalog[name], slot, column)
                if link is not None:
                    yield link


def link_by(
    state: State, target: Table, slots: Sequence[Slot], budget: Budget, table: Table, held: Slot, column: str
) -> Link | None:
    """The hypothesis that `column` of `table` held the values of `held`."""
    return _Finder(state, target, slots, budget).link(table, held, column, None)


def _pairs(state: State, target: Table, slot: Slot, only: TableName | None) -> Iterator[tuple[TableName, str]]:
    """Columns that `slot` may have been read from; of the table `only`, if given."""
    if not slot.explicit or (only is None and slot.constant and len(slot.values) > 1) or None in slot.values:
        return
    seen: set[tuple[TableName, str]] = set()
    for pair in _candidates(state, target, slot):
        if pair not in seen and (only is None or pair[0] == only):
            seen.add(pair)
            yield pair


def _candidates(state: State, target: Table, slot: Slot) -> Iterator[tuple[TableName, str]]:
    catalog = state.catalog
    refers = False
    for key in target.foreign_keys:
        if key.columns == (slot.name,):
            refers = True
            yield key.target, key.target_columns[0]
            for other in catalog.referenced_by.get(key.target, ()):
                if len(other.columns) == 1 and other.target_columns == key.target_columns:
                    yield other.table, other.columns[0]
    if slot.sequence is not None:
        return
    kind = class_of(slot.column)
    loose = kind == INT and not refers and slot.name.endswith("id")
    for name in catalog:
        table = catalog[name]
        column = table.by_name.get(slot.name)
        if column is not None and column.base == slot.column.base and column.base != "boolean":
            yield name, slot.name
        yield from ((name, other.name) for other in table.columns if not refers and _tailed(slot.column, other))
        if loose and len(table.primary_key) == 1 and class_of(table.by_name[table.primary_key[0]]) == INT:
            yield name, table.primary_key[0]
    if slot.column.kind == "S" and sum(len(value or "") for value in slot.values) > _PROBED:
        yield from _holders(state, slot)


def _holders(state: State, slot: Slot) -> list[tuple[TableName, str]]:
    """Text columns of any name that hold the first and the last of the values, asked of the server at once."""
    columns = [(name, c.name) for name in state.catalog for c in state.catalog[name].columns if c.kind == "S"]
    holds = "EXISTS(SELECT FROM {0} WHERE {1}::text=v.{2})"
    tests = (
        f"SELECT {place} FROM v WHERE "
        + " AND ".join(holds.format(rows_sql(state.catalog[name]), identifier_sql(column), side) for side in "ab")
        for place, (name, column) in enumerate(columns)
    )
    query = "WITH v(a,b)AS(SELECT %s::text,%s::text) " + " UNION ALL ".join(t.replace("%", "%%") for t in tests)
    found = database.rows(state.session, query, [slot.values[0], slot.values[-1]])
    return [columns[int(place or 0)] for (place,) in found]


def _key_holders(state: State, slot: Slot) -> list[tuple[TableName, str]]:
    """Keys and foreign keys of one number that hold what a text spells: generic references name rows of any table."""
    spelled = dict.fromkeys(value or "" for value in slot.values)
    if slot.column.kind != "S" or len(spelled) < _LEAST_SPELLED or not all(map(_NUMBER.fullmatch, spelled)):
        return []
    some = [*spelled][:: 1 + len(spelled) // _SPELLED]
    columns = [
        (name, column.name)
        for name in state.catalog
        for column in state.catalog[name].columns
        if class_of(column) == INT and _is_key(state.catalog[name], column)
    ]
    tests = (
        f"SELECT {place} WHERE {len(some)}=(SELECT count(DISTINCT {identifier_sql(column)})"
        f"FROM {rows_sql(state.catalog[name])} WHERE {identifier_sql(column)} IN({','.join(some)}))"
        for place, (name, column) in enumerate(columns)
    )
    found = database.rows(state.session, " UNION ALL ".join(tests)) if columns else []
    return [columns[int(place or 0)] for (place,) in found]


def _is_key(table: Table, column: Column) -> bool:
    return table.primary_key == (column.name,) or any(key.columns == (column.name,) for key in table.foreign_keys)


class _Finder:
    def __init__(self, state: State, target: Table, slots: Sequence[Slot], budget: Budget) -> None:
        self.state = state
        self._spelled: dict[str, list[tuple[TableName, str]]] = {}
        self.target = target
        self.slots = [slot for slot in slots if slot.explicit]
        self.budget = budget

    def _proportional(self, table: Table, rows: Indexes, slot: Slot) -> bool:
        """Whether the values are a constant times the column of their name."""
        column = table.by_name.get(slot.name)
        if column is None or class_of(column) != NUMBER or class_of(slot.column) != NUMBER or None in slot.values:
            return False
        new = np.array([float(value or 0) for value in slot.values])
        return _scaled(new, self.state.frame(table.name).numbers(slot.name)[rows])

    @cached_property
    def named(self) -> set[str]:
        """Names of tables that rows say which a constant refers to: the parts are texts of such a row, as those of a
        content type."""
        found: set[str] = set()
        for slot in self.slots:
            key = next((key for key in self.target.foreign_keys if key.columns == (slot.name,)), None)
            if key is None or not slot.constant or slot.values[0] is None:
                continue
            frame = self.state.frame(key.target)
            row = frame.places(key.target_columns).get((slot.values[0],))
            texts = [frame.texts(c.name)[row] for c in frame.table.columns if c.kind == "S"] if row is not None else []
            said = [text for text in texts if text]
            found.update(said, ("_".join(pair) for pair in permutations(said, 2)))
        return found

    def spelled(self, slot: Slot) -> list[tuple[TableName, str]]:
        """See _key_holders."""
        if slot.name not in self._spelled:
            self._spelled[slot.name] = _key_holders(self.state, slot)
        return self._spelled[slot.name]

    def _namesakes(self, slot: Slot, table: Table) -> list[str]:
        """Columns of `table` that may well hold the same as `slot`."""
        return [*namesakes(self.target, slot, table), *(name for at, name in self.spelled(slot) if at == table.name)]

    def _options(self, table: Table, slot: Slot, column: str) -> list[list[int]] | None:
        """For every inserted row those of `table` that hold its value; None where one has none."""
        index = keyed(self.state.frame(table.name), (column,))
        if not all((value,) in index for value in slot.values):
            return None
        rows = {value: index.rows((value,)) for value in set(slot.values)}
        return [rows[value] for value in slot.values]

    def link(self, table: Table, slot: Slot, column: str, pool: DriverRows | None) -> Link | None:
        options = self._options(table, slot, column)
        if options is None:
            return None
        if pool is not None:
            inside = set(pool.rows.tolist())
            options = [[row for row in rows if row in inside] for rows in options]
            if not all(options):
                return None
        total = sum(map(len, options))
        if total > _MAX_SPREAD * len(options) or not self.budget.spend(1 + total // _CELLS):
            return None
        made = [self._made(table, slot, rows, pool) for rows in self._settled(table, options)]
        return min(made, key=lambda link: link.score, default=None)

    def _made(self, table: Table, slot: Slot, rows: list[int], pool: DriverRows | None) -> Link:
        found = np.array(rows, dtype=np.int64)
        equal = self._equal(table, found)
        return Link(table, found, pool, slot.name, equal, self._score(table, found, equal, pool))

    def _settled(self, table: Table, options: list[list[int]]) -> Iterator[list[int]]:
        """Ways to take one row out of each of `options`: what agrees most, or rows of one group whatever they hold."""
        first = self._settle(table, options)
        if first is not None:
            yield first
        if any(len(rows) > 1 for rows in options):
            yield from islice((rows for rows in self._by_group(table, options) if rows != first), _MAX_GROUPS)

    def networked(self) -> Iterator[Link]:
        """Rows of networks that addresses lie in, with the masks of these."""
        for slot in self.slots:
            if slot.column.base not in NETWORKS or slot.constant or None in slot.values:
                continue
            nets = [str(address(value or "").network) for value in slot.values]
            bare = replace(slot, values=tuple(nets))
            for table in (self.state.catalog[name] for name in self.state.catalog):
                for column in table.columns:
                    if column.base not in NETWORKS or table.name == self.target.name:
                        continue
                    there = keyed(self.state.frame(table.name), (column.name,))
                    if all((value,) in there for value in bare.values):
                        link = self.link(table, bare, column.name, None)
                        if link is not None:
                            explained = min(_UNEXPLAINED, sum(map(len, nets))) - 10
                            yield replace(link, score=link.score - explained)

    def affixed(self) -> Iterator[Link]:
        """Rows of whose column of the same name a text was made, a constant before or behind it."""
        for slot in self.slots:
            texts = [value for value in slot.values if value is not None]
            if slot.column.kind != "S" or slot.constant or len(texts) < max(2, len(slot.values)):
                continue
            start, end = common_ends(texts)
            shortest = min(map(len, texts))
            cuts = [
                (a, b)
                for a in range(min(start, _AFFIX) + 1)
                for b in range(min(end, _AFFIX) + 1)
                if 0 < a + b < shortest
            ]
            for table in (self.state.catalog[name] for name in self.state.catalog if cuts):
                column = table.by_name.get(slot.name)
                if column is None or column.kind != "S":
                    continue
                there = keyed(self.state.frame(table.name), (slot.name,))
                for a, b in cuts:
                    if all((text[a : len(text) - b],) in there for text in texts):
                        bare = replace(slot, values=tuple(text[a : len(text) - b] for text in texts))
                        link = self.link(table, bare, slot.name, None)
                        if link is not None:
                            explained = min(_UNEXPLAINED, sum(map(len, texts))) - 10
                            yield replace(link, score=link.score - explained)

    def matched(self, pool: DriverRows) -> Iterator[Link]:
        """One inserted row for each row of `pool`: matched by the columns that hold the same values equally often,
        all together, texts with a constant before or behind them too; beyond that by what texts mention, else in
        order, that in which they are returned or that of their key."""
        table, count = self.state.catalog[pool.table], len(self.slots[0].values) if self.slots else 0
        if len(pool.rows) != count or pool.cte is None:
            return
        frame = self.state.frame(table.name)
        places: list[int] = pool.rows.tolist()
        wanted: list[tuple[Value, ...]] = [()] * count
        given: list[tuple[Value, ...]] = [()] * count
        varying = [slot for slot in self.slots if not slot.constant]
        for slot in sorted(varying, key=lambda slot: -len(set(slot.values))):
            same = [column.name for column in table.columns if compatible(column, slot.column)]
            for name in sorted(same, key=lambda name: (name != slot.name, len(name), name)):
                texts = frame.texts(name)
                own = [texts[row] for row in places]
                left = [(*key, value) for key, value in zip(wanted, _bared(slot.values, own), strict=True)]
                right = [(*key, value) for key, value in zip(given, own, strict=True)]
                if Counter(left) == Counter(right):
                    wanted, given = left, right
                    break
        waiting: dict[tuple[Value, ...], list[int]] = {}
        for key, row in zip(given, places, strict=True):
            waiting.setdefault(key, []).append(row)
        mentioned = self._mentioned(frame, [waiting[key] for key in wanted])
        if mentioned is not None:
            choices = [mentioned]
        else:
            ordered = {key: sorted(rows) for key, rows in waiting.items()}
            choices = [_taken(wanted, waiting), *([_taken(wanted, ordered)] if ordered != waiting else [])]
        for rows in choices:
            found = np.array(rows, dtype=np.int64)
            equal = self._equal(table, found)
            yield Link(table, found, pool, "", equal, self._score(table, found, equal, pool))

    def _mentioned(self, frame: Frame, options: list[list[int]]) -> list[int] | None:
        """The one of each row's `options` that an inserted text mentions as a word, where one column tells all."""
        if all(len(rows) == 1 for rows in options):
            return [rows[0] for rows in options]
        for slot in self.slots:
            if slot.column.kind != "S" or slot.constant:
                continue
            words = [set(_WORD.findall(value or "")) for value in slot.values]
            for column in frame.table.columns:
                texts = frame.texts(column.name)
                left = [[r for r in rows if texts[r] in said] for rows, said in zip(options, words, strict=True)]
                if all(len(rows) == 1 for rows in left):
                    chosen = [rows[0] for rows in left]
                    if len(set(chosen)) == len(chosen):
                        return chosen
        return None

    def link_beside(self, other: Link, table: Table, slot: Slot, column: str) -> Link | None:
        options = self._options(table, slot, column)
        if options is None:
            return None
        total = sum(map(len, options))
        if total > _MAX_SPREAD * len(options) or total == len(options):
            return None
        frame, beside = self.state.frame(table.name), self.state.frame(other.table.name)
        for mine, theirs in _joinable(table, other.table):
            if not self.budget.spend(1 + total // _CELLS):
                return None
            texts, keys = frame.texts(mine), beside.texts(theirs)
            wanted = [keys[row] for row in other.rows.tolist()]
            left = [[r for r in rows if texts[r] == key] for rows, key in zip(options, wanted, strict=True)]
            if all(len(rows) == 1 for rows in left) and None not in wanted:
                found = np.array([rows[0] for rows in left], dtype=np.int64)
                equal = self._equal(table, found)
                score = self._score(table, found, equal, None)
                return Link(table, found, None, slot.name, equal, score, other)
        return None

    def _settle(self, table: Table, options: list[list[int]]) -> list[int] | None:
        """One row out of each of `options`, by the columns that agree."""
        if all(len(rows) == 1 for rows in options):
            return [rows[0] for rows in options]
        frame = self.state.frame(table.name)
        # What varies says more than what is the same in all rows, which may have been set so.
        for constant in (False, True):
            votes = [
                (slot.values, frame.texts(name), _likeness if slot.column.kind == "S" else _same)
                for slot in self.slots
                if slot.constant is constant and slot.sequence is None
                for name in self._namesakes(slot, table)
            ]
            options = [_best(rows, place, votes) for place, rows in enumerate(options)]
            if all(len(rows) == 1 for rows in options):
                return [rows[0] for rows in options]
            turns = _in_turn(options, frame)
            if turns is not None:
                return turns
        return next(self._by_group(table, options), None)

    def _by_group(self, table: Table, options: list[list[int]]) -> Iterator[list[int]]:
        """The choices whose rows all hold one value of some foreign key or short code."""
        frame = self.state.frame(table.name)
        for column in _grouping(table):
            texts = frame.texts(column.name)
            shared = set.intersection(*({texts[row] for row in rows} for rows in options))
            for value in sorted(shared, key=lambda text: (text is None, text or "")):
                left = [[row for row in rows if texts[row] == value] for rows in options]
                if all(len(rows) == 1 for rows in left):
                    yield [rows[0] for rows in left]

    def _equal(self, table: Table, rows: Indexes) -> dict[str, str]:
        frame = self.state.frame(table.name)
        found: dict[str, str] = {}
        places = rows.tolist()
        for slot in self.slots:
            names = [c.name for c in table.columns if compatible(c, slot.column)]
            names += [name for at, name in self.spelled(slot) if at == table.name]
            for name in sorted(names, key=lambda name: (name != slot.name, len(name), name)):
                texts = frame.texts(name)
                if all(texts[row] == value for row, value in zip(places, slot.values, strict=True)):
                    found[slot.name] = name
                    break
        return found

    def _score(self, table: Table, rows: Indexes, equal: Mapping[str, str], pool: DriverRows | None) -> float:
        left = 0.0
        for slot in self.slots:
            if slot.constant or slot.name in equal or slot.in_step:
                continue
            cheap = slot.sequence is not None or self._proportional(table, rows, slot)
            left += 10 if cheap else min(_UNEXPLAINED, sum(len(value or "NULL") for value in slot.values))
        total = self.state.frame(table.name).size if pool is None else len(pool.rows)
        left += 0 if len(np.unique(rows)) == total else 25
        left -= _NAMED * (table.name.name in self.named)
        return left - (15 if pool is not None and pool.cte else 0)


def _scaled(new: Floats, old: Floats) -> bool:
    """Whether `new` is `old` times a constant, rounded."""
    with np.errstate(all="ignore"):
        factor = float(np.median(new / old))
    return bool(np.isfinite(factor) and factor and (np.abs(new - old * factor) <= _ROUNDED * (1 + np.abs(old))).all())


def _taken(wanted: Sequence[tuple[Value, ...]], waiting: Mapping[tuple[Value, ...], list[int]]) -> list[int]:
    """The rows waiting under each key that is wanted, in turn."""
    turns = {key: iter(rows) for key, rows in waiting.items()}
    return [next(turns[key]) for key in wanted]


_Vote: TypeAlias = tuple[Sequence[Value], Sequence[Value], Callable[[Value, Value], float]]


def _best(rows: list[int], place: int, votes: Sequence[_Vote]) -> list[int]:
    """The rows that are most like inserted row `place` in the columns that vote."""
    if len(rows) == 1:
        return rows
    scores = [sum(like(texts[row], values[place]) for values, texts, like in votes) for row in rows]
    top = max(scores)
    return [row for row, score in zip(rows, scores, strict=True) if score == top]


def _same(source: Value, value: Value) -> float:
    return float(source == value)


def _likeness(source: Value, value: Value) -> float:
    """How much speaks for `value` having been made from `source`: equal, or how much of it is that."""
    if source == value:
        return 1.0
    if not source or not value or source not in value:
        return 0.0
    return 0.5 * len(source) / len(value)


def _bared(values: Sequence[Value], sources: Sequence[Value]) -> Sequence[Value]:
    """`values` without the constant text before and behind that `sources`, in another order, have been given; as they
    are where there is none."""
    texts = [value for value in values if value is not None]
    given = [source for source in sources if source is not None]
    if not texts or len(texts) != len(values) or len(given) != len(values):
        return values
    more, rest = divmod(sum(map(len, texts)) - sum(map(len, given)), len(texts))
    if rest or not 0 < more <= min(map(len, texts)):
        return values
    wanted = Counter(given)
    start, end = common_ends(texts)
    for before in range(min(more, start) + 1):
        if more - before <= end:
            bare = [text[before : len(text) - (more - before)] for text in texts]
            if Counter(bare) == wanted:
                return bare
    return values


def _in_turn(options: list[list[int]], frame: Frame) -> list[int] | None:
    """Equal choices are taken in the order of a scan, where there are as many rows as choices."""
    taken: dict[tuple[int, ...], int] = {}
    found = []
    for rows in options:
        key = tuple(sorted(rows, key=frame.scan.__getitem__))
        place = taken.get(key, 0)
        if place >= len(rows):
            return None
        found.append(key[place])
        taken[key] = place + 1
    return found if all(taken[key] == len(key) for key in taken) else None


def _joinable(one: Table, other: Table) -> list[tuple[str, str]]:
    """Columns of the two tables that a join may compare: foreign keys to one table, or columns of one name."""
    found = [
        (mine.columns[0], theirs.columns[0])
        for mine in one.foreign_keys
        for theirs in other.foreign_keys
        if mine.target == theirs.target and len(mine.columns) == len(theirs.columns) == 1
    ]
    keys = {*one.primary_key, *other.primary_key}
    found += [
        (column.name, column.name)
        for column in one.columns
        if column.name not in keys
        and column.base != "boolean"
        and column.name in other.by_name
        and compatible(column, other.by_name[column.name])
    ]
    return list(dict.fromkeys(found))


def compatible(one: Column, other: Column) -> bool:
    """Whether equal texts of the two columns are equal values that INSERT converts."""
    kind = class_of(one)
    if kind != class_of(other):
        return False
    return one.base == other.base or kind == INT or (kind == TEXT and one.kind == other.kind == "S")


def namesakes(target: Table, slot: Slot, table: Table) -> list[str]:
    """Columns of `table` that may well hold the same as `slot`: of its name, or foreign keys to the same table."""
    found = {slot.name} if slot.name in table.by_name else set()
    found.update(column.name for column in table.columns if _tailed(slot.column, column))
    for key in target.foreign_keys:
        if key.columns == (slot.name,):
            if key.target == table.name:
                found.update(key.target_columns)
            found.update(other.columns[0] for other in table.foreign_keys if other.target == key.target)
    return sorted(found)


def _tailed(one: Column, other: Column) -> bool:
    """Whether the names of two whole numbers, which refer to something, differ by a word at the front alone."""
    if class_of(one) != INT or class_of(other) != INT or "_id" not in one.name:
        return False
    return other.name.endswith(f"_{one.name}") or ("_id" in other.name and one.name.endswith(f"_{other.name}"))


def _grouping(table: Table) -> list[Column]:
    names = {key.columns[0] for key in table.foreign_keys if len(key.columns) == 1}
    return [c for c in table.columns if c.name in names or c.base == "boolean" or c.kind == "S"]

"""UPDATE statements that say each row's new values, for values that no expression gives.

Statements are well-typed guesses, right for the rows as they stand; whoever keeps one runs it first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from emit import dense
from emit.literal import input_text, literal, quote
from emit.render import render
from emit.term import Part, Prec, Source, Term, Update, call, cast, conjoin, op, raw, ref, separate
from encoder import literals
from encoder.effect import RowTuple, key_of
from encoder.frame import Frame, State
from encoder.keyset import Numbers, shifted, shortest
from encoder.listing import INTEGERS, Listing, element, keys, listings, type_name
from encoder.rowset import row_set_atoms
from encoder.selection.model import Labels
from encoder.valuecodes import Codes, bits, codes, packed
from scratch.catalog import Column, Table
from stream.model import Value

Pair = tuple[RowTuple, RowTuple]

_LETTERS = "ivwyzpqrstuabcdefghjklmno"
# Rows between the first and the last that a list by position may have, for each row that it is for.
_MAX_SPREAD = 4
_MAX_CASES = 4
# Fewer rows do not pay for the sum; more kinds of values than there are may give cheaper characters.
_FEWEST_STEPS = 12
_MORE_COUNTS = 8
_MAX_NUMBER = 0x10FFFF
_SUMMED = "OVER(ROWS UNBOUNDED PRECEDING)"
# Types whose modifier is part of the value, and those whose constants need no quotes.
_MODIFIED = frozenset({"bit", "character"})
_PLAIN = INTEGERS | {"numeric", "boolean"}


def value_map_updates(
    state: State,
    table: Table,
    pairs: Sequence[Pair],
    places: Sequence[int],
    timezone: str | None,
    bound: int | None = None,
) -> list[Update]:
    """Statements that bring the columns at `places` (of `table.stored`) of every row to its new value, the shortest
    first; only those of less than `bound` bytes.  `pairs` are the rows before and after; their keys do not change.

    Empty for a table without a row key.
    """
    stored = {column.name: place for place, column in enumerate(table.stored)}
    if not table.row_key or not pairs or any(stored[name] in places for name in table.row_key):
        return []
    task = _Task(state.frame(table.name), table, tuple(pairs), tuple(places), timezone, bound)
    measured = {text: (len(text.encode()), update) for update in task.updates() for text in (render(update),)}
    ranked = sorted((size, text) for text, (size, _) in measured.items() if bound is None or size < bound)
    return [measured[text][1] for _, text in ranked]


@dataclass(frozen=True)
class _Task:
    frame: Frame
    table: Table
    pairs: tuple[Pair, ...]
    places: tuple[int, ...]
    timezone: str | None
    bound: int | None

    def updates(self) -> Iterator[Update]:
        values = literals.values_update(self.table, self.pairs, self.places, self.timezone)
        if values is not None:
            yield values
        yield from self.unnested()
        yield from self.by_groups()
        yield from self.by_cases()
        if len(self.key_columns) == 1 and self.key_columns[0].base in INTEGERS:
            yield from self.by_position()
            yield from self.by_steps()

    # -- what all share

    @cached_property
    def columns(self) -> list[Column]:
        return [self.table.stored[place] for place in self.places]

    @cached_property
    def key_columns(self) -> list[Column]:
        return [self.table.by_name[name] for name in self.table.row_key]

    @cached_property
    def letters(self) -> list[str]:
        """Names that are no column of the table, so that none needs to be qualified."""
        taken = {column.name for column in self.table.columns}
        return [letter for letter in _LETTERS if letter not in taken]

    @cached_property
    def labels(self) -> Labels:
        must = np.zeros(self.frame.size, dtype=np.bool_)
        must[[self.frame.index[key_of(self.table, before)] for before, _ in self.pairs]] = True
        return Labels(must, ~must)

    def wheres(self, labels: Labels) -> list[Term | None]:
        if not labels.must_not.any():
            return [None]
        return [atom.term for atom in row_set_atoms(self.frame, labels, self.timezone, keep=1, bound=self.bound)]

    def update(self, sets: Sequence[Term], where: Term | None, source: Source | None = None) -> Update:
        named = tuple(((column.name,), term) for column, term in zip(self.columns, sets, strict=True))
        return Update(literals.source_of(self.table), named, () if source is None else (source,), where)

    # -- a join

    def unnested(self) -> Iterator[Update]:
        """FROM unnest('{1,2}'::int[],'{x,y}'::text[])x(i,v)WHERE i=id."""
        width = len(self.key_columns) + len(self.places)
        if len(self.letters) < width:
            return
        names = self.letters[:width]
        stored = {column.name: place for place, column in enumerate(self.table.stored)}
        before = [[pair[0][stored[column.name]] for pair in self.pairs] for column in self.key_columns]
        key_lists = [
            keys(values, column, self.timezone) for values, column in zip(before, self.key_columns, strict=True)
        ]
        value_lists = [
            listings(*_column(self.pairs, place), column, self.timezone)[0]
            for place, column in zip(self.places, self.columns, strict=True)
        ]
        whole = [*key_lists, *value_lists]
        source = _source(call("unnest", *(listing.array for listing in whole)), names)
        back = [listing.back(ref("v", name)) for listing, name in zip(whole, names, strict=True)]
        where = conjoin(
            [op(term, "=", ref((), column.name)) for term, column in zip(back, self.key_columns, strict=False)]
        )
        yield self.update(back[len(key_lists) :], where, source)

    def by_groups(self) -> Iterator[Update]:
        """FROM(VALUES('{1,2}'::int[],'x'),('{3}','y'))x(i,v)WHERE id=ANY(i): rows with equal values together."""
        groups: dict[tuple[Value, ...], list[Value]] = {}
        for before, after in self.pairs:
            groups.setdefault(self._new(after), []).append(key_of(self.table, before)[0])
        names = self.letters[: 1 + len(self.places)]
        if len(self.key_columns) > 1 or len(groups) < 2 or len(names) <= len(self.places):
            return
        key = self.key_columns[0]
        cells = [
            _alike(["{" + ",".join(map(str, listed)) + "}" for listed in groups.values()], type_name(key) + "[]", None),
            *(
                _alike(values, column.type if column.base in _MODIFIED else column.base, self.timezone)
                for values, column in zip(zip(*groups, strict=True), self.columns, strict=True)
            ),
        ]
        if key.base not in INTEGERS:
            return
        lines = [Term(("(", *separate(line), ")")) for line in zip(*cells, strict=True)]
        source = _source(Term(("(", "VALUES", *separate(lines), ")")), names)
        sets = [ref("v", name) for name in names[1:]]
        yield self.update(sets, op(ref((), key.name), "=", call("ANY", ref("v", names[0]))), source)

    def _new(self, after: RowTuple) -> tuple[Value, ...]:
        return tuple(after[place] for place in self.places)

    # -- cases

    def by_cases(self) -> Iterator[Update]:
        """SET v=CASE WHEN id<9 THEN 'x' ELSE 'y' END: conditions on the key for few values."""
        sets = []
        for place, column in zip(self.places, self.columns, strict=True):
            term = self._cases([after[place] for _, after in self.pairs], column)
            if term is None:
                return
            sets.append(term)
        for where in self.wheres(self.labels):
            yield self.update(sets, where)

    def _cases(self, values: Sequence[Value], column: Column) -> Term | None:
        groups: dict[Value, list[int]] = {}
        for (before, _), value in zip(self.pairs, values, strict=True):
            groups.setdefault(value, []).append(self.frame.index[key_of(self.table, before)])
        if len(groups) > _MAX_CASES:
            return None
        ordered = sorted(groups, key=lambda value: len(groups[value]))
        if len(groups) == 1:
            return literals.constant(ordered[0], column, self.timezone)
        if column.base == "boolean" and None not in groups:
            return self._condition(groups["t"], groups["f"])
        shown = _alike(ordered, column.type if column.base in _MODIFIED else column.base, self.timezone)
        parts: list[Part] = ["CASE"]
        for number, (value, term) in enumerate(zip(ordered[:-1], shown, strict=False)):
            later = [row for other in ordered[number + 1 :] for row in groups[other]]
            condition = self._condition(groups[value], later)
            if condition is None:
                return None
            parts += ["WHEN", *condition.parts, "THEN", *term.parts]
        return Term((*parts, "ELSE", *shown[-1].parts, "END"))

    def _condition(self, yes: Sequence[int], no: Sequence[int]) -> Term | None:
        must, must_not = np.zeros((2, self.frame.size), dtype=np.bool_)
        must[list(yes)] = True
        must_not[list(no)] = True
        asked = Labels(must, must_not)
        found = row_set_atoms(self.frame, asked, self.timezone, among=self.labels.must, keep=1, bound=self.bound)
        return found[0].term if found else None

    # -- by position

    def by_position(self) -> Iterator[Update]:
        """SET v=('{5,6}'::int[])[id-10]: the key is the place in the list, and a row set is the WHERE.

        Rows between those to update keep their values and may be written, or are left out and stand for nothing.
        """
        at = {int(key_of(self.table, pair[0])[0] or 0): pair for pair in self.pairs}
        first, last = min(at), max(at)
        if last - first >= _MAX_SPREAD * len(at):
            return
        standing = {int(key[0] or 0): row for row, key in enumerate(self.frame.keys)}
        kept = {number: row for number, row in standing.items() if first < number < last and number not in at}
        for filled in (True, False) if kept else (False,):
            sets = []
            for place, column in zip(self.places, self.columns, strict=True):
                own = self.frame.texts(column.name) if filled else []
                sets.append(self._placed(place, column, at, {n: own[row] for n, row in kept.items()} if filled else {}))
            must_not = self.labels.must_not.copy()
            if filled:
                must_not[list(kept.values())] = False
            for where in self.wheres(Labels(self.labels.must, must_not)):
                yield self.update(sets, where)

    def _placed(self, place: int, column: Column, at: Mapping[int, Pair], kept: Mapping[int, Value]) -> Term:
        """The shortest way to take the value of `place` by the key's distance from the first key."""
        first, last = min(at), max(at)
        values: list[Value] = []
        olds: list[Value] = []
        for number in range(first, last + 1):
            if number in at:
                olds.append(at[number][0][place])
                values.append(at[number][1][place])
            elif number in kept:
                olds.append(kept[number])
                values.append(kept[number])
            else:
                olds.append(olds[-1])
                values.append(values[-1])
        key = self.key_columns[0]
        own = ref((), key.name)
        distance, small = (
            shifted(term, 1 - first) for term in (own, cast(own, "int") if key.base == "bigint" else own)
        )
        ways = [
            way
            for listing in listings(values, olds, column, self.timezone)
            for way in _elements(listing, distance, small)
        ]
        if first >= 0:
            integer = cast(own, "int") if key.base == "bigint" else own
            for numbered in codes(values, olds, column, self.timezone):
                ways += [*packed(numbered, first, integer), *bits(numbered, first, integer)]
        return shortest(ways)

    # -- by steps from key to key

    def by_steps(self) -> Iterator[Update]:
        """FROM(SELECT c,sum(ascii(c)/5)OVER(ROWS UNBOUNDED PRECEDING)i FROM string_to_table('…',null)c)x WHERE i=id
        with SET v=ascii(c)%5: a character a row holds the step from the key before and the numbers of the values.
        """
        pairs = sorted(self.pairs, key=lambda pair: int(key_of(self.table, pair[0])[0] or 0))
        if len(pairs) < _FEWEST_STEPS or len(self.letters) < 2 + len(self.places):
            return
        steps = np.diff([int(key_of(self.table, before)[0] or 0) for before, _ in pairs], prepend=0)
        lists = [
            (*_column(pairs, place), column, self.timezone)
            for place, column in zip(self.places, self.columns, strict=True)
        ]
        yield from self._beside_steps(steps, [listings(*listed)[0] for listed in lists])
        found = [codes(*listed) for listed in lists]
        if all(found):
            yield from self._stepped(steps, [choices[0] for choices in found])

    def _beside_steps(self, steps: Numbers, lists: Sequence[Listing]) -> Iterator[Update]:
        """The steps in an array beside those of the values."""
        base = _base(int(steps[0]), 1)
        shown = dense.code_points(steps - base * (np.arange(len(steps)) == 0))
        if shown is None:
            return
        total, step, *names = self.letters[: 2 + len(lists)]
        arrays = call("unnest", *(listing.array for listing in lists), raw(f"string_to_array({shown},null)"))
        summed = shifted(Term((f"sum(ascii({step}))", _SUMMED)), base)
        columns = separate([raw(name) for name in (*names, step)])
        listed = separate([*(raw(name) for name in names), summed])
        rows = Term(("(", "SELECT", *listed, total, "FROM", *arrays.parts, "x", "(", *columns, ")", ")"))
        sets = [listing.back(ref("v", name)) for listing, name in zip(lists, names, strict=True)]
        where = op(ref("v", total), "=", ref((), self.key_columns[0].name))
        yield self.update(sets, where, Source("v", rows, (*names, total), "x"))

    def _stepped(self, steps: Numbers, ways: Sequence[Codes]) -> Iterator[Update]:
        """The steps and the numbers of the values in one character."""
        tried = []
        for more in range(_MORE_COUNTS):
            counts = (ways[0].count + more, *(way.count for way in ways[1:]))
            base = _base(int(steps[0]), math.prod(counts))
            shown = _characters(steps, base, ways, counts)
            if shown is not None:
                tried.append((len(shown.encode()), counts, base, shown))
        if not tried:
            return
        _, counts, base, shown = min(tried)
        whole = math.prod(counts)
        name, total = self.letters[:2]
        summed = Term((f"sum(ascii({name})/{whole})", _SUMMED))
        characters = ("FROM", f"string_to_table({shown},null)", name)
        rows = Term(("(", "SELECT", name, ",", *shifted(summed, base).parts, total, *characters, ")"))
        sets = []
        divisor = whole
        for way, count in zip(ways, counts, strict=True):
            divisor //= count
            character = call("ascii", ref("v", name))
            scaled = character if divisor == 1 else op(character, "/", raw(str(divisor)))
            sets.append(way.back(op(scaled, "%", raw(str(count)))))
        where = op(ref("v", total), "=", ref((), self.key_columns[0].name))
        yield self.update(sets, where, Source("v", rows, (name, total), "x"))


def _characters(steps: Numbers, base: int, ways: Sequence[Codes], counts: Sequence[int]) -> str | None:
    """A character a row: the step, of which the first is from `base`, and behind it the numbers of `ways` as digits
    of the bases `counts`; None where some would be no characters."""
    if math.prod(counts) * max(int(steps[0]) - base + 1, int(steps[1:].max()) + 1) > _MAX_NUMBER:
        return None
    numbers = steps - base * (np.arange(len(steps)) == 0)
    for way, count in zip(ways, counts, strict=True):
        numbers = numbers * count + way.numbers
    return dense.code_points(numbers)


def _base(first: int, scale: int) -> int:
    """What to count steps from, so that it and the character for the step to the `first` key are shortest."""
    choices = {0, first - 1, *(first // unit * unit for unit in (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000))}

    def bytes_with(choice: int) -> int:
        number = (first - choice) * scale
        shown = len(chr(number).encode(errors="surrogatepass")) if 0 < number <= _MAX_NUMBER else _MAX_NUMBER
        return shown + (len(f"{choice:+d}") if choice else 0)

    return min((choice for choice in sorted(choices) if choice <= first), key=bytes_with)


def _elements(listing: Listing, place: Term, integer: Term) -> Iterator[Term]:
    """The value of element number `place` (`integer` is the same where only an integer will do)."""
    yield listing.back(element(listing.array, place))
    if listing.parts is not None:
        whole, mark = raw(listing.parts[0]), listing.parts[1]
        if mark is not None:
            yield listing.back(call("split_part", whole, raw(mark), integer))
        elif listing.initial:
            yield listing.back(call("substr", whole, integer))
        else:
            yield listing.back(call("substr", whole, integer, raw("1")))


def _column(pairs: Sequence[Pair], place: int) -> tuple[list[Value], list[Value]]:
    """New and old values."""
    return [after[place] for _, after in pairs], [before[place] for before, _ in pairs]


def _source(rows: Term, names: Sequence[str]) -> Source:
    """`rows` as x, which no column of the table is called by, with columns `names`."""
    return Source("v", rows, tuple(names), "x", tuple(names))


def _alike(values: Sequence[Value], base: str, timezone: str | None) -> list[Term]:
    """Constants where nothing gives them a type: the first says its own, which the others take on."""
    shown = []
    typed = False
    for value in values:
        if value is None:
            text = "NULL" if typed else literal(None, base, context="bare")
        elif typed and not base.endswith("[]") and base in _PLAIN:
            text = literal(value, base, context="bare")
        elif typed:
            text = quote(input_text(value, base, timezone=timezone))
        else:
            text = literal(value, base, context="bare", timezone=timezone)
        typed = True
        shown.append(raw(text, Prec.UNARY if text.startswith("-") else Prec.CAST if "::" in text else Prec.ATOM))
    return shown

"""Rows that have nothing in common, named by their integer key in the fewest bytes.

Every family of conditions below spells the same: it holds for all rows that must be selected and for none that
must not.  Rows that may be either, and numbers that no row has, are taken or left as suits the spelling.  Each is
tried on the rows to select and, negated, on those not to; and again within a range that the rows to select fill.
Sizes are measured, the shortest win.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from emit import dense
from emit.term import Prec, Term, call, cast, conjoin, disjoin, in_values, op, raw, ref
from encoder.frame import Frame
from encoder.selection.model import Atom, Labels, MaskedAtom, Selection
from encoder.selection.rowset import key_atom
from encoder.selection.spelling import make_atom

Numbers = NDArray[np.int64]

# Characters with a meaning of their own in a regular expression.
_SPECIAL = frozenset(map(ord, "$()*+.?[\\]^{|}"))
# A page of this many ids has a visible character for each, without the blank that parts pages.
_PAGE, _FIRST = 94, ord("!")
# What a scan may cost: characters compared, patterns compiled.
_MAX_SCAN = 3_000_000_000
_MAX_PATTERNS = 200_000
_MAX_MODULUS = 400
_MAX_MODULO_CELLS = 4_000_000
_MAX_RANGES = 60
_MAX_SPAN = 8_000_000
_AND = 4
_LARGEST = 2**31 // 8


def row_set_atoms(frame: Frame, labels: Labels, timezone: str | None, *, keep: int = 4) -> list[Atom]:
    """At most `keep` conditions on the row key, the shortest first, each of which holds for all rows of
    `labels.must` and for none of `labels.must_not`.

    Tables whose key is one integer column have all families, others IN or an array.  Empty for a table without
    a row key, and where there is nothing to select or nothing to tell it from.
    """
    names = frame.table.row_key
    if not names or not labels.must.any() or not labels.must_not.any():
        return []
    if len(names) > 1 or frame.table.by_name[names[0]].base not in ("integer", "bigint", "smallint"):
        return _plain(frame, labels, timezone)[:keep]
    numbers = np.array([int(key[0] or 0) for key in frame.keys], dtype=np.int64)
    task = _Task(names[0], frame.table.by_name[names[0]].base == "bigint", numbers, labels.must, labels.must_not)
    found = {make_atom(term, frozenset()): None for term in task.terms()}
    return sorted(found, key=lambda atom: atom.size)[:keep]


def row_set_selections(
    frame: Frame, labels: Labels, timezone: str | None, *, within: Sequence[MaskedAtom] = (), keep: int = 4
) -> list[Selection]:
    """The same as selections, also as a condition of `within` that holds for all rows to select, and what still
    is to be told apart among the rows for which it holds.  Sizes are without what joins cost."""
    found = [Selection(((atom,),), atom.size) for atom in row_set_atoms(frame, labels, timezone, keep=keep)]
    for masked in within:
        if not masked.holds[labels.must].all():
            continue
        rest = Labels(labels.must, labels.must_not & masked.holds)
        if not rest.must_not.any():
            found.append(Selection(((masked.atom,),), masked.atom.size))
            continue
        for atom in row_set_atoms(frame, rest, timezone, keep=2):
            found.append(Selection(((masked.atom, atom),), masked.atom.size + _AND + atom.size))
    return sorted(found, key=lambda selection: selection.size)[:keep]


def _plain(frame: Frame, labels: Labels, timezone: str | None) -> list[Atom]:
    listed = [key_atom(frame, np.flatnonzero(rows).tolist(), yes, timezone) for rows, yes in _sides(labels)]
    return sorted((atom for atom in listed if atom is not None), key=lambda atom: atom.size)


def _sides(labels: Labels) -> Iterator[tuple[NDArray[np.bool_], bool]]:
    yield labels.must, True
    yield labels.must_not, False


@dataclass(frozen=True)
class _Task:
    """Rows by an integer key: `numbers` ascending, with labels; `wide` if the key is a bigint."""

    name: str
    wide: bool
    numbers: Numbers
    must: NDArray[np.bool_]
    must_not: NDArray[np.bool_]

    def terms(self) -> Iterator[Term]:
        """All spellings, also within the range that the rows to select span."""
        yield from self._both_sides()
        first, last = self.numbers[self.must][[0, -1]].tolist()
        below, above = self.numbers < first, self.numbers > last
        for outside in (below, above, below | above):
            part = replace(self, must_not=self.must_not & ~outside)
            if not (self.must_not & outside).any() or not self._has_both(outside, below, above):
                continue
            hull = self._hull(first, last, below, above, outside)
            if not part.must_not.any():
                yield hull
                continue
            kept = ~outside
            inner = _Task(self.name, self.wide, self.numbers[kept], self.must[kept], part.must_not[kept])
            for term in part._negatives(inner):
                both = conjoin([hull, term])
                assert both is not None
                yield both

    def _has_both(self, outside: NDArray[np.bool_], below: NDArray[np.bool_], above: NDArray[np.bool_]) -> bool:
        """Whether a range with two ends would differ from one with one."""
        both = bool((self.must_not & below).any() and (self.must_not & above).any())
        return both or not (outside == (below | above)).all() or not below.any() or not above.any()

    def _negatives(self, inner: _Task) -> Iterator[Term]:
        """Spellings that shrink with what they need not tell apart.  All rows of the table are still read:
        where a spelling would fail outside of the range, it is not given."""
        opposite = replace(self, must=self.must_not, must_not=self.must)
        yield from opposite.lists(False)
        yield from opposite.ranges(False)
        yield from self.remainders(True)
        del inner

    def _hull(
        self, first: int, last: int, below: NDArray[np.bool_], above: NDArray[np.bool_], outside: NDArray[np.bool_]
    ) -> Term:
        low = int(self.numbers[self.must_not & below].max()) if (self.must_not & below & outside).any() else None
        high = int(self.numbers[self.must_not & above].min()) if (self.must_not & above & outside).any() else None
        return self.between(low, first, last, high)

    def _both_sides(self) -> Iterator[Term]:
        opposite = replace(self, must=self.must_not, must_not=self.must)
        for task, yes in ((self, True), (opposite, False)):
            yield from task.lists(yes)
            yield from task.ranges(yes)
            yield from task.remainders(yes)
            yield from task.characters(yes)
            yield from task.gaps(yes)
            yield from task.pages(yes)
            yield from task.bitmaps(yes)
        yield from self.boundaries()
        yield from self.coded()

    @cached_property
    def key(self) -> Term:
        return ref((), self.name)

    @cached_property
    def integer(self) -> Term:
        """The key where only a plain integer will do."""
        return cast(self.key, "int") if self.wide else self.key

    @cached_property
    def listed(self) -> Numbers:
        return self.numbers[self.must]

    @cached_property
    def others(self) -> Numbers:
        return self.numbers[self.must_not]

    @cached_property
    def runs(self) -> list[tuple[int | None, int, int, int | None]]:
        """Stretches of rows to select without one of the others between: the last other number before
        (None for none), the first and the last number, and the next other number after."""
        labelled = np.flatnonzero(self.must | self.must_not)
        marks = self.must[labelled]
        edges = np.flatnonzero(np.diff(np.concatenate([[False], marks, [False]]).astype(np.int8)))
        numbers = self.numbers[labelled].tolist()
        return [
            (
                numbers[start - 1] if start else None,
                numbers[start],
                numbers[end - 1],
                numbers[end] if end < len(numbers) else None,
            )
            for start, end in edges.reshape(-1, 2).tolist()
        ]

    # -- lists and ranges

    def lists(self, yes: bool) -> Iterator[Term]:
        """id IN(1,2), id-90000 IN(1,2)."""
        yield in_values(self.key, _numerals(self.listed), yes)
        lowest = int(self.listed[0])
        for power in range(1, len(str(lowest))):
            base = lowest // 10**power * 10**power
            if base > 0:
                yield in_values(op(self.key, "-", raw(str(base))), _numerals(self.listed - base), yes)

    def ranges(self, yes: bool) -> Iterator[Term]:
        """Ranges, and a list of what stands alone."""
        if len(self.runs) > _MAX_RANGES:
            return
        alone: list[int] = []
        spans: list[Term] = []
        for low, first, last, high in self.runs:
            span = self.between(low, first, last, high)
            inside = self.listed[(self.listed >= first) & (self.listed <= last)]
            apart = sum(len(str(number)) + 1 for number in inside.tolist())
            if apart <= make_atom(span, frozenset()).size + 2:
                alone.extend(inside.tolist())
            else:
                spans.append(span)
        if not spans:
            return
        parts = [*spans, *([in_values(self.key, _numerals(alone))] if alone else [])]
        if yes:
            whole = disjoin(parts)
        elif len(parts) == 1:
            low, first, last, high = self.runs[0]
            whole = self.not_between(low, first, last, high)
        else:
            whole = op(raw("NOT", Prec.NOT), "", disjoin(parts) or raw("false")) if False else _negated(disjoin(parts))
        assert whole is not None
        yield whole

    def between(self, low: int | None, first: int, last: int, high: int | None) -> Term:
        """The numbers from `first` to `last`; also those down to `low` and up to `high`, without these."""
        if low is None and high is None:
            return raw("true")
        if low is None:
            assert high is not None
            return op(self.key, "<", _numeral(_shortest(last + 1, high)))
        if high is None:
            return op(self.key, ">", _numeral(_shortest(low, first - 1)))
        first, last = _shortest(low + 1, first), _shortest(last, high - 1)
        if first == last:
            return op(self.key, "=", _numeral(first))
        return self._range(first, last, True)

    def not_between(self, low: int | None, first: int, last: int, high: int | None) -> Term:
        if low is None or high is None:
            return op(self.key, "<=", _numeral(low or 0)) if high is None else op(self.key, ">", _numeral(last))
        return self._range(_shortest(low + 1, first), _shortest(last, high - 1), False)

    def _range(self, first: int, last: int, yes: bool) -> Term:
        words = "BETWEEN" if yes else "NOT BETWEEN"
        parts = (*self.key.parts, words, *_numeral(first).parts, "AND", *_numeral(last).parts)
        return Term(parts, Prec.LIKE)

    def boundaries(self) -> Iterator[Term]:
        """Where a sorted array of numbers turns selection on and off: width_bucket(id,'{3,7}')%2=1.

        The parser knows width_bucket with four arguments only, unless its schema is named.
        """
        if len(self.runs) < 2:
            return
        edges: list[int] = []
        for low, first, last, high in self.runs:
            if low is not None:
                edges.append(_shortest(low + 1, first))
            if high is not None:
                edges.append(_shortest(last + 1, high))
        parity = raw("1" if self.runs[0][0] is not None else "0")
        shown = ["'{" + ",".join(map(str, edges)) + "}'"]
        characters = dense.code_points(edges)
        if characters is not None:
            shown.append(f"array(SELECT ascii(string_to_table({characters},null)))")
        for array in shown:
            yield op(op(call("pg_catalog.width_bucket", self.key, raw(array)), "%", raw("2")), "=", parity)

    # -- arithmetic

    def remainders(self, yes: bool) -> Iterator[Term]:
        """id%7=3, id%7 IN(1,3), id/100 IN(4,7): the best of each for the fewest bytes."""
        if self.numbers[0] < 0:
            return
        span = int(self.numbers[-1])
        limit = min(_MAX_MODULUS, span, _MAX_MODULO_CELLS // len(self.numbers))
        for operator, function in (("%", np.remainder), ("/", np.floor_divide)):
            best: tuple[int, int, Numbers] | None = None
            for divisor in range(2, limit + 1):
                values = np.unique(function(self.listed, divisor))
                length = len(str(divisor)) + _list_bytes(values)
                if (best is None or length < best[0]) and not _meet(values, function(self.others, divisor)):
                    best = (length, divisor, values)
            if best is not None:
                yield in_values(op(self.key, operator, raw(str(best[1]))), _numerals(best[2]), yes)

    # -- characters

    def characters(self, yes: bool) -> Iterator[Term]:
        """Ids as characters: strpos('Ωλ',chr(id))>0, 'Ωλ'~chr(id), id IN(SELECT ascii(string_to_table('Ωλ',null)))."""
        for shift in self._shifts():
            shown = dense.code_points((self.listed + shift).tolist())
            if shown is None:
                continue
            haystack = raw(shown)
            characters = self.numbers + shift
            table = raw(f"ascii(string_to_table({shown},null))")
            query = op(table, "-", raw(str(shift))) if shift > 0 else op(table, "+", raw(str(-shift)))
            yield _in_select(self.key, query if shift else table, yes)
            if not _all_code_points(characters):
                continue
            needle = call("chr", _shifted(self.integer, shift))
            if len(self.numbers) * len(self.listed) <= _MAX_SCAN:
                place = call("strpos", haystack, needle)
                yield op(place, ">", raw("0")) if yes else op(place, "<", raw("1"))
            if len(self.numbers) <= _MAX_PATTERNS and _SPECIAL.isdisjoint(characters[:_PAGE + _FIRST].tolist()):
                yield op(haystack, "~" if yes else "!~", needle)

    def _shifts(self) -> list[int]:
        """What to add to ids so that their characters have few bytes; the best two, and nothing."""
        lowest, highest = int(self.listed[0]), int(self.listed[-1])
        least = int(self.numbers[0])
        ends = (1, 14, 40, 126, 128, 2048)
        choices = {end - low for end in ends for low in (lowest, least)} | {0, 127 - highest, 2047 - highest}
        choices |= {choice // 10 * 10 for choice in choices} | {choice // 100 * 100 for choice in choices}
        usable = [c for c in choices if lowest + c > 0]
        ranked = sorted(usable, key=lambda c: (dense.utf8_bytes(self.listed + c) + len(_plus(c)), c))
        safe = [c for c in ranked if _all_code_points(self.numbers + c)]
        plain = [c for c in safe if _SPECIAL.isdisjoint((self.numbers + c)[:_PAGE + _FIRST].tolist())]
        return list(dict.fromkeys([*ranked[:1], *safe[:1], *plain[:1]]))

    def gaps(self, yes: bool) -> Iterator[Term]:
        """The steps from one id to the next as characters, summed up."""
        if len(self.listed) < 8 or self.listed[0] <= 0:
            return
        steps = np.diff(self.listed, prepend=0)
        for more in (0, 13, 27):
            shown = dense.code_points((steps + more).tolist())
            if shown is None or "\r" in shown or shown.startswith("E"):
                continue
            value = f"ascii(c)-{more}" if more else "ascii(c)"
            query = f"sum({value})OVER(ROWS UNBOUNDED PRECEDING)FROM string_to_table({shown},null)c"
            yield _in_select(self.key, raw(query), yes)

    def pages(self, yes: bool) -> Iterator[Term]:
        """Ids by pages of 94, each a word with one character an id."""
        last = int(self.listed[-1]) // _PAGE
        if self.numbers[0] < 0 or (last + len(self.listed)) * len(self.numbers) > _MAX_SCAN or len(self.listed) < 8:
            return
        letters = [""] * (last + 1)
        for page, place in zip(*(part.tolist() for part in np.divmod(self.listed, _PAGE)), strict=True):
            letters[page] += chr(_FIRST + place)
        start = 1 - int(self.numbers[0]) // _PAGE
        words = letters[max(0, 1 - start):] if start <= 0 else letters
        number = op(self.integer, "/", raw(str(_PAGE)))
        page = op(number, "+", raw(str(start))) if start > 0 else number
        text = dense.code_points([ord(letter) for letter in " ".join(letters if start <= 0 else words)])
        if text is None:
            return
        word = call("split_part", raw(text), raw("' '"), page)
        place = op(op(self.integer, "%", raw(str(_PAGE))), "+", raw(str(_FIRST)))
        found = call("strpos", word, call("chr", place))
        yield op(found, ">", raw("0")) if yes else op(found, "<", raw("1"))

    # -- bits

    def bitmaps(self, yes: bool) -> Iterator[Term]:
        """A bit an id: get_bit('…'::bytea,id*8/7)=1, with what is outside of the rows to tell apart cut off."""
        lowest, highest = int(self.numbers[0]), int(self.numbers[-1])
        if highest - lowest > _MAX_SPAN or highest >= _LARGEST:
            return
        first, last = int(self.listed[0]), int(self.listed[-1])
        starts = {lowest: self.key if lowest == 0 else op(self.key, "-", raw(str(lowest)))} if lowest else {}
        if lowest >= 0:
            starts[0] = self.key
            starts[max(0, lowest // 10 * 10)] = _shifted(self.key, -max(0, lowest // 10 * 10))
        for start, index in starts.items():
            yield self._bitmap(start, highest, index, yes)
        if highest - last > 7:
            for start, index in starts.items():
                end = last + 1 if last + 1 >= int(self.others[0]) else last + 1
                clamped = call("least", self.key, raw(str(end)))
                yield self._bitmap(start, end, _shifted(clamped, -start), yes)
        if first - lowest > 70 and lowest >= 0:
            clamped = call("greatest", self.key, raw(str(first - 1)))
            yield self._bitmap(first - 1, highest, _shifted(clamped, -(first - 1)), yes)
        del index

    def _bitmap(self, start: int, end: int, index: Term, yes: bool) -> Term:
        bits = np.zeros(end - start + 1, dtype=np.bool_)
        free = np.ones(end - start + 1, dtype=np.bool_)
        others = np.clip(self.others, start, end) - start
        free[others] = False
        listed = self.listed - start
        free[listed] = False
        bits[listed] = True
        if not yes and False:
            bits = ~bits
        return self._get_bit(bits, free, index, yes)

    def _get_bit(self, bits: dense.Bits, free: dense.Bits, index: Term, yes: bool) -> Term:
        # The side that is listed has the ones or the zeros, whichever is said in fewer bytes.
        place = op(op(index, "*", raw("8")), "/", raw("7"))
        choices = []
        for ones in (True, False):
            shown = dense.bitmap(bits if ones else ~bits, free)
            array = raw(shown) if self.wide else raw(shown + "::bytea", Prec.CAST)
            choices.append(op(call("get_bit", array, place), "=", raw("1" if ones == yes else "0")))
        return min(choices, key=lambda term: make_atom(term, frozenset()).size)

    def coded(self) -> Iterator[Term]:
        """The bits by an entropy coder, whose decoder is a recursive query."""
        lowest, highest = int(self.numbers[0]), int(self.listed[-1])
        if lowest < 0 or highest - lowest > _MAX_SPAN or len(self.listed) < 100:
            return
        bits = np.zeros(highest - lowest + 1, dtype=np.bool_)
        bits[self.listed - lowest] = True
        found = dense.entropy_coded(bits)
        if found is None:
            return
        digits = dense.bytea([digit + 1 for digit in found.digits])
        total, ones, low = found.total, found.ones, found.low
        yield _in_select(
            self.key,
            raw(
                f"i FROM t WHERE b%{total}<{ones}"
            ),
            True,
            "WITH RECURSIVE t(i,x,p,b)AS("
            f"SELECT {lowest - 1},{found.start},0,{total - 1} UNION ALL "
            f"SELECT i+1,CASE WHEN y%{total}<{ones} THEN y/{total}*{ones}+y%{total} ELSE y-y/{total}*{ones}-{ones} END,"
            f"p+(x<{low})::int,y FROM t,LATERAL(SELECT CASE WHEN x<{low} THEN x*{dense.BASE}+get_byte({digits},p)-1 "
            f"ELSE x END y)z WHERE i<{highest})",
        )


def _in_select(key: Term, query: Term, yes: bool, ctes: str = "") -> Term:
    words = "IN(" if yes else "NOT IN("
    return Term((*key.parts, words, *([ctes] if ctes else []), "SELECT", *query.parts, ")"), Prec.LIKE)


def _negated(term: Term | None) -> Term | None:
    return None if term is None else Term(("NOT(", *term.parts, ")"), Prec.NOT)


def _numerals(numbers: Iterable[int] | Numbers) -> list[Term]:
    return [_numeral(int(number)) for number in numbers]


def _numeral(number: int) -> Term:
    return raw(str(number), Prec.UNARY if number < 0 else Prec.ATOM)


def _shortest(low: int, high: int) -> int:
    """A number from `low` to `high` with the fewest digits."""
    return low if len(str(low)) <= len(str(high)) else high


def _list_bytes(values: Numbers) -> int:
    magnitudes = np.abs(values)
    digits = 1 + sum((magnitudes >= 10**power).astype(np.int64) for power in range(1, 19))
    return int(np.sum(digits)) + len(values) + int((values < 0).sum()) + (5 if len(values) > 1 else 0)


def _meet(values: Numbers, others: Numbers) -> bool:
    return bool(np.isin(others, values).any())


def _plus(shift: int) -> str:
    return f"{shift:+d}" if shift else ""


def _shifted(term: Term, shift: int) -> Term:
    if not shift:
        return term
    return op(term, "+" if shift > 0 else "-", raw(str(abs(shift))))


def _all_code_points(numbers: Numbers) -> bool:
    surrogates = (numbers >= 0xD800) & (numbers <= 0xDFFF)
    return bool(numbers[0] > 0 and numbers[-1] <= 0x10FFFF and not surrogates.any())

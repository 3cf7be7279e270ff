"""Conditions on an integer key by strings that are packed with ids: characters, bits, an entropy code."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from emit import dense
from emit.term import Prec, Term, call, op, raw
from encoder.keyset import KeySet, Numbers, in_select, shifted, shortest

# Characters with a meaning of their own in a regular expression.
_SPECIAL = np.array(sorted(map(ord, "$()*+.?[\\]^{|}")))
# A page of this many ids has a visible character for each, and none is the blank that parts pages.
_PAGE, _FIRST = 94, ord("!")
# What a scan of the table may cost: characters compared, patterns compiled.
_MAX_COMPARED = 2_000_000_000
_MAX_PATTERNS = 200_000
# Numbers between the first and the last that a bitmap may have a bit for.
_MAX_SPAN = 8_000_000
# Eight times the key must be an integer.
_LARGEST = 2**28 - 1
# Below this the machinery costs more than it can save.
_FEW, _MANY = 6, 200
# About the bytes of a recursive decoder, and the digits times steps that one may compute.
_DECODER = 160
_MAX_WORK = 50_000_000


def characters(rows: KeySet, yes: bool) -> Iterator[Term]:
    """strpos('Ωλ',chr(id))>0, 'Ωλ'~chr(id), id IN(SELECT ascii(string_to_table('Ωλ',null)))."""
    if len(rows.listed) < _FEW:
        return
    for shift in _shifts(rows):
        shown = dense.code_points(rows.listed + shift)
        if shown is None:
            continue
        yield in_select(rows.key, shifted(raw(f"ascii(string_to_table({shown},null))"), -shift), yes)
        if not dense.are_code_points(rows.numbers + shift):
            continue
        character = call("chr", shifted(rows.integer, shift))
        if len(rows.numbers) * len(rows.listed) <= _MAX_COMPARED:
            place = call("strpos", raw(shown), character)
            yield op(place, ">", raw("0")) if yes else op(place, "<", raw("1"))
        if len(rows.numbers) <= _MAX_PATTERNS and _are_plain(rows.numbers + shift):
            yield op(raw(shown), "~" if yes else "!~", character)


def _shifts(rows: KeySet) -> list[int]:
    """What to add to ids so that their characters have the fewest bytes: the best, the best of those for which
    every row of the table has a character, and of those for which this means nothing in a pattern."""
    lows, highs = (int(rows.listed[0]), rows.lowest), (int(rows.listed[-1]), rows.highest)
    near = {edge - low for edge in (1, 14, 40, 126, 128, 2048) for low in lows}
    near |= {edge - high for edge in (0x7F, 0x7FF, 0xD7FF, 0xFFFF) for high in highs}
    choices = {0} | {choice // unit * unit for choice in near for unit in (1, 10, 100, 1000)}
    usable = sorted(choice for choice in choices if int(rows.listed[0]) + choice > 0)
    ranked = sorted(usable, key=lambda c: dense.utf8_bytes(rows.listed + c) + (len(f"{c:+d}") if c else 0))
    safe = [choice for choice in ranked if dense.are_code_points(rows.numbers + choice)]
    plain = (choice for choice in safe if _are_plain(rows.numbers + choice))
    return list(dict.fromkeys([*ranked[:1], *safe[:1], *([c] if (c := next(plain, None)) is not None else [])]))


def _are_plain(numbers: Numbers) -> bool:
    return not np.isin(_SPECIAL, numbers).any()


def gaps(rows: KeySet, yes: bool) -> Iterator[Term]:
    """The steps from one id to the next as characters, summed up."""
    if len(rows.listed) < _FEW or rows.listed[0] <= 0:
        return
    steps = np.diff(rows.listed, prepend=0)
    for more in (0, 13, 27):
        shown = dense.code_points(steps + more)
        if shown is not None:
            step = f"ascii(c)-{more}" if more else "ascii(c)"
            select = f"sum({step})OVER(ROWS UNBOUNDED PRECEDING)FROM string_to_table({shown},null)c"
            yield in_select(rows.key, raw(select), yes)


def pages(rows: KeySet, yes: bool) -> Iterator[Term]:
    """Pages of 94 ids, each a word with one character an id, parted by blanks."""
    words = int(rows.listed[-1]) // _PAGE + 1
    if len(rows.listed) < _FEW or rows.lowest < 0:
        return
    if (words + len(rows.listed)) * len(rows.numbers) > _MAX_COMPARED:
        return
    letters = [""] * words
    for page, place in zip(*(part.tolist() for part in np.divmod(rows.listed, _PAGE)), strict=True):
        letters[page] += chr(_FIRST + place)
    # Words are counted from one; a table whose ids begin on a later page needs no earlier words.
    skipped = rows.lowest // _PAGE
    text = dense.code_points([ord(letter) for letter in " ".join(letters[skipped:])])
    assert text is not None
    page_number = shifted(op(rows.integer, "/", raw(str(_PAGE))), 1 - skipped)
    character = call("chr", shifted(op(rows.integer, "%", raw(str(_PAGE))), _FIRST))
    place = call("strpos", call("split_part", raw(text), raw("' '"), page_number), character)
    yield op(place, ">", raw("0")) if yes else op(place, "<", raw("1"))


def bitmaps(rows: KeySet, yes: bool) -> Iterator[Term]:
    """A bit an id: get_bit('…'::bytea,id*8/7)=1.  The table's lowest or highest ids may share one bit."""
    if rows.highest - rows.lowest > _MAX_SPAN or max(-rows.lowest, rows.highest) > _LARGEST:
        return
    before, after = int(rows.listed[0]) - 1, int(rows.listed[-1]) + 1
    ways = [(rows.lowest, rows.highest, rows.key)]
    if after < rows.highest:
        ways.append((rows.lowest, after, call("least", rows.key, raw(str(after)))))
    if before > max(0, rows.lowest):
        ways.append((before, rows.highest, call("greatest", rows.key, raw(str(before)))))
    for low, high, key in ways:
        for start in sorted({low, low // 10 * 10, low // 100 * 100}):
            yield _bitmap(rows, (start, low, high), shifted(key, -start), yes)


def _bitmap(rows: KeySet, bounds: tuple[int, int, int], index: Term, yes: bool) -> Term:
    """Bits from the first of `bounds`; lower ids than the second, and higher ones than the third, have its bit."""
    start, low, end = bounds
    bits = np.zeros(end - start + 1, dtype=np.bool_)
    free = np.ones(end - start + 1, dtype=np.bool_)
    bits[rows.listed - start] = True
    free[rows.listed - start] = False
    free[np.clip(rows.others, low, end) - start] = False
    # The bits of a string have integers for their places, those of bytes bigints.
    place = op(op(index, "*", raw("8")), "/", raw("7") if rows.wide else raw("7::int8", Prec.CAST))

    def term(ones: bool) -> Term:
        shown = dense.bitmap(bits == ones, free)
        return op(call("get_bit", raw(shown), place), "=", raw("1" if ones == yes else "0"))

    return shortest([term(True), term(False)])


def numbered(rows: KeySet, yes: bool) -> Iterator[Term]:
    """The bits as one big number, whose decoder is a recursive query: i the key, y what is left of the number.

    What is no key to list comes out with a fraction.
    """
    first, last, listed = int(rows.listed[0]), int(rows.listed[-1]), len(rows.listed)
    span = last - first + 1
    if listed < _MANY // 2 or 2 * listed > span:
        return
    digits = dense.numbered_size(listed, span)[0]
    # What other families surely need less than is not worth the time.
    if digits + _DECODER > min(listed, span / dense.BITS, 4 * len(rows.runs)) + _DECODER / 2:
        return
    if digits * span > _MAX_WORK:
        return
    bits = np.zeros(span, dtype=np.bool_)
    bits[rows.listed - first] = True
    code = dense.numbered(bits)
    assert code is not None
    total, shown = code.total, dense.bytea(code.digits)
    ctes = (
        f"WITH RECURSIVE t(i,y)AS(SELECT {first - code.earlier},sum(get_byte({shown},n)*{dense.BASE}.^n)"
        f"FROM generate_series(0,{len(code.digits) - 1})n UNION "
        f"SELECT i+1,@(div(y,{total})-y*sign(y%{total}))FROM t WHERE y>1)"
    )
    yield in_select(rows.key, raw(f"i+y%{total}/{total} FROM t"), yes, ctes)


def coded(rows: KeySet) -> Iterator[Term]:
    """The bits by an entropy coder, whose decoder is a recursive query: i the number, y the state, p the place of
    the next digit."""
    first, last = int(rows.listed[0]), int(rows.listed[-1])
    if len(rows.listed) < _MANY or last - first > _MAX_SPAN:
        return
    # The rarer kind of number is coded as one: its chance may then be one in something, which is said shorter.
    rare = 2 * len(rows.listed) < last - first
    bits = np.full(last - first + 1, not rare, dtype=np.bool_)
    bits[rows.listed - first] = True
    bits[rows.others[(rows.others > first) & (rows.others < last)] - first] = False
    code = dense.entropy_coded(bits == rare)
    if code is None:
        return
    digits = dense.bytea([digit + 1 for digit in code.digits])
    total, ones, low = code.total, code.ones, code.low
    if ones == 1:
        step = f"CASE WHEN y%{total}=0 THEN y/{total} ELSE y-y/{total}-1 END"
    else:
        step = f"CASE WHEN y%{total}<{ones} THEN y/{total}*{ones}+y%{total} ELSE y-y/{total}*{ones}-{ones} END"
    ctes = (
        f"WITH RECURSIVE t(i,y,p)AS(SELECT {first},{code.start},0 UNION ALL SELECT i+1,"
        f"CASE WHEN z<{low} THEN z*{dense.BASE}+get_byte({digits},p)-1 ELSE z END,p+(z<{low})::int "
        f"FROM t,LATERAL(SELECT {step} z)u WHERE i<{last})"
    )
    chosen = f"y%{total}<{ones}" if rare else f"y%{total}>{ones - 1}"
    yield in_select(rows.key, raw(f"i FROM t WHERE {chosen}"), True, ctes)

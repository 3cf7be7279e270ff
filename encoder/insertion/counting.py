"""Numbers and texts that count from row to row: '00010501', '00010502', …"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from emit.literal import quote
from emit.term import Term, call, cast, op, raw
from encoder.insertion.slots import Slot
from encoder.insertion.spell import common_ends
from encoder.insertion.task import row_number

_DIGITS = "0123456789"


@dataclass(frozen=True, slots=True)
class Counted:
    """`before`, the number `first` + row, filled up with zeros to `width` if that is not 0, `behind`."""

    before: str
    first: int
    width: int
    behind: str

    def term(self, keys: Sequence[tuple[Term, bool]]) -> Term:
        """The value of each row when the rows are numbered in the order of `keys`."""
        number = row_number(keys, self.first - 1)
        if self.width:
            number = call("lpad", cast(number, "text"), raw(str(self.width)), raw("'0'"))
        term = op(raw(quote(self.before)), "||", number) if self.before else number
        return op(term, "||", raw(quote(self.behind))) if self.behind else term


def counted(slot: Slot) -> Counted | None:
    """How the numbers or texts of `slot` count in the order of the rows, if they do."""
    if slot.counts:
        return Counted("", int(slot.values[0] or 0), 0, "")
    if slot.column.kind != "S" or len(slot.values) < 2 or None in slot.values:
        return None
    texts = [value or "" for value in slot.values]
    start, end = common_ends(texts)
    start = len(texts[0][:start].rstrip(_DIGITS))
    tail = texts[0][len(texts[0]) - end :]
    end = len(tail.lstrip(_DIGITS))
    middles = [text[start : len(text) - end] for text in texts]
    if not all(middle.isascii() and middle.isdecimal() for middle in middles):
        return None
    first = int(middles[0])
    if any(int(middle) != first + place for place, middle in enumerate(middles)):
        return None
    plain = [str(first + place) for place in range(len(middles))]
    before, behind = texts[0][:start], tail[len(tail) - end :]
    if len(plain[0]) == len(plain[-1]):
        zeros = len(middles[0]) - len(plain[0])
        return Counted(before + "0" * zeros, first, 0, behind) if len({*map(len, middles)}) == 1 else None
    if middles == plain:
        return Counted(before, first, 0, behind)
    return Counted(before, first, len(middles[0]), behind) if len({*map(len, middles)}) == 1 else None

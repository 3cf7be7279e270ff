"""md5 of a short constant and a column: how scripts make keys that are the same at every run."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence

from emit.literal import quote
from emit.term import Term, call, cast, op, raw
from encoder.insertion.slots import Slot
from encoder.insertion.spell import INT, common_ends
from scratch.catalog import Table
from stream.model import Value

_SEPARATORS = ("", "-", ":", "_", "/", " ", ".", "#")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789-:_/."
_WORD = re.compile(r"[^\W\d_]+")
_MAX_WORDS = 60
_HASH = re.compile(r"[0-9a-f]{8}(-?)[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}")


def words_of(table: Table, slots: Sequence[Slot]) -> tuple[str, ...]:
    """Words that the columns share in all rows, and those of the table's and its columns' names."""
    found: dict[str, None] = {}
    for slot in slots:
        if slot.column.kind == "S" and slot.values and None not in slot.values:
            texts = [value or "" for value in slot.values]
            start, end = common_ends(texts)
            for text in (texts[0][:start], texts[0][len(texts[0]) - end :]):
                found |= dict.fromkeys(form for word in _WORD.findall(text) for form in (word.lower(), word))
    names = [table.name.name, *(column.name for column in table.columns)]
    found |= dict.fromkeys(word for name in names for word in (name, *name.split("_")))
    return tuple(found)[:_MAX_WORDS]


def hashed(base: Sequence[Value], kind: str, slot: Slot, words: Sequence[str]) -> tuple[str, str] | None:
    """The constants before and behind the base with which its md5 is the value of `slot` in all rows."""
    if (slot.column.kind != "S" and slot.column.base != "uuid") or None in base or None in slot.values:
        return None
    if not all(_HASH.fullmatch(value or "") for value in slot.values):
        return None
    wanted = [(value or "").replace("-", "") for value in slot.values]
    texts = [value or "" for value in base]
    for before, behind in _affixes(words, kind == INT):
        if _md5(before + texts[0] + behind) == wanted[0] and all(
            _md5(before + text + behind) == value for text, value in zip(texts, wanted, strict=True)
        ):
            return before, behind
    return None


def hash_term(argument: Term, before: str, behind: str, slot: Slot, is_text: bool = False) -> Term:
    """md5(before||argument||behind)"""
    text = op(raw(quote(before)), "||", argument) if before else argument
    if behind or not (before or is_text):
        text = op(text, "||", raw(quote(behind)))
    made = call("md5", text)
    return cast(made, "uuid") if slot.column.base == "uuid" else made


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _affixes(words: Sequence[str], short: bool) -> Iterator[tuple[str, str]]:
    yield "", ""
    for word in words:
        for separator in _SEPARATORS:
            yield word + separator, ""
            yield "", separator + word
    for text in (*_ALPHABET, *(a + b for a in _ALPHABET for b in _ALPHABET)) if short else ():
        yield text, ""
        yield "", text

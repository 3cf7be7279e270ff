"""Conditions on texts: the shortest prefix, suffix, infix, character class or alternation that tells them apart.

The candidates grow letter by letter and only from parts that all needed texts have (as Apriori grows item sets),
so that even thousands of texts are read only a few times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from emit.strings import quote
from emit.term import Prec, Term, op, raw, wrap
from encoder.budget import Budget
from encoder.selection.view import Shape, View
from solver.setcover import best_covers

_MAX_LETTERS = 12
_MAX_CANDIDATES = 300
_KEPT = 6
_SAMPLE = 200
_MAX_LENGTH = 4_000
_MAX_BRANCHES = 5
_META = frozenset(".^$*+?()[]{}|\\")
# Classes that PostgreSQL and Python read alike on ASCII; texts with other letters have the server's last word.
_CLASSES = (r"\d", r"\s", r"\W", "[A-Z]", "[a-z]", r"^\d", r"\d$", "^[A-Z]", "^[a-z]", r"^\d+$", r"^\w+$", "[^ -~]", ".$")


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A regular expression, or a plain prefix (`starts`), with what is between its quotes."""

    text: str
    starts: bool = False

    @property
    def size(self) -> int:
        return len(self.text.encode()) + (2 if self.starts else 1)

    def spell(self, term: Term, yes: bool) -> Term:
        literal = quote(self.text)
        if self.starts:
            if yes:
                return op(term, "^@", raw(literal))
            return Term(("NOT", *wrap(term, Prec.OTHER), "^@", literal), Prec.NOT)
        return op(term, "~" if yes else "!~", raw(literal))


def pattern_shapes(view: View, budget: Budget) -> Iterator[Shape]:
    """Patterns that all needed texts match and some foreign one does not."""
    values = view.feature.coded.values
    needed = [values[code] for code in view.needed.tolist()]
    counted = np.flatnonzero((view.need + view.bad)[:-1]).tolist()
    if not needed or not len(view.foreign) or max(map(len, needed)) > _MAX_LENGTH:
        return
    heavy = view.foreign[np.argsort(-view.bad[view.foreign], kind="stable")][:_SAMPLE]
    sample = [(values[code], int(view.bad[code])) for code in heavy.tolist()]
    if sum(len(text) for text, _ in sample) > _SAMPLE * _MAX_LENGTH:
        return
    if not budget.spend((len(needed) + len(counted)) // 16 + 1):
        return
    chosen: list[_Choice] = []
    for group in (_prefixes(needed), _suffixes(needed), _infixes(needed), _classes(needed), _lacking(needed, sample)):
        chosen.extend(_pick(group, sample))
    if len(needed) > 1 and len(view.foreign) <= 2_000:
        chosen.extend(_branches(needed, [values[code] for code in view.foreign.tolist()]))
    for pattern, inside in chosen:
        yield _shape(view, pattern, inside, counted)


_Choice = tuple[_Pattern, bool]


def _shape(view: View, pattern: _Pattern, inside: bool, counted: Sequence[int]) -> Shape:
    accept = np.zeros(len(view.need), dtype=np.bool_)
    matches = _matcher(pattern)
    values = view.feature.coded.values
    accept[counted] = [matches(values[code]) == inside for code in counted]
    # Values that no counted row has keep False: those rows are free.
    return Shape(accept, lambda yes: pattern.spell(view.feature.term, yes == inside))


def _matcher(pattern: _Pattern):  # type: ignore[no-untyped-def]
    if pattern.starts:
        return lambda text: text.startswith(pattern.text)
    search = re.compile(pattern.text, re.ASCII | re.DOTALL).search
    return lambda text: search(text) is not None


def escape(text: str) -> str:
    """`text` as a regular expression that matches itself."""
    return "".join("\\" + letter if letter in _META else letter for letter in text)


def _pick(choices: list[_Choice], sample: list[tuple[str, int]]) -> list[_Choice]:
    """The choices that reject most for their size: each better on the sample than all shorter ones."""
    scored = []
    for place, (pattern, inside) in enumerate(choices):
        matches = _matcher(pattern)
        passed = sum(weight for text, weight in sample if matches(text) == inside)
        scored.append((pattern.size, passed, place))
    scored.sort()
    total = sum(weight for _, weight in sample)
    best, kept = total, []
    for _, passed, place in scored:
        if passed < best:
            best = passed
            kept.append(choices[place])
    return kept[-_KEPT:]


def _prefixes(needed: list[str]) -> list[_Choice]:
    first, last = min(needed), max(needed)
    common = 0
    while common < min(len(first), len(last), 40) and first[common] == last[common]:
        common += 1
    found: list[_Choice] = []
    for size in range(1, common + 1):
        head = first[:size]
        found.append((_Pattern("^" + escape(head)), True))
        if _META & set(head):
            found.append((_Pattern(head, starts=True), True))
    return found


def _suffixes(needed: list[str]) -> list[_Choice]:
    backwards = [text[::-1] for text in (min(needed, key=lambda t: t[::-1]), max(needed, key=lambda t: t[::-1]))]
    first, last = backwards
    common = 0
    while common < min(len(first), len(last), 40) and first[common] == last[common]:
        common += 1
    return [(_Pattern(escape(first[:size][::-1]) + "$"), True) for size in range(1, common + 1)]


def _infixes(needed: list[str]) -> list[_Choice]:
    """All parts up to some length that every needed text has."""
    shortest = min(needed, key=len)
    others = sorted(set(needed), key=len)[:400]
    found: list[str] = []
    level = sorted({letter for letter in shortest if all(letter in text for text in others)})
    while level and len(level[0]) <= _MAX_LETTERS and len(found) < _MAX_CANDIDATES:
        found.extend(level)
        known = set(level)
        size = len(level[0]) + 1
        grown = {shortest[at : at + size] for at in range(len(shortest) - size + 1)}
        level = sorted(
            part
            for part in grown
            if part[:-1] in known and part[1:] in known and all(part in text for text in others)
        )
        if size > 3:  # longer parts pay only where shorter ones do not tell enough
            level = level[:20]
    rest = [part for part in found if all(part in text for text in needed)] if len(others) < len(needed) else found
    return [(_Pattern(escape(part)), True) for part in rest[:_MAX_CANDIDATES]]


def _classes(needed: list[str]) -> list[_Choice]:
    found: list[_Choice] = []
    for text in _CLASSES:
        search = re.compile(text, re.ASCII | re.DOTALL).search
        hits = sum(search(value) is not None for value in needed)
        if hits == len(needed):
            found.append((_Pattern(text), True))
        elif hits == 0:
            found.append((_Pattern(text), False))
    heads, tails = sorted({text[:1] for text in needed}), sorted({text[-1:] for text in needed})
    for letters, before, after in ((heads, "^", ""), (tails, "", "$")):
        if 1 < len(letters) <= 8 and all(letters) and not _META & set(letters) and "-" not in letters:
            found.append((_Pattern(f"{before}[{''.join(letters)}]{after}"), True))
    return found


def _lacking(needed: list[str], sample: list[tuple[str, int]]) -> list[_Choice]:
    """Parts that no needed text has, from the foreign texts of most rows."""
    candidates: dict[str, None] = {}
    for text, _ in sample[:8]:
        for size in (1, 2, 3):
            for at in range(min(len(text), 60) - size + 1):
                candidates.setdefault(text[at : at + size])
        for size in (1, 2, 3):
            candidates.setdefault("^" + text[:size])
            candidates.setdefault(text[-size:] + "$")
    found: list[_Choice] = []
    for part in candidates:
        if part[:1] == "^" and len(part) > 1:
            absent, pattern = not any(text.startswith(part[1:]) for text in needed), "^" + escape(part[1:])
        elif part[-1:] == "$" and len(part) > 1:
            absent, pattern = not any(text.endswith(part[:-1]) for text in needed), escape(part[:-1]) + "$"
        else:
            absent, pattern = not any(part in text for text in needed), escape(part)
        if absent:
            found.append((_Pattern(pattern), False))
            if len(found) >= _MAX_CANDIDATES:
                break
    return found


def _branches(needed: list[str], foreign: list[str]) -> list[_Choice]:
    """`a|b`, `[ab]`: parts that no foreign text has and that together are in all needed ones."""
    if len(needed) > 400:
        return []
    together = "\0".join(foreign)
    parts: dict[str, None] = {}
    for text in needed:
        for size in (1, 2, 3):
            for at in range(min(len(text), 80) - size + 1):
                parts.setdefault(text[at : at + size])
    usable = [part for part in parts if part not in together and "\0" not in part][:400]
    heads = sorted({text[:size] for text in needed for size in (1, 2)} - {""})
    starts = {text[:size] for text in foreign for size in (1, 2)}
    patterns = [(escape(part), [part in text for text in needed]) for part in usable]
    patterns += [
        ("^" + escape(head), [text.startswith(head) for text in needed]) for head in heads if head not in starts
    ]
    tails = sorted({text[-size:] for text in needed for size in (1, 2)} - {""})
    ends = {text[-size:] for text in foreign for size in (1, 2)}
    patterns += [
        (escape(tail) + "$", [text.endswith(tail) for text in needed]) for tail in tails if tail not in ends
    ]
    if not patterns:
        return []
    covered = np.array([hits for _, hits in patterns], dtype=np.bool_)
    costs = np.array([len(text.encode()) for text, _ in patterns], dtype=np.int64)
    found: list[_Choice] = []
    covers = best_covers(covered, costs, joiner_cost=1, keep=1, max_atoms=_MAX_BRANCHES, budget=300)
    for cover in covers:
        texts = [patterns[place][0] for place in cover.atoms]
        joined = "|".join(texts)
        if len(texts) > 2 and all(len(text) == 1 and text != "-" for text in texts):
            joined = f"[{''.join(texts)}]"
        found.append((_Pattern(joined), True))
    return found

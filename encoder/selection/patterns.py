"""Conditions on texts: the shortest prefix, suffix, infix, character class or alternation that tells them apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from emit.strings import quote
from emit.term import Term, op, raw
from encoder.budget import Budget
from encoder.selection.grams import GramIndex, escape
from encoder.selection.infixes import shared_parts
from encoder.selection.model import Mask
from encoder.selection.scales import TEXTS
from encoder.selection.view import Shape, View
from solver.setcover import best_covers

_KEPT = 6
_MAX_BRANCHES = 5
_MAX_ALTERNATION = 24
_MAX_PARTS = 200
_SIZES = range(1, 13)


def pattern_shapes(view: View, budget: Budget) -> Iterator[Shape]:
    """Patterns that all needed texts match and some foreign one does not, or the other way round."""
    index = view.feature.grams
    if not len(view.foreign) or not len(view.needed):
        return
    if index is None:
        if view.feature.base in TEXTS and budget.spend(1 + len(view.need) // 50):
            yield from _long_parts(view)
        return
    if not budget.spend(1 + len(index.codes) // 1_000):
        return
    distinct = (view.need[:-1] > 0).astype(np.int64)
    weights = np.where(view.need[:-1] > 0, 0, view.bad[:-1])
    needed, foreign = index.sums(distinct), index.sums(weights)
    total = int(weights.sum())
    found = False
    for place in _front(index, needed == len(view.needed), foreign):
        found |= foreign[place] == 0
        yield _shape(view, index.patterns[place], True, index.accepted(place, len(view.need)))
    for place in _front(index, needed == 0, total - foreign):
        yield _shape(view, index.patterns[place], False, index.accepted(place, len(view.need)))
    if not found:
        yield from _long_parts(view)
    if not found and len(view.needed) > 1 and not view.feature.path:
        yield from _branches(view, index, (needed > 0) & (foreign == 0))


def _front(index: GramIndex, usable: Mask, passed: NDArray[np.int64]) -> list[int]:
    """The usable patterns that let fewer foreign rows pass than all shorter ones."""
    places = np.flatnonzero(usable)
    order = places[np.lexsort((places, passed[places], index.sizes[places]))]
    best = np.minimum.accumulate(passed[order])
    better = np.ones(len(order), dtype=np.bool_)
    better[1:] = best[1:] < best[:-1]
    front: list[int] = order[better].tolist()
    return front[-_KEPT:]


def _shape(view: View, pattern: str, inside: bool, matching: Mask) -> Shape:
    term = view.feature.term
    if inside:
        return Shape(matching, lambda yes: _spell(term, pattern, yes))
    accept = ~matching
    accept[-1] = False
    return Shape(accept, lambda yes: _spell(term, pattern, not yes))


def _spell(term: Term, pattern: str, yes: bool) -> Term:
    matches = op(term, "~" if yes else "!~", raw(quote(pattern)))
    plain = pattern[1:].replace("\\", "") if pattern[0] == "^" else ""
    # A prefix without escapes is shorter than its regular expression with them.
    if yes and plain and escape(plain) == pattern[1:] and len(plain) + 1 < len(pattern):
        return op(term, "^@", raw(quote(plain)))
    return matches


def _long_parts(view: View) -> Iterator[Shape]:
    """The common beginning and end of the needed texts, and the parts that they share, longer ones than an index
    has among them."""
    values = view.feature.coded.values
    needed = [values[code] for code in view.needed.tolist()]
    foreign = [values[code] for code in view.foreign.tolist()]
    head = _common_head(needed)
    if head:
        size = next((s for s in _SIZES if not any(text.startswith(head[:s]) for text in foreign)), len(head))
        head = head[:size]
        yield _direct(view, "^" + escape(head), lambda text: text.startswith(head))
    tail = _common_head([text[::-1] for text in needed])[::-1]
    if tail:
        size = next((s for s in _SIZES if not any(text.endswith(tail[-s:]) for text in foreign)), len(tail))
        tail = tail[-size:]
        yield _direct(view, escape(tail) + "$", lambda text: text.endswith(tail))
    for part in shared_parts(needed, foreign):
        yield _direct(view, escape(part), _has(part))


def _has(part: str) -> Callable[[str], bool]:
    return lambda text: part in text


def _common_head(texts: list[str]) -> str:
    """The beginning that all texts share, up to some letters."""
    first, last = min(texts), max(texts)
    return first[: min(_agreement(first, last), _SIZES[-1])]


def _agreement(first: str, last: str) -> int:
    """How many letters two texts have in common from their beginning."""
    limit = min(len(first), len(last))
    return next((place for place in range(limit) if first[place] != last[place]), limit)


def _direct(view: View, pattern: str, matches: Callable[[str], bool]) -> Shape:
    accept = np.zeros(len(view.need), dtype=np.bool_)
    values = view.feature.coded.values
    counted = np.flatnonzero((view.need + view.bad)[:-1]).tolist()
    accept[counted] = [matches(values[code]) for code in counted]
    return _shape(view, pattern, True, accept)


def _branches(view: View, index: GramIndex, usable: Mask) -> Iterator[Shape]:
    """`a|b`, `[ab]`: parts that no foreign text has and that together are in all needed ones."""
    places = np.flatnonzero(usable)
    if not len(places) or len(view.needed) > 2_000:
        return
    worth = index.sums((view.need[:-1] > 0).astype(np.int64))[places] / (index.sizes[places] + 1)
    places = np.sort(places[np.argsort(-worth, kind="stable")[:_MAX_PARTS]])
    covered = np.array([index.accepted(place, len(view.need))[view.needed] for place in places.tolist()])
    if not covered.any(axis=0).all():
        return
    covers = best_covers(
        covered,
        index.sizes[places],
        joiner_cost=1,
        keep=1,
        max_atoms=_MAX_BRANCHES,
        budget=200,
        limit=_MAX_ALTERNATION,
    )
    for cover in covers:
        chosen = places[list(cover.atoms)].tolist()
        accept = np.logical_or.reduce([index.accepted(place, len(view.need)) for place in chosen])
        yield _shape(view, _alternation([index.patterns[place] for place in chosen]), True, accept)


def _alternation(texts: list[str]) -> str:
    """`a|b`, or a bracket where it is shorter."""
    joined = "|".join(texts)
    for before, after in (("", ""), ("^", ""), ("", "$")):
        letters = [text.removeprefix(before).removesuffix(after) for text in texts]
        fits = all(
            text == before + letter + after and len(letter) == 1 and letter not in "-^$."
            for text, letter in zip(texts, letters, strict=True)
        )
        bracket = f"{before}[{''.join(letters)}]{after}"
        if fits and len(bracket) < len(joined):
            return bracket
    return joined

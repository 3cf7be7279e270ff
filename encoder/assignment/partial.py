"""Expressions that are right on a part of the rows, and CASE made of two of them.

Partition the rows, fit a part, look where else the fit holds: as ChARLES (Naous et al. 2021) does for numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from itertools import islice

import numpy as np

from emit.term import Term
from encoder.assignment.cases import split
from encoder.assignment.conditions import conditions
from encoder.assignment.engine import Mask, Search
from encoder.assignment.families import PARTS
from encoder.assignment.problem import Problem

_MAX_GROUPS = 12
_MAX_CLUSTERS = 4
_LEAST_SHARE = 0.15
_SPREAD = 300
_MAX_VALUES = 8
_PER_SIDE = 40
_CONDITIONS = 8
_PAIRS = 6


def partials(search: Search) -> list[tuple[Term, Mask]]:
    """Terms with the rows on which they are right, the largest parts first; none that is right nowhere."""
    spread = _spread(search)
    found: dict[Term, Mask] = {}
    tried = 0
    for group in _groups(search.problem(spread, light=True)):
        places = [spread[i] for i in group]
        if tried >= _MAX_GROUPS or search.budget.left <= 0:
            break
        if any(mask[places].all() for mask in found.values()):
            continue
        tried += 1
        _add(search, found, places)
    return _by_size(found)


def _add(search: Search, found: dict[Term, Mask], places: Sequence[int]) -> None:
    terms = search.run(PARTS, 2, places)[:3]
    for term, mask in zip(terms, search.footprints(terms), strict=True):
        if mask.any() and not any(np.array_equal(mask, other) for other in found.values()):
            found[term] = mask


def _by_size(found: dict[Term, Mask]) -> list[tuple[Term, Mask]]:
    return sorted(found.items(), key=lambda pair: (-int(pair[1].sum()), len(pair[0].parts), str(pair[0].parts)))


def _spread(search: Search) -> list[int]:
    count = len(search.goal.rows)
    return list(range(0, count, max(1, count // _SPREAD)))[:_SPREAD]


def _groups(problem: Problem) -> Iterator[list[int]]:
    """Parts of the rows that one expression may cover, the likeliest first."""
    count = len(problem.new)
    if count < 4:
        return
    clusters: list[list[Hashable]] = [list(problem.new)]
    for item in problem.inputs:
        if item.texts == problem.new:
            continue
        clusters.append([(item.texts[i] == new and new is not None) or None for i, new in enumerate(problem.new)])
        if item.own and (item.is_number or item.is_time) and not np.isnan(problem.numbers).all():
            difference = np.round(problem.numbers - item.numbers, 6)
            clusters.append([None if np.isnan(x) else x for x in difference.tolist()])
            with np.errstate(all="ignore"):
                ratio = np.round(problem.numbers / item.numbers, 3)
            clusters.append([x if np.isfinite(x) and x != 0 else None for x in ratio.tolist()])
    sized: list[tuple[int, list[int]]] = []
    for marks in clusters:
        counts = Counter(mark for mark in marks if mark is not None)
        for mark, size in counts.most_common(2):
            if _LEAST_SHARE * count <= size < count:
                sized.append((size, [i for i, other in enumerate(marks) if other == mark]))
    sized.sort(key=lambda pair: -pair[0])
    yield from (group for _, group in sized[:_MAX_CLUSTERS])
    yield from _by_value(problem)


def _by_value(problem: Problem) -> Iterator[list[int]]:
    count = len(problem.new)
    parts: list[tuple[bool, int, int, list[int]]] = []
    for item in problem.inputs:
        counts = Counter(item.texts)
        if 2 <= len(counts) <= _MAX_VALUES:
            value, size = counts.most_common(1)[0]
            parts.append((not item.own, len(counts), -size, [i for i, text in enumerate(item.texts) if text == value]))
        elif item.own and (item.is_number or item.is_time) and len(counts) > _MAX_VALUES:
            order = np.argsort(item.numbers, kind="stable").tolist()
            for third in (order[: count // 3], order[-(count // 3) :]):
                parts.append((not item.own, _MAX_VALUES, -len(third), third))
    # The fewer values a column has, the likelier it is what decides.
    parts.sort(key=lambda part: part[:3])
    yield from (part[3] for part in parts)


def splits(search: Search) -> list[Term]:
    """CASE WHEN condition THEN one expression ELSE another, proved on all rows."""
    found = dict(partials(search))
    for _, mask in _by_size(found)[:2]:
        if not any((mask | other).all() for other in found.values()):
            _add(search, found, np.flatnonzero(~mask).tolist())
    ordered = _by_size(found)
    candidates: list[Term] = []
    pairs = 0
    for i, (first, right) in enumerate(ordered):
        for second, also in ordered[:i]:
            if (right | also).all() and pairs < _PAIRS:
                pairs += 1
                candidates += _joined(search, first, right, second, also)
                candidates += _joined(search, second, also, first, right)
    return search.all_right(candidates)


def _joined(search: Search, first: Term, right: Mask, second: Term, also: Mask) -> Iterator[Term]:
    must, must_not = np.flatnonzero(~also), np.flatnonzero(~right)
    chosen = sorted([*_thinned(must.tolist()), *_thinned(must_not.tolist())])
    problem = search.problem(chosen)
    wanted = [not also[place] for place in chosen]
    for condition in islice(conditions(problem, wanted, True), _CONDITIONS):
        yield from split(condition, first, second)


def _thinned(places: list[int]) -> list[int]:
    return places[:: max(1, len(places) // _PER_SIDE)]

"""Values of window functions: numbers by order within a group, neighbours' values, running and group totals."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from emit.term import Part, Prec, Query, Term, call, conjoin, op, raw, ref, subquery
from encoder.assignment import cases, documents, neighbours, numeric, text
from encoder.assignment.decimals import Band
from encoder.assignment.layout import (
    NUMERIC,
    ORDERED,
    Codes,
    Layout,
    Mask,
    layout_of,
    order_parts,
    over,
    sorted_rows,
)
from encoder.assignment.model import VALUE, WINDOW
from encoder.assignment.numbering import Grading, Numbering, Reach, gradings, numberings
from encoder.assignment.problem import STRINGS, Floats, Input, Problem, to_number
from encoder.assignment.window_sql import rekeyed
from encoder.literals import source_of
from scratch.catalog import Table
from stream.model import Value

_MAX_NUMBERINGS = 8
_MAX_GRADINGS = 4
_MAX_TERMS = 4
_MAX_RUNNING = 8
_MAX_SUMMED = 12
_MAX_TOTALS = 12
_MAX_SORTED = 200_000
_MAX_CLASSES = 6
_FIRST = re.compile(r"-?\d+(\.\d+)?")
_LAST = re.compile(r"-?\d+(\.\d+)?(?=\D*$)")
_INNER = "counted"

_NUMBER = ref(WINDOW, VALUE)


@dataclass(frozen=True)
class Target:
    """What a window's value has to be: of type `base`, in every row of the frame that is to have one (`final`, where
    None is NULL or unknown), and how the goal follows from it: terms for a value's term with its texts in the sample.
    """

    base: str
    final: Sequence[Value]
    finish: Callable[[Problem, Term, str, tuple[Value, ...]], Iterator[Term]]

    @property
    def numbers(self) -> Floats:
        base = self.base if self.base in NUMERIC else "numeric"
        return np.array([to_number(base, text) for text in self.final], dtype=np.float64)


def targets(problem: Problem, rows: Codes, new: Sequence[Value]) -> Iterator[Target]:
    """The goal itself, a number in its text, a field of its document; `new` are the goals of all of `rows`."""
    if problem.base in ORDERED:
        yield Target(problem.base, _everywhere(problem, rows, new), _itself)
    if problem.base in STRINGS:
        found = [_LAST, _FIRST] if _differ(new) else [_LAST]
        for pattern in found:
            numbers = [None if line is None else pattern.search(line) for line in new]
            if all(numbers):
                texts = [match and match[0].lstrip("-") for match in numbers]
                yield Target("numeric", _everywhere(problem, rows, texts), _in_text)
    if problem.base in ("json", "jsonb"):
        yield from _fields(problem, rows, new)


def _differ(new: Sequence[Value]) -> bool:
    return any(line is not None and len(_FIRST.findall(line)) > 1 for line in new)


def _everywhere(problem: Problem, rows: Codes, new: Sequence[Value]) -> list[Value]:
    """The values after the statement of all rows of the frame; those of other rows are as they were."""
    own = problem.table.by_name.get(problem.column.name) == problem.column
    final: list[Value] = list(problem.frame.texts(problem.column.name)) if own else [None] * problem.frame.size
    for row, value in zip(rows.tolist(), new, strict=True):
        final[row] = value
    return final


def _fields(problem: Problem, rows: Codes, new: Sequence[Value]) -> Iterator[Target]:
    try:
        parsed = [json.loads(line or "null") for line in new]
    except ValueError:
        return
    if not all(isinstance(document, dict) for document in parsed):
        return
    for key in sorted(parsed[0]):
        values = [document.get(key) for document in parsed]
        if all(value is None or type(value) in (int, float) for value in values) and len(set(values)) > 1:
            final: list[Value] = [None] * problem.frame.size
            for row, value in zip(rows.tolist(), values, strict=True):
                final[row] = None if value is None else json.dumps(value)
            yield Target("numeric", final, _in_document)


def _itself(problem: Problem, term: Term, base: str, texts: tuple[Value, ...]) -> Iterator[Term]:
    if problem.base in NUMERIC:
        yield from islice(numeric.of_input(problem, Input(term, base, "N", texts, problem.cost(term))), _MAX_TERMS)
    elif texts == problem.new:
        yield term


def _in_text(problem: Problem, term: Term, base: str, texts: tuple[Value, ...]) -> Iterator[Term]:
    item = Input(term, base, "N", texts, problem.cost(term))
    found = (made for made in text.around(problem, item) if _uses(made, term))
    yield from islice(found, _MAX_TERMS)


def _in_document(problem: Problem, term: Term, base: str, texts: tuple[Value, ...]) -> Iterator[Term]:
    item = Input(term, base, "N", texts, problem.cost(term))
    found = (made for made in documents.documents(problem.with_inputs([item])) if _uses(made, term))
    yield from islice(found, _MAX_TERMS)


def _uses(term: Term, part: Term) -> bool:
    return all(piece in term.parts for piece in part.parts)


def _shown(values: Floats) -> tuple[Value, ...]:
    """Numbers as texts, whole ones without a point; NULL for NaN."""
    return tuple(
        None if np.isnan(value) else str(int(value)) if value == np.trunc(value) else repr(value)
        for value in values.tolist()
    )


def window_terms(problem: Problem, rows: Codes, new: Sequence[Value]) -> Iterator[tuple[Term, Term, bool]]:
    """Window functions that may give the goal: the term over the window's value, the window, whether it
    counts only the goal's `rows`, whose goals are `new`."""
    for target in targets(problem, rows, new):
        yield from _numbered(problem, target, rows)
        yield from _totals(problem, target, rows)
        yield from ((term, window, False) for term, window in _neighbours(problem, target, rows))
    yield from _graded(problem, rows, new)


def _reaches(problem: Problem, rows: Codes) -> list[tuple[Reach, bool]]:
    """What a window may see, and whether that is the goal's rows alone."""
    layout = layout_of(problem)
    found = [(Reach(layout, layout.key, rows, True), False), (Reach(layout, layout.key, rows, False), False)]
    if len(rows) < problem.frame.size:
        found.append((Reach(layout, rows, rows, False), True))
    return found


def _numbered(problem: Problem, target: Target, rows: Codes) -> Iterator[tuple[Term, Term, bool]]:
    if target.base not in NUMERIC:
        return
    final, sample = target.numbers, np.array(problem.rows)
    if not np.isfinite(final[rows]).all() or len(np.unique(final[rows])) < 2:
        return
    seen: set[tuple[Term, bool]] = set()
    for parents in (False, True) if problem.base in NUMERIC else (False,):
        for reach, selected in _reaches(problem, rows):
            for found in islice(numberings(reach, final, parents), _MAX_NUMBERINGS):
                if (found.window, selected) not in seen:
                    seen.add((found.window, selected))
                    texts = _shown(found.values[sample])
                    for term in target.finish(problem, _NUMBER, "bigint", texts):
                        yield term, found.window, selected
        if seen:
            return


def _graded(problem: Problem, rows: Codes, new: Sequence[Value]) -> Iterator[tuple[Term, Term, bool]]:
    """A few values by rank: the first of a group, the second, the others."""
    values = sorted(set(new), key=str)
    if not 1 <= len(values) <= _MAX_CLASSES or problem.base in ("json", "jsonb"):
        return
    final = _everywhere(problem, rows, new)
    known = sorted({*values, *(final if len(set(final)) <= _MAX_CLASSES else ())}, key=str)
    place = {value: i for i, value in enumerate(known)}
    for parents in (False, True):
        some = False
        for reach, selected in _reaches(problem, rows):
            coded = known if reach.spread else values
            if len(coded) < 2:
                continue
            order = place if reach.spread else {value: i for i, value in enumerate(values)}
            classes = np.array([order.get(value, -1) for value in final], dtype=np.int64)
            for found in islice(gradings(reach, classes, parents), _MAX_GRADINGS):
                some = True
                yield _by_rank(problem, [coded[i] for i in found.classes], found), found.numbering.window, selected
        if some:
            return


def _by_rank(problem: Problem, values: Sequence[Value], found: Grading) -> Term:
    first = found.firsts
    if problem.base == "boolean" and set(values) <= {"t", "f"}:
        if values[0] == "f":
            return op(_NUMBER, ">", raw(str(first)))
        return op(_NUMBER, "=", raw("1")) if first == 1 else op(_NUMBER, "<", raw(str(first + 1)))
    shown = [problem.constant(value) for value in values]
    if len(values) == 2 and first > 1:
        return cases.case([(op(_NUMBER, ">", raw(str(first))), shown[1])], shown[0])
    if len(values) > 2 and None not in values and problem.base in STRINGS | NUMERIC:
        chosen = cases.subscript(problem, [value or "" for value in values[:-1]], _NUMBER)
        return call("coalesce", chosen, shown[-1])
    branches = [(raw(str(rank)), value) for rank, value in enumerate(shown[:-1], 1)]
    return cases.case(branches, shown[-1], _NUMBER)


def _neighbours(problem: Problem, target: Target, rows: Codes) -> Iterator[tuple[Term, Term]]:
    """The value of the row before or after in a group's order, or of the group's first."""
    layout, sample = layout_of(problem), np.array(problem.rows)
    if layout.table.row_key and len({target.final[row] for row in rows.tolist()}) > 1:
        wanted = [target.final[row] for row in rows.tolist()]
        for column, window, values in neighbours.found(layout, target.base, rows, wanted):
            texts = layout.frame.texts(column)
            seen = tuple(texts[row] if row >= 0 else None for row in values[sample].tolist())
            base = layout.table.by_name[column].base
            for term in target.finish(problem, _NUMBER, base, seen):
                yield term, window


def _totals(problem: Problem, target: Target, rows: Codes) -> Iterator[tuple[Term, Term, bool]]:
    """Totals of a group, and running sums in it."""
    if target.base not in NUMERIC:
        yield from ((term, window, False) for term, window in _extremes(problem, target, rows))
        return
    numbers = target.numbers
    if np.isnan(numbers[rows]).any():
        return
    sample = np.array(problem.rows)
    scale = problem.scale if problem.base in NUMERIC else None
    band = Band.rounding(numbers[rows], scale)
    layout = layout_of(problem)
    for members in (layout.key, rows) if len(rows) < problem.frame.size else (layout.key,):
        for values, window in islice(_sums(problem, band, rows, members), _MAX_TOTALS):
            for term in target.finish(problem, _NUMBER, "numeric", _shown(values[sample])):
                yield term, window, members is rows


def _sums(problem: Problem, band: Band, rows: Codes, members: Codes) -> Iterator[tuple[Floats, Term]]:
    """Totals and running sums over `members` alone, NaN in other rows."""
    layout = layout_of(problem)
    columns = [c for c in problem.table.columns if c.base in NUMERIC][:_MAX_SUMMED]
    numbers = [(column, layout.frame.numbers(column.name)[members]) for column in columns]

    def fits(found: Floats) -> bool:
        return bool(band.holds(_spread(layout, members, found)[rows]))

    for place, partition in enumerate(layout.partitions):
        running = problem.base in NUMERIC and place < _MAX_RUNNING and len(members) * place <= _MAX_SORTED
        if not running and not _constant(partition.codes[rows], band.low):
            continue
        _, group = np.unique(partition.codes[members], return_inverse=True)
        counts = np.bincount(group)[group].astype(np.float64)
        if partition.terms and fits(counts):
            yield _spread(layout, members, counts), over(raw("count(*)"), partition, ())
        for column, values in numbers:
            for name, totals in _reduced(values, group):
                spread = np.round(totals, 9)[group]
                if fits(spread) and (column.name not in layout.table.row_key or name != "sum"):
                    yield _spread(layout, members, spread), over(call(name, ref((), column.name)), partition, ())
        # A running total is hardly ever part of a text.
        for order in layout.sequences if running else ():
            line, starts, ties = sorted_rows(partition, [order], members)
            at = np.searchsorted(members, line)
            for column, values in numbers:
                if column.name == order.column:
                    continue
                for peers in (True, False) if ties.any() else (False,):
                    found = _running(values, at, starts, ties if peers else None)
                    if fits(found):
                        parts = order_parts(layout.table, [order], bool(ties.any()) and not peers)
                        yield _spread(layout, members, found), over(call("sum", ref((), column.name)), partition, parts)


def _spread(layout: Layout, members: Codes, values: Floats) -> Floats:
    """`values` of `members` in the places of all rows."""
    found = np.full(layout.frame.size, np.nan)
    found[members] = values
    return found


def _constant(groups: Codes, wanted: Floats | Codes) -> bool:
    """Whether the rows of each group want the same."""
    line = np.lexsort((wanted, groups))
    return not bool(((np.diff(groups[line]) == 0) & (np.diff(wanted[line]) != 0)).any())


def _reduced(values: Floats, group: NDArray[np.intp]) -> Iterator[tuple[str, Floats]]:
    known = ~np.isnan(values)
    present = np.bincount(group, weights=known)
    sums = np.bincount(group, weights=np.nan_to_num(values))
    most, least = np.full(len(present), -np.inf), np.full(len(present), np.inf)
    np.maximum.at(most, group[known], values[known])
    np.minimum.at(least, group[known], values[known])
    yield "sum", np.asarray(sums, dtype=np.float64)
    yield "max", most
    yield "min", least
    with np.errstate(all="ignore"):
        yield "avg", np.asarray(sums / present, dtype=np.float64)


def _running(values: Floats, line: Codes, starts: Mask, ties: Mask | None) -> Floats:
    """Running sums in the order of `line`; with `ties`, rows that tie with the one before have the sum of all of
    them."""
    known = np.nan_to_num(values)[line]
    total = np.cumsum(known)
    sums = np.round(total - _carried(np.where(starts, total - known, -np.inf)), 9)
    if ties is not None:
        # The last of every run of rows that tie.
        ends = np.flatnonzero(~np.append(ties[1:], False))
        sums = sums[ends[np.searchsorted(ends, np.arange(len(line)))]]
    found = np.empty(len(line))
    found[line] = sums
    return found


def _carried(values: Floats) -> Floats:
    """Every -inf replaced by the last other value before it."""
    places = np.maximum.accumulate(np.where(np.isinf(values), 0, np.arange(len(values))))
    return values[places]


def _extremes(problem: Problem, target: Target, rows: Codes) -> Iterator[tuple[Term, Term]]:
    """The greatest or least text or time of a group."""
    layout, sample = layout_of(problem), np.array(problem.rows)
    wanted = [target.final[row] for row in rows.tolist()]
    if None in wanted or len(set(wanted)) < 2:
        return
    for column in layout.table.columns:
        if not neighbours.alike(column.base, target.base):
            continue
        coded = layout.frame.coded(column.name)
        place_of = {text: place for place, text in enumerate(coded.values)}
        if any(value not in place_of for value in wanted):
            continue
        goal = np.array([place_of[value or ""] for value in wanted])
        for partition in layout.partitions[1:]:
            if not _constant(partition.codes[rows], goal):
                continue
            _, group = np.unique(partition.codes, return_inverse=True)
            for name, sign in (("max", 1), ("min", -1)):
                best = np.full(int(group.max()) + 1, -len(coded.values) - 1)
                known = coded.codes >= 0
                np.maximum.at(best, group[known], sign * coded.codes[known])
                places = sign * best[group]
                if np.array_equal(places[rows], goal):
                    texts = tuple(coded.values[place] for place in places[sample].tolist())
                    for term in target.finish(problem, _NUMBER, column.base, texts):
                        yield term, over(call(name, ref((), column.name)), partition, ())


# -- the same without a window


def ranked(problem: Problem) -> Iterator[Term]:
    """The number of rows that come before, as a count in a nested query."""
    rows = np.array(problem.rows)
    for target in targets(problem, rows, problem.new):
        if target.base not in NUMERIC:
            continue
        final = target.numbers
        if not np.isfinite(final[rows]).all() or len(np.unique(final[rows])) < 3:
            continue
        layout = layout_of(problem)
        reach = Reach(layout, layout.key, rows, False)
        for found in islice(numberings(reach, final, False), _MAX_NUMBERINGS):
            term = _counted(problem.table, found)
            if term is not None:
                yield from target.finish(problem, term, "bigint", _shown(found.values[rows] - 1))


def _counted(table: Table, found: Numbering) -> Term | None:
    """A rank less one as (SELECT count(*) …)."""
    if str(found.window.parts[0]).startswith("dense") or len(found.keys) != 1:
        return None
    (order,) = found.keys
    if found.tied and order.descending:
        return None
    conditions = [op(rekeyed(term, _INNER), "=", term) for term in found.partition.terms]
    names = (order.column, *(table.row_key if found.tied else ()))
    sign = ">" if order.descending else "<"
    left = [ref(_INNER, name) for name in names]
    right = [ref((), name) for name in names]
    if len(names) == 1:
        conditions.append(op(left[0], sign, right[0]))
    else:
        conditions.append(Term((*_row(left), sign, *_row(right)), Prec.COMPARE))
    return subquery(Query((call("count", raw("*")),), (source_of(table, _INNER),), conjoin(conditions)))


def _row(terms: Sequence[Term]) -> tuple[Part, ...]:
    parts: list[Part] = ["("]
    for place, term in enumerate(terms):
        parts += [*([","] if place else []), *term.parts]
    return (*parts, ")")

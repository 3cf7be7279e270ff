"""Values of window functions: numbers by order within a group, neighbours' values, running and group totals."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from emit.render import render
from emit.term import Part, Prec, Query, Ref, Source, Term, Update, call, conjoin, op, raw, ref, subquery
from encoder.assignment import numeric, text
from encoder.assignment.decimals import Band
from encoder.assignment.model import VALUE, WINDOW, WindowExpression
from encoder.assignment.problem import INTEGERS, STRINGS, TIMES, Floats, Input, Problem, quoted
from encoder.frame import Frame
from encoder.literals import source_of
from scratch.catalog import Column, Table
from stream.model import Value

_NUMERIC = INTEGERS | {"numeric"}
_ORDERED = _NUMERIC | STRINGS | TIMES | {"boolean"}
_MAX_PARTITIONS = 16
_MAX_LINKS = 6
_MAX_PAIRED = 3
_MAX_NUMBERINGS = 8
_MAX_TERMS = 4
_MAX_RUNNING = 8
_MAX_SUMMED = 12
_MAX_SORTED = 200_000
_TRAILING = re.compile(r"\d+$")
_INNER = "numbered"

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Partition:
    """What rows are grouped by: terms keyed (), and a code a row of the frame."""

    terms: tuple[Term, ...]
    codes: Codes


@dataclass(frozen=True)
class Order:
    """A column to order by: `codes` ascending in the direction wanted, NULLs where PostgreSQL puts them."""

    column: str
    descending: bool
    codes: Codes

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Ref((), self.column), *(("DESC",) if self.descending else ()))


@dataclass(frozen=True)
class Numbering:
    """A window function with its values, a float for every row of the frame (NaN where it has none)."""

    window: Term
    values: Floats
    partition: Partition
    order: Order
    tied: bool  # the key column is needed to tell rows apart


class Layout:
    """Partitions and orders of a table."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.table = frame.table

    @cached_property
    def key(self) -> Codes:
        """The rows in the order of the row key, as the frame has them."""
        return np.arange(self.frame.size, dtype=np.int64)

    def codes(self, name: str) -> Codes:
        """Codes of a column with NULL as the greatest."""
        codes = self.frame.coded(name).codes.astype(np.int64)
        return np.where(codes < 0, len(codes) + 1, codes)

    @cached_property
    def partitions(self) -> tuple[Partition, ...]:
        """No partition, then columns with repeated values, years, and pairs of such columns."""
        size = self.frame.size
        single: list[Partition] = []
        links = {name for key in self.table.foreign_keys for name in key.columns}
        for column in sorted(self.table.columns, key=lambda c: c.name not in links):
            # A part of the key groups rows, the whole key tells them apart.
            if self.table.row_key == (column.name,) or column.base not in _ORDERED:
                continue
            distinct = len(set(self.frame.texts(column.name)))
            if 1 < distinct <= max(size * 0.7, 2):
                single.append(Partition((ref((), column.name),), self.codes(column.name)))
            if column.base in TIMES and distinct > 1:
                texts = self.frame.texts(column.name)
                years = np.array([int(text[:4]) if text and text[:4].isdigit() else 0 for text in texts])
                if len(np.unique(years)) > 1:
                    single.append(Partition((call("date_part", quoted("y"), ref((), column.name)),), years))
        single = single[:_MAX_PARTITIONS]
        few = single[:_MAX_LINKS]
        few += sorted(single[_MAX_LINKS:], key=lambda partition: len(np.unique(partition.codes)))[:_MAX_PAIRED]
        pairs = [Partition((*a.terms, *b.terms), a.codes * (size + 2) + b.codes) for a, b in combinations(few, 2)]
        return (Partition((), np.zeros(size, dtype=np.int64)), *single, *pairs)

    @cached_property
    def orders(self) -> tuple[Order, ...]:
        found: list[Order] = []
        for column in self.table.columns:
            if column.base in _ORDERED and len(set(self.frame.texts(column.name))) > 1:
                codes = self.codes(column.name)
                found += [Order(column.name, False, codes), Order(column.name, True, -codes)]
        return tuple(found)

    @cached_property
    def sequences(self) -> tuple[Order, ...]:
        """Orders by the key, times and whole numbers, references last: what running values follow."""
        links = {name for key in self.table.foreign_keys for name in key.columns}
        found = [order for order in self.orders if self.table.by_name[order.column].base in INTEGERS | TIMES]
        found.sort(key=lambda order: order.column in links)
        return tuple(found[: 2 * _MAX_RUNNING])


@lru_cache(maxsize=2)
def layout_of(problem: Problem) -> Layout:
    return Layout(problem.frame)


def numberings(problem: Problem, chosen: NDArray[np.intp] | None, wanted: Floats) -> Iterator[Numbering]:
    """rank (which is row_number where the order is total) and dense_rank that fit the `wanted` numbers.

    `wanted` are the sample's; `chosen` are the rows that count; all of them by default.
    """
    layout = layout_of(problem)
    if not layout.table.row_key:
        return
    rows = np.array(problem.rows)
    members = layout.key if chosen is None else np.sort(chosen)
    for partition in layout.partitions:
        groups = partition.codes[rows]
        repeated = len(np.unique(np.stack([groups.astype(np.float64), wanted]), axis=1).T) < len(rows)
        own = {part.column for term in partition.terms for part in term.parts if isinstance(part, Ref)}
        for order in layout.orders:
            codes = order.codes[rows]
            if (order.column in own and len(partition.terms[0].parts) == 1) or not monotone(groups, wanted, codes):
                continue
            if not repeated:
                if not _roughly(partition, order, members, rows, wanted):
                    continue
                found = _row_numbers(layout, partition, order, members)
            elif _tied_alike(groups, wanted, codes):
                found = _ranks(layout, partition, order, members)
            else:
                continue
            yield from (numbering for numbering in found if _affine(numbering.values[rows], wanted))


def _roughly(partition: Partition, order: Order, members: Codes, rows: NDArray[np.intp], wanted: Floats) -> bool:
    """Whether a few rows of the sample stand about as far apart as `wanted` says; cheaper than a sort."""
    by_size = np.argsort(wanted)
    places = by_size[[0, len(by_size) // 3, 2 * len(by_size) // 3, -1]]
    step = float(np.gcd.reduce(np.abs(wanted - wanted[0]).astype(np.int64)))
    groups, codes = partition.codes[members], order.codes[members]
    least, most = [], []
    for row in rows[places].tolist():
        near = codes[groups == partition.codes[row]]
        least.append(int((near < order.codes[row]).sum()))
        most.append(int((near <= order.codes[row]).sum()) - 1)
    for falling in (False, True):
        apart = (wanted[places] - wanted[places[0]]) / (-step if falling else step)
        if all(
            low - most[0] <= between <= high - least[0]
            for low, high, between in zip(least, most, apart.tolist(), strict=True)
        ):
            return True
    return False


def _affine(values: Floats, wanted: Floats) -> bool:
    """Whether wanted = k * value + c for some k and c."""
    if np.isnan(values).any():
        return False
    first, last = int(np.argmin(values)), int(np.argmax(values))
    left = (values - values[first]) * (wanted[last] - wanted[first])
    right = (wanted - wanted[first]) * (values[last] - values[first])
    return bool(values[last] > values[first] and np.array_equal(left, right))


def _tied_alike(groups: Codes, wanted: Floats, codes: Codes) -> bool:
    """Whether rows of a group have equal `wanted` exactly where they have equal `codes`."""
    line = np.lexsort((codes, wanted, groups))
    same = np.diff(groups[line]) == 0
    return bool((~same | ((np.diff(wanted[line]) == 0) == (np.diff(codes[line]) == 0))).all())


def monotone(groups: Codes, wanted: Floats, codes: Codes) -> bool:
    """Whether `codes` never fall while `wanted` rises inside of a group."""
    line = np.lexsort((codes, wanted, groups))
    same = np.diff(groups[line]) == 0
    rising = np.diff(wanted[line]) > 0
    return not bool((same & rising & (np.diff(codes[line]) < 0)).any())


def sorted_rows(
    partition: Partition, order: Order, members: Codes
) -> tuple[Codes, NDArray[np.bool_], NDArray[np.bool_]]:
    """Rows by partition, order and key; where a partition starts; where a row ties with the one before."""
    line = members[np.lexsort((members, order.codes[members], partition.codes[members]))]
    starts = np.ones(len(line), dtype=np.bool_)
    starts[1:] = np.diff(partition.codes[line]) != 0
    ties = np.zeros(len(line), dtype=np.bool_)
    ties[1:] = ~starts[1:] & (np.diff(order.codes[line]) == 0)
    return line, starts, ties


def _row_numbers(layout: Layout, partition: Partition, order: Order, members: Codes) -> Iterator[Numbering]:
    line, starts, ties = sorted_rows(partition, order, members)
    place = np.arange(len(line))
    values = np.full(layout.frame.size, np.nan)
    values[line] = place - np.maximum.accumulate(np.where(starts, place, 0)) + 1
    tied = bool(ties.any())
    # Under a total order rank() is row_number(), and shorter.
    window = over(raw("rank()"), partition, order_parts(layout, order, tied))
    yield Numbering(window, values, partition, order, tied)


def _ranks(layout: Layout, partition: Partition, order: Order, members: Codes) -> Iterator[Numbering]:
    line, starts, ties = sorted_rows(partition, order, members)
    place = np.arange(len(line))
    first = np.maximum.accumulate(np.where(starts, place, 0))
    own = np.maximum.accumulate(np.where(ties, 0, place))
    dense = np.cumsum(~ties)
    for name, found in (("rank", own - first + 1), ("dense_rank", dense - dense[first] + 1)):
        values = np.full(layout.frame.size, np.nan)
        values[line] = found
        yield Numbering(over(raw(f"{name}()"), partition, order.parts), values, partition, order, False)


def order_parts(layout: Layout, order: Order, tied: bool) -> tuple[Part, ...]:
    if not tied:
        return order.parts
    parts = list(order.parts)
    for name in layout.table.row_key:
        parts += [",", Ref((), name)]
    return tuple(parts)


def over(function: Term, partition: Partition, order: Sequence[Part]) -> Term:
    parts: list[Part] = [*function.parts, "OVER("]
    if partition.terms:
        parts.append("PARTITION BY")
        for place, term in enumerate(partition.terms):
            parts += [*([","] if place else []), *term.parts]
    if order:
        parts += ["ORDER BY", *order]
    return Term((*parts, ")"))


# -- from numbers to the goal


def _numbers(problem: Problem) -> Floats | None:
    """The goal as numbers: itself, or the digits that its text ends with."""
    if problem.base in _NUMERIC:
        numbers = problem.numbers
    elif problem.base in STRINGS:
        found = [_TRAILING.search(text) if text is not None else None for text in problem.new]
        if any(match is None or len(match[0]) > 9 for match in found):
            return None
        numbers = np.array([float(match[0]) for match in found if match is not None])
    else:
        return None
    return None if np.isnan(numbers).any() or len(numbers) < 2 else numbers


def _finished(problem: Problem, term: Term, values: Floats) -> Iterator[Term]:
    """Terms for the goal that use the number `term` with these values in the sample."""
    if np.isnan(values).any():
        return
    texts = tuple(str(int(value)) for value in values.tolist())
    item = Input(term, "bigint", "N", texts, problem.cost(term))
    if problem.base in STRINGS:
        yield from (found for found in text.around(problem, item) if _uses(found, term))
    else:
        yield from numeric.of_input(problem, item)


def _uses(term: Term, part: Term) -> bool:
    return all(piece in term.parts for piece in part.parts)


def ranked(problem: Problem) -> Iterator[Term]:
    """The number of rows that come before, as a count in a nested query."""
    wanted = _numbers(problem)
    if wanted is None or len(np.unique(wanted)) < 3:
        return
    rows = np.array(problem.rows)
    for place, found in enumerate(numberings(problem, None, wanted)):
        if place >= _MAX_NUMBERINGS:
            return
        term = _counted(problem.table, found)
        if term is not None:
            counted, shift = term
            yield from _finished(problem, counted, found.values[rows] - shift)


def _counted(table: Table, found: Numbering) -> tuple[Term, int] | None:
    """A numbering as (SELECT count(*) …), with what it is short of."""
    if str(found.window.parts[0]).startswith("dense"):
        return None
    conditions = [op(_rekeyed(term), "=", term) for term in found.partition.terms]
    names = (found.order.column, *(table.row_key if found.tied else ()))
    if found.tied and found.order.descending:
        return None
    sign = ">" if found.order.descending else "<"
    left = [ref(_INNER, name) for name in names]
    right = [ref((), name) for name in names]
    if len(names) == 1:
        conditions.append(op(left[0], sign, right[0]))
    else:
        conditions.append(Term((*_row(left), sign, *_row(right)), Prec.COMPARE))
    query = Query((call("count", raw("*")),), (source_of(table, _INNER),), conjoin(conditions))
    return subquery(query), 1


def _row(terms: Sequence[Term]) -> tuple[Part, ...]:
    parts: list[Part] = ["("]
    for place, term in enumerate(terms):
        parts += [*([","] if place else []), *term.parts]
    return (*parts, ")")


def _rekeyed(term: Term, key: str = _INNER) -> Term:
    """`term` about the rows of another source of the same table."""
    parts = tuple(Ref(key, part.column) if isinstance(part, Ref) and part.key == () else part for part in term.parts)
    return Term(parts, term.prec)


def window_terms(problem: Problem, chosen: NDArray[np.intp]) -> Iterator[tuple[Term, Term, bool]]:
    """Window functions that may give the goal: the term over the window's value, the window, whether it
    counts only the rows `chosen`."""
    number = ref(WINDOW, VALUE)
    rows = np.array(problem.rows)
    wanted = _numbers(problem)
    if wanted is not None and len(np.unique(wanted)) > 1:
        for selected in (False, True):
            if selected and len(chosen) == problem.frame.size:
                break
            for place, found in enumerate(numberings(problem, chosen if selected else None, wanted)):
                if place >= _MAX_NUMBERINGS:
                    break
                for _, term in zip(range(_MAX_TERMS), _finished(problem, number, found.values[rows]), strict=False):
                    yield term, found.window, selected
    yield from ((number, window, False) for window in _running(problem))
    yield from ((number, window, False) for window in _neighbours(problem))


def _running(problem: Problem) -> Iterator[Term]:
    """Totals of a group, and running sums in it."""
    if problem.base not in _NUMERIC or np.isnan(problem.numbers).any():
        return
    layout = layout_of(problem)
    band, rows = Band.rounding(problem.numbers, problem.scale), np.array(problem.rows)
    columns = [c for c in problem.table.columns if c.base in _NUMERIC and c.name not in problem.table.row_key]
    numbers = [(column, layout.frame.numbers(column.name)) for column in columns[:_MAX_SUMMED]]
    for place, partition in enumerate(layout.partitions):
        _, group = np.unique(partition.codes, return_inverse=True)
        if partition.terms and band.holds(np.bincount(group)[group][rows].astype(np.float64)):
            yield over(raw("count(*)"), partition, ())
        for column, values in numbers:
            for name, totals in _totals(values, group):
                if band.holds(np.round(totals, 9)[group][rows]):
                    yield over(call(name, ref((), column.name)), partition, ())
        if place < _MAX_RUNNING and layout.frame.size * place <= _MAX_SORTED:
            yield from _running_sums(layout, partition, numbers, band, rows)


def _totals(values: Floats, group: NDArray[np.intp]) -> Iterator[tuple[str, Floats]]:
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


def _running_sums(
    layout: Layout,
    partition: Partition,
    numbers: Sequence[tuple[Column, Floats]],
    band: Band,
    rows: NDArray[np.intp],
) -> Iterator[Term]:
    for order in layout.sequences:
        line, starts, ties = sorted_rows(partition, order, layout.key)
        for column, values in numbers:
            if column.name == order.column:
                continue
            known = np.nan_to_num(values)[line]
            total = np.cumsum(known)
            running = np.empty(len(line))
            running[line] = np.round(total - _carried(np.where(starts, total - known, -np.inf)), 9)
            if band.holds(running[rows]):
                parts = order_parts(layout, order, bool(ties.any()))
                yield over(call("sum", ref((), column.name)), partition, parts)


def _carried(values: Floats) -> Floats:
    """Every -inf replaced by the last other value before it."""
    places = np.maximum.accumulate(np.where(np.isinf(values), 0, np.arange(len(values))))
    return values[places]


def _neighbours(problem: Problem) -> Iterator[Term]:
    """The value of the row before or after in a group's order."""
    layout = layout_of(problem)
    if not layout.table.row_key or len(set(problem.new)) < 2:
        return
    text_like = problem.base in STRINGS
    # Along a reference rows of different groups would be neighbours.
    links = {name for key in layout.table.foreign_keys for name in key.columns}
    candidates = [c for c in problem.table.columns if c.base == problem.base or (text_like and c.base in STRINGS)]
    for partition in layout.partitions[: max(2, min(_MAX_RUNNING, _MAX_SORTED // problem.frame.size))]:
        for order in layout.sequences:
            if order.descending or order.column in links:
                continue
            line, starts, ties = sorted_rows(partition, order, layout.key)
            before = np.full(len(line), -1)
            before[line[1:]] = np.where(starts[1:], -1, line[:-1])
            after = np.full(len(line), -1)
            after[line[:-1]] = np.where(starts[1:], -1, line[1:])
            for name, near in (("lag", before), ("lead", after)):
                reached = [int(near[row]) for row in problem.rows]
                for column in candidates:
                    if _reads(layout.frame.texts(column.name), reached, problem.new):
                        parts = order_parts(layout, order, bool(ties.any()))
                        yield over(call(name, ref((), column.name)), partition, parts)


def _reads(texts: Sequence[Value], rows: Sequence[int], new: Sequence[Value]) -> bool:
    return all((texts[row] if row >= 0 else None) == value for row, value in zip(rows, new, strict=True))


# -- the statement


def derived(table: Table, window: Term, where: Term | None, sources: tuple[Source, ...] = ()) -> tuple[Source, Term]:
    """The derived source of a window (key WINDOW) and the condition that joins it to the row.

    `where` says which rows the window sees; its references are keyed as in a statement on the table, `sources` are
    what it joins.
    """
    names = _free_names(table, len(table.row_key) + 1)
    inner = Query(
        (*(ref(_INNER, name) for name in table.row_key), _rekeyed(window)),
        (source_of(table, _INNER), *sources),
        None if where is None else _rekeyed(where),
        names=names,
    )
    source = Source(WINDOW, inner, names)
    joins = [op(ref(WINDOW, a), "=", ref((), b)) for a, b in zip(names, table.row_key, strict=False)]
    condition = conjoin(joins)
    assert condition is not None
    return source, condition


def _free_names(table: Table, count: int) -> tuple[str, ...]:
    """Short output names that are no columns of the table, so that nothing has to be qualified."""
    letters = (letter for letter in "ijklmnopqrstuvwxyzabcdefgh" if letter not in table.by_name)
    return tuple(next(letters) for _ in range(count))


def valued(table: Table, term: Term) -> Term:
    """`term` with the window's value under the name that `derived` gives it."""
    name = _free_names(table, len(table.row_key) + 1)[-1]
    return Term(tuple(Ref(WINDOW, name) if part == Ref(WINDOW, VALUE) else part for part in term.parts), term.prec)


def update_from_window(
    table: Table,
    column: str,
    expression: WindowExpression,
    *,
    where: Term | None = None,
    sources: tuple[Source, ...] = (),
    others: Sequence[tuple[str, Term]] = (),
) -> Update:
    """UPDATE table SET column=… FROM(SELECT id i,row_number()OVER(…)j FROM table)x WHERE i=id.

    `where` with the sources that it joins is the statement's selection: it goes inside of the derived query
    where the expression counts only the selected rows (which selects the outer rows too), beside the join
    otherwise.  `others` are further columns to set.
    """
    inside = expression.selected
    source, join = derived(table, expression.window, where if inside else None, sources if inside else ())
    sets = (((column,), valued(table, expression.term)), *(((name,), term) for name, term in others))
    if inside or where is None:
        return Update(source_of(table), sets, (source,), join)
    return Update(source_of(table), sets, (source, *sources), conjoin([join, where]))


def sized(table: Table, expression: WindowExpression) -> WindowExpression:
    """The expression with its size: the bytes of the term, the derived source and its join."""
    column = table.columns[0].name
    whole = len(render(update_from_window(table, column, expression)).encode())
    bare = len(render(Update(source_of(table), (((column,), raw("1")),))).encode())
    return replace(expression, size=whole - bare + 1)

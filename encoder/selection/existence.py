"""Conditions on linked rows: which rows have a linked row with …, and which have none.

The search is one of multiple instances: a row is a bag of linked rows, and a condition holds for the bag when it
holds for one of them.  All is counted on groups: for every column the distinct pairs (group, value).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from emit.literal import quote
from emit.term import Term, in_query, in_values, is_null, negate, op, raw
from encoder.budget import Budget
from encoder.frame import Floats
from encoder.selection.cuts import cuts, scale_of
from encoder.selection.links import Condition, Feature, Ints, Joined
from encoder.selection.masks import Offers, constant, equation
from encoder.selection.model import Mask

_PER_COLUMN = 6  # conditions of one kind on one column
_VALUES = 4  # values in an IN list
_TEXTS = 20  # patterns tried on one column
_MATCHING = 15  # what testing one text costs, in cells
_TEXT_VALUES = 5_000  # distinct values of a column on which patterns are tried
_PARTS = 20  # conditions of which pairs are tried
_WORD = re.compile(r"[^\W_]{2,}")
_SPECIAL = re.compile(r"([.^$*+?()\[\]{}\\|])")
_STRINGS = frozenset({"text", "character varying"})


@dataclass(frozen=True, slots=True)
class Side:
    """One reading of the labels: conditions shall hit groups of good rows and miss those of bad ones.

    `good` and `bad` count the labelled rows of each group; the totals include rows without a group.
    `cover`: conditions that hit all good rows are of use; `avoid`: those that hit `least` good and no bad rows.
    """

    yes: bool
    good: Floats
    bad: Floats
    goods: int
    bads: int
    cover: bool
    avoid: bool
    least: int

    def reached(self, groups: Mask) -> bool:
        """Whether conditions that can hit these groups alone may be of use."""
        good = int(self.good[groups].sum())
        return (self.cover and good == self.goods) or (self.avoid and good >= self.least)

    def useful(self, hit_good: Floats, hit_bad: Floats) -> Mask:
        """By the numbers of good and bad rows that each of several conditions hits."""
        useful = np.zeros(hit_good.shape, dtype=np.bool_)
        if self.cover:
            useful |= (hit_good == self.goods) & (hit_bad < self.bads)
        if self.avoid:
            useful |= (hit_good >= self.least) & (hit_bad == 0)
        return useful


def sides(joined: Joined, offers: Offers) -> tuple[Side, Side]:
    """IN(…): must rows are good, and all of them have to be hit.  NOT IN(…): must_not rows are good, and no must row
    may be hit.  A partial search takes the other kinds as well."""
    must, must_not = offers.labels.must, offers.labels.must_not
    a, b = _weights(joined, must), _weights(joined, must_not)
    needed, refused = int(must.sum()), int(must_not.sum())
    return (
        Side(True, a, b, needed, refused, True, offers.partial, 1),
        Side(False, b, a, refused, needed, offers.partial, True, offers.least),
    )


def _weights(joined: Joined, rows: Mask) -> Floats:
    groups = joined.own[rows]
    return np.bincount(groups[groups >= 0], minlength=joined.groups).astype(np.float64)


class Existence:
    """The search along one link."""

    def __init__(self, joined: Joined, offers: Offers, budget: Budget, timezone: str | None) -> None:
        self.joined = joined
        self.offers = offers
        self.budget = budget
        self.timezone = timezone
        self.sides = sides(joined, offers)
        # Conditions that hit all good rows of a side and too many others: the parts of conjunctions.
        self.parts: dict[bool, list[Condition]] = {True: [], False: []}

    def offer(self, condition: Condition | None, hit: Mask, yes: bool) -> None:
        """Offer IN or NOT IN of the linked rows with `condition`; `hit` are their groups."""
        joined = self.joined
        if yes:
            query = joined.query(joined.selected, condition)
            self.offers.offer(joined.rows(hit), lambda: in_query(joined.own_term, query))
            return
        nulls = joined.null if condition is None else joined.null & condition.holds
        more = joined.no_nulls() if nulls.any() else ()
        query = joined.query(joined.selected, condition, more)
        inside = joined.rows(hit)
        if len(joined.link.own) == 1 or not (joined.own < 0).any():  # a row that is NULL in part may differ
            self.offers.offer((joined.own >= 0) & ~inside, lambda: in_query(joined.own_term, query, False))
        if more or (joined.own < 0).any():
            exists = joined.query((), condition, joined.correlation)
            self.offers.offer(~inside, lambda: negate(Term(("EXISTS(", exists, ")"))))

    def add(self, condition: Condition, yes: bool) -> None:
        """Offer a condition, and keep it as a part where it hits all that it should."""
        hit = self.joined.image(condition.holds)
        self.offer(condition, hit, yes)
        side = self.sides[0] if yes else self.sides[1]
        if side.goods == side.good[hit].sum() and len(self.parts[yes]) < _PARTS and side.goods:
            self.parts[yes].append(condition)

    def plain(self) -> None:
        """Has a linked row; has none."""
        hit = self.joined.counts > 0
        self.offer(None, hit, True)
        self.offer(None, hit, False)

    def feature(self, feature: Feature, pairs: Pairs) -> None:
        """All conditions on one column."""
        for side in self.sides:
            self._nulls(feature, side)
            if side.reached(pairs.distinct > 0):
                self._equal(feature, pairs, side)
                self._unequal(feature, pairs, side)
                self._ranges(feature, pairs, side)
                self._texts(feature, pairs, side)

    def pairs(self) -> None:
        """Conjunctions of two conditions on one linked row."""
        for yes, parts in self.parts.items():
            side = self.sides[0] if yes else self.sides[1]
            for first, second in combinations(parts, 2):
                if not self.budget.spend(self.joined.others.size):
                    return
                both = first.holds & second.holds
                hit = self.joined.image(both)
                numbers = np.array([side.good[hit].sum()]), np.array([side.bad[hit].sum()])
                if side.useful(*numbers)[0]:
                    self.offer(first & second, hit, yes)

    # -- conditions on one column

    def _condition(self, feature: Feature, term: Term, codes: Mask) -> Condition:
        """`term`, which holds for the values of `codes` and not for NULL."""
        return Condition((term,), np.append(codes, False)[feature.coded.codes], feature.sources, feature.joins)

    def _nulls(self, feature: Feature, side: Side) -> None:
        null = feature.coded.codes < 0
        if feature.column.not_null or not null.any():
            return
        for yes in (True, False):
            term = is_null(feature.term, yes)
            holds = null if yes else ~null
            if yes and feature.sources:  # the row that would be NULL may not be there at all
                continue
            self.add(Condition((term,), holds, feature.sources, feature.joins), side.yes)

    def _equal(self, feature: Feature, pairs: Pairs, side: Side) -> None:
        good, bad = pairs.weigh(side.good), pairs.weigh(side.bad)
        useful = side.useful(good, bad) | ((good == side.goods) & (good > 0))
        # Best first: hits most of the good, then fewest of the bad.
        codes = np.flatnonzero(useful)
        chosen = codes[np.lexsort((codes, bad[codes], -good[codes]))]
        for code in chosen[:_PER_COLUMN].tolist():
            self._one_of(feature, [code], pairs.width, side)
        if not pairs.repeated or good.max(initial=0) >= side.goods:
            return
        values = self._union(pairs, side, np.flatnonzero((bad == 0) & (good > 0)), good)
        if len(values) > 1:
            self._one_of(feature, values, pairs.width, side)

    def _union(self, pairs: Pairs, side: Side, codes: Ints, good: Floats) -> list[int]:
        """Few values that together hit many good rows, greedily."""
        order = sorted(codes.tolist(), key=lambda code: (-good[code], code))[: 4 * _VALUES]
        groups = {code: pairs.groups[pairs.codes == code] for code in order}
        left = side.good.copy()
        chosen: list[int] = []
        while len(chosen) < _VALUES and order:
            gain, place = max((float(left[groups[code]].sum()), -place) for place, code in enumerate(order))
            if gain <= 0:
                break
            chosen.append(order.pop(-place))
            left[groups[chosen[-1]]] = 0
        return sorted(chosen)

    def _one_of(self, feature: Feature, codes: list[int], width: int, side: Side) -> None:
        values = [feature.coded.values[code] for code in codes]
        if len(values) == 1:
            term = equation(feature.term, feature.column, values[0], self.timezone)
        else:
            terms = [constant(value, feature.column.base, self.timezone) for value in values]
            term = in_values(feature.term, terms)
        chosen = np.zeros(width, dtype=np.bool_)
        chosen[codes] = True
        self.add(self._condition(feature, term, chosen), side.yes)

    def _unequal(self, feature: Feature, pairs: Pairs, side: Side) -> None:
        """`<>`: misses exactly the groups that have no value but this one."""
        if feature.column.base == "boolean" or pairs.width < 3:
            return
        single = pairs.distinct == 1
        missed = np.bincount(pairs.lowest[single], weights=side.bad[single], minlength=pairs.width)
        lost = np.bincount(pairs.lowest[single], weights=side.good[single], minlength=pairs.width)
        order = sorted(np.flatnonzero(missed > 0).tolist(), key=lambda code: (lost[code], -missed[code], code))
        for code in order[:2]:
            term = op(feature.term, "<>", constant(feature.coded.values[code], feature.column.base, self.timezone))
            others = np.ones(pairs.width, dtype=np.bool_)
            others[code] = False
            self.add(self._condition(feature, term, others), side.yes)

    def _ranges(self, feature: Feature, pairs: Pairs, side: Side) -> None:
        """`<` is decided by the least value of each group, `>` by the greatest."""
        if feature.column.base in ("boolean", "uuid") or pairs.width < 3:
            return
        scale, places = scale_of(feature.column, feature.coded, self.timezone)
        joined, labels = self.joined, self.offers.labels
        good, bad = (labels.must, labels.must_not) if side.yes else (labels.must_not, labels.must)
        for operator, ends in (("<", pairs.lowest), (">", pairs.highest)):
            values = np.append(places[ends], np.nan)[joined.own]
            found = cuts(values, good, bad, scale, cover=side.cover, avoid=side.avoid, operators=operator)
            for cut in found:
                # The cut is of ends of groups; the condition is the same comparison of each row.
                codes = places[:-1] < cut.at if operator == "<" else places[:-1] > cut.at
                term = op(feature.term, operator, cut.constant)
                self.add(self._condition(feature, term, codes), side.yes)

    def _texts(self, feature: Feature, pairs: Pairs, side: Side) -> None:
        if feature.column.base not in _STRINGS or not 2 < pairs.width <= _TEXT_VALUES:
            return
        seeds = self._seeds(pairs, side, feature)
        trials = [self._try_text(pattern, feature, pairs, side) for pattern in _patterns(seeds)]
        useful = sorted((trial for trial in trials if trial is not None), key=lambda trial: trial.rank)
        for trial in useful[:2]:
            # A part of the pattern may do as well.
            shorter = (self._try_text(part, feature, pairs, side) for part in trial.pattern.parts())
            best = next((part for part in shorter if part and part.rank[:2] <= trial.rank[:2]), trial)
            self.add(self._condition(feature, best.pattern.term(feature.term), best.codes), side.yes)

    def _try_text(self, pattern: Pattern, feature: Feature, pairs: Pairs, side: Side) -> Trial | None:
        """The pattern with what it hits, if that is of use and the budget lasts."""
        if not self.budget.spend(_MATCHING * pairs.width):
            return None
        codes = np.fromiter(map(pattern.matches, feature.coded.values), dtype=np.bool_, count=pairs.width)
        hit = np.zeros(self.joined.groups, dtype=np.bool_)
        hit[pairs.groups[codes[pairs.codes]]] = True
        good, bad = side.good[hit].sum(), side.bad[hit].sum()
        if not side.useful(np.array([good]), np.array([bad]))[0]:
            return None
        return Trial(pattern, codes, (-float(good), float(bad), len(pattern.text)))

    def _seeds(self, pairs: Pairs, side: Side, feature: Feature) -> list[str]:
        """The values of a good group, the one with the fewest; of several such groups when one need not do."""
        rank = np.where((side.good > 0) & (pairs.distinct > 0), pairs.distinct, np.iinfo(np.int64).max)
        groups = np.argsort(rank, kind="stable")[: 1 if side.cover and not side.avoid else 4]
        codes = pairs.codes[np.isin(pairs.groups, groups[rank[groups] < np.iinfo(np.int64).max])]
        return [feature.coded.values[code] for code in codes[:8].tolist()]


class Pairs:
    """The distinct pairs of a group and a value of one column, by group and then by value."""

    COST = 4  # cells for each row of the other table

    def __init__(self, joined: Joined, feature: Feature) -> None:
        codes = feature.coded.codes.astype(np.int64)
        self.width = len(feature.coded.values)
        known = (joined.other >= 0) & (codes >= 0)
        both = np.unique(joined.other[known].astype(np.int64) * max(self.width, 1) + codes[known])
        self.groups: Ints = both // max(self.width, 1)
        self.codes: Ints = both % max(self.width, 1)
        self.distinct: Ints = np.bincount(self.groups, minlength=joined.groups)
        ends = np.cumsum(self.distinct)
        some = self.distinct > 0
        self.lowest: Ints = np.full(joined.groups, -1, dtype=np.int64)
        self.highest: Ints = np.full(joined.groups, -1, dtype=np.int64)
        self.lowest[some] = self.codes[(ends - self.distinct)[some]]
        self.highest[some] = self.codes[(ends - 1)[some]]
        self.repeated = bool(self.width < len(both))

    def weigh(self, weights: Floats) -> Floats:
        """For every value the weights of the groups that have it, added up."""
        return np.bincount(self.codes, weights[self.groups], minlength=self.width).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A test of a text: how it starts, ends, or what it has in it."""

    text: str
    where: str

    def matches(self, value: str) -> bool:
        if self.where == "^":
            return value.startswith(self.text)
        return value.endswith(self.text) if self.where == "$" else self.text in value

    def parts(self) -> Iterator[Pattern]:
        """Shorter patterns that match whatever this one matches, shortest first."""
        for length in range(1, len(self.text)):
            for start in range(len(self.text) - length + 1):
                yield Pattern(self.text[start : start + length], "")

    def term(self, column: Term) -> Term:
        if self.where == "^":
            return op(column, "^@", raw(quote(self.text)))
        escaped = _SPECIAL.sub(r"\\\1", self.text)
        return op(column, "~", raw(quote(escaped + self.where)))


@dataclass(frozen=True, slots=True)
class Trial:
    """A pattern, the values that match it, and how good it is: less is better."""

    pattern: Pattern
    codes: Mask
    rank: tuple[float, float, int]


def _patterns(seeds: list[str]) -> Iterator[Pattern]:
    """Short patterns that some of the seeds match, at most _TEXTS of them."""
    kinds: list[Callable[[str], list[Pattern]]] = [
        lambda seed: [Pattern(seed[:length], "^") for length in range(1, min(len(seed), 8) + 1)],
        lambda seed: [Pattern(word, "") for word in _WORD.findall(seed)[:4]],
        lambda seed: [Pattern(seed[-length:], "$") for length in range(1, min(len(seed), 4) + 1)],
        lambda seed: [Pattern(char, "") for char in sorted(set(re.findall(r"[\W_]", seed)))[:3]],
    ]
    listed = dict.fromkeys(pattern for kind in kinds for seed in seeds for pattern in kind(seed))
    yield from list(listed)[:_TEXTS]

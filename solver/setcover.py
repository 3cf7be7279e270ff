"""Weighted set cover with shared fixed charges and an exception list, for the inner loop of a search.

The problem: rows must be covered by the union of a few *atoms*.  An atom costs its bytes; atoms may
share *groups*, each a fixed charge that is paid once by all atoms that need it; two terms that stand
side by side cost a joiner; and a row may be left to an *exception list*, which costs a base once and
then so much a row.  This is the weighted set cover problem with facility-location style charges, and
instances have few atoms in the optimum (one to four), up to some thousand atoms, and many rows of
which most are alike.

The method, in the order in which it is done:

1.  Rows that the same atoms cover are merged (their exception costs add up).
2.  Dominated atoms go: another covers at least as much, for no more, groups included.
3.  A greedy cover (Chvatal 1979) gives the incumbent, from several starts.
4.  Dominated rows go: whoever covers the rarer row covers them too.
5.  Depth-first branch and bound on the row with the fewest atoms, with the bound of a dual ascent
    (Fisher and Kedia 1990), reduced-cost fixing at each node, and the last two atoms found together
    by one matrix product over all pairs.

All sums are sums of integers that floats hold exactly, so the same input takes the same path on every
machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.floating]

_EXACT = {np.dtype(np.float32): 1 << 24, np.dtype(np.float64): 1 << 53}
_GREEDY_STARTS = 4
_VECTOR_WORK = 1 << 17  # matrix entries that one unit of budget reads once
_PRODUCT_WORK = 1 << 18  # multiplications of a matrix product that one unit of budget pays
_PAIR_WORK = 64  # what looking at one pair costs beside, in multiplications
_CHUNK = 1 << 20  # entries of the intermediate matrices when pairs are tried


@dataclass(frozen=True, slots=True)
class CoverSolution:
    """A cover: indexes of the chosen atoms and of the rows left to the exception list, both ascending."""

    atoms: tuple[int, ...]
    exceptions: tuple[int, ...]
    cost: int


def best_covers(
    covered: Bools,
    costs: Ints,
    *,
    groups: Sequence[frozenset[int]] | None = None,
    group_costs: Sequence[int] = (),
    exception_cost: Ints | None = None,
    exception_base: int = 0,
    joiner_cost: int = 0,
    keep: int = 4,
    max_atoms: int = 6,
    budget: int = 10_000,
    limit: int | None = None,
) -> list[CoverSolution]:
    """The `keep` cheapest sets of at most `max_atoms` atoms that cover all rows, cheapest first, all below `limit`.

    `covered[a, r]` says that atom a covers row r.  The cost of a choice is the sum of
    `costs[a]`, of `group_costs[g]` for every group that some chosen atom lists in `groups[a]`, of
    `joiner_cost` between neighbouring terms (the atoms, and the exception list if there is one), and,
    when rows stay uncovered, `exception_base` plus their `exception_cost[r]` (positive; without the
    array no row may stay uncovered).

    The first solution is optimal unless `budget` ran out; it counts nodes, a node on a matrix of more
    than 2^17 entries counting in proportion (some 50 microseconds each).  The others are the
    cheapest that differ from it among the covers without a superfluous atom, made of atoms that no
    other atom dominates.  Ties are broken by the order of the atoms.  No rows: one empty cover.
    Impossible, or nothing found within the budget: an empty list.

    Raises ValueError on negative costs, exception costs below 1, or shapes that disagree.
    """
    charges = np.asarray(group_costs, dtype=np.int64)
    _check(covered, costs, groups, charges, exception_cost, (exception_base, joiner_cost), keep)
    n_atoms, n_rows = covered.shape
    if n_rows == 0:
        return [CoverSolution((), (), 0)]
    membership = np.zeros((n_atoms, len(charges)), dtype=np.bool_)
    for atom, needed in enumerate(groups or ()):
        membership[atom, list(needed)] = True
    columns, row_class = merge_rows(covered)
    listing = None
    if exception_cost is not None:
        listing = np.bincount(row_class, weights=exception_cost, minlength=columns.shape[1]).astype(np.int64)
    search = _Search(
        matrix=columns,
        costs=costs + joiner_cost,
        membership=membership,
        charges=charges,
        listing=listing,
        list_base=exception_base + joiner_cost,
        keep=keep,
        budget=budget,
        below=None if limit is None else limit + joiner_cost,
    )
    search.run(max_atoms)
    return [
        CoverSolution(atoms, tuple(np.flatnonzero(~covered[list(atoms)].any(axis=0)).tolist()), cost - joiner_cost)
        for cost, atoms in search.pool
    ]


def _check(
    covered: Bools,
    costs: Ints,
    groups: Sequence[frozenset[int]] | None,
    charges: Ints,
    exception_cost: Ints | None,
    scalars: tuple[int, int],
    keep: int,
) -> None:
    if covered.ndim != 2 or len(costs) != len(covered):
        raise ValueError("covered must be atoms x rows, with one cost per atom")
    if groups is not None and len(groups) != len(covered):
        raise ValueError("groups must name the groups of every atom")
    if exception_cost is not None and len(exception_cost) != covered.shape[1]:
        raise ValueError("exception_cost must have one entry per row")
    if (costs < 0).any() or (charges < 0).any() or min(scalars) < 0:
        raise ValueError("costs must not be negative")
    if exception_cost is not None and (exception_cost < 1).any():
        raise ValueError("exception costs must be positive")
    if keep < 1:
        raise ValueError("keep must be at least 1")


def merge_rows(covered: Bools) -> tuple[Bools, Ints]:
    """Distinct columns of a bool matrix, rarest first, and for each column the index of its class.

    Columns are compared by tabulation hashing over planes of eight atoms, and the answer is checked;
    a collision (never seen) draws another hash.
    """
    n_atoms, n_rows = covered.shape
    raw = np.ascontiguousarray(covered).view(np.uint8)
    planes = np.zeros(((n_atoms + 7) // 8, n_rows), dtype=np.uint8)
    for bit in range(8):
        part = raw[bit::8]
        planes[: len(part)] |= part << bit
    for seed in count():
        tables = np.random.default_rng(seed).integers(0, 1 << 63, size=(len(planes), 256), dtype=np.uint64)
        keys = np.zeros(n_rows, dtype=np.uint64)
        for table, plane in zip(tables, planes, strict=True):
            keys ^= table[plane]
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        if all(np.array_equal(plane, plane[first][inverse]) for plane in planes):
            break
    columns = covered[:, first]
    order = np.lexsort((first, columns.sum(axis=0)))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return np.ascontiguousarray(columns[:, order]), place[inverse]


def dominated(bits: Bools, allowed: NDArray[np.bool_] | None = None, block: int = 256) -> Bools:
    """Which rows of `bits` are subsets of an earlier row.

    `allowed[i, j]` (default: all) says whether row i may dominate row j.  Pairs are compared word by
    word of 64 columns, so most die at the first word.
    """
    n, m = bits.shape
    packed = np.zeros((n, (m + 63) // 64 * 8), dtype=np.uint8)
    packed[:, : (m + 7) // 8] = np.packbits(bits, axis=1)
    words = np.ascontiguousarray(packed.view(np.uint64).T)
    gone = np.zeros(n, dtype=np.bool_)
    for start in range(0, n, block):
        above = np.arange(start, min(start + block, n))
        above = above[~gone[above]]
        below = start + np.flatnonzero(~gone[start:])
        if not len(words):
            pairs = above[:, None] < below
        else:
            pairs = ((words[0, below] & ~words[0, above, None]) == 0) & (above[:, None] < below)
        if allowed is not None:
            pairs &= allowed[np.ix_(above, below)]
        left, right = (side.astype(np.int64) for side in np.nonzero(pairs))
        left, right = above[left], below[right]
        for word in words[1:]:
            if not len(left):
                break
            subset = (word[right] & ~word[left]) == 0
            left, right = left[subset], right[subset]
        gone[right] = True
    return gone


@dataclass(slots=True)
class _Part:
    """What is left to do at a node: the atoms that may still be used, the rows that are still open.

    `matrix` is atoms x rows in floats; `costs` (joiner included) and `membership` follow the atoms,
    `listing` (the exception cost) and `duals` the rows; `atoms` are indexes into the given problem.
    """

    atoms: Ints
    matrix: Floats
    costs: Ints
    membership: Bools
    listing: Floats
    duals: Floats

    def restrict(self, atoms: Bools | None, rows: Bools | None) -> _Part:
        matrix = self.matrix if atoms is None else self.matrix[atoms]
        keep: Bools | slice = slice(None) if atoms is None else atoms
        open_rows: Bools | slice = slice(None) if rows is None else rows
        return _Part(
            self.atoms[keep],
            matrix if rows is None else np.compress(rows, matrix, axis=1),
            self.costs[keep],
            self.membership[keep],
            self.listing[open_rows],
            self.duals[open_rows],
        )


@dataclass(frozen=True, slots=True)
class _Node:
    """The choices made so far: atoms, what they cost with the groups in `paid`, room for more atoms.

    `begun` says that some row was left to the exception list, whose base is paid then.
    """

    chosen: tuple[int, ...]
    spent: int
    paid: Bools
    begun: bool
    slots: int

    def with_atom(self, atom: int, price: int, groups: Bools) -> _Node:
        return _Node((*self.chosen, atom), self.spent + price, self.paid | groups, self.begun, self.slots - 1)

    def with_exception(self, price: int) -> _Node:
        return _Node(self.chosen, self.spent + price, self.paid, True, self.slots)


def _or_more(limit: int | None) -> int:
    return np.iinfo(np.int64).max if limit is None else limit


@dataclass(slots=True)
class _Search:
    """The branch and bound; `pool` holds the best covers as (cost with one joiner too many, atoms), all `below`."""

    matrix: Bools
    costs: Ints
    membership: Bools
    charges: Ints
    listing: Ints | None
    list_base: int
    keep: int
    budget: int
    below: int | None = None
    pool: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    limit: int = 0  # only covers cheaper than this are of interest

    def run(self, max_atoms: int) -> None:
        if self.listing is None:
            # Whoever covers the rarer row covers the other too, so that what follows has few rows to look at.
            lacking = ~self.matrix.T
            self.matrix = np.ascontiguousarray(self.matrix[:, ~dominated(lacking)])
        part = self._root(max_atoms)
        for start in range(_GREEDY_STARTS):
            self._greedy(part, max_atoms, start)
        if self.listing is not None:
            part = self._drop_rows(part)
        part.duals = self._ascend(part)
        self._visit(part, _Node((), 0, np.zeros(len(self.charges), dtype=np.bool_), False, max_atoms))

    def _root(self, max_atoms: int) -> _Part:
        """The undominated atoms; rows that must not be listed get a cost beyond every real cover."""
        size = self.matrix.sum(axis=1)
        total = self.costs + self.membership @ self.charges
        order = np.lexsort((total, -size))
        order = order[(size[order] > 0) & (total[order] < _or_more(self.below))]
        member = self.membership[order].astype(np.float64)
        extra = (member * self.charges) @ (1 - member).T
        costs = self.costs[order]
        allowed = costs[:, None] + extra <= costs
        order = np.sort(order[~dominated(self.matrix[order], allowed)])
        dearest = np.sort(self.costs[order])[::-1][:max_atoms].sum() + self.charges.sum()
        rows = self.matrix.shape[1]
        if self.listing is None:
            most = min(int(dearest) + 1, _or_more(self.below))
            listing = np.full(rows, most)
        else:
            most = int(dearest + self.listing.sum()) + self.list_base + 1
            listing = self.listing
        self.limit = min(most, _or_more(self.below))
        exact32 = most * (rows + 1) < _EXACT[np.dtype(np.float32)]
        real = np.float32 if exact32 else np.float64
        return _Part(
            order,
            self.matrix[order].astype(real),
            self.costs[order],
            self.membership[order],
            listing.astype(real),
            np.zeros(rows, dtype=real),
        )

    def _greedy(self, part: _Part, max_atoms: int, start: int) -> None:
        """Adds the atom with the least cost for what it newly covers; every prefix is offered.

        The first atom is the one of rank `start`, and odd starts weigh rows by what listing them costs.
        """
        weight = part.listing if start % 2 else np.ones_like(part.listing)
        open_rows = np.ones(len(weight), dtype=np.bool_)
        paid = np.zeros(len(self.charges), dtype=np.bool_)
        chosen: tuple[int, ...] = ()
        spent, rank = 0, start // 2
        self._offer(chosen, spent + self._list(part.listing, False))
        while open_rows.any() and len(chosen) < max_atoms and len(part.atoms):
            price = part.costs + part.membership @ (self.charges * ~paid)
            gain = part.matrix @ (weight * open_rows)
            worth = np.where(gain > 0, (price + 1e-9) / np.maximum(gain, 1e-9), np.inf)
            best = int(np.argsort(worth, kind="stable")[min(rank, len(worth) - 1)])
            if gain[best] <= 0:
                return
            rank = 0
            chosen, spent = (*chosen, int(part.atoms[best])), spent + int(price[best])
            paid = paid | part.membership[best]
            open_rows &= part.matrix[best] == 0
            self._offer(chosen, spent + self._list(part.listing[open_rows], False))

    def _list(self, listing: Floats, begun: bool) -> int:
        """The cost of leaving these rows to the exception list."""
        if not len(listing):
            return 0
        return int(listing.sum()) + (0 if begun else self.list_base)

    def _offer(self, chosen: Iterable[int], cost: int) -> None:
        """Takes a cover into the pool if it is cheap enough, new, and without a superfluous atom."""
        if cost >= self.limit:
            return
        atoms = tuple(sorted(chosen))
        if any(atoms == known for _, known in self.pool) or not self._lean(atoms):
            return
        self.pool.append((cost, atoms))
        self.pool.sort()
        if len(self.pool) >= self.keep:
            del self.pool[self.keep :]
            self.limit = self.pool[-1][0]

    def _lean(self, atoms: tuple[int, ...]) -> bool:
        """Whether each atom covers a row that no other of them covers."""
        rows = self.matrix[list(atoms)]
        return bool(rows[:, rows.sum(axis=0) == 1].any(axis=1).all())

    def _drop_rows(self, part: _Part) -> _Part:
        """Drops every row that is covered whenever some rarer row is that cannot be listed."""
        must = part.listing + self.list_base >= self.limit
        rare = np.argsort(part.matrix.sum(axis=0), kind="stable")
        lacking = part.matrix[:, rare].T == 0
        gone = dominated(lacking, np.broadcast_to(must[rare][:, None], (len(rare), len(rare))))
        stay = np.ones(len(rare), dtype=np.bool_)
        stay[rare[gone]] = False
        return part.restrict(None, stay)

    def _ascend(self, part: _Part) -> Floats:
        """A dual solution: each row's share of the cost of whatever will cover it, rarest rows first."""
        duals = np.zeros_like(part.duals)
        slack = part.costs.astype(np.int64).copy()
        listing = part.listing.astype(np.int64)
        for row in np.argsort(part.matrix.sum(axis=0), kind="stable").tolist():
            atoms = np.flatnonzero(part.matrix[:, row])
            share = min(int(slack[atoms].min(initial=self.limit)), int(listing[row]))
            if share:
                slack[atoms] -= share
                duals[row] = share
        return duals

    def _visit(self, part: _Part, node: _Node) -> None:
        """Searches all covers that extend the node by atoms of `part`."""
        while True:
            self.budget -= 1 + part.matrix.size // _VECTOR_WORK
            self._offer(node.chosen, node.spent + self._list(part.listing, node.begun))
            owed = int(part.duals.sum())
            if self.budget < 0 or not len(part.listing) or node.spent + owed >= self.limit:
                return
            price = part.costs + part.membership @ (self.charges * ~node.paid)
            bound = node.spent + owed + price - (part.matrix @ part.duals).astype(np.int64)
            fit = bound < self.limit  # reduced-cost fixing: no better cover has any of the others
            if not fit.all():
                part, price, bound = part.restrict(fit, None), price[fit], bound[fit]
            slots = min(node.slots, self._affordable(part.costs, node.spent))
            if slots <= 0 or not len(part.atoms):
                return
            rare = int(part.matrix.sum(axis=0).argmin())
            able = part.matrix[:, rare] > 0
            listed = node.with_exception(int(part.listing[rare]) + (0 if node.begun else self.list_base))
            if slots <= 2:
                heads = np.flatnonzero(able) if listed.spent >= self.limit else np.arange(len(able))
                self._singles(part, node, price)
                if slots == 2:
                    self._pairs(part, node, price, heads)
                return
            self._branch(part, node, price, bound, np.flatnonzero(able))
            if listed.spent >= self.limit:
                return
            node = listed
            part = part.restrict(~able, np.arange(len(part.listing)) != rare)

    def _affordable(self, costs: Ints, spent: int) -> int:
        """How many more atoms a cover of interest can have at most."""
        least = int(costs.min(initial=self.limit))
        return (self.limit - 1 - spent) // least if least else len(costs)

    def _branch(self, part: _Part, node: _Node, price: Ints, bound: Ints, able: Ints) -> None:
        """Takes each of the atoms `able` to cover a row in turn; those tried before are out of bounds."""
        usable = np.ones(len(part.atoms), dtype=np.bool_)
        for atom in able[np.lexsort((price[able], bound[able]))].tolist():
            if bound[atom] >= self.limit or self.budget < 0:
                return
            usable[atom] = False
            child = node.with_atom(int(part.atoms[atom]), int(price[atom]), part.membership[atom])
            self._visit(part.restrict(usable, part.matrix[atom] == 0), child)

    def _singles(self, part: _Part, node: _Node, price: Ints) -> None:
        """Offers every cover that ends with one more atom, what it leaves open going to the list."""
        total = node.spent + price + self._rest(part, node, (part.matrix @ part.listing).astype(np.int64))
        for atom in self._cheapest(total):
            self._offer((*node.chosen, int(part.atoms[atom])), int(total[atom]))

    def _pairs(self, part: _Part, node: _Node, price: Ints, heads: Ints) -> None:
        """Offers every cover that ends with two more atoms, one of them among `heads`."""
        gain = (part.matrix @ part.listing).astype(np.int64)
        heads = heads[node.spent + price[heads] + part.costs.min() < self.limit]
        unpaid = part.membership * (self.charges * ~node.paid).astype(np.float64)
        step = max(1, _CHUNK // max(part.matrix.shape))
        for start in range(0, len(heads), step):
            some = heads[start : start + step]
            self.budget -= len(some) * (part.matrix.size + _PAIR_WORK * len(part.atoms)) // _PRODUCT_WORK
            both = ((1 - part.matrix[some]) * part.listing @ part.matrix.T).astype(np.int64)
            both += gain[some][:, None]
            shared = (unpaid[some] @ part.membership.T).astype(np.int64)
            total = node.spent + price[some][:, None] + price - shared + self._rest(part, node, both)
            total[(both <= gain) | (both <= gain[some][:, None])] = self.limit  # one of the two would do
            for pair in self._cheapest(total.ravel()):
                left, right = divmod(pair, len(part.atoms))
                atoms = int(part.atoms[some[left]]), int(part.atoms[right])
                self._offer((*node.chosen, *atoms), int(total[left, right]))
            if self.budget < 0:
                return

    def _rest(self, part: _Part, node: _Node, gain: Ints) -> Ints:
        """What the list costs when rows worth `gain` on it are covered after all."""
        rest = int(part.listing.sum())
        cost: Ints = np.where(gain < rest, rest - gain + (0 if node.begun else self.list_base), 0)
        return cost

    def _cheapest(self, totals: Ints) -> Iterator[int]:
        """Positions of the totals below the limit, which may fall meanwhile; cheapest first."""
        below = np.flatnonzero(totals < self.limit)
        for place in below[np.argsort(totals[below], kind="stable")].tolist():
            if totals[place] >= self.limit:
                return
            yield place

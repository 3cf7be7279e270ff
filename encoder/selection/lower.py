"""From a selection to the sources and the WHERE of a statement.

A condition on a parent row may be said by joining the parent (FROM in an UPDATE, USING in a DELETE) or by
`key IN(SELECT … FROM parent WHERE …)`; every way is given, the caller measures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

from emit.term import Query, Ref, Source, SourceKey, Term, conjoin, in_query, op, ref, tuple_of
from encoder.literals import source_of
from encoder.selection.booleans import arranged, conjunctions, disjunctions
from encoder.selection.model import Atom, Path, Selection
from encoder.selection.paths import foot
from scratch.catalog import Catalog
from stream.model import TableName

_MAX_CHOICES = 3
_WAYS = 3
# Pairs of rows that the server may try one by one, a second or so.
_MAX_PAIRS = 5_000_000
_Conjunction = tuple[Atom, ...]


@dataclass(frozen=True, slots=True)
class Where:
    """What stands after FROM or USING beside the target, and the condition; None for every row."""

    sources: tuple[Source, ...]
    where: Term | None


def lower(
    catalog: Catalog,
    table: TableName,
    selection: Selection,
    *,
    needed: frozenset[Path] = frozenset(),
    target_key: SourceKey = (),
    size_of: Callable[[TableName], int] | None = None,
) -> list[Where]:
    """The ways to say `selection` in a statement on `table`, whose source has the key `target_key`.

    Sources have their paths as keys.  Paths in `needed` (those of SET expressions) are always joined.
    `size_of` tells the rows of a table: where they are many, the condition of a join is never hidden in another
    one (`(a.id=b)>c`), since the server would then try every pair of rows.
    """
    maker = _Lowering(catalog, table, target_key, size_of)
    if len(selection.terms) == 1:
        found = list(maker.conjunction(selection.terms[0], needed))
    else:
        found = list(maker.disjunction(selection.terms, needed))
    return list(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class _Lowering:
    catalog: Catalog
    table: TableName
    target_key: SourceKey
    size_of: Callable[[TableName], int] | None

    def conjunction(self, atoms: _Conjunction, needed: frozenset[Path]) -> Iterator[Where]:
        for joined, flat in self._choices([atoms], needed):
            sources, links = self._joins(joined | needed)
            inner = [atom for atom in atoms if atom.paths <= self._closed(joined | needed)]
            outer = [atom for atom in atoms if not atom.paths <= self._closed(joined | needed)]
            terms = [*(self._rekey(atom.term) for atom in inner), *self._nested((), outer, flat)]
            for where in self._linked(links, terms, joined | needed):
                yield Where(sources, where)

    def _linked(self, links: list[Term], terms: list[Term], joined: frozenset[Path]) -> Sequence[Term | None]:
        """Ways to say the conditions of the joins and the others."""
        if not links or self._pairs(joined) <= _MAX_PAIRS:
            return conjunctions([*links, *terms])[:_WAYS] or [None]
        found = [[term] for term in conjunctions(terms)[:_WAYS]] or [[]]
        return [conjoin(arranged([*links, *term])) for term in found]

    def _pairs(self, joined: frozenset[Path]) -> int:
        if self.size_of is None:
            return 0
        tables = [self.table, *(path[-1].target for path in self._closed(joined))]
        return math.prod(map(self.size_of, tables))

    def disjunction(self, terms: Sequence[_Conjunction], needed: frozenset[Path]) -> Iterator[Where]:
        for joined, flat in self._choices(terms, needed):
            everything = joined | needed
            if not all(self._certain(path) or self._in_all(path, terms) for path in joined):
                continue
            sources, links = self._joins(everything)
            closed = self._closed(everything)
            sides: list[Term] = []
            total: list[bool] = []
            for atoms in terms:
                inner = [self._rekey(atom.term) for atom in atoms if atom.paths <= closed]
                outer = [atom for atom in atoms if not atom.paths <= closed]
                side = conjunctions([*inner, *self._nested((), outer, flat)])
                if not side:
                    return
                sides.append(side[0])
                total.append(not joined and not outer and all(self._never_null(atom.term) for atom in atoms))
            for either in disjunctions(sides, total)[:2]:
                yield Where(sources, conjoin([*links, either]))

    # -- which parents are joined

    def _choices(
        self, terms: Sequence[_Conjunction], needed: frozenset[Path]
    ) -> Iterator[tuple[frozenset[Path], bool]]:
        """Sets of paths to join; the conditions on all other paths go into nested queries."""
        used = {path for atoms in terms for atom in atoms for path in atom.paths}
        forced = {path for atoms in terms for atom in atoms if not _is_chain(atom.paths) for path in atom.paths}
        heads = sorted({path[0] for path in used}, key=lambda key: key.name)
        free = [head for head in heads if not any(path[0] == head for path in forced)]
        picks: Iterator[tuple[bool, ...]] = (
            product((True, False), repeat=len(free))
            if len(free) <= _MAX_CHOICES
            else iter([(True,) * len(free), (False,) * len(free)])
        )
        deep = any(len(path) > 1 for path in used)
        for pick in picks:
            chosen = {head for head, take in zip(free, pick, strict=True) if take}
            joined = frozenset(path for path in used if path[0] in chosen) | forced
            yield frozenset(joined), False
            if deep and not all(pick):
                yield frozenset(joined), True

    def _certain(self, path: Path) -> bool:
        """Whether every row has a row at `path`."""
        return all(self.catalog[key.table].by_name[name].not_null for key in path for name in key.columns)

    @staticmethod
    def _in_all(path: Path, terms: Sequence[_Conjunction]) -> bool:
        return all(any(path in atom.paths for atom in atoms) for atoms in terms)

    def _never_null(self, term: Term) -> bool:
        columns = self.catalog[self.table].by_name
        return all(
            isinstance(part, str) or (isinstance(part, Ref) and part.key == () and columns[part.column].not_null)
            for part in term.parts
        )

    # -- joins

    def _closed(self, paths: frozenset[Path]) -> frozenset[Path]:
        """`paths` and those that lie between them and the row, as far as the joins need them."""
        found = set(paths)
        for path in sorted(paths, key=len):
            step = path
            while step:
                step, _ = foot(step, frozenset(found))
                if step:
                    found.add(step)
        return frozenset(found)

    def _joins(self, paths: frozenset[Path]) -> tuple[tuple[Source, ...], list[Term]]:
        closed = self._closed(paths)
        ordered = sorted(closed, key=lambda path: (len(path), [key.name for key in path]))
        links: list[Term] = []
        for path in ordered:
            at, names = foot(path, closed)
            links.extend(
                op(ref(path, target), "=", ref(self._key(at), name))
                for target, name in zip(path[-1].target_columns, names, strict=True)
            )
        return tuple(self._source(path) for path in ordered), links

    def _source(self, path: Path) -> Source:
        table = self.catalog[path[-1].target]
        return source_of(table, self._key(path))

    # -- nested queries

    def _nested(self, at: Path, atoms: Sequence[Atom], flat: bool) -> list[Term]:
        """`key IN(SELECT …)` for the conditions on the rows above `at`, one for each foreign key."""
        groups: dict[Path, list[Atom]] = {}
        for atom in atoms:
            deepest = max(atom.paths, key=len)
            groups.setdefault(deepest[: len(at) + 1], []).append(atom)
        return [self._membership(at, head, group, flat) for head, group in groups.items()]

    def _membership(self, at: Path, head: Path, atoms: list[Atom], flat: bool) -> Term:
        names = head[-1].columns
        own = [atom for atom in atoms if max(atom.paths, key=len) == head]
        above = [atom for atom in atoms if max(atom.paths, key=len) != head]
        nexts = {max(atom.paths, key=len)[: len(head) + 1] for atom in above}
        while not own and len(nexts) == 1 and next(iter(nexts))[-1].columns == head[-1].target_columns:
            head = next(iter(nexts))
            own = [atom for atom in above if max(atom.paths, key=len) == head]
            above = [atom for atom in above if max(atom.paths, key=len) != head]
            nexts = {max(atom.paths, key=len)[: len(head) + 1] for atom in above}
        conditions = [self._rekey(atom.term) for atom in own]
        sources = [self._source(head)]
        if flat and above:
            inner = frozenset(path for atom in above for path in atom.paths if len(path) > len(head))
            joined, links = self._joins_above(head, inner)
            sources += joined
            conditions = [*links, *conditions, *(self._rekey(atom.term) for atom in above)]
        else:
            conditions += self._nested(head, above, flat)
        select = tuple_of([ref(self._key(head), name) for name in head[-1].target_columns])
        either = conjunctions(conditions)
        query = Query((select,), tuple(sources), either[0] if either else None)
        if len(head[-1].target_columns) > 1:
            query = Query(
                tuple(ref(self._key(head), name) for name in head[-1].target_columns), query.sources, query.where
            )
        return in_query(tuple_of([ref(self._key(at), name) for name in names]), query)

    def _joins_above(self, head: Path, paths: frozenset[Path]) -> tuple[list[Source], list[Term]]:
        closed = {path for path in self._closed(paths | {head}) if len(path) > len(head)}
        links: list[Term] = []
        ordered = sorted(closed, key=lambda path: (len(path), [key.name for key in path]))
        for path in ordered:
            at, names = foot(path, closed | {head})
            links.extend(
                op(ref(path, target), "=", ref(at, name))
                for target, name in zip(path[-1].target_columns, names, strict=True)
            )
        return [self._source(path) for path in ordered], links

    # -- keys

    def _key(self, path: Path) -> SourceKey:
        return path or self.target_key

    def _rekey(self, term: Term) -> Term:
        if self.target_key == ():
            return term
        return Term(
            tuple(
                Ref(self.target_key, part.column) if isinstance(part, Ref) and part.key == () else part
                for part in term.parts
            ),
            term.prec,
        )


def _is_chain(paths: frozenset[Path]) -> bool:
    ordered = sorted(paths, key=len)
    return all(long[: len(short)] == short for short, long in pairwise(ordered))

"""Other spellings of an UPDATE that takes values from nested queries: one query for several, a join, a grouped join.

None is always the same statement (rows without a related row are left alone by a join), so each is to be proved.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace

from emit.term import Part, Prec, Query, Ref, Source, Term, Update, conjoin, raw, ref

_GROUPED = "grouped"
_AGGREGATES = frozenset({"count", "sum", "max", "min", "avg", "string_agg", "array_agg", "bool_or", "bool_and"})


def respelled(update: Update) -> Iterator[Update]:
    """`update` with its nested queries merged, and with them as joined sources."""
    sets = tuple((columns, _merged(term)) for columns, term in update.sets)
    if not any(_queries(term) for _, term in sets):
        return
    plain = replace(update, sets=sets)
    if plain != update:
        yield plain
    joined = _flattened(plain) or _grouped(update)
    if joined is not None:
        yield joined
    # The rows that have a related one may be those to change.
    alone = _flattened(replace(plain, where=None, sources=())) if update.where is not None else None
    if alone is not None and alone.where is not None:
        yield alone


def _queries(term: Term) -> list[Query]:
    """The scalar queries that stand in a term."""
    return [
        part
        for place, part in enumerate(term.parts)
        if isinstance(part, Query) and len(part.select) == 1 and place > 0 and term.parts[place - 1] == "("
    ]


def _replaced(term: Term, values: Mapping[Query, Term]) -> Term:
    """`term` with other terms for its scalar queries."""
    parts = list(term.parts)
    found: list[Part] = []
    place = 0
    while place < len(parts):
        if parts[place] == "(" and place + 2 < len(parts) and parts[place + 2] == ")":
            query = parts[place + 1]
            if isinstance(query, Query) and query in values:
                value = values[query]
                alone = len(parts) == 3
                found += value.parts if value.prec == Prec.ATOM or alone else ("(", *value.parts, ")")
                if alone:
                    return Term(tuple(found), value.prec)
                place += 3
                continue
        found.append(parts[place])
        place += 1
    return Term(tuple(found), term.prec)


def _merged(term: Term) -> Term:
    """(SELECT a FROM t)||(SELECT b FROM t) as (SELECT a||b FROM t)."""
    queries = _queries(term)
    if len(queries) < 2 or len({replace(query, select=()) for query in queries}) > 1 or queries[0].tail is not None:
        return term
    value = _replaced(term, {query: query.select[0] for query in queries})
    return Term(("(", replace(queries[0], select=(value,)), ")"))


def _flattened(update: Update) -> Update | None:
    """SET a=(SELECT b FROM t WHERE c)WHERE d as SET a=b FROM t WHERE c AND d."""
    queries = list(dict.fromkeys(query for _, term in update.sets for query in _queries(term)))
    if any(query.tail is not None or query.distinct or _aggregates(query.select[0]) for query in queries):
        return None
    values = {query: query.select[0] for query in queries}
    sets = tuple((columns, _replaced(term, values)) for columns, term in update.sets)
    sources = dict.fromkeys([*update.sources, *(source for query in queries for source in query.sources)])
    # Two queries may join the same row.
    conditions = [part for query in queries if query.where is not None for part in _conjuncts(query.where)]
    where = conjoin([*dict.fromkeys(conditions), *([update.where] if update.where is not None else [])])
    if len({source.key for source in sources}) < len(sources):
        return None
    return replace(update, sets=sets, sources=tuple(sources), where=where)


def _conjuncts(term: Term) -> Iterator[Term]:
    """The conditions that AND joins, where it is nothing else that it does."""
    if term.prec < Prec.AND or "BETWEEN" in term.parts:
        yield term
        return
    depth, parts = 0, list[Part]()
    for part in term.parts:
        depth += (part == "(") - (part == ")")
        if part == "AND" and not depth:
            yield Term(tuple(parts), Prec.AND)
            parts = []
        else:
            parts.append(part)
    yield Term(tuple(parts), Prec.AND)


def _aggregates(term: Term) -> bool:
    return any(isinstance(part, str) and part.split("(")[0] in _AGGREGATES for part in term.parts)


def _grouped(update: Update) -> Update | None:
    """SET a=(SELECT max(b)FROM t WHERE c=id)WHERE d as SET a=j FROM(SELECT c i,max(b)j FROM t GROUP BY 1)x WHERE i=id
    AND d, where d may speak of other aggregates over the same rows."""
    terms = [term for _, term in update.sets]
    if update.where is not None:
        terms.append(update.where)
    queries = list(dict.fromkeys(query for term in terms for query in _queries(term)))
    shapes = [_shape(query) for query in queries]
    first = next((shape for shape in shapes if shape is not None), None)
    wanted = {query for _, term in update.sets for query in _queries(term)}
    if first is None or any(shape is None for query, shape in zip(queries, shapes, strict=True) if query in wanted):
        return None
    chosen = {
        query: shape[0]
        for query, shape in zip(queries, shapes, strict=True)
        if shape is not None and shape[1:] == first[1:]
    }
    if not wanted <= chosen.keys():
        return None
    values, sources, theirs, ours, rest = list(dict.fromkeys(chosen.values())), *first[1:]
    names = _free_names(update.target, 1 + len(values))
    query = Query((theirs, *values), sources, rest, Term(("GROUP BY", "1")), names=names)
    source = Source(_GROUPED, query, names)
    given = {query: ref(_GROUPED, names[1 + values.index(value)]) for query, value in chosen.items()}
    match = Term((Ref(_GROUPED, names[0]), "=", *ours.parts), Prec.COMPARE)
    where = conjoin([match, *([_replaced(update.where, given)] if update.where is not None else [])])
    sets = tuple((columns, _replaced(term, given)) for columns, term in update.sets)
    return replace(update, sets=sets, sources=(source, *update.sources), where=where)


_Shape = tuple[Term, tuple[Source, ...], Term, Term, Term | None]


def _shape(query: Query) -> _Shape | None:
    """The aggregate of a query over the rows with t.c = this row's value: it, the sources, t.c, this row's value and
    the rest of the condition, with the sources numbered; None for a query of another shape."""
    if query.tail is not None or query.distinct or query.where is None or not _aggregates(query.select[0]):
        return None
    numbers = {source.key: (_GROUPED, place) for place, source in enumerate(query.sources)}
    select, where = _rekeyed(_counted(query.select[0]), numbers), _rekeyed(query.where, numbers).parts
    if "OR" in where or any(isinstance(part, Query) for part in (*select.parts, *where)):
        return None
    end = where.index("AND") if "AND" in where else len(where)
    match, rest = where[:end], where[end + 1 :]
    if match.count("=") != 1:
        return None
    middle = match.index("=")
    sides = sorted((match[:middle], match[middle + 1 :]), key=_is_inner, reverse=True)
    if [_is_inner(side) for side in sides] != [True, False] or any(isinstance(p, Ref) and not _inner(p) for p in rest):
        return None
    sources = tuple(replace(source, key=numbers[source.key]) for source in query.sources)
    condition = Term(rest, query.where.prec) if rest else None
    return select, sources, _side(sides[0]), _side(sides[1]), condition


def _counted(term: Term) -> Term:
    """count(*) in one spelling."""
    return raw("count(*)") if "".join(str(part) for part in term.parts) == "count(*)" else term


def _rekeyed(term: Term, keys: Mapping[Hashable, Hashable]) -> Term:
    parts = tuple(Ref(keys.get(p.key, p.key), p.column) if isinstance(p, Ref) else p for p in term.parts)
    return Term(parts, term.prec)


def _inner(part: Ref) -> bool:
    return isinstance(part.key, tuple) and part.key[:1] == (_GROUPED,)


def _is_inner(parts: Sequence[Part]) -> bool:
    return all(_inner(part) for part in parts if isinstance(part, Ref))


def _side(parts: Sequence[Part]) -> Term:
    return Term(tuple(parts), Prec.ATOM if len(parts) == 1 else Prec.OTHER)


def _free_names(target: Source, count: int) -> tuple[str, ...]:
    letters = (letter for letter in "ijklmnopqrstuvwxyzabcdefgh" if letter not in target.columns)
    return tuple(next(letters) for _ in range(count))

"""Shorter ways to say AND and OR.

Booleans compare, false before true: `p AND NOT q` is `p>q`, `NOT p OR q` is `p<=q`.  Since most conditions have an
opposite (`=` and `<>`, `<` and `>=`, …), nearly every pair may be said so, and the shorter is taken.  A strict
comparison holds under exactly the same rows as the AND, NULLs included; `<=` only where neither side is ever NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import permutations

from emit.literal import identifier
from emit.size import length
from emit.term import Part, Prec, Query, Ref, Source, Term, Whole, conjoin, disjoin, negate, op, separate

_PAIRS = {
    Prec.IS: (("ISNULL", "NOTNULL"), ("IS DISTINCT FROM", "IS NOT DISTINCT FROM")),
    Prec.COMPARE: (("=", "<>"), ("<", ">="), (">", "<=")),
    Prec.LIKE: (("IN(", "NOT IN("), ("BETWEEN", "NOT BETWEEN")),
    Prec.OTHER: (("~", "!~"),),
}
_OPPOSITES = {
    prec: {one: other for pair in pairs for one, other in (pair, pair[::-1])} for prec, pairs in _PAIRS.items()
}
_MAX_TERMS = 6


def measure(term: Term) -> int:
    """The bytes of `term` with columns by their plain names."""
    return length(_texts(term.parts))


def after_where(term: Term) -> int:
    """The bytes of `term` with the space that WHERE needs before a word."""
    return measure(term) + _is_word(_texts(term.parts)[0][0])


def _is_word(letter: str) -> bool:
    return letter not in "'\"()"


def arranged(terms: Sequence[Term]) -> list[Term]:
    """In the order that needs the fewest spaces: a quote or bracket before AND, a word at the very end."""

    def spaces(term: Term) -> tuple[bool, bool]:
        if term.prec == Prec.OR:  # in a conjunction it has brackets
            return False, False
        texts = _texts(term.parts)
        return _is_word(texts[-1][-1]), _is_word(texts[0][0])

    return sorted(terms, key=spaces)


def _texts(parts: Iterable[Part]) -> list[str]:
    texts: list[str] = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Ref):
            texts.append(identifier(part.column))
        elif isinstance(part, Whole):
            texts.append("x")
        else:
            texts.extend(_query_texts(part))
    return texts


def _query_texts(query: Query) -> list[str]:
    texts = ["SELECT", *_texts(separate(query.select))]
    for place, source in enumerate(query.sources):
        texts += [",", *_source_texts(source)] if place else ["FROM", *_source_texts(source)]
    if query.where is not None:
        texts += ["WHERE", *_texts(query.where.parts)]
    return texts + (_texts(query.tail.parts) if query.tail is not None else [])


def _source_texts(source: Source) -> list[str]:
    if isinstance(source.text, str):
        return ["ONLY", source.text] if source.only else [source.text]
    return _texts(source.text.parts) if isinstance(source.text, Term) else ["(", *_query_texts(source.text), ")"]


def opposite(term: Term) -> Term | None:
    """The condition that is true where `term` is false and NULL where it is NULL; None if there is no short one."""
    if term.parts[0] == "NOT" and term.prec == Prec.NOT:
        inner = term.parts[1:]
        if len(inner) == 1:
            return Term(inner)
        return Term(inner[1:-1], Prec.OR) if inner[0] == "(" and inner[-1] == ")" else Term(inner, Prec.OTHER)
    depth, found = 0, -1
    for place, part in enumerate(term.parts):
        if not isinstance(part, str):
            continue
        if depth == 0 and part in _OPPOSITES.get(term.prec, ()):
            found = place  # the last one is the outermost of operators that associate to the left
        if "'" not in part:
            depth += part.count("(") - part.count(")")
    if found < 0:
        return None
    rest = term.parts[found + 1 :]
    if rest and isinstance(rest[0], str) and rest[0].startswith(("ANY(", "ALL(")):
        return None
    return Term((*term.parts[:found], _OPPOSITES[term.prec][str(term.parts[found])], *rest), term.prec)


def conjunctions(terms: Sequence[Term]) -> list[Term]:
    """Ways to say that all of `terms` hold, the shortest known first; empty for no terms."""
    plain = conjoin(arranged(terms))
    if plain is None:
        return []
    found = [plain]
    if 1 < len(terms) <= _MAX_TERMS:
        found.append(_squeeze(list(terms)))
        rows = _as_rows(terms)
        if rows is not None:
            found.append(rows)
        refused = _refuse(terms)
        if refused is not None:
            found.append(refused)
    return sorted(found, key=after_where)


def disjunctions(terms: Sequence[Term], never_null: Sequence[bool]) -> list[Term]:
    """Ways to say that one of `terms` holds; `never_null` tells which of them are true or false for every row."""
    plain = disjoin(arranged(terms))
    if plain is None:
        return []
    found = [plain]
    if len(terms) == 2 and all(never_null):
        for left, right in permutations(terms):
            turned = opposite(right)
            if turned is not None:
                found.append(op(left, ">=", turned))
    return sorted(found, key=after_where)


def _squeeze(terms: list[Term]) -> Term:
    """Says two of the terms as one comparison as long as that is shorter."""
    while len(terms) > 1:
        best: tuple[int, int, int, Term] | None = None
        for left, right in permutations(range(len(terms)), 2):
            turned = opposite(terms[right])
            if turned is None:
                continue
            joined = op(terms[left], ">", turned)
            both = op(terms[min(left, right)], "AND", terms[max(left, right)])
            saved = measure(both) - measure(joined)
            if saved > 0 and (best is None or saved > best[0]):
                best = (saved, left, right, joined)
        if best is None:
            break
        _, left, right, joined = best
        terms = [joined, *(term for place, term in enumerate(terms) if place not in (left, right))]
    result = conjoin(arranged(terms))
    assert result is not None
    return result


def _as_rows(terms: Sequence[Term]) -> Term | None:
    """(a,b)=(1,'x') for two or more equations with constants; the rest follows."""
    equations = [
        term
        for term in terms
        if len(term.parts) == 3
        and term.parts[1] == "="
        and isinstance(term.parts[0], Ref)
        and isinstance(term.parts[2], str)
    ]
    if len(equations) < 2:
        return None
    left = separate(Term((term.parts[0],)) for term in equations)
    right = separate(Term((term.parts[2],)) for term in equations)
    row = Term(("(", *left, ")", "=", "(", *right, ")"), Prec.COMPARE)
    return conjoin(arranged([row, *(term for term in terms if term not in equations)]))


def _refuse(terms: Sequence[Term]) -> Term | None:
    """NOT(a OR b) for two or more negations."""
    negated = [term for term in terms if term.parts[0] == "NOT" and term.prec == Prec.NOT]
    turned = [inner for term in negated if (inner := opposite(term)) is not None]
    if len(turned) < 2 or len(turned) < len(negated):
        return None
    either = disjoin(turned)
    assert either is not None
    return conjoin(arranged([*(term for term in terms if term not in negated), negate(either)]))

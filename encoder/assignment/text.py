"""Text from text: edits of one column, compositions of functions, concatenations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from emit.term import Prec, Query, Term, call, cast, op, raw
from encoder.assignment.ages import days_apart, numbers_in
from encoder.assignment.derived import json_fields
from encoder.assignment.problem import STRINGS, Input, Problem, quoted, to_moment
from encoder.assignment.text_concat import Constant, Step, concatenations
from encoder.assignment.text_edits import edits
from encoder.assignment.text_ops import (
    CASES,
    HASHES,
    LOWER,
    ROUNDINGS,
    WHOLE,
    Piece,
    TextOp,
    cuts,
    date_formats,
    removals,
    replacing,
)

_EXAMPLES = 7
_MAX_BASES = 40
_MAX_EDITED = 5
_MAX_COMPARED = 200
_MAX_REPLACED = 40
_MAX_RECUT = 30
_SEPARATORS = (
    (" ", "-"), ("-", " "), ("_", " "), (" ", "_"), (" ", ""), ("-", ""), ("_", "-"), ("-", "_"),
    ("/", "-"), (".", "-"),
)  # fmt: skip


def _examples(problem: Problem) -> list[int]:
    """A few diverse rows with a value: counterexamples, the shortest, the longest, an even spread."""
    known = [place for place, text in enumerate(problem.new) if text is not None]
    by_length = sorted(known, key=lambda place: len(problem.new[place] or ""))
    hard = [place for place in problem.hard if problem.new[place] is not None]
    chosen = dict.fromkeys([*hard, *by_length[:1], *by_length[-1:], *known[:: max(1, len(known) // _EXAMPLES)]])
    return list(chosen)[: _EXAMPLES + 2 + len(hard)]


@lru_cache(maxsize=8)
def _bases(problem: Problem) -> tuple[Piece, ...]:
    """Text that a row reaches, at the example rows."""
    places = _examples(problem)
    found: list[Piece] = []
    for item in (*problem.extra, *problem.own, *json_fields(problem), *problem.joined):
        values = tuple(item.texts[place] for place in places)
        if item.is_text:
            if any(value is None for value in values) and any(values):
                filled = tuple(value or "" for value in values)
                found.append(_piece(filled, call("coalesce", item.term, quoted("")), item.cost + 13))
            else:
                found.append(_piece(values, item.term, item.cost))
    return tuple(found[:_MAX_BASES])


def _piece(values: Sequence[str | None], term: Term, cost: int) -> Piece:
    return Piece(tuple(values), lambda: term, cost)


def _similar(problem: Problem) -> list[Piece]:
    """The bases without NULL that share most with the wanted texts, case aside."""
    wanted = [_shreds(text) for text in _wanted(problem)]
    scored: list[tuple[float, Piece]] = []
    for base in _bases(problem):
        if None not in base.values:
            pairs = zip(wanted, base.values, strict=True)
            score = sum(len(own & _shreds(value or "")) / (len(own) or 1) for own, value in pairs)
            if score > 0:
                scored.append((score, base))
    return [base for _, base in sorted(scored, key=lambda pair: -pair[0])[:_MAX_EDITED]]


def _shreds(text: str) -> set[str]:
    folded = text[:_MAX_COMPARED].lower()
    return {folded[i : i + 2] for i in range(len(folded) - 1)} or set(folded)


def _wanted(problem: Problem) -> tuple[str, ...]:
    return tuple(problem.new[place] or "" for place in _examples(problem))


def single_edits(problem: Problem) -> Iterator[Term]:
    """f(x) and f(g(x)) for one column x, where f's arguments follow from the examples."""
    if problem.base not in STRINGS or not any(problem.new):
        return
    wanted = _wanted(problem)
    for base in _similar(problem):
        yield from _edited(base, wanted, True)
        for step in cuts(base.values, wanted):
            if base.then(step).values == wanted:
                yield step.build(base.build())
        for step in (*WHOLE, *removals(base.values, wanted)):
            piece = base.then(step)
            if piece.values != base.values:
                yield from _edited(piece, wanted, True)
    yield from _hashes(problem, wanted)
    yield from _masks(problem, wanted)


def compositions(problem: Problem) -> Iterator[Term]:
    """Chains of up to three functions: a cut or a case change, an edit, and a case change over them."""
    if problem.base not in STRINGS or not any(problem.new):
        return
    wanted = _wanted(problem)
    for base in _similar(problem):
        firsts = _distinct([base, *(base.then(step) for step in (*cuts(base.values, wanted), *WHOLE))])
        for first in firsts:
            yield from _edited(first, wanted, False)
        folded = tuple(text.lower() for text in wanted)
        yield from _cut_again(firsts, wanted, folded)
        for case in CASES:
            if all(case.apply(text) == text for text in wanted):
                for first in firsts:
                    for term in _edited(first.then(LOWER), folded, first is base):
                        yield case.build(_without_lower(term))
                yield from _respaced(firsts, case, wanted)
        for old, new in _SEPARATORS:
            if any(old in (value or "") for value in base.values) and all(old not in text for text in wanted):
                for first in firsts[:_MAX_REPLACED]:
                    yield from _edited(first.then(replacing(old, new)), wanted, False)


def _respaced(firsts: Sequence[Piece], case: TextOp, wanted: tuple[str, ...]) -> Iterator[Term]:
    """A cut with other separators, and a case over it."""
    for old, new in _SEPARATORS:
        step = replacing(old, new)
        for first in firsts:
            if old in (first.values[0] or "") and first.then(step).then(case).values == wanted:
                yield case.build(step.build(first.build()))


def _cut_again(firsts: Sequence[Piece], wanted: tuple[str, ...], folded: tuple[str, ...]) -> Iterator[Term]:
    """A cut of a cut, and a case over it."""
    holding = [
        first
        for first in firsts
        if all(text in (value or "").lower() for value, text in zip(first.values, folded, strict=True))
    ]
    for first in holding[:_MAX_RECUT]:
        for step in cuts(first.values, wanted):
            second = first.then(step)
            if second.values == wanted:
                yield second.build()
            elif tuple((value or "").lower() for value in second.values) == folded:
                yield from (case.build(second.build()) for case in CASES if second.then(case).values == wanted)


def _without_lower(term: Term) -> Term:
    """The term without the calls of lower in it: the function above sets the case anyway."""
    parts: list[object] = []
    depth: list[bool] = []
    place = 0
    source = list(term.parts)
    while place < len(source):
        part = source[place]
        if part == "lower" and place + 1 < len(source) and source[place + 1] == "(":
            depth.append(True)
            place += 2
            continue
        if part == "(":
            depth.append(False)
        if part == ")" and depth.pop():
            place += 1
            continue
        parts.append(part)
        place += 1
    return Term(tuple(parts), term.prec)  # type: ignore[arg-type]


def _distinct(pieces: Sequence[Piece]) -> list[Piece]:
    """One piece, the cheapest, for every line of values."""
    best: dict[tuple[str | None, ...], Piece] = {}
    for piece in sorted(pieces, key=lambda piece: piece.cost):
        if any(piece.values) and None not in piece.values:
            best.setdefault(piece.values, piece)
    return list(best.values())


def _edited(piece: Piece, wanted: Sequence[str], deep: bool) -> Iterator[Term]:
    if piece.values == tuple(wanted):
        yield piece.build()
        return
    values = [value or "" for value in piece.values]
    for step in edits(list(zip(values, wanted, strict=True)), deep):
        if all(step.apply(value) == text for value, text in zip(values, wanted, strict=True)):
            yield step.build(piece.build())


def _masks(problem: Problem, wanted: Sequence[str]) -> Iterator[Term]:
    """One character as often as a text is long."""
    characters = {character for text in wanted for character in text}
    if len(characters) == 1:
        shown = quoted(characters.pop())
        for base in _bases(problem):
            if all(len(value or "") == len(text) for value, text in zip(base.values, wanted, strict=True)):
                yield call("repeat", shown, call("length", base.build()))


def _hashes(problem: Problem, wanted: Sequence[str]) -> Iterator[Term]:
    if not all(len(text) in (32, 64) for text in wanted):
        return
    places = _examples(problem)
    for item in problem.inputs:
        values = tuple(item.texts[place] for place in places)
        if item.base == "bytea":
            yield call("encode", call("sha256", item.term), raw("'hex'"))
            yield call("md5", item.term)
        term = item.term if item.is_text else cast(item.term, "text")
        for step in HASHES:
            if tuple(None if value is None else step.apply(value) for value in values) == tuple(wanted):
                yield step.build(term)


def concatenated(problem: Problem) -> Iterator[Term]:
    """Columns, cuts of them, numbers and dates, with constants between."""
    if problem.base not in STRINGS or not any(problem.new):
        return
    wanted = _wanted(problem)
    for steps in concatenations(wanted, _pool(problem, wanted)):
        yield from _spelled(steps)


def around(problem: Problem, item: Input) -> Iterator[Term]:
    """Constants, dates and whole columns around the number `item`."""
    wanted, places = _wanted(problem), _examples(problem)
    pieces = [base for base in _bases(problem) if None not in base.values]
    for other in (item, *problem.own):
        values = tuple(other.texts[place] for place in places)
        if not other.is_text and None not in values:
            pieces += _from_other(other, [value or "" for value in values], wanted)
    for steps in concatenations(wanted, _distinct([piece for piece in pieces if (piece.values[0] or "") in wanted[0]])):
        yield from _spelled(steps)


def _pool(problem: Problem, wanted: tuple[str, ...]) -> list[Piece]:
    pieces: list[Piece] = []
    for base in _bases(problem):
        pieces += _made_of(base, wanted)
    places = _examples(problem)
    for item in problem.inputs:
        if not item.is_text and None not in (values := tuple(item.texts[place] for place in places)):
            pieces += _from_other(item, [value or "" for value in values], wanted)
    pieces += _aged(problem, places)
    first = wanted[0]
    return _distinct([piece for piece in pieces if piece.values[0] is not None and piece.values[0] in first])


def _aged(problem: Problem, places: Sequence[int]) -> Iterator[Piece]:
    """The numbers in the texts that are days between times."""
    for line in numbers_in(problem.new):
        values = [str(int(line[place])) for place in places]
        yield from (_piece(values, term, problem.cost(term)) for term in days_apart(problem, line))


def _made_of(base: Piece, wanted: tuple[str, ...]) -> Iterator[Piece]:
    """`base` and what one or two functions make of it that stands in the first wanted text."""
    yield base
    head = base.values[0]
    if head is None or None in base.values:
        return
    values = [value or "" for value in base.values]
    # Cuts of what a query gives are seldom, and many.
    nested = any(isinstance(part, Query) for part in base.build().parts)
    cut = () if nested else cuts(base.values, wanted)
    for step in (*WHOLE, *cut, *(replacing(*pair) for pair in _SEPARATORS)):
        # The first text is made alone: few steps fit it, and fewer all of them.
        made = step.apply(head)
        if made is None:
            continue
        if "." in made:
            yield from _rounded(base.then(step), made, wanted[0])
        cases = [case for case in CASES if (case.apply(made) or "") in wanted[0]]
        if made in wanted[0] and _stands(step.apply, values, wanted):
            yield base.then(step)
        for case in cases:
            if _stands(lambda text: case.apply(step.apply(text) or ""), values, wanted):  # noqa: B023
                yield base.then(step).then(case)


def _stands(function: Callable[[str], str | None], values: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether what a function makes of every value stands in the text that is wanted there."""
    made = map(function, values)
    return all(text is not None and text in goal for text, goal in zip(made, wanted, strict=True))


def _rounded(piece: Piece, made: str, first: str) -> Iterator[Piece]:
    """The number that a piece spells, rounded to what stands in the first wanted text."""
    for step in ROUNDINGS if "." in made else ():
        shown = step.apply(made)
        if shown is not None and shown in first and shown != made:
            yield piece.then(step)


def _from_other(item: Input, values: list[str], wanted: tuple[str, ...]) -> Iterator[Piece]:
    if item.is_number:
        whole = _piece(values, item.term, item.cost)
        yield whole
        if item.base == "numeric":
            yield from _rounded(whole, values[0], wanted[0])
        if item.is_integer and item.own and not item.is_key:
            yield from _moved(item, values, wanted)
        if item.is_integer and not any(value.startswith("-") for value in values):
            for width in range(2, 9):
                shown = tuple(value.rjust(width, "0") for value in values)
                if shown[0] in wanted[0] and max(map(len, values)) <= width:
                    yield _piece(shown, call("to_char", item.term, raw(f"'FM{'0' * width}'")), item.cost + 14 + width)
            yield from _hexadecimal(item, values, wanted[0])
    elif item.base == "boolean":
        yield _piece([{"t": "true", "f": "false"}[value] for value in values], item.term, item.cost)
    elif item.is_time:
        moments = [moment for value in values if (moment := to_moment(value)) is not None]
        if len(moments) < len(values):
            return
        for lines in zip(*(list(date_formats(moment)) for moment in moments), strict=True):
            yield _dated(item, lines[0][0], tuple(text for _, text in lines))
    elif item.base == "uuid":
        yield _piece(values, item.term, item.cost)


def _moved(item: Input, values: list[str], wanted: tuple[str, ...]) -> Iterator[Piece]:
    """The number one up or down, where that stands in every wanted text."""
    for sign, shift in (("+", 1), ("-", -1)):
        shown = [str(int(value) + shift) for value in values]
        if all(text in goal for text, goal in zip(shown, wanted, strict=True)):
            yield _piece(shown, op(item.term, sign, raw("1")), item.cost + 4)


def _hexadecimal(item: Input, values: list[str], first: str) -> Iterator[Piece]:
    """The number in base 16, filled up with zeros to a width or not."""
    digits = tuple(f"{int(value):x}" for value in values)
    plain = call("to_hex", item.term)
    if digits != tuple(values) and digits[0] in first:
        yield _piece(digits, plain, item.cost + 8)
        for width in range(max(2, *map(len, digits)), 13):
            shown = tuple(text.rjust(width, "0") for text in digits)
            if shown[0] in first and shown != digits:
                yield _piece(shown, call("lpad", plain, raw(str(width)), raw("'0'")), item.cost + 21)


def _dated(item: Input, pattern: str, values: tuple[str, ...]) -> Piece:
    term = call("to_char", item.term, raw(f"'{pattern}'"))
    return Piece(values, lambda: term, item.cost + 12 + len(pattern))


def _spelled(steps: tuple[Step, ...]) -> Iterator[Term]:
    terms = [quoted(step.text) if isinstance(step, Constant) else step.build() for step in steps]
    merged = _merge_formats(terms, [isinstance(step, Constant) for step in steps])
    for line in (merged, terms) if len(merged) < len(terms) else (terms,):
        term = line[0]
        for following in line[1:]:
            term = op(term, "||", following)
        yield term
        if len(line) == 1 and term.prec < Prec.ATOM:
            yield cast(term, "text")
        if sum(piece.parts[0] == "lower" for piece in line) > 1:
            yield _lower_once(line)


def _lower_once(line: Sequence[Term]) -> Term:
    """The pieces put together, lower called once over all but the constants behind the last that needs it."""
    last = max(place for place, piece in enumerate(line) if piece.parts[0] == "lower")
    term = _without_lower(line[0])
    for piece in line[1 : last + 1]:
        term = op(term, "||", _without_lower(piece))
    term = call("lower", term)
    for piece in line[last + 1 :]:
        term = op(term, "||", piece)
    return term


def _merge_formats(terms: Sequence[Term], constant: Sequence[bool]) -> list[Term]:
    """Neighbouring to_char of one column, and the constants beside them, as one to_char."""
    merged: list[Term] = []
    for term, plain in zip(terms, constant, strict=True):
        pattern = _pattern_of(term)
        before = _pattern_of(merged[-1]) if merged else None
        if before is not None and pattern is not None and before[0] == pattern[0]:
            merged[-1] = _formatted(before[0], before[1] + pattern[1])
        elif before is not None and plain:
            merged[-1] = _formatted(before[0], before[1] + _verbatim(term))
        else:
            merged.append(term)
    for place in range(len(merged) - 1):
        pattern = _pattern_of(merged[place + 1])
        if pattern is not None and merged[place] in [t for t, plain in zip(terms, constant, strict=True) if plain]:
            merged[place : place + 2] = [_formatted(pattern[0], _verbatim(merged[place]) + pattern[1])]
            break
    return merged


def _pattern_of(term: Term) -> tuple[Term, str] | None:
    """The argument and the pattern of a to_char of a time."""
    parts = term.parts
    if len(parts) < 6 or parts[0] != "to_char" or not isinstance(parts[-2], str) or parts[-2].startswith("'FM0"):
        return None
    return Term(parts[2:-3]), parts[-2][1:-1]


def _verbatim(term: Term) -> str:
    text = str(term.parts[0])[1:-1]
    return f'"{text}"' if any(character.isalpha() for character in text) else text


def _formatted(argument: Term, pattern: str) -> Term:
    return call("to_char", argument, raw(f"'{pattern}'"))

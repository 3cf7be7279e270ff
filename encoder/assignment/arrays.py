"""Arrays: elements added, removed, replaced, sliced; arrays from text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from emit.literal import literal
from emit.term import Term, call, op, raw
from encoder.assignment.problem import Input, Problem, quoted

_SEPARATORS = (",", ", ", " ", ";", "|", "/", "-")


@lru_cache(maxsize=20_000)
def members(text: str) -> tuple[str | None, ...] | None:
    """The elements of a one-dimensional array's text; None for another shape."""
    if not text.startswith("{") or "{" in text[1:]:
        return None
    found: list[str | None] = []
    place, end = 1, len(text) - 1
    while place < end:
        if text[place] == '"':
            place += 1
            element = []
            while text[place] != '"':
                place += text[place] == "\\"
                element.append(text[place])
                place += 1
            found.append("".join(element))
            place += 2
        else:
            stop = text.find(",", place)
            stop = end if stop < 0 else stop
            word = text[place:stop]
            found.append(None if word == "NULL" else word)
            place = stop + 1
    return tuple(found)


def arrays(problem: Problem) -> Iterator[Term]:
    """A new array from an old one or from columns."""
    if not problem.base.endswith("[]") or None in problem.new:
        return
    new = [members(text or "") for text in problem.new]
    wanted = [line for line in new if line is not None]
    if len(wanted) != len(new):
        return
    for item in problem.inputs:
        if item.base.endswith("[]"):
            old = [members(text) if text is not None else None for text in item.texts]
            lines = [line for line in old if line is not None]
            if len(lines) == len(old):
                yield from _changed(problem, item, lines, wanted)
        elif None not in item.texts:
            if all(line == (text,) for line, text in zip(wanted, item.texts, strict=True)):
                yield Term(("ARRAY[", *item.term.parts, "]"))
            if item.is_text:
                for separator in _SEPARATORS:
                    parts = [tuple((text or "").split(separator)) for text in item.texts]
                    if parts == wanted:
                        yield call("string_to_array", item.term, quoted(separator))


def _changed(
    problem: Problem, item: Input, old: Sequence[tuple[str | None, ...]], new: Sequence[tuple[str | None, ...]]
) -> Iterator[Term]:
    pairs = list(zip(old, new, strict=True))
    if all(a + a == b for a, b in pairs):
        yield op(item.term, "||", item.term)
    tails, heads = {b[len(a) :] for a, b in pairs}, {b[: len(b) - len(a)] for a, b in pairs}
    if all(b[: len(a)] == a for a, b in pairs):
        if len(tails) == 1:
            yield op(item.term, "||", _literal(problem, tails.pop()))
        elif all(len(tail) == 1 for tail in tails):
            for other in problem.inputs:
                if all(b[len(a) :] == (text,) for (a, b), text in zip(pairs, other.texts, strict=True)):
                    yield op(item.term, "||", other.term)
                    yield call("array_append", item.term, other.term)
    if len(heads) == 1 and all(a == b[len(b) - len(a) :] for a, b in pairs):
        yield op(_literal(problem, heads.pop()), "||", item.term)
    gone = {x for a, b in pairs for x in a if x not in b}
    come = {x for a, b in pairs for x in b if x not in a}
    if len(gone) == 1:
        (value,) = gone
        if all(tuple(x for x in a if x != value) == b for a, b in pairs):
            yield call("array_remove", item.term, _element(problem, value))
        if len(come) == 1:
            (other_value,) = come
            if all(tuple(other_value if x == value else x for x in a) == b for a, b in pairs):
                yield call("array_replace", item.term, _element(problem, value), _element(problem, other_value))
    if all(a[1:] == b for a, b in pairs):
        yield Term((*item.term.parts, "[2:]"))
    for length in {len(b) for b in new}:
        if length and all(a[:length] == b for a, b in pairs):
            yield Term((*item.term.parts, f"[:{length}]"))


def _literal(problem: Problem, values: Sequence[str | None]) -> Term:
    shown = ",".join("NULL" if value is None else _quoted(value) for value in values)
    return raw(literal("{" + shown + "}", problem.base, context="compare"))


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _element(problem: Problem, value: str | None) -> Term:
    return raw(literal(value, problem.base.removesuffix("[]"), context="compare"))

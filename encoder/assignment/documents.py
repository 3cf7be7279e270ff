"""json and jsonb: keys set, removed, renamed, nested paths, documents built from columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

from emit.literal import literal
from emit.term import Prec, Term, call, cast, op, raw
from encoder.assignment import cases, conditions, hashed, numeric, text
from encoder.assignment.arrays import members
from encoder.assignment.problem import STRINGS, Family, Input, Problem, quoted
from encoder.assignment.text_edits import edits
from encoder.assignment.totals import totals
from scratch.catalog import Column

_JSON = frozenset({"json", "jsonb"})
_MAX_KEYS = 8
_EXAMPLES = 6
# Terms for one field: how many are tried in a document, and how many a family may give.
_CHOICES = 3
_PER_FAMILY = 4
_SCALARS = (
    ({str}, "text"),
    ({bool}, "boolean"),
    ({int}, "integer"),
    ({int, float}, "numeric"),
)
_KINDS = {"text": "S", "boolean": "B", "integer": "N", "numeric": "N"}
_FAMILIES: Mapping[str, tuple[Family, ...]] = {
    "text": (text.single_edits, cases.maps, text.concatenated, hashed.hashed),
    "boolean": (conditions.booleans,),
    "integer": (numeric.single, cases.maps, numeric.pairs),
    "numeric": (numeric.single, cases.maps, numeric.pairs),
}


@lru_cache(maxsize=20_000)
def _parse(text: str) -> Any:
    return json.loads(text)


def documents(problem: Problem) -> Iterator[Term]:
    """A new document from an old one and from columns."""
    if problem.base not in _JSON | STRINGS or None in problem.new:
        return
    texts = [text for text in problem.new if text is not None]
    if problem.base in STRINGS and not all(text[:1] in ("{", "[") for text in texts):
        return
    try:
        new = [_parse(text) for text in texts]
    except ValueError:
        return
    for item in problem.inputs:
        if item.base in _JSON or (item.own and item.is_text):
            yield from _changed(problem, item, new)
    yield from _built(problem, new)


def _document(value: object) -> Term:
    text = literal(json.dumps(value, ensure_ascii=False, separators=(",", ":")), "jsonb", context="compare")
    return raw(text)


def _changed(problem: Problem, item: Input, new: Sequence[Any]) -> Iterator[Term]:
    if None in item.texts:
        return
    try:
        old = [_parse(text) for text in item.texts if text is not None]
    except ValueError:
        return
    own = item.term if item.base == "jsonb" else cast(item.term, "jsonb")
    if all(isinstance(value, dict) for value in (*old, *new)):
        yield from _keys(problem, own, old, new)
        yield from _paths(problem, own, old, new)
    elif all(isinstance(value, list) for value in (*old, *new)):
        yield from _elements(problem, own, old, new)
    if item.base == problem.base:
        pairs = [(a or "", b or "") for a, b in zip(item.texts, problem.new, strict=True)][:_EXAMPLES]
        for step in edits(pairs, False):
            yield cast(step.build(cast(item.term, "text")), problem.base)


def _keys(problem: Problem, own: Term, old: Sequence[dict[str, Any]], new: Sequence[dict[str, Any]]) -> Iterator[Term]:
    gone = sorted({key for a, b in zip(old, new, strict=True) for key in a if key not in b})
    set_keys = sorted({key for a, b in zip(old, new, strict=True) for key in b if key not in a or a[key] != b[key]})
    if (not gone and not set_keys) or len(gone) > _MAX_KEYS or len(set_keys) > _MAX_KEYS:
        return
    if any(key in b for key in gone for b in new) or any(key not in b for key in set_keys for b in new):
        return
    base = own
    if gone:
        listed = quoted(gone[0]) if len(gone) == 1 else cast(quoted("{" + ",".join(gone) + "}"), "text[]")
        base = op(own, "-", listed)
    if not set_keys:
        yield base
        return
    constant = {key: new[0][key] for key in set_keys if all(b[key] == new[0][key] for b in new)}
    rest = [key for key in set_keys if key not in constant]
    if not rest:
        yield op(base, "||", _document(constant))
        return
    sources = [list(_values(problem, [b[key] for b in new], old, own)) for key in rest]
    if not all(sources):
        return
    fixed = [term for key in constant for term in (quoted(key), _bare(constant[key]))]
    for choice in range(min(_CHOICES, max(map(len, sources)))):
        picked = [found[min(choice, len(found) - 1)] for found in sources]
        arguments = [term for key, value in zip(rest, picked, strict=True) for term in (quoted(key), value.term)]
        yield op(base, "||", call("jsonb_build_object", *fixed, *arguments))
        if len(rest) == 1 and not constant and picked[0].is_json:
            yield _set(base, (rest[0],), picked[0])


def _set(base: Term, path: Sequence[str], value: _Made) -> Term:
    return call("jsonb_set", base, quoted("{" + ",".join(path) + "}"), value.document)


def _bare(value: Any) -> Term:
    """A constant as an argument of jsonb_build_object."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool) or value is None:
        return raw({True: "true", False: "false", None: "null"}[value])
    if isinstance(value, int | float):
        return raw(json.dumps(value), Prec.UNARY if value < 0 else Prec.ATOM)
    return cast(_document(value), "jsonb")


@dataclass(frozen=True, slots=True)
class _Made:
    """A term that becomes a json value; `is_json` where it is jsonb itself."""

    term: Term
    is_json: bool

    @property
    def document(self) -> Term:
        return self.term if self.is_json else call("to_jsonb", self.term)


def _values(
    problem: Problem, values: Sequence[Any], old: Sequence[Any] = (), own: Term | None = None
) -> Iterator[_Made]:
    """What gives exactly these json values: fields, columns, objects of such, and expressions over columns."""
    found = False
    for made in _sources(problem, values, old, own):
        found = True
        yield made
    if found:
        return
    if all(isinstance(value, dict) for value in values):
        built = _object(problem, values)
        if built is not None:
            yield _Made(built, True)
    else:
        fields = [] if own is None or not isinstance(old[0], dict) else _fields(problem, old, own)
        seen = problem.with_inputs(fields) if fields else problem
        yield from (_Made(term, False) for term in _computed(seen, values))


def _fields(problem: Problem, old: Sequence[dict[str, Any]], own: Term) -> list[Input]:
    """The texts and numbers that all the old documents hold under one key."""
    found: list[Input] = []
    for key in sorted(set.intersection(*(set(document) for document in old)))[:_MAX_KEYS]:
        term = op(own, "->>", quoted(key))
        values = [document[key] for document in old]
        if all(isinstance(value, str) for value in values):
            found.append(Input(term, "text", "S", tuple(values), problem.cost(term), own=True))
        elif all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
            number = cast(term, "numeric")
            found.append(Input(number, "numeric", "N", tuple(map(json.dumps, values)), problem.cost(number), own=True))
    return found


def _sources(problem: Problem, values: Sequence[Any], old: Sequence[Any], own: Term | None) -> Iterator[_Made]:
    if own is not None:
        objects = old if all(isinstance(document, dict) for document in old) else ()
        for key in sorted({key for document in objects for key in document}):
            if all(document.get(key) == value for document, value in zip(objects, values, strict=True)):
                yield _Made(op(own, "->", quoted(key)), True)
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
            yield from (_Made(term, False) for term in totals(old, own, values))
    for item in problem.inputs:
        pairs = zip(item.texts, values, strict=True)
        if all(_as_json(item.base, text) == value and _same_type(text, value) for text, value in pairs):
            yield _Made(item.term, item.base == "jsonb")


def _computed(problem: Problem, values: Sequence[Any]) -> Iterator[Term]:
    """Expressions for scalars of one type, found as for a column of that type."""
    kinds = {type(value) for value in values if value is not None}
    base = next((name for types, name in _SCALARS if kinds and kinds <= types), None)
    if base is None:
        return
    texts = tuple(None if value is None else value if isinstance(value, str) else _as_text(value) for value in values)
    column = Column("", base, base, _KINDS[base], False, None, False, "", None)

    def terms() -> list[Term]:
        inner = problem.aiming(column, texts)
        found = [term for family in _FAMILIES[base] for term in islice(family(inner), _PER_FAMILY)]
        return sorted(dict.fromkeys(found), key=problem.cost)

    # The same field is asked for once for every document that a row reaches.
    yield from problem.remember((base, texts), terms)


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "t" if value else "f"
    return json.dumps(value)


def _object(problem: Problem, values: Sequence[dict[str, Any]], choice: int = 0) -> Term | None:
    """jsonb_build_object of the fields that all of `values` have alike, each of the `choice`-th term for it."""
    keys = list(values[0])
    if not 0 < len(keys) <= _MAX_KEYS or any(value.keys() != values[0].keys() for value in values):
        return None
    arguments: list[Term] = []
    for key in keys:
        fields = [value[key] for value in values]
        if len(fields) > 1 and all(field == fields[0] for field in fields):
            arguments += [quoted(key), _bare(fields[0])]
            continue
        made = list(islice(_values(problem, fields), choice + 1))
        if not made:
            return None
        arguments += [quoted(key), made[-1].term]
    return call("jsonb_build_object", *arguments)


def _objects(problem: Problem, values: Sequence[dict[str, Any]]) -> Iterator[Term]:
    built = (_object(problem, values, choice) for choice in range(_CHOICES))
    yield from dict.fromkeys(term for term in built if term is not None)


def _as_json(base: str, text: str | None) -> Any:
    if text is None:
        return None
    if base in _JSON:
        return _parse(text)
    if base == "boolean":
        return text == "t"
    if base in ("smallint", "integer", "bigint", "numeric", "real", "double precision"):
        return _parse(text) if text not in ("NaN", "Infinity", "-Infinity") else text
    if base in ("text[]", "character varying[]"):
        return list(members(text) or ())
    if base.startswith("timestamp"):
        return text.replace(" ", "T") + (":00" if base.endswith("with time zone") else "")
    return text


def _same_type(text: str | None, value: Any) -> bool:
    return text is None or not isinstance(value, bool) or text in ("t", "f", "true", "false")


def _paths(problem: Problem, own: Term, old: Sequence[Any], new: Sequence[Any]) -> Iterator[Term]:
    """One nested path set or removed."""
    changes: list[tuple[tuple[str, ...], str | None]] = []
    for a, b in zip(old, new, strict=True):
        found = list(_leaves(a, b, ()))
        if len(found) > 1:
            return
        changes += found
    if len({path for path, _ in changes}) != 1 or len(changes[0][0]) < 2:
        return
    path, values = changes[0][0], [value for _, value in changes]
    if all(value == values[0] for value in values):
        if values[0] is None:
            yield op(own, "#-", quoted("{" + ",".join(path) + "}"))
        else:
            yield call("jsonb_set", own, quoted("{" + ",".join(path) + "}"), _document(json.loads(values[0])))
        return
    # Where a document is what it was, a constant may be the same as before.
    if None not in values and len(values) == len(old):
        parsed = [json.loads(value) for value in values if value is not None]
        yield from (_set(own, path, value) for value in islice(_values(problem, parsed, old, own), _CHOICES))


def _leaves(a: Any, b: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str | None]]:
    if a == b:
        return
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys()):
            if key not in b:
                yield (*path, key), None
            elif key not in a:
                yield (*path, key), json.dumps(b[key])
            else:
                yield from _leaves(a[key], b[key], (*path, key))
        return
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for place, pair in enumerate(zip(a, b, strict=True)):
            yield from _leaves(*pair, (*path, str(place)))
        return
    yield path, json.dumps(b)


def _elements(problem: Problem, own: Term, old: Sequence[list[Any]], new: Sequence[list[Any]]) -> Iterator[Term]:
    pairs = list(zip(old, new, strict=True))
    if all(b[: len(a)] == a for a, b in pairs):
        for tail in _added(problem, [b[len(a) :] for a, b in pairs]):
            yield op(own, "||", tail)
    if all(b[len(b) - len(a) :] == a for a, b in pairs):
        for head in _added(problem, [b[: len(b) - len(a)] for a, b in pairs]):
            yield op(head, "||", own)
    if all(len(b) > len(a) for a, b in pairs):
        heads = [b[: len(a)] for a, b in pairs]
        tails = list(_added(problem, [b[len(a) :] for a, b in pairs])) if heads != list(old) else []
        yield from (op(head, "||", tail) for tail in tails for head in _paths(problem, own, old, heads))
    gone = {json.dumps(x) for a, b in pairs for x in a if x not in b}
    if len(gone) == 1:
        value = json.loads(gone.pop())
        if isinstance(value, str):
            yield op(own, "-", quoted(value))
    if all(a[1:] == b for a, b in pairs):
        yield op(own, "-", raw("0"))
    if all(a[:-1] == b for a, b in pairs):
        yield op(own, "-", raw("-1", Prec.UNARY))
    yield from _filtered(own, pairs)


def _added(problem: Problem, added: Sequence[list[Any]]) -> Iterator[Term]:
    """The elements that every list gets: constants, or one built of columns."""
    if all(line == added[0] for line in added):
        if len(added[0]) == 1 and not isinstance(added[0][0], list):
            yield _document(added[0][0])
        if added[0]:
            yield _document(added[0])
    elif all(len(line) == 1 and isinstance(line[0], dict) for line in added):
        yield from _objects(problem, [line[0] for line in added])


def _filtered(own: Term, pairs: Sequence[tuple[list[Any], list[Any]]]) -> Iterator[Term]:
    """The elements in which one field has, or has not, a value."""
    gone, kept = _parted(pairs)
    if not gone or not all(isinstance(x, dict) for x in (*gone, *kept)):
        return
    for sign, chosen, others in (("!=", gone, kept), ("==", kept, gone)):
        for key in sorted(chosen[0]) if chosen else ():
            value = chosen[0][key]
            if isinstance(value, dict | list) or not key.isidentifier():
                continue
            if all(x.get(key) == value for x in chosen) and all(key in x and x[key] != value for x in others):
                path = f"$?(@.{key}{sign}{json.dumps(value, ensure_ascii=False)})"
                yield call("jsonb_path_query_array", own, quoted(path))


def _parted(pairs: Sequence[tuple[list[Any], list[Any]]]) -> tuple[list[Any], list[Any]]:
    """The elements that go and those that stay, if nothing else happens to the lists; none otherwise."""
    gone: list[Any] = []
    kept: list[Any] = []
    for a, b in pairs:
        place = 0
        for x in a:
            if place < len(b) and b[place] == x:
                place += 1
                kept.append(x)
            else:
                gone.append(x)
        if place < len(b):
            return [], []
    return gone, kept


def _built(problem: Problem, new: Sequence[Any]) -> Iterator[Term]:
    """A document of columns and constants."""
    if not all(isinstance(value, dict) for value in new):
        for item in problem.inputs:
            if all(_as_json(item.base, text) == value for text, value in zip(item.texts, new, strict=True)):
                yield call("to_jsonb", item.term)
        return
    for built in _objects(problem, new):
        yield built
        if problem.base == "json" and all(list(value) == list(new[0]) for value in new):
            yield Term(("json_build_object", *built.parts[1:]))

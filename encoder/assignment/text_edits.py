"""One text turned into another by a single edit whose arguments follow from examples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from emit.term import Term, call, op, raw
from encoder.assignment.problem import quoted
from encoder.assignment.text_ops import TextOp, replacing

Example = tuple[str, str]

_CONTEXT = 8
_MAX_ARGUMENT = 14
# Patterns that people clean text with; the flag g comes by itself.
_PATTERNS = (
    r"\s+", r"\s", r" +", r"\W+", r"\W", r"\D+", r"\D", r"\d+", r"\d", r"\w", r".", r"[^a-z0-9]+",
    r"[^A-Za-z0-9]+", r"[^a-z]", r"[^a-z0-9]", r"[^\w\s]", r"[aeiou]", r"[A-Z]", r"<[^>]*>", r"<.*?>",
    r" *\(.*\)", r"\(.*\)",
    r" *\(.*", r" *\[.*\]", r"\.\w+$", r"\.[^.]*$", r"\..*", r"^\d+", r"\d+$", r"^\W+", r"\W+$", r"^\D+", r"\D+$",
    r" *-.*", r"@.*", r".*@", r".*/", r"/.*", r"/[^/]*$", r"\?.*", r"#.*", r":.*", r".*: *", r" .*", r".* ", r",.*",
    r"^\w+", r"\w+$", r" \w+$", r"^0+", r"0+$", r"_.*", r"[^/]*$", r"\s+$", r"\.$", r"-\d+$", r"_\d+$", r"\n.*",
)  # fmt: skip
# What people look for in texts; the group is what is wanted, where there is one.
_SOUGHT = tuple(
    (pattern, re.compile(pattern))
    for pattern in (
        r"\d+", r"\d+$", r"^\d+", r"\w+", r"\w+$", r"\S+", r"\S+$", r"[^/]+$", r"[^/]+", r"[A-Z]+", r"[a-z]+",
        r"[a-z]+$", r"[A-Za-z]+", r"[A-Za-z]+$", r"\d{4}", r"[\d.]+", r"\((.*)\)", r"\[(.*)\]", r"\.(\w+)$", r"@(.*)",
        r"[^@]+", r"[^.]+$", r"[^-]+$", r"[^_]+$", r"[^:]+$", r"[^ ]+$", r"[^-]+", r"[^,]+", r"//([^/]+)", r"\d+\D*$",
    )
)  # fmt: skip
_COMPILED = tuple((pattern, re.compile(pattern)) for pattern in _PATTERNS)


def edits(examples: Sequence[Example], deep: bool) -> Iterator[TextOp]:
    """Edits that turn the first text of every example into its second; `deep` tries patterns too."""
    changed = [(a, b) for a, b in examples if a != b]
    if not changed:
        return
    yield from _replacements(changed, examples)
    yield from _additions(examples)
    yield from _trims(examples)
    yield from _translations(examples)
    yield from _paddings(examples)
    yield from _anchored(changed)
    if deep:
        yield from _patterns(changed, examples)
        yield from _found(examples)


def _replacements(changed: Sequence[Example], examples: Sequence[Example]) -> Iterator[TextOp]:
    """replace(): every old text near the first difference, and the new text that lengths then force."""
    source, target = min(changed, key=lambda pair: (len(pair[0]), pair[0]))
    first = _first_difference(source, target)
    found: list[tuple[int, str, str]] = []
    for start in range(max(0, first - _CONTEXT), first + 1):
        for end in range(max(start + 1, first), min(len(source), first + _MAX_ARGUMENT) + 1):
            old = source[start:end]
            new = _forced(source, target, old)
            if new is not None and all(a.replace(old, new) == b for a, b in examples):
                found.append((len(old.encode()) + len(new.encode()), old, new))
    for _, old, new in sorted(found)[:3]:
        yield replacing(old, new)


def _additions(examples: Sequence[Example]) -> Iterator[TextOp]:
    """A constant before or after."""
    source, target = examples[0]
    if all(b.endswith(a) for a, b in examples):
        head = target[: len(target) - len(source)]
        if all(b == head + a for a, b in examples):
            yield TextOp(lambda text: head + text, lambda term: op(quoted(head), "||", term), 4 + len(head))
    if all(b.startswith(a) for a, b in examples):
        tail = target[len(source) :]
        if all(b == a + tail for a, b in examples):
            yield TextOp(lambda text: text + tail, lambda term: op(term, "||", quoted(tail)), 4 + len(tail))


def _forced(source: str, target: str, old: str) -> str | None:
    count = source.count(old)
    length, rest = divmod(len(target) - len(source), count)
    place = source.find(old)
    if rest or len(old) + length < 0:
        return None
    return target[place : place + len(old) + length]


def _first_difference(a: str, b: str) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _trims(examples: Sequence[Example]) -> Iterator[TextOp]:
    for name, head, tail in (("rtrim", False, True), ("ltrim", True, False), ("trim", True, True)):
        gone: set[str] = set()
        for a, b in examples:
            place = a.find(b) if head and tail else len(a) - len(b) if head else 0
            if place < 0 or a[place : place + len(b)] != b or (not head and place):
                break
            gone |= set(a[:place]) | set(a[place + len(b) :])
        else:
            if gone and not any(b and ((tail and b[-1] in gone) or (head and b[0] in gone)) for _, b in examples):
                yield _trim(name, "".join(sorted(gone)))


def _trim(name: str, characters: str) -> TextOp:
    strip = {"rtrim": str.rstrip, "ltrim": str.lstrip, "trim": str.strip}[name]
    if characters == " ":
        return TextOp(lambda text: strip(text, " "), lambda term: call(name, term), len(name) + 2)
    return TextOp(
        lambda text: strip(text, characters),
        lambda term: call("btrim" if name == "trim" else name, term, quoted(characters)),
        len(name) + 5 + len(characters),
    )


def _translations(examples: Sequence[Example]) -> Iterator[TextOp]:
    gone = sorted({character for a, b in examples for character in set(a) - set(b)})
    if 2 <= len(gone) <= 20:
        table = str.maketrans("", "", "".join(gone))
        if all(a.translate(table) == b for a, b in examples):
            yield TextOp(
                lambda text: text.translate(table),
                lambda term: call("translate", term, quoted("".join(gone)), quoted("")),
                17 + len(gone),
            )
    mapping: dict[str, str | int | None] = {}
    for a, b in examples:
        if len(a) != len(b):
            return
        for x, y in zip(a, b, strict=True):
            if mapping.setdefault(x, y) != y:
                return
    mapping = {x: y for x, y in mapping.items() if x != y}
    if 2 <= len(mapping) <= 20:
        old, new = "".join(sorted(mapping)), "".join(str(mapping[x]) for x in sorted(mapping))
        yield TextOp(
            lambda text: text.translate(str.maketrans(mapping)),
            lambda term: call("translate", term, quoted(old), quoted(new)),
            17 + 2 * len(old),
        )


def _paddings(examples: Sequence[Example]) -> Iterator[TextOp]:
    source, target = examples[0]
    length = len(target)
    if all(len(b) == length for _, b in examples):
        for name in ("lpad", "rpad"):
            fills = {(b[:1] if name == "lpad" else b[-1:]) for a, b in examples if len(a) < length}
            if len(fills) == 1:
                step = _pad(name, length, fills.pop())
                if step.apply(source) == target:
                    yield step


def _pad(name: str, length: int, fill: str) -> TextOp:
    def apply(text: str) -> str:
        padded = text.rjust(length, fill) if name == "lpad" else text.ljust(length, fill)
        return padded[:length]

    def build(term: Term) -> Term:
        return call(name, term, raw(str(length)), *((quoted(fill),) if fill != " " else ()))

    return TextOp(apply, build, 8 + len(str(length)))


def _anchored(changed: Sequence[Example]) -> Iterator[TextOp]:
    """regexp_replace of a constant beginning or end."""
    for backwards in (False, True):
        pairs = [(a[::-1], b[::-1]) for a, b in changed] if backwards else changed
        rest = min(_first_difference(a[::-1], b[::-1]) for a, b in pairs)
        old, new = {a[: len(a) - rest] for a, _ in pairs}, {b[: len(b) - rest] for _, b in pairs}
        while len(old) > 1 or len(new) > 1:
            rest -= 1
            if rest < 0:
                break
            old, new = {a[: len(a) - rest] for a, _ in pairs}, {b[: len(b) - rest] for _, b in pairs}
        if len(old) == len(new) == 1 and rest >= 0:
            a, b = old.pop(), new.pop()
            if backwards:
                a, b = a[::-1], b[::-1]
            if 0 < len(a) <= 40 and len(b) <= 40:
                shown = re.sub(r"([.^$*+?()\[\]{}|\\])", r"\\\1", a)
                yield _regexp(shown + "$" if backwards else "^" + shown, b, False)


def _patterns(changed: Sequence[Example], examples: Sequence[Example]) -> Iterator[TextOp]:
    for pattern, compiled in _COMPILED:
        a, b = changed[0]
        for every in (False, True):
            parts = compiled.split(a, 0 if every else 1)
            if len(parts) < 2 or (every and len(parts) == 2):
                continue
            length, rest = divmod(len(b) - sum(map(len, parts)), len(parts) - 1)
            if rest or not 0 <= length <= _MAX_ARGUMENT:
                continue
            new = b[len(parts[0]) : len(parts[0]) + length]
            limit = 0 if every else 1
            if all(compiled.sub(new.replace("\\", "\\\\"), x, count=limit) == y for x, y in examples):
                yield _regexp(pattern, new, every)
                break


def _found(examples: Sequence[Example]) -> Iterator[TextOp]:
    """substring(): the first place that a pattern fits."""
    for pattern, compiled in _SOUGHT:
        step = _substring(pattern, compiled)
        if all(step.apply(a) == b for a, b in examples):
            yield step


def _substring(pattern: str, compiled: re.Pattern[str]) -> TextOp:
    def apply(text: str) -> str | None:
        match = compiled.search(text)
        return match and match[compiled.groups]

    return TextOp(apply, lambda term: call("substring", term, quoted(pattern)), 14 + len(pattern))


def _regexp(pattern: str, new: str, every: bool) -> TextOp:
    compiled = re.compile(pattern)
    escaped = new.replace("\\", "\\\\")
    flags = (raw("'g'"),) if every else ()

    def build(term: Term) -> Term:
        return call("regexp_replace", term, quoted(pattern), quoted(escaped), *flags)

    def apply(text: str) -> str:
        return compiled.sub(escaped, text, count=0 if every else 1)

    return TextOp(apply, build, 22 + len(pattern) + len(new) + 4 * every)

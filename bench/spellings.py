"""The table of spellings: what is said shorter in which way, and what neither server nor parser takes.

    python -m bench.spellings

writes docs/spellings.md from bench/spellings.toml; tests/test_spellings.py proves every line of it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from emit.size import size

SOURCE = Path(__file__).with_name("spellings.toml")
TARGET = Path(__file__).parents[1] / "docs" / "spellings.md"

# A statement for the parser, and what the server runs, around a text of each kind.
_PARSED = {
    "statement": "{}",
    "spacing": "{}",
    "query": "INSERT INTO p {}",
    "condition": "DELETE FROM t WHERE {}",
    "value": "UPDATE t SET x={}",
    "assign": "UPDATE t SET {}",
}
_RUN = _PARSED | {
    "query": "{}",
    "condition": "SELECT id FROM t WHERE {} ORDER BY id",
    "value": "SELECT ({})FROM t ORDER BY id",
}
_WHO = {"parser": "sqlglot", "15": "PostgreSQL 15", "18": "PostgreSQL 18"}


@dataclass(frozen=True, slots=True)
class Spelling:
    """A text of `kind`, in a statement of its own for the parser and for the server."""

    kind: str
    text: str

    @property
    def parsed(self) -> str:
        return _PARSED[self.kind].format(self.text)

    @property
    def run(self) -> str:
        return _RUN[self.kind].format(self.text)

    @property
    def bytes(self) -> int:
        return len(self.text.encode()) if self.kind == "spacing" else size(self.text)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two spellings of the same."""

    group: str
    name: str
    long: Spelling
    short: Spelling


@dataclass(frozen=True, slots=True)
class Rejected:
    """A spelling that those named in `by` ("parser", "15", "18") do not take, and the others do."""

    name: str
    spelling: Spelling
    by: frozenset[str]


@dataclass(frozen=True, slots=True)
class Spellings:
    """The whole table; `setup` makes the tables that the texts speak of."""

    setup: str
    pairs: tuple[Pair, ...]
    rejected: tuple[Rejected, ...]


def read() -> Spellings:
    """The table of bench/spellings.toml."""
    table = tomllib.loads(SOURCE.read_text())
    pairs = [
        Pair(group["title"], name, Spelling(group["kind"], long), Spelling(group["kind"], short))
        for group in table["group"]
        for name, long, short in group["pairs"]
    ]
    rejected = [
        Rejected(name, Spelling(group["kind"], text), frozenset(group["by"]))
        for group in table["rejected"]
        for name, text in group["texts"]
    ]
    return Spellings(table["setup"], tuple(pairs), tuple(rejected))


def page(table: Spellings) -> str:
    """docs/spellings.md."""
    return "\n".join(_lines(table)) + "\n"


def _lines(table: Spellings) -> Iterator[str]:
    yield "# Spellings"
    yield ""
    yield "Written by `python -m bench.spellings` from `bench/spellings.toml`. The tests run every line: both spellings"
    yield "pass the rules of a script, which parse it with sqlglot 27.29.0, and do the same on PostgreSQL 18 and, where"
    yield "it is at hand, 15. Bytes are without whitespace that no token needs, except in the part on spaces."
    group = None
    for pair in table.pairs:
        if pair.group != group:
            group = pair.group
            yield from ("", f"## {group}", "", "| what | long | short | saves |", "|---|---|---|---:|")
        saved = pair.long.bytes - pair.short.bytes
        yield f"| {pair.name} | {_code(pair.long)} | {_code(pair.short)} | {saved} |"
    yield from ("", "## Not taken", "", "| what | text | rejected by |", "|---|---|---|")
    for rejected in table.rejected:
        names = ", ".join(_WHO[who] for who in sorted(rejected.by, reverse=True))
        yield f"| {rejected.name} | {_code(rejected.spelling)} | {names} |"


def _code(spelling: Spelling) -> str:
    shown = spelling.text.replace("|", "\\|").replace("\n", "⏎")
    return f"`{shown}`"


def main() -> None:
    TARGET.write_text(page(read()))


if __name__ == "__main__":
    main()

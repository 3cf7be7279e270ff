"""Splits a script into its statements, by the lexical rules of PostgreSQL's manual, section 4.1."""

from __future__ import annotations

import re
from collections.abc import Iterator

# What may hide a semicolon.  A doubled quote closes one string and opens the next, which splits alike;
# only E'' must know it, for its backslashes.
_TOKEN = re.compile(
    r"""
      --[^\n]*
    | (?P<comment>/\*)
    | (?<![\w$])[eE]'(?:[^'\\]+|\\.|'')*+'
    | '[^']*'
    | "[^"]*"
    | (?<![\w$])\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$
    | (?P<end>;)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")


def statements(script: str) -> Iterator[str]:
    """The statements of `script` without their semicolons; blank ones are left out.

    A SQL-standard function body (BEGIN ATOMIC … END) is not one of the things it knows.
    """
    start = at = 0
    while token := _TOKEN.search(script, at):
        at = token.end()
        if token["comment"]:
            at = _comment_end(script, at)
        elif token["end"]:
            yield from _unless_blank(script[start : token.start()])
            start = at
    yield from _unless_blank(script[start:])


def _comment_end(script: str, at: int) -> int:
    """Where the comment that was opened before `at` ends; comments nest."""
    depth = 1
    while depth and (edge := _COMMENT_EDGE.search(script, at)):
        depth += 1 if edge[0] == "/*" else -1
        at = edge.end()
    return at if depth == 0 else len(script)


def _unless_blank(statement: str) -> Iterator[str]:
    if statement.strip():
        yield statement.strip()

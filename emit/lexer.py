"""An exact lexer of PostgreSQL's SQL.

It follows the rules of PostgreSQL's own scanner (`src/backend/parser/scan.l`, the manual's chapter
"Lexical Structure") with `standard_conforming_strings = on`: what it splits is what the server splits,
so that the size of a script can be counted and whitespace left out without guessing.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """What a token is; `WORD` covers keywords and plain identifiers alike."""

    WORD = "word"
    QUOTED = "quoted identifier"
    STRING = "string"
    NUMBER = "number"
    PARAM = "parameter"
    OPERATOR = "operator"
    PUNCT = "punctuation"


class Token(NamedTuple):
    """One token: `text` as it stands in the source, `start` its offset in characters.

    The text of a string continued over a line break (`'a'⏎'b'`) has one line break between its pieces
    in place of all whitespace and comments that the source has there.
    """

    kind: Kind
    text: str
    start: int


class LexError(ValueError):
    """The text is not lexically valid SQL; `start` is the offset of the offending character."""

    def __init__(self, message: str, start: int) -> None:
        super().__init__(f"{message} at offset {start}")
        self.start = start


_IDENT_START = r"A-Za-z_\u0080-\U0010ffff"
_SPACE = r"[ \t\n\r\f\v]"
# Two strings are one if only whitespace with a line break stands between them.
_CONTINUE = rf"(?:[ \t\f\v]|--[^\n\r]*+)*+[\n\r](?:{_SPACE}|--[^\n\r]*+[\n\r])*+"
_PLAIN = r"'(?:[^']|'')*+'"
_ESCAPED = r"'(?:[^'\\]|''|\\.)*+'"
_RAW = r"'[^']*'"
_DIGITS = r"[0-9](?:_?[0-9])*"

_TOKEN = re.compile(
    rf"""
      (?P<string>[eE]{_ESCAPED} | [bBxX]{_RAW} | (?:[nN]|[uU]&)?{_PLAIN})
    | (?P<quoted>(?:[uU]&)?"(?:[^"]|"")++")
    | (?P<word>[{_IDENT_START}][{_IDENT_START}0-9$]*)
    | (?P<number>(?:0[xX](?:_?[0-9A-Fa-f])+ | 0[oO](?:_?[0-7])+ | 0[bB](?:_?[01])+
               | (?:{_DIGITS}\.(?!\.)(?:{_DIGITS})? | \.{_DIGITS} | {_DIGITS})(?:[eE][+-]?{_DIGITS})?))
    | (?P<param>\$[0-9]+)
    | (?P<dollar>\$(?:[{_IDENT_START}][{_IDENT_START}0-9]*)?\$)
    | (?P<comment>/\*)
    | (?P<operator>(?!--)[~!@\#^&|`?+\-*/%<>=]+)
    | (?P<punct>::|\.\.|:=|[,()\[\].;:])
    | (?P<space>{_SPACE}+|--[^\n\r]*)
    """,
    re.VERBOSE | re.DOTALL,
)
_CONTINUATION = re.compile(rf"{_CONTINUE}(?=')")
_STRING_BODIES = {"e": re.compile(_ESCAPED, re.DOTALL), "b": re.compile(_RAW), "x": re.compile(_RAW)}
_PLAIN_BODY = re.compile(_PLAIN)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_COMMENT_START = re.compile(r"--|/\*")
_MAKES_SIGN_PART = frozenset("~!@#^&|`?%")
_NUMBERS = (Kind.NUMBER, Kind.PARAM)
_WORD_START = re.compile(f"[{_IDENT_START}]")
_KINDS = {
    "string": Kind.STRING,
    "dollar": Kind.STRING,
    "operator": Kind.OPERATOR,
    "quoted": Kind.QUOTED,
    "word": Kind.WORD,
    "number": Kind.NUMBER,
    "param": Kind.PARAM,
    "punct": Kind.PUNCT,
}


def tokenize(sql: str) -> list[Token]:
    """The tokens of `sql`, without whitespace and comments (they are the gaps between tokens).

    Raises `LexError`.
    """
    tokens: list[Token] = []
    position = 0
    length = len(sql)
    while position < length:
        match = _TOKEN.match(sql, position)
        if match is None:
            raise LexError(_complaint(sql[position]), position)
        group = match.lastgroup
        text = match[0]
        end = match.end()
        if group == "comment":
            end = _comment_end(sql, position)
        elif group != "space":
            kind = _KINDS[group or ""]
            if kind is Kind.OPERATOR:
                text = text[: operator_length(text)]
                end = position + len(text)
            elif kind is Kind.STRING:
                text, end = _string(sql, match)
            elif kind in _NUMBERS and _WORD_START.match(sql, end):
                raise LexError("trailing junk after a number", position)
            tokens.append(Token(kind, text, position))
        position = end
    return tokens


def operator_length(run: str) -> int:
    """How many characters of a run of operator characters are its first operator.

    A comment ends the operator, and a trailing + or - belongs to it only if it also holds one of
    ``~ ! @ # ^ & | ` ? %`` (so that `a=-1` needs no space).
    """
    comment = _COMMENT_START.search(run)
    length = comment.start() if comment else len(run)
    if length > 1 and run[length - 1] in "+-" and _MAKES_SIGN_PART.isdisjoint(run[: length - 1]):
        while length > 1 and run[length - 1] in "+-":
            length -= 1
    return length


def _string(sql: str, match: re.Match[str]) -> tuple[str, int]:
    """The text and the end of the string that `match` begins, with its continuations."""
    opening = match[0]
    if opening[0] == "$":
        end = sql.find(opening, match.end())
        if end < 0:
            raise LexError("unterminated dollar-quoted string", match.start())
        end += len(opening)
        return sql[match.start() : end], end
    body = _STRING_BODIES.get(opening[0].lower(), _PLAIN_BODY)
    pieces = [opening]
    end = match.end()
    while gap := _CONTINUATION.match(sql, end):
        piece = body.match(sql, gap.end())
        if piece is None:
            raise LexError("unterminated string", gap.end())
        pieces.append(piece[0])
        end = piece.end()
    return "\n".join(pieces), end


def _comment_end(sql: str, start: int) -> int:
    depth = 0
    for edge in _COMMENT_EDGE.finditer(sql, start):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    raise LexError("unterminated comment", start)


def _complaint(character: str) -> str:
    if character == "'":
        return "unterminated string"
    if character == '"':
        return "unterminated or empty quoted identifier"
    return f"unexpected character {character!r}"

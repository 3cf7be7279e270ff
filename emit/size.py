"""The size of a script, and the spaces that it needs.

Size is the UTF-8 bytes of a script without comments and without any whitespace that no token needs.
A space is needed only where two neighbours, glued together, would be read as other tokens.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from emit.lexer import Kind, Token, operator_length, tokenize

_PREFIXES = frozenset("ebxnEBXN")
_BITS = frozenset("bxBX")


def minify(sql: str) -> str:
    """`sql` without comments and needless whitespace; its tokens are the same.

    A number that starts with its decimal point keeps the space that parts it from a word before
    (`ELSE .5`): the known sizes count it.  `join` leaves it out, as PostgreSQL does not need it.
    Raises `emit.lexer.LexError`.
    """
    return _glue(tokenize(sql), keep_before_point=True)


@lru_cache(maxsize=256)
def size(sql: str) -> int:
    """The size of `sql` in bytes: the measure of everything that tersql writes."""
    return len(minify(sql).encode())


def join(parts: Iterable[str]) -> str:
    """Glue pieces of SQL, each one token or more, with the fewest spaces that keep the tokens."""
    return _glue((token for part in parts for token in _tokens(part)), keep_before_point=False)


def length(parts: Iterable[str]) -> int:
    """The bytes of what `join` makes of the same parts, without making it."""
    total = 0
    last: Token | None = None
    before = ""
    for part in parts:
        found = _summary(part)
        if found is None:
            continue
        size, first, end, next_to_last = found
        if last is not None and (needs_space(last, first) or _is_unicode(last.text, before, first)):
            total += 1
        total += size
        before = last.text if next_to_last is None and last is not None else (next_to_last or "")
        last = end
    return total


@lru_cache(maxsize=1 << 16)
def _summary(part: str) -> tuple[int, Token, Token, str | None] | None:
    """The bytes of a part, its first and last token, and the text before the last; None for no token."""
    tokens = _tokens(part)
    if not tokens:
        return None
    size = len(_glue(tokens, keep_before_point=False).encode())
    return size, tokens[0], tokens[-1], tokens[-2].text if len(tokens) > 1 else None


def needs_space(left: Token, right: Token) -> bool:
    """Whether the two tokens, written without a space between them, would be read as others."""
    a, b = left.text, right.text
    first = b[0]
    if first == "'":
        # Two quotes in a bit string are no quote in it: it ends at the first.
        return (a[-1] == "'" and a[0] not in _BITS) or (left.kind is Kind.WORD and a in _PREFIXES)
    if first == '"':
        return left.kind is Kind.QUOTED
    if first == ".":
        return _needs_space_before_point(left, b)
    if first == ":":
        return a == ":"
    if first == "$":
        return left.kind is Kind.WORD
    if right.kind is Kind.OPERATOR:
        return (a == ":" and first == "=") or (left.kind is Kind.OPERATOR and _operators_merge(a, b))
    if right.kind is Kind.PUNCT:
        return False
    # What remains on the right is a word, a number, or something with a letter before its quote.
    return left.kind in (Kind.WORD, Kind.NUMBER, Kind.PARAM) or (a == "." and right.kind is Kind.NUMBER)


def _needs_space_before_point(left: Token, right: str) -> bool:
    if left.kind is Kind.NUMBER:
        if left.text.endswith("."):
            return True
        return right != ".." and left.text.replace("_", "").isdigit()
    return left.text == "."


def _operators_merge(left: str, right: str) -> bool:
    run = left + right
    if "--" in run or "/*" in run:
        return True
    return operator_length(run) != len(left)


def _glue(tokens: Iterable[Token], *, keep_before_point: bool) -> str:
    pieces: list[str] = []
    last: Token | None = None
    for token in tokens:
        if last is not None and (
            needs_space(last, token)
            or _is_unicode(pieces[-1], pieces[-2] if len(pieces) > 1 else "", token)
            or (keep_before_point and last.kind is Kind.WORD and token.kind is Kind.NUMBER)
        ):
            pieces.append(" ")
        pieces.append(token.text)
        last = token
    return "".join(pieces)


def _is_unicode(last: str, before: str, token: Token) -> bool:
    """Whether a word u, the operator & and a quote would become a U& string or identifier."""
    return last == "&" and before in ("u", "U") and token.text[0] in "'\""


@lru_cache(maxsize=1 << 16)
def _tokens(part: str) -> tuple[Token, ...]:
    return tuple(tokenize(part))

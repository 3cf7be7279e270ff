"""Structured values (arrays, ranges, jsonb, tsvector, hstore, networks, bytes) in the fewest characters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from emit import numbers

Shorten = Callable[[str], str]

_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*|\s+|[^\s"0-9-]+', re.DOTALL)
_ARRAY_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([{},])|((?:[^"\\{},]|\\.)+)', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_RANGE = re.compile(r'([\[(])("(?:[^"\\]|\\.|"")*"|[^",]*),("(?:[^"\\]|\\.|"")*"|[^",]*)([\])])', re.DOTALL)
_LEXEME = re.compile(r"'((?:[^'\\]|''|\\\\)*)'((?::[0-9A-D,]+)?)(?: |$)", re.DOTALL)
_HSTORE_PAIR = re.compile(r'"((?:[^"\\]|\\.)*)"=>(NULL|"((?:[^"\\]|\\.)*)")(?:, |$)', re.DOTALL)
_SIMPLE_WORD = re.compile(r"[A-Za-z0-9_]+")
# What array input skips around an element.
_ARRAY_SPACE = " \t\n\r\v\f"


def jsonb(text: str) -> str:
    """Without whitespace outside strings, numbers spelled shortest with their scale."""
    tokens = _JSON_TOKEN.findall(text)
    if "".join(tokens) != text:
        return text
    return "".join(_json_token(token) for token in tokens if not token.isspace())


def array(text: str, element: Shorten) -> str:
    """Every element shortened by `element` and quoted only where needed; explicit bounds stay as they are."""
    pieces: list[str] = []
    position = 0
    while match := _ARRAY_TOKEN.match(text, position):
        quoted, punctuation, plain = match.groups()
        if quoted is not None:
            pieces.append(_array_element(element(_ESCAPE.sub(r"\1", quoted))))
        elif punctuation is not None:
            pieces.append(punctuation)
        elif plain == "NULL":
            pieces.append(plain)
        else:
            pieces.append(_array_element(element(_ESCAPE.sub(r"\1", plain))))
        position = match.end()
    return "".join(pieces) if position == len(text) and text.startswith("{") else text


def range_(text: str, bound: Shorten, *, of_integers: bool) -> str:
    """Both bounds shortened by `bound`; an integer range may say [10,99] for [10,100)."""
    match = _RANGE.fullmatch(text)
    if match is None:
        return text
    opening, lower, upper, closing = match.groups()
    if of_integers:
        return _integer_range(lower, upper)
    return opening + _range_bound(lower, bound) + "," + _range_bound(upper, bound) + closing


def tsvector(text: str) -> str:
    """Lexemes of plain letters and digits without their quotes."""
    lexemes = list(_matches(_LEXEME, text))
    if not lexemes:
        return text
    return " ".join((match[1] if _SIMPLE_WORD.fullmatch(match[1]) else f"'{match[1]}'") + match[2] for match in lexemes)


def hstore(text: str) -> str:
    """Keys and values of plain letters and digits without their quotes, no spaces."""
    pairs = list(_matches(_HSTORE_PAIR, text))
    if not pairs:
        return text
    return ",".join(
        _hstore_word(match[1]) + "=>" + (_hstore_word(match[3]) if match[3] is not None else "NULL") for match in pairs
    )


def bytea(text: str) -> str:
    """The shorter of hexadecimal and escaped form; only printable ASCII stands for itself."""
    if not text.startswith("\\x"):
        return text
    escaped = "".join(_escaped_byte(byte) for byte in bytes.fromhex(text[2:]))
    return min(text, escaped, key=lambda shown: len(shown) + shown.count("'"))


def bits(text: str) -> str:
    """Hexadecimal if the length allows and it is shorter."""
    if len(text) % 4 or len(text) < 4 or text.strip("01"):
        return text
    return f"x{int(text, 2):0{len(text) // 4}x}"


def network(text: str) -> str:
    """An IPv4 network without the zero octets that its mask does not reach: `10/8`."""
    address, slash, mask = text.partition("/")
    if not slash or ":" in address:
        return text
    octets = address.split(".")
    needed = max(1, (int(mask) + 7) // 8)
    while len(octets) > needed and octets[-1] == "0":
        octets.pop()
    return ".".join(octets) + slash + mask


def _json_token(token: str) -> str:
    if token[0] in "-0123456789":
        shown = numbers.shortest(token, keep_scale=True)
        # JSON wants a digit before the point.
        if shown is not None and len(shown) < len(token) and not shown.lstrip("-").startswith("."):
            return shown
    return token


def _array_element(text: str) -> str:
    quoted = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    plain = re.sub(r'([{},"\\])', r"\\\1", text)
    if not text or text.lower() == "null" or text != text.strip(_ARRAY_SPACE):
        return quoted
    return min(plain, quoted, key=len)


def _range_bound(text: str, bound: Shorten) -> str:
    if text.startswith('"'):
        text = _ESCAPE.sub(r"\1", text[1:-1].replace('""', '"'))
    elif not text:
        return text
    shown = bound(text)
    if shown and not set(shown) & set('()[],"\\'):
        return shown
    return '"' + shown.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _integer_range(lower: str, upper: str) -> str:
    """The shortest of the equal spellings of [lower,upper)."""
    lowers = ["[" + lower, f"({int(lower) - 1}"] if lower else ["("]
    uppers = [upper + ")", f"{int(upper) - 1}]"] if upper else [")"]
    return min(lowers, key=len) + "," + min(uppers, key=len)


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """The matches that follow one another from the start of `text`, or none unless they reach its end."""
    found: list[re.Match[str]] = []
    position = 0
    while position < len(text):
        match = pattern.match(text, position)
        if match is None:
            return
        found.append(match)
        position = match.end()
    yield from found


def _hstore_word(escaped: str) -> str:
    if _SIMPLE_WORD.fullmatch(escaped) and escaped.lower() != "null":
        return escaped
    return f'"{escaped}"'


def _escaped_byte(byte: int) -> str:
    if byte == 0x5C:
        return "\\\\"
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}"

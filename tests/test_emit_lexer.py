"""The lexer splits as PostgreSQL's scanner does."""

import pytest

from emit.lexer import Kind, LexError, tokenize


def texts(sql: str) -> list[str]:
    return [token.text for token in tokenize(sql)]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a.b FROM c", ["SELECT", "a", ".", "b", "FROM", "c"]),
        ("SELECT'it''s'", ["SELECT", "'it''s'"]),
        ("'a''\n''b'", ["'a''\n''b'"]),
        ("'a'  -- note\n  'b' 'c'", ["'a'\n'b'", "'c'"]),
        (r"E'a\'b'", [r"E'a\'b'"]),
        (r"e'a\'b' --x" + "\n" + r" 'c\'d'", [r"e'a\'b'" + "\n" + r"'c\'d'"]),
        (r"'a\'", [r"'a\'"]),
        ("B'10'X'1F'n'a'U&'\\0041'u&\"x\"", ["B'10'", "X'1F'", "n'a'", "U&'\\0041'", 'u&"x"']),
        ("b'1''0'", ["b'1'", "'0'"]),
        ("u & 'a'", ["u", "&", "'a'"]),
        ("u&b", ["u", "&", "b"]),
        ('"a""b"', ['"a""b"']),
        ("$$it's$$", ["$$it's$$"]),
        ("$t$a$$b$t$c", ["$t$a$$b$t$", "c"]),
        ("a$$b$$", ["a$$b$$"]),
        ("$1+$23", ["$1", "+", "$23"]),
        ("1 1. .5 1e6 1.5e-3 1.e5", ["1", "1.", ".5", "1e6", "1.5e-3", "1.e5"]),
        ("1..5", ["1", "..", "5"]),
        ("1.5.5", ["1.5", ".5"]),
        ("0x1F 0o17 0b11 1_000", ["0x1F", "0o17", "0b11", "1_000"]),
        ("a=-1", ["a", "=", "-", "1"]),
        ("a@-1", ["a", "@-", "1"]),
        ("a<-1>=+-2", ["a", "<", "-", "1", ">=", "+", "-", "2"]),
        ("a->>'b'#>>'{}'", ["a", "->>", "'b'", "#>>", "'{}'"]),
        ("a||b!=c<>d", ["a", "||", "b", "!=", "c", "<>", "d"]),
        ("a=--b\n1", ["a", "=", "1"]),
        ("a*/* x /* y */ z */b", ["a", "*", "b"]),
        ("a::int[1:2]", ["a", "::", "int", "[", "1", ":", "2", "]"]),
        ("f(a:=1,b=>2)", ["f", "(", "a", ":=", "1", ",", "b", "=>", "2", ")"]),
        ("größe='é'", ["größe", "=", "'é'"]),
        ("THEN.5END", None),
        ("1a", None),
        ("1e", None),
        ("1_", None),
        ("$1a", None),
        ("'a", None),
        ("'a''", None),
        ("''''''a'", None),
        ('""', None),
        ("$$a", None),
        ("/* /* */", None),
        ("\\", None),
    ],
)
def test_splits(sql: str, expected: list[str] | None) -> None:
    if expected is None:
        with pytest.raises(LexError):
            tokenize(sql)
    else:
        assert texts(sql) == expected


def test_kinds_and_offsets() -> None:
    tokens = tokenize("a \"b\" 'c' 1 $1 + ,")
    assert [token.kind for token in tokens] == list(Kind)
    assert [token.start for token in tokens] == [0, 2, 6, 10, 12, 15, 17]

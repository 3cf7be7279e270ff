"""String constants in the fewest bytes."""

from __future__ import annotations

from collections.abc import Iterator


def quote(text: str) -> str:
    """The shortest string constant with exactly this text (`standard_conforming_strings = on`).

    A carriage return is escaped: many programs that pass a script on turn raw ones into line feeds.
    Raises ValueError for a NUL, which PostgreSQL cannot store.
    """
    if "\0" in text:
        raise ValueError("a text value cannot hold a NUL character")
    if "\r" in text:
        escaped = text.replace("\\", "\\\\").replace("'", "''").replace("\r", "\\r")
        return f"E'{escaped}'"
    return min(_spellings(text), key=len)


def _spellings(text: str) -> Iterator[str]:
    yield "'" + text.replace("'", "''") + "'"
    for tag in ("$$", "$a$"):
        if (text + tag).index(tag) == len(text):
            yield tag + text + tag

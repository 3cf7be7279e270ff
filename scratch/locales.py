"""The encoding and locale of a database, on which depend upper(), the order of texts and what a character is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from psycopg import sql

from scratch.session import connect, rows

# By letter of pg_database.datlocprovider: its name, and the option that names its locale.
_PROVIDERS = {"c": ("libc", ""), "i": ("icu", "ICU_LOCALE"), "b": ("builtin", "BUILTIN_LOCALE")}
# As a document, for each version has other columns; those before 15 know libc alone.
_LOCALE = """
SELECT pg_encoding_to_char(encoding), datcollate, datctype, coalesce(d->>'datlocprovider', 'c'),
       coalesce(d->>'datlocale', d->>'daticulocale'), d->>'daticurules'
FROM (SELECT *, to_jsonb(p) d FROM pg_database p WHERE datname = current_database()) p"""


@dataclass(frozen=True, slots=True)
class Locale:
    """`collate` and `ctype` are libc's, `name` and `rules` those of another `provider` (a letter of the catalog's)."""

    encoding: str
    collate: str
    ctype: str
    provider: str = "c"
    name: str | None = None
    rules: str | None = None

    def __str__(self) -> str:
        libc = self.collate if self.collate == self.ctype else f"{self.collate} and {self.ctype}"
        beside = f", {_PROVIDERS[self.provider][0]} locale {self.name}" if self.name is not None else ""
        return f"encoding {self.encoding} and locale {libc}{beside}"

    def options(self) -> Iterator[sql.Composable]:
        """What CREATE DATABASE has to be told."""
        provider, option = _PROVIDERS[self.provider]
        yield sql.SQL("ENCODING {} LC_COLLATE {} LC_CTYPE {}").format(self.encoding, self.collate, self.ctype)
        yield sql.SQL("LOCALE_PROVIDER {}").format(sql.SQL(provider))
        if option:
            yield sql.SQL(option + " {}").format(self.name)
        if self.rules is not None:
            yield sql.SQL("ICU_RULES {}").format(self.rules)


def read_locale(dsn: str) -> Locale:
    """The locale of the database behind `dsn`."""
    with connect(dsn) as session:
        ((encoding, collate, ctype, provider, name, rules),) = rows(session, _LOCALE)
    return Locale(encoding or "", collate or "", ctype or "", provider or "", name, rules)

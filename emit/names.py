"""Names of tables and columns, quoted only where they must be."""

from __future__ import annotations

import re

# Key words that PostgreSQL 15 to 18 reserve (pg_get_keywords(), catcode R and T).
_RESERVED_WORDS = """
    all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate
    collation column concurrently constraint create cross current_catalog current_date current_role
    current_schema current_time current_timestamp current_user default deferrable desc distinct do else end
    except false fetch for foreign freeze from full grant group having ilike in initially inner intersect
    into is isnull join lateral leading left like limit localtime localtimestamp natural not notnull null
    offset on only or order outer overlaps placing primary references returning right select session_user
    similar some symmetric system_user table tablesample then to trailing true union unique user using
    variadic verbose when where window with
"""
RESERVED = frozenset(_RESERVED_WORDS.split())
# Words that PostgreSQL takes as a column or table but sqlglot 27.29.0 cannot read as such in some place of
# a statement (found by trying every keyword of both in fifty places).
_UNREADABLE_WORDS = """
    alter between character connect_by_root cube describe drop exclude format function glob if insert
    interval lock over partitioned_by qualify regexp revoke rlike rollback rollup uncache unnest values xor
"""
_UNREADABLE = frozenset(_UNREADABLE_WORDS.split())
_QUOTED = RESERVED | _UNREADABLE
_PLAIN = re.compile(r"[a-z_\u0080-\U0010ffff][a-z0-9_\u0080-\U0010ffff]*")


def identifier(name: str) -> str:
    """`name` as SQL spells it: plain if that means the same name, otherwise in double quotes."""
    plain = _PLAIN.fullmatch(name) is not None and name.replace("_", "a").isalnum() and name == name.lower()
    # sqlglot reads a number where PostgreSQL reads a letter: "²".
    if plain and not name[0].isdigit() and name not in _QUOTED:
        return name
    return '"' + name.replace('"', '""') + '"'


def table_name(schema: str, name: str) -> str:
    """A table as the script names it: the schema `public` is on the search path and left out."""
    # sqlglot takes even a quoted "values" for the keyword where a table stands; pg_catalog comes before the path.
    if schema == "public" and name != "values" and not name.startswith("pg_"):
        return identifier(name)
    return f"{identifier(schema)}.{identifier(name)}"

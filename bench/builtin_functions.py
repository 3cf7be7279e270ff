"""Write emit/builtin_functions.py, the built-in functions that a script may call, from the server's catalog.

Run it again when the embedded PostgreSQL moves to a new major version: `python bench/builtin_functions.py`.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from emit.rules import BUILTIN_FUNCTIONS_QUERY
from scratch.server import Server
from scratch.session import connect, rows

TARGET = Path(__file__).parents[1] / "emit" / "builtin_functions.py"


def main() -> None:
    with Server.start() as server, connect(server.dsn()) as session:
        names = sorted(name for (name,) in rows(session, BUILTIN_FUNCTIONS_QUERY) if name)
    listed = textwrap.fill(" ".join(names), 104, initial_indent="    ", subsequent_indent="    ")
    TARGET.write_text(
        '"""The built-in functions that a script may call; written by bench/builtin_functions.py."""\n\n'
        f'_NAMES = """\n{listed}\n"""\nBUILTIN_FUNCTIONS = frozenset(_NAMES.split())\n'
    )


if __name__ == "__main__":
    main()

"""A scratch server with the source database restored into a template."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from replay.role import Role, drop_role, fresh_role, make_role
from scratch.database import create_database, drop_database, dump_source, restore, with_database
from scratch.layout import rewrite_all
from scratch.locales import read_locale
from scratch.server import Server
from scratch.session import connect
from tersql.temporary import temporary_folder


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the state before the stream comes from: a plain SQL dump or a live database."""

    dump: Path | None = None
    database: str | None = None

    def __post_init__(self) -> None:
        if (self.dump is None) == (self.database is None):
            raise ValueError("give either a dump or a database")


@dataclass(frozen=True, slots=True)
class Workspace:
    """`admin_dsn` is a superuser's on the scratch server; `template` the restored database, in whose copies trials run
    as `role`, which has no more rights than a script may need ("" for the superuser)."""

    admin_dsn: str
    template: str
    role: str = ""


@contextlib.contextmanager
def workspace(origin: Origin, scratch: str | None = None) -> Iterator[Workspace]:
    """A template restored from `origin` on an embedded server, or on the server behind `scratch`.

    It has the encoding and locale of a live database; a dump, which does not tell them, gets the server's.
    Everything that was made is gone at the end.  Raises ScratchError.
    """
    with contextlib.ExitStack() as stack:
        admin_dsn = scratch or stack.enter_context(Server.start()).dsn()
        template = f"tersql_template_{secrets.token_hex(4)}"
        dump, locale = origin.dump, None
        if origin.database is not None:
            dump = stack.enter_context(temporary_folder()) / "source.sql"
            dump_source(origin.database, dump)
            locale = read_locale(origin.database)
        assert dump is not None
        role = fresh_role()
        stack.callback(_drop_role, admin_dsn, role)
        create_database(admin_dsn, template, locale=locale)
        stack.callback(drop_database, admin_dsn, template)
        restore(with_database(admin_dsn, template), dump)
        with connect(with_database(admin_dsn, template)) as session:
            rewrite_all(session)
            make_role(session, role)
        yield Workspace(admin_dsn, template, role.name)


def _drop_role(admin_dsn: str, role: Role) -> None:
    with connect(admin_dsn) as session:
        drop_role(session, role)

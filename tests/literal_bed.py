"""Databases for tests of literals, on the embedded server and on PostgreSQL 15 where one is at hand."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import pytest

from encoder.frame import State
from scratch.catalog import read_catalog
from scratch.database import create_database, drop_database, with_database
from scratch.server import Server
from scratch.session import connect
from stream.model import TableName

# Folders of PostgreSQL's programs; None is the embedded server.
SERVERS = [None, *filter(None, [os.environ.get("TERSQL_PG15_BIN")])]


@contextlib.contextmanager
def database(server: Server, folder: str | None, name: str, script: str) -> Iterator[State]:
    """A database that `script` fills, on `server` or on one from the programs in `folder`."""
    with contextlib.ExitStack() as stack:
        if folder is not None:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("TERSQL_PG_BIN", folder)
                server = stack.enter_context(Server.start())
        create_database(server.dsn(), name)
        stack.callback(drop_database, server.dsn(), name)
        session = stack.enter_context(connect(with_database(server.dsn(), name)))
        session.execute(script.encode())
        yield State(session, read_catalog(session))


def table(name: str) -> TableName:
    return TableName("public", name)

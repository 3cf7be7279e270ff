"""A bed for tests of atom families: a small database, planted predicates, masks compared with the server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from emit.render import render
from emit.term import Delete, Term
from encoder.budget import Budget
from encoder.frame import State
from encoder.selection.masks import source
from encoder.selection.model import Labels, Mask, MaskedAtom
from scratch.catalog import read_catalog
from scratch.database import create_database, drop_database, with_database
from scratch.server import Server
from scratch.session import connect, rows
from stream.model import TableName

Family = Callable[..., Iterable[MaskedAtom]]


@contextmanager
def database(server: Server, name: str, *script: str) -> Iterator[State]:
    """A database that `script` fills."""
    create_database(server.dsn(), name)
    try:
        with connect(with_database(server.dsn(), name)) as session:
            for statement in script:
                session.execute(statement.encode())
            yield State(session, read_catalog(session))
    finally:
        drop_database(server.dsn(), name)


def table(name: str) -> TableName:
    return TableName("public", name)


def selected(state: State, name: str, where: str) -> Mask:
    """The rows of the table for which the predicate holds, as the server sees it; t is the table."""
    frame = state.frame(table(name))
    key = ",".join(f"t.{column}" for column in frame.table.row_key)
    found = set(rows(state.session, f"SELECT {key} FROM {name} t WHERE {where}"))
    return np.array([row in found for row in frame.keys], dtype=np.bool_)


def text_of(state: State, name: str, term: Term) -> str:
    """The statement that deletes the rows for which `term` holds."""
    return render(Delete(source(state.catalog[table(name)], ()), where=term))


def executed(state: State, name: str, term: Term) -> Mask:
    """The rows for which the term holds, as the server sees it."""
    frame = state.frame(table(name))
    statement = text_of(state, name, term) + " RETURNING " + ",".join(frame.table.row_key)
    with state.session.transaction(force_rollback=True):
        state.session.execute("SET LOCAL session_replication_role=replica")
        found = set(rows(state.session, statement))
    return np.array([row in found for row in frame.keys], dtype=np.bool_)


def atoms_for(state: State, family: Family, name: str, must: Mask, *, partial: bool = False) -> list[MaskedAtom]:
    labels = Labels(must, ~must)
    return list(family(state, table(name), labels, Budget(50_000_000), None, partial=partial))


def check_masks(state: State, name: str, found: Iterable[MaskedAtom]) -> None:
    """Every mask is what the server selects, and every size that of the text."""
    for masked in found:
        text = text_of(state, name, masked.atom.term)
        assert np.array_equal(executed(state, name, masked.atom.term), masked.holds), text


def check_planted(state: State, family: Family, name: str, predicate: str) -> str:
    """Some atom for exactly the predicate's rows is at most as long, and right; returns its statement."""
    must = selected(state, name, predicate)
    assert 0 < must.sum() < len(must), f"{predicate}: selects {must.sum()} of {len(must)} rows"
    found = atoms_for(state, family, name, must)
    exact = [masked for masked in found if np.array_equal(masked.holds, must)]
    assert exact, f"{predicate}: none of {len(found)} atoms is exact"
    best = min(exact, key=lambda masked: masked.atom.size)
    check_masks(state, name, [best])
    statement = text_of(state, name, best.atom.term)
    # The planted predicate says t for the row, which an alias in the statement costs as well.
    planted = f"DELETE FROM {name} {'t ' if 't.' in predicate else ''}WHERE {predicate}"
    assert len(statement) <= len(planted), f"{statement} is longer than {planted}"
    return statement

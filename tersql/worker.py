"""One worker: its own copy of the database, brought to each of its transactions in turn."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from encoder.context import Effort
from encoder.frame import State
from encoder.transaction import Solved, Strategy, implied_positions, solve_transaction
from encoder.trial import Laboratory, install_capture
from scratch.catalog import read_catalog
from scratch.changes import apply_changes, complete
from scratch.database import cloned
from scratch.session import connect
from stream.open import open_stream
from tersql.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Task:
    """What every worker of one run is told."""

    workspace: Workspace
    stream: Path
    strategy: Strategy
    timezone: str | None
    effort: Effort


def solve_share(task: Task, claim: Callable[[], int], late: Callable[[], bool]) -> Iterator[Solved]:
    """Solve the transactions that `claim` names, in ascending order; the others are only applied.

    `claim` is asked for the next index whenever one is done; indexes beyond the stream end the work.
    Once `late` says so, the remaining ones are left at their literal forms.
    """
    name = f"tersql_worker_{secrets.token_hex(6)}"
    with (
        cloned(task.workspace.admin_dsn, task.workspace.template, name) as dsn,
        connect(dsn, timezone=task.timezone or "UTC") as session,
    ):
        catalog = read_catalog(session)
        install_capture(session, catalog)
        state = State(session, catalog)
        lab = Laboratory(session, catalog)
        wanted = claim()
        for transaction in open_stream(task.stream):
            transaction = complete(session, catalog, transaction)
            if transaction.index == wanted:
                strategy = Strategy.BASELINE if late() and task.strategy != Strategy.STARTER else task.strategy
                yield solve_transaction(
                    session,
                    catalog,
                    lab,
                    state,
                    transaction,
                    strategy=strategy,
                    timezone=task.timezone,
                    effort=task.effort,
                )
                wanted = claim()
            apply_changes(session, catalog, transaction.changes)
            state.forget(sorted({change.table for change in transaction.changes}))
            lab.stand(implied_positions(catalog, transaction.changes, lab.next_value))

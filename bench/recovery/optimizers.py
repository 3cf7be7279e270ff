"""What can be measured: the full search, and the yardstick that gives every row its own statement."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.recovery.model import Optimizer
from bench.recovery.world import TIMEZONE
from encoder.frame import State
from encoder.transaction import Strategy, solve_transaction
from encoder.trial import Laboratory, install_capture
from scratch.catalog import Catalog, read_catalog
from scratch.changes import complete
from scratch.session import Session, connect
from stream.model import RowChange, Transaction


class Search:
    """The search for one transaction as tersql runs it; keeps one database open."""

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy
        self._dsn = ""
        self._open: tuple[Session, Catalog, Laboratory, State] | None = None

    def __call__(self, dsn: str, changes: Sequence[RowChange]) -> str:
        session, catalog, laboratory, state = self._at(dsn)
        transaction = complete(session, catalog, Transaction(1, tuple(changes)))
        solved = solve_transaction(
            session, catalog, laboratory, state, transaction, strategy=self._strategy, timezone=TIMEZONE
        )
        return ";".join(solved.variants[0].statements)

    def _at(self, dsn: str) -> tuple[Session, Catalog, Laboratory, State]:
        if self._open is None or self._dsn != dsn:
            session = connect(dsn)
            catalog = read_catalog(session)
            install_capture(session, catalog)
            self._open = session, catalog, Laboratory(session, catalog), State(session, catalog)
            self._dsn = dsn
        return self._open


OPTIMIZERS: dict[str, Callable[[], Optimizer]] = {
    strategy.value: lambda strategy=strategy: Search(strategy)  # type: ignore[misc]
    for strategy in Strategy
}

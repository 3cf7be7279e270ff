"""A search that fails costs its candidates, never the script.

Everything that a search proposes is proved by running it, and the literal cover is always there; so an
error inside a search is reported and passed over.  With TERSQL_STRICT in the environment it is raised.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import TypeVar

from scratch.session import Session

_log = logging.getLogger("tersql")
_Found = TypeVar("_Found")


def guarded(
    session: Session, what: str, search: Callable[[], list[_Found]], release: Callable[[], None]
) -> list[_Found]:
    """What `search` finds; [] and a warning where it raises, with the open transaction as it was before.

    Where memory does not suffice, it is tried once more after `release` has given back what was kept for later.
    """
    try:
        try:
            with session.transaction():  # a savepoint: the caller's transaction is open
                return search()
        except MemoryError:
            release()
        with session.transaction():
            return search()
    except Exception as error:
        if os.environ.get("TERSQL_STRICT"):
            raise
        _log.warning("the search for %s failed and is left out: %s: %s", what, type(error).__name__, error)
        return []

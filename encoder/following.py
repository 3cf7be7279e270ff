"""Rows that go with rows of another table that they refer to: that says which they are, and hardly less than a join."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from encoder.drivers import places
from encoder.effect import TableEffect
from encoder.frame import Frame, State
from encoder.selection.model import Mask


def is_following(state: State, parts: Sequence[TableEffect], part: TableEffect) -> bool:
    """Whether the rows of `part` to delete are all those that refer by one foreign key to rows of another of `parts`
    that are to be deleted or updated."""
    frame = state.frame(part.table.name)
    others = {other.table.name: other for other in parts if other is not part}
    if not part.deletes or not any(key.target in others for key in part.table.foreign_keys):
        return False
    going = _marked(frame, part)
    for key in part.table.foreign_keys:
        if key.target not in others or going is None:
            continue
        leading = _marked(state.frame(key.target), others[key.target])
        if leading is not None and leading.any() and (np.append(leading, False)[frame.parent(key)] == going).all():
            return True
    return False


def _marked(frame: Frame, part: TableEffect) -> Mask | None:
    """The rows of the frame that the part deletes or updates; None where they cannot be told."""
    rows = places(frame, [*part.deletes, *(before for before, _ in part.updates)])
    if rows is None:
        return None
    holds = np.zeros(frame.size, dtype=np.bool_)
    holds[rows] = True
    return holds

"""Candidates that settle several tables by one statement: data-modifying CTEs."""

from __future__ import annotations

from collections.abc import Sequence

from encoder.candidate import Candidate
from encoder.context import Context
from encoder.effect import TableEffect


def shared_candidates(context: Context, parts: Sequence[TableEffect]) -> list[Candidate]:
    return []

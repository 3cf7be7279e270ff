"""What aggregates may be made of: columns of a table's rows and of the rows that these refer to."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from emit.term import Term, ref
from encoder.frame import Coded, Frame
from encoder.insertion.task import Task
from encoder.selection.features import look
from encoder.selection.model import Path
from scratch.catalog import Column


@dataclass(frozen=True, slots=True)
class Cell:
    """A term with its value in every row of a frame."""

    term: Term
    column: Column
    coded: Coded
    paths: frozenset[Path] = frozenset()


def own_cells(frame: Frame) -> Iterator[Cell]:
    for column in frame.table.columns:
        yield Cell(ref((), column.name), column, frame.coded(column.name))


def far_cells(task: Task, frame: Frame, paths: Collection[Path]) -> Iterator[Cell]:
    """Columns of the rows that `paths` lead to, keys apart."""
    for feature in look(task.state, frame.table.name, task.budget).features:
        if feature.path in paths and feature.column is not None:
            table = task.state.catalog[feature.path[-1].target]
            keys = {name for key in table.foreign_keys for name in key.columns}
            if feature.column not in keys:
                yield Cell(feature.term, table.by_name[feature.column], feature.coded, feature.paths)

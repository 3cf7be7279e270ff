"""Columns that are a hash of what another column of the same row gets: md5(path)::uuid beside the path."""

from __future__ import annotations

from dataclasses import dataclass

from emit.term import Term
from encoder.insertion.hashes import hash_term, hashed
from encoder.insertion.slots import Slot
from encoder.insertion.spell import INT, TEXT, class_of
from encoder.insertion.task import Task


@dataclass(frozen=True, slots=True)
class Repeated:
    """`slot` is the md5 of what `other` gets between two constants."""

    slot: Slot
    other: Slot
    before: str
    behind: str

    def fill(self, terms: dict[str, Term]) -> bool:
        """Adds the term of `slot`, which says that of the other column again; False where there is none."""
        argument = terms.get(self.other.name)
        if argument is None:
            return False
        terms[self.slot.name] = hash_term(argument, self.before, self.behind, self.slot, self.other.column.kind == "S")
        return True


def repeated_of(task: Task, slot: Slot) -> Repeated | None:
    """The other column whose hash `slot` is; a hash of what every row has would be one value."""
    for other in task.slots:
        kind = class_of(other.column)
        if other.explicit and not other.constant and other is not slot and kind in (INT, TEXT):
            found = hashed(other.values, kind, slot, task.spell.words)
            if found is not None:
                return Repeated(slot, other, *found)
    return None

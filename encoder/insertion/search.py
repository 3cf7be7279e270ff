"""The search for the shortest INSERT of given rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from emit.render import render
from emit.term import Query
from encoder.budget import Budget
from encoder.frame import State
from encoder.insertion.aggregate import aggregate_proposals
from encoder.insertion.cross import cross_proposals
from encoder.insertion.evidence import Link, links
from encoder.insertion.hashes import words_of
from encoder.insertion.layout import layouts
from encoder.insertion.model import UNORDERED, DriverRows, InsertGoal, Proposal, Sequences
from encoder.insertion.single import needs_synthesis, single_proposals
from encoder.insertion.slots import make_slots
from encoder.insertion.spell import Speller
from encoder.insertion.task import Task
from encoder.insertion.traces import traced
from encoder.insertion.triggers import filled_by_triggers
from encoder.insertion.values import values_inserts
from encoder.insertion.vectors import counted, spell_rows

__all__ = ["DriverRows", "InsertGoal", "Proposal", "Sequences", "propose_inserts"]

# How many hypotheses on the rows' origin are followed up.
_FOLLOWED = 6
# Of these so many whose columns need a search for expressions, and none that leaves so much more to explain than one
# that explained everything.
_SYNTHESES = 3
_WORSE = 60
_OF_EACH_KIND = 2


def propose_inserts(
    state: State,
    goal: InsertGoal,
    sequences: Sequences,
    *,
    budget: Budget,
    timezone: str | None,
    keep: int = 8,
    pool: Sequence[DriverRows] = (),
) -> list[Proposal]:
    """Statements that should insert the rows of `goal` into `state`, shortest first.

    The plain VALUES statements and the shortest that say all values themselves are always among them, so the
    list is empty only where no INSERT can give the ids (an ALWAYS identity whose sequence stands elsewhere).
    Of the others about `keep` are given, the shortest of each kind.  `budget` is spent by the searches for
    sources: a unit is a thousand cells read, or an expression tried.
    """
    target = state.catalog[goal.table]
    slots = filled_by_triggers(state, target, make_slots(state, goal, sequences))
    task = Task(state, target, tuple(slots), Speller(timezone, words_of(target, slots)), budget, timezone)
    plain = _shortest(values_inserts(target, task.slots, task.spell), 2)
    found = _shortest(list(_literal(task)), keep)
    best = min((len(render(p.statement).encode()) for p in [*plain, *found]), default=1 << 60)
    return _kept([*plain, *found, *_drawn(replace(task, ceiling=best), pool)], [*plain, *found[:2]], keep)


def _kept(proposals: Sequence[Proposal], always: Sequence[Proposal], keep: int) -> list[Proposal]:
    """The shortest, and among them some of each kind: with and without sequences, with and without a certain order."""
    ordered = _shortest(proposals, len(proposals))
    kinds: dict[tuple[bool, bool], int] = {}
    chosen: list[int] = []
    for place, proposal in enumerate(ordered):
        kind = (bool(proposal.uses_sequences), UNORDERED in proposal.note)
        kinds[kind] = kinds.get(kind, 0) + 1
        if kinds[kind] <= _OF_EACH_KIND or proposal in always:
            chosen.append(place)
    rest = [place for place in range(len(ordered)) if place not in chosen]
    return [ordered[place] for place in sorted(chosen + rest[: max(0, keep - len(chosen))])]


def _shortest(proposals: Sequence[Proposal], keep: int) -> list[Proposal]:
    """Each text once, the shortest first."""
    texts = {render(proposal.statement): proposal for proposal in reversed(proposals)}
    ordered = sorted(texts, key=lambda text: (len(text.encode()), text))
    return [texts[text] for text in ordered[:keep]]


def _literal(task: Task) -> Iterator[Proposal]:
    """Statements that say everything themselves, their varying columns once."""
    drawing = task.sequences
    constants = task.constants() if task.count > 1 else {}
    varying = [slot for slot in task.slots if slot.explicit and not slot.default and slot.name not in constants]
    by_sequence = [slot for slot in varying if slot.sequence is None]
    sets = [by_sequence] if drawing and all(slot.in_step for slot in drawing) else []
    for chosen in [varying, *sets] if len(by_sequence) != len(varying) else [varying]:
        spellings = spell_rows(chosen, task.count, task.spell) if chosen else [counted(task.count)]
        for spelled in spellings:
            terms = constants | spelled.terms
            for slot in task.slots:
                if slot.default and slot.explicit:
                    terms[slot.name] = task.spell.top(slot.values[0], slot.column)
            draws = all(slot.in_step for slot in drawing)
            for layout in layouts(task.slots, terms, draws):
                query = Query(layout.select, spelled.sources)
                yield task.insert(layout, query, conflict=False, note="literal")


def _drawn(task: Task, pool: Sequence[DriverRows]) -> Iterator[Proposal]:
    """Statements over rows of tables, the likeliest sources first; with a `pool`, over its rows before all else."""
    if pool:
        returned = links(task.state, task.target, task.slots, pool, task.budget, returned=True)
        yield from _singles(task, [link for link in returned if link.distinct])
        yield from aggregate_proposals(task, pool)
    hypotheses = links(task.state, task.target, task.slots, pool, task.budget)
    if found := traced(task.state, task.target, task.slots, task.budget):
        hypotheses = sorted([*found, *hypotheses], key=lambda link: link.score)
    if not pool:
        yield from _singles(task, [link for link in hypotheses if link.distinct and link.beside is None])
    yield from cross_proposals(task, hypotheses)
    if not pool:
        yield from aggregate_proposals(task)


def _singles(task: Task, likely: Sequence[Link]) -> Iterator[Proposal]:
    """Statements that read one row of a table for each inserted row."""
    best: float | None = None
    syntheses = _SYNTHESES
    for link in likely[:_FOLLOWED]:
        if task.budget.left <= 0 or (best is not None and link.score > best + _WORSE):
            break
        hard = needs_synthesis(task, link)
        if hard and not syntheses:
            continue
        syntheses -= hard
        found = single_proposals(task, link)
        if found and best is None:
            best = link.score
        yield from found

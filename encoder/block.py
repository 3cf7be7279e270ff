"""Solve one block: the cheapest statements whose effect is exactly what some segments owe together.

The candidates of all tables concerned go into one cover problem; the chosen ones are then run together,
in the order in which their rows stand in the stream, before they are believed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from emit.render import render
from encoder.candidate import Candidate, Element, bytes_of, elements
from encoder.context import Context
from encoder.delete import delete_candidates
from encoder.effect import Effect, Origins, TableEffect, table_effects
from encoder.floor import floor_candidates, map_candidates
from encoder.guard import guarded
from encoder.insert import insert_candidates
from encoder.literals import floor
from encoder.numbering import is_settled
from encoder.sharing import shared_candidates
from encoder.update import update_candidates
from encoder.upsert import upsert_candidates
from solver.problem import Budget as SolverBudget
from solver.problem import Candidate as Choice
from solver.problem import CoverProblem, NoSolution
from solver.problem import Strategy as Covering
from solver.solve import solve
from stream.model import TableName

_ORDERS = 12
# Rough seconds of running several statements.
_TOGETHER = 0.02
# Updates of a table that are tried to see what its triggers do.
_SAMPLE = 3


@dataclass(frozen=True)
class Plan:
    """Statements that settle a block exactly, with the candidates they come from.

    `problem` is the choice that the block left, all candidates that were found for it among them.
    """

    candidates: tuple[Candidate, ...]
    bound: int
    problem: CoverProblem = field(default=CoverProblem((), ()), compare=False, repr=False)

    @property
    def statements(self) -> tuple[str, ...]:
        return tuple(statement for candidate in self.candidates for statement in candidate.statements)

    @property
    def sequences(self) -> frozenset[TableName]:
        return frozenset().union(*(candidate.sequences for candidate in self.candidates))

    @property
    def shaky(self) -> bool:
        return any(candidate.shaky for candidate in self.candidates)

    @property
    def hopeful(self) -> bool:
        return any(candidate.hopeful for candidate in self.candidates)

    @property
    def size(self) -> int:
        return bytes_of(self.statements)


def block_candidates(
    context: Context, owed: Effect, origins: Origins, *, thorough: bool = False
) -> tuple[list[TableEffect], list[Candidate]]:
    """What a block owes by table, and everything that the searches propose for it.

    A table all of whose rows some statement on another table settles (a trigger or a foreign key's action
    writes them) is searched only if `thorough`.
    """
    parts = table_effects(context.catalog, owed, origins)
    found: list[Candidate] = []
    settled: set[Element] = set()
    for part in sorted(parts, key=partial(_reach, context, parts)):
        if not thorough and elements([part]) <= settled:
            continue
        made = _of_one(context, parts, part)
        settled |= {element for candidate in made for element in candidate.covers}
        found += made
        found += [steadier for candidate in made for steadier in candidate.steadied()]
    shared = partial(shared_candidates, context, parts, found)
    found += guarded(context.lab.session, "shared selections", shared, context.state.forget)
    return parts, found


def _of_one(context: Context, parts: Sequence[TableEffect], part: TableEffect) -> list[Candidate]:
    """Candidates for one table's rows; literal ones where none that is plain does it all."""
    searched: list[Candidate] = []
    session = context.lab.session
    if not context.late:
        for search in (delete_candidates, update_candidates, insert_candidates, upsert_candidates):
            what = f"{search.__name__} of {part.table.name}"
            searched += guarded(session, what, partial(search, context, parts, part), context.state.forget)
    wanted = elements([part])
    if any(each.is_plain and not (each.shaky or each.sequences) and wanted <= each.covers for each in searched):
        return searched
    literal = floor_candidates(context, parts, part)
    maps = partial(map_candidates, context, parts, part, [*literal, *searched])
    mapped = guarded(session, f"value maps of {part.table.name}", maps, context.state.forget)
    return [*literal, *mapped, *searched]


def _reach(context: Context, parts: Sequence[TableEffect], part: TableEffect) -> int:
    """How many other tables of `parts` are written by triggers and actions when some rows of this one change, as a
    negative number: what they write needs no statements of its own."""
    table, zone = part.table, context.timezone
    acted = (key.on_delete + key.on_update for key in context.catalog.referenced_by.get(table.name, ()))
    if len(parts) == 1 or (not table.triggers and all(set(actions) <= set("ar") for actions in acted)):
        return 0
    sample = TableEffect(table, part.inserts[:1], part.deletes[:1], part.updates[:_SAMPLE])
    done = context.lab.observe([render(statement) for statement in floor(sample, None, zone)])
    return (
        -len(done.tables.keys() & {other.table.name for other in parts} - {table.name})
        if isinstance(done, Effect)
        else 0
    )


def solve_block(context: Context, owed: Effect, origins: Origins) -> list[Plan]:
    """Exact plans for `owed` in the present state: the cheapest, the cheapest that is right here, the cheapest that
    leaves all sequences alone, and the cheapest that does not hang on the planner's choices.  [] if nothing exact was
    found."""
    plans = _plans(context, owed, *block_candidates(context, owed, origins))
    return plans or _plans(context, owed, *block_candidates(context, owed, origins, thorough=True))


def _plans(context: Context, owed: Effect, parts: Sequence[TableEffect], candidates: Sequence[Candidate]) -> list[Plan]:
    problem = cover_problem(parts, candidates)
    plans: list[Plan] = []
    here = [candidate for candidate in candidates if not candidate.hopeful]
    still = [candidate for candidate in candidates if not candidate.sequences]
    steady = [candidate for candidate in candidates if not candidate.shaky]
    for pool in (candidates, *(fewer for fewer in (here, still, steady) if len(fewer) < len(candidates))):
        plan = cheapest_exact(context, owed, parts, pool)
        if plan is not None and plan not in plans:
            plans.append(replace(plan, problem=problem))
    return plans


def cheapest_exact(
    context: Context, owed: Effect, parts: Sequence[TableEffect], pool: Sequence[Candidate]
) -> Plan | None:
    """Covers in ascending cost until one proves exact when run as a whole; a few tries."""
    banned: list[frozenset[int]] = []
    for _ in range(4):
        cover = _cover(parts, pool, banned, context.covering)
        if cover is None:
            return None
        chosen, bound = cover
        if len(chosen) == 1 and chosen[0].covers == elements(parts):
            return Plan(tuple(chosen), bound)
        for ordered in itertools.islice(itertools.permutations(chosen), _ORDERS):
            together = tuple(s for candidate in ordered for s in candidate.statements)
            done = context.state.remember(("together", together), partial(_observe, context, together))
            hopeful = any(candidate.hopeful for candidate in ordered)
            if isinstance(done, Effect) and is_settled(context.catalog, owed, done, hopeful=hopeful):
                return Plan(tuple(ordered), bound)
        indexes = {candidate: index for index, candidate in enumerate(pool)}
        banned.append(frozenset(indexes[candidate] for candidate in chosen))
    return None


def _observe(context: Context, statements: Sequence[str]) -> Effect | str:
    done = context.lab.observe(statements)
    context.meter.charge(_TOGETHER)
    return done


def _cover(
    parts: Sequence[TableEffect],
    pool: Sequence[Candidate],
    banned: Sequence[frozenset[int]],
    covering: Covering | None,
) -> tuple[list[Candidate], int] | None:
    """The cheapest cover by `pool` that `covering` finds, none of whose candidates lists is banned as a whole."""
    blocked = set().union(*(sorted(group, key=lambda i: -pool[i].size)[:1] for group in banned)) if banned else set()
    kept = [candidate for index, candidate in enumerate(pool) if index not in blocked]
    try:
        found = solve(cover_problem(parts, kept), budget=SolverBudget(), strategy=covering)
    except NoSolution:
        return None
    # Deletes first frees keys, inserts last meets them; beyond that, the order of the searches.
    return [kept[choice] for choice in sorted(found.chosen)], found.bound


def cover_problem(parts: Sequence[TableEffect], pool: Sequence[Candidate]) -> CoverProblem:
    """`pool` as choices, in their order; what the same ones of them settle counts as one element.

    A row to insert is owed once, all else at least once.
    """
    settlers: dict[Element, list[int]] = {element: [] for element in _sorted(elements(parts))}
    for index, candidate in enumerate(pool):
        for element in candidate.covers:
            settlers[element].append(index)
    distinct = dict.fromkeys((tuple(indexes), element[1] == "I") for element, indexes in settlers.items())
    covers: list[list[int]] = [[] for _ in pool]
    for number, (indexes, _) in enumerate(distinct):
        for index in indexes:
            covers[index].append(number)
    return CoverProblem(
        tuple(Choice(candidate.size, frozenset(own)) for candidate, own in zip(pool, covers, strict=True)),
        tuple(once for _, once in distinct),
    )


def _sorted(found: frozenset[Element]) -> list[Element]:
    return sorted(
        found, key=lambda e: (e[0], e[1], tuple((v is None, v or "") for v in e[2]), -1 if e[3] is None else e[3])
    )

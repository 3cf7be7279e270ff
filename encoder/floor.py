"""Literal candidates: proved like all others, and enough to cover everything that a block owes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from emit.render import render
from emit.term import Statement
from encoder import literals
from encoder.candidate import Candidate, Element
from encoder.context import Context
from encoder.effect import TableEffect
from encoder.proof import prove, try_statements
from encoder.update import UpdateSearch
from encoder.valuemap import value_map_updates

# Up to this many groups of equal changes, each is a candidate of its own; beyond it, all together are one.
_MAX_GROUPS = 24
_LITERAL = "literal"
# No update that names rows and values is shorter.
_SHORTEST = 60
# How many of the shortest value maps of a group are run.
_MAPS = 2
# Rough seconds that they take to make.
_MAP = 0.05


def floor_candidates(context: Context, owed: Sequence[TableEffect], effect: TableEffect) -> list[Candidate]:
    """Deletes by key, inserts by VALUES, updates grouped by equal change and joined to VALUES."""
    made = (_proved(context, owed, statements) for statements in _statements(context, effect))
    return [candidate for candidate in made if candidate is not None]


def map_candidates(
    context: Context, owed: Sequence[TableEffect], effect: TableEffect, known: Sequence[Candidate]
) -> list[Candidate]:
    """Updates that say each row's new values in a compact form, where `known` candidates need more bytes."""
    found: list[Candidate] = []
    if not effect.updates:
        return found
    search = UpdateSearch(context, [], effect)
    whole = search.whole()
    for group in (whole, *(group for family in search.clusters(whole) for group in family), *search.by_ease(whole)):
        if len(group.rows) < 2:
            continue
        bound = _known_cost(group.elements(effect), known)
        if bound is not None and bound < _SHORTEST:
            continue
        context.meter.charge(_MAP)
        maps = value_map_updates(context.state, effect.table, group.pairs, group.places, context.timezone, bound)
        made = (_proved(context, owed, [statement]) for statement in maps[:_MAPS])
        found += [candidate for candidate in made if candidate is not None]
    return found


def _known_cost(wanted: frozenset[Element], known: Sequence[Candidate]) -> int | None:
    """About what `known` candidates take for the elements `wanted`: the shortest that has them all, or all literal
    ones that have some of them; None where neither is known."""
    costs = [candidate.size for candidate in known if wanted <= candidate.covers]
    literal = [each for each in known if each.kind == _LITERAL and not wanted.isdisjoint(each.covers)]
    if literal and wanted <= frozenset().union(*(candidate.covers for candidate in literal)):
        costs.append(sum(candidate.size for candidate in literal))
    return min(costs, default=None)


def _proved(context: Context, owed: Sequence[TableEffect], statements: Sequence[Statement]) -> Candidate | None:
    if len(statements) == 1:
        return prove(context, owed, frozenset(), statements, _LITERAL)
    return try_statements(context, owed, [render(statement) for statement in statements], _LITERAL)[0]


def _statements(context: Context, effect: TableEffect) -> Iterator[Sequence[Statement]]:
    table, zone = effect.table, context.timezone
    if effect.deletes:
        yield literals.delete_rows(table, effect.deletes, context.state.frame(table.name), zone)
    if effect.inserts:
        yield [literals.insert_rows(table, effect.inserts, zone)]
    if not effect.updates:
        return
    grouped = [statement for statement, _ in literals.grouped_updates(table, effect.updates, zone)]
    if len(grouped) <= _MAX_GROUPS:
        yield from ([statement] for statement in grouped)
    else:
        yield grouped
    moved = [pair for pair in effect.updates if table.row_key and effect.key(pair[0]) != effect.key(pair[1])]
    if moved:
        # Rows that take each other's keys cannot be updated in just any order.
        anew = TableEffect(table, updates=tuple(moved)).anew()
        yield [*literals.delete_rows(table, anew.deletes, None, zone), literals.insert_rows(table, anew.inserts, zone)]

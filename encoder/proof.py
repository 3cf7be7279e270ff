"""From statements that might do to candidates that were seen to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from emit.render import render
from emit.term import Statement
from encoder.candidate import Candidate, Element, bytes_of, footprint
from encoder.context import Context
from encoder.effect import Effect, TableEffect, table_effects
from encoder.literals import floor
from encoder.trial import MAX_PLAN_COST

# How many harmful rows are still mended by literals.
_MAX_MEND = 40


def prove(
    context: Context,
    owed: Sequence[TableEffect],
    target: frozenset[Element],
    statements: Iterable[Statement],
    kind: str,
    *,
    tries: int = 6,
) -> Candidate | None:
    """The shortest of `statements` that, when run here, settles all of `target` and harms nothing.

    Statements whose only fault is a little harm (a trigger's other timestamp, say) come with the
    literal repair behind them, if nothing better is found.
    """
    texts = sorted({render(statement) for statement in statements}, key=lambda text: (len(text.encode()), text))
    mended: Candidate | None = None
    for text in texts[:tries]:
        candidate, exact = try_statements(context, owed, [text], kind)
        if candidate is None or not target <= candidate.covers:
            continue
        if exact:
            return candidate if mended is None or candidate.size <= mended.size else mended
        if mended is None or candidate.size < mended.size:
            mended = candidate
    return mended


def try_statements(
    context: Context, owed: Sequence[TableEffect], statements: Sequence[str], kind: str
) -> tuple[Candidate | None, bool]:
    """Run `statements` and see; (candidate, whether it needed no repair), (None, False) for a failure."""
    lab = context.lab
    if any(_explodes(context, statement) for statement in statements):
        return None, False
    done = lab.observe(statements)
    if not isinstance(done, Effect):
        return None, False
    moved = lab.moved
    covers, mend = footprint(context.catalog, owed, done)
    if not covers:
        return None, False
    if not mend:
        return Candidate(tuple(statements), covers, kind, moved), True
    repair = _repair(context, mend)
    if repair is None:
        return None, False
    whole = (*statements, *repair)
    done = lab.observe(whole)
    if not isinstance(done, Effect):
        return None, False
    covers, mend = footprint(context.catalog, owed, done)
    if mend or not covers:
        return None, False
    return Candidate(whole, covers, kind + "+repair", lab.moved), False


def _repair(context: Context, mend: Effect) -> list[str] | None:
    if mend.weight() > 2 * _MAX_MEND:
        return None
    return [
        render(statement)
        for effect in table_effects(context.catalog, mend)
        for statement in floor(effect, None, context.timezone)
    ]


def _explodes(context: Context, statement: str) -> bool:
    """Whether the planner thinks that this would not end; single scans are not asked about."""
    if "SELECT" not in statement and "FROM" not in statement[12:] and "USING" not in statement:
        return False
    return context.lab.plan_cost(statement) > MAX_PLAN_COST


def settle(context: Context, owed: Effect, *, most: int = 400) -> tuple[str, ...] | None:
    """Literal statements that settle `owed` step by step, each made for what the ones before left.

    The way out where triggers write rows of their own: the statement that settles most goes first,
    and what a trigger wrote right is not written again.  None where no step helps any more.
    """
    done: list[str] = []
    with context.lab.savepoint():
        while owed and len(done) < most:
            step = _best_step(context, owed)
            if step is None:
                return None
            statement, owed = step
            done.append(statement)
    return tuple(done)


def _best_step(context: Context, owed: Effect) -> tuple[str, Effect] | None:
    """The literal statement for `owed` that settles most, and what is owed after it."""
    best: tuple[str, Effect] | None = None
    for effect in table_effects(context.catalog, owed):
        for statement in floor(effect, None, context.timezone):
            text = render(statement)
            done = context.lab.observe([text])
            if not isinstance(done, Effect) or not done:
                continue
            left = owed.minus(done)
            if left.weight() < (best[1].weight() if best else owed.weight()):
                best = text, left
    if best is not None and not isinstance(context.lab.perform(best[0]), Effect):
        return None
    return best


def cheapest(candidates: Iterable[Candidate | None]) -> Candidate | None:
    found = [candidate for candidate in candidates if candidate is not None]
    return min(found, key=lambda c: (c.size, c.statements), default=None)


__all__ = ["bytes_of", "cheapest", "prove", "settle", "try_statements"]

"""From statements that might do to candidates that were seen to."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from emit.literal import table_name
from emit.render import render
from emit.term import Delete, Insert, Query, Statement, Update
from encoder.candidate import Candidate, Element, bytes_of, footprint
from encoder.context import Context
from encoder.effect import Effect, TableEffect, table_effects
from encoder.frame import State
from encoder.literals import changed_places, compact_floor
from encoder.numbering import as_numbered
from encoder.observed import TRIAL, observed
from encoder.steady import is_steady, is_unordered_join, moves_keys, order_matters, outcomes_of, unindexed
from encoder.valuemap import value_map_updates
from encoder.yardstick import starter
from stream.model import RowChange, TableName

# How many statements that do harm are mended where none is right.
_MAX_MENDED = 2
# Rows of tables about which nothing is owed that are mended.
_MAX_BESIDE = 12
# Rough seconds of each row to mend.
_MEND_ROW = 3e-4
# How many rows are mended by literals at most, and how often a repair is repaired (triggers again).
_MAX_MEND = 4_000
_MAX_REPAIRS = 3
# How many orders of the tables are tried for a step-by-step way out.
_MAX_ORDERS = 24
_MAX_PERMUTED = 6
# Row by row only up to this many rows.
_MAX_ROWWISE = 4_000
# Bytes of a plain repair from which on a more compact one is looked for.
_LONG_REPAIR = 150
# The same when the time is up.
_MAX_ORDERS_LATE, _MAX_ROWWISE_LATE = 6, 200


def prove(
    context: Context,
    owed: Sequence[TableEffect],
    target: frozenset[Element],
    statements: Iterable[Statement],
    kind: str,
    *,
    tries: int = 8,
) -> Candidate | None:
    """The shortest of `statements` that, when run here, settles all of `target` and harms nothing.

    Statements whose only fault is a little harm (a trigger's other timestamp, say) come with the
    literal repair behind them, if nothing better is found.  Where ids come from sequences, a statement that
    does the same under any plan is preferred to a shorter one whose ids hang on the planner.  One that is right but for
    the numbers that rows get has the best of the others behind it.
    """
    trees = {render(statement): statement for statement in statements}
    texts = sorted(trees, key=lambda text: (len(text.encode()), text))[:tries]
    hopeful = _hopeful(context, owed, target, texts, kind)
    found = _proved(context, owed, target, texts, trees, kind)
    if hopeful is None or (found is not None and found.size <= hopeful.size):
        return found
    return _backed(_doubted(context, owed, replace(hopeful, tree=trees[hopeful.statements[0]])), found)


def _backed(hopeful: Candidate, found: Candidate | None) -> Candidate:
    """`hopeful` with what was `found` beside it behind it, and what it has behind it already if that is steadier."""
    if found is None:
        return hopeful
    if found.kind.endswith("+repair"):  # of numbers as rows lie here
        found = replace(found, shaky=True, steadier=hopeful.steadier)
    return replace(hopeful, steadier=found)


def _hopeful(
    context: Context, owed: Sequence[TableEffect], target: frozenset[Element], texts: Sequence[str], kind: str
) -> Candidate | None:
    """The shortest of `texts` if it settles `target` as rows may lie elsewhere (see encoder.numbering)."""
    for text in texts:
        trial = _seen(context, owed, [text])
        if trial is None or not target <= trial.covers | trial.hoped:
            continue
        if not trial.mend or not target <= trial.hoped or not _is_said_alike(context, owed, text, trial.hoped):
            return None
        return Candidate((text,), trial.hoped, kind, trial.moved, shaky=True, hopeful=True)
    return None


def _proved(
    context: Context,
    owed: Sequence[TableEffect],
    target: frozenset[Element],
    texts: Sequence[str],
    trees: Mapping[str, Statement],
    kind: str,
) -> Candidate | None:
    faulty: list[tuple[int, str]] = []
    shaky: Candidate | None = None
    loose: Candidate | None = None
    for text in texts:
        trial = _seen(context, owed, [text])
        if trial is None or not target <= trial.covers:
            continue
        if trial.mend:
            if _is_mendable(owed, trial.mend):
                faulty.append((trial.mend.weight(), text))
            continue
        candidate = Candidate((text,), trial.covers, kind, trial.moved, trees[text])
        if not _is_said_alike(context, owed, text, trial.covers):
            continue
        if _numbers_as_they_lie(candidate):
            loose = loose or replace(candidate, shaky=True)
            continue
        ordered = not (candidate.sequences or order_matters(text) or moves_keys(context.catalog, trees[text]))
        if ordered or (not is_unordered_join(trees[text]) and is_steady(context, text)):
            found = _doubted(context, owed, candidate)
            return found if loose is None else replace(loose, steadier=found.steadier if found.shaky else found)
        steadied = _steadied(context, owed, target, candidate)
        if steadied is not None:
            return steadied
        shaky = shaky or replace(candidate, shaky=True)
    if loose is not None:
        return loose
    if shaky is not None:
        shaky = _doubted(context, owed, shaky)
    mended = (try_statements(context, owed, [text], kind)[0] for _, text in sorted(faulty)[:_MAX_MENDED])
    return _shortest([shaky, *(found for found in mended if found is not None and target <= found.covers)])


def _is_said_alike(context: Context, owed: Sequence[TableEffect], text: str, covers: frozenset[Element]) -> bool:
    """Whether the statement settles `covers` for every session that may replay it, whatever its zone and styles."""
    for number in context.lab.other_sessions:
        done = context.lab.observe([text], session=number)
        if not isinstance(done, Effect):
            return False
        trial = _judged(context, owed, done)
        if not covers <= (trial.hoped if trial.mend else trial.covers):
            return False
    return True


def _numbers_as_they_lie(candidate: Candidate) -> bool:
    """Whether inserted rows are numbered in the order in which a table is scanned: rows written by transactions before
    lie elsewhere after another history."""
    tree = candidate.tree
    if not isinstance(tree, Insert) or not isinstance(tree.rows, Query) or "ORDER BY" in candidate.statements[0]:
        return False
    stored = any(isinstance(source.text, str | Query) for source in tree.rows.sources)
    return stored and bool(candidate.sequences or "OVER()" in candidate.statements[0])


def _is_mendable(owed: Sequence[TableEffect], mend: Effect) -> bool:
    """Whether it makes sense to mend: many rows of other tables, which triggers wrote, are owed elsewhere."""
    concerned = {part.table.name for part in owed}
    beside = sum(abs(count) for name, rows in mend.tables.items() if name not in concerned for count in rows.values())
    return beside <= _MAX_BESIDE


def _shortest(found: Iterable[Candidate | None]) -> Candidate | None:
    return min((one for one in found if one is not None), key=lambda candidate: candidate.size, default=None)


def _steadied(
    context: Context, owed: Sequence[TableEffect], target: frozenset[Element], shaky: Candidate
) -> Candidate | None:
    """The same statement kept away from indexes, if that is exact and steady."""
    tree = unindexed(context.catalog, shaky.tree) if shaky.tree is not None else None
    if tree is None:
        return None
    text = render(tree)
    candidate, exact = try_statements(context, owed, [text], shaky.kind)
    if candidate is None or not exact or not target <= candidate.covers or not is_steady(context, text):
        return None
    return replace(candidate, tree=tree)


def _doubted(context: Context, owed: Sequence[TableEffect], candidate: Candidate) -> Candidate:
    """`candidate`, marked shaky and with a steadier one beside it if what a trigger writes (ids that it draws, the last
    of several values) hangs on how the rows lie or on the planner."""
    tree = candidate.tree
    part = next(
        (p for p in owed if isinstance(tree, Update | Delete) and table_name(*p.table.name) == tree.target.text), None
    )
    if part is None or not (candidate.sequences or part.table.triggers):
        return candidate
    outcomes = outcomes_of(context, candidate.statements[0], part.table)
    unsure = sorted({name for other in outcomes for name in outcomes[0].minus(other).tables})
    if not unsure:
        return candidate
    steadier = _written_out(context, owed, candidate, outcomes, unsure)
    return replace(candidate, shaky=True, steadier=steadier)


def _written_out(
    context: Context,
    owed: Sequence[TableEffect],
    shaky: Candidate,
    outcomes: Sequence[Effect],
    unsure: Sequence[TableName],
) -> Candidate | None:
    """The same statement with others behind it that say for all rows of the tables `unsure` what `outcomes` leave
    open: which of the rows that a trigger writes comes by which id."""
    wanted = {part.table.name: part for part in owed}
    if any(name not in wanted for name in unsure):
        return None
    lab = context.lab
    standing = lab.sequences()
    written = [*shaky.statements]
    with lab.savepoint():
        here = lab.perform(written[0])
        state = State(lab.session, context.catalog)
        for name in unsure if isinstance(here, Effect) else ():
            part = wanted[name]
            ends = [{part.key(row): row for row, count in done.tables[name].items() if count > 0} for done in outcomes]
            places = sorted(
                {p for end in ends[1:] for key, row in ends[0].items() for p in changed_places(row, end.get(key, row))}
            )
            # What stands there now is as unsure, so nothing may be reckoned from it.
            pairs = [
                (tuple(None if p in places else value for p, value in enumerate(row)), row)
                for row in part.inserts
                if part.key(row) in ends[0]
            ]
            maps = value_map_updates(state, part.table, pairs, places, context.timezone) if pairs and places else []
            written += [render(update) for update in maps[:1]]
    lab.stand(standing)
    candidate, exact = try_statements(context, owed, written, shaky.kind + "+order")
    if candidate is None or not exact or not shaky.covers <= candidate.covers or not is_steady(context, *written):
        return None
    return candidate


def try_statements(
    context: Context, owed: Sequence[TableEffect], statements: Sequence[str], kind: str
) -> tuple[Candidate | None, bool]:
    """Run `statements` and see; (candidate, whether it needed no repair), (None, False) for a failure."""
    trial = _seen(context, owed, statements)
    if trial is None or not trial.covers:
        return None, False
    if not trial.mend:
        return Candidate(tuple(statements), trial.covers, kind, trial.moved), True
    whole, mend = tuple(statements), trial.mend
    for attempt in range(_MAX_REPAIRS):
        done, whole = _mended(context, whole, mend, anew=attempt > 0)
        if not isinstance(done, Effect):
            return None, False
        moved = context.lab.moved
        covers, mend = footprint(context.catalog, owed, done)
        if not mend:
            return (Candidate(whole, covers, kind + "+repair", moved) if covers else None), False
    return None, False


@dataclass(frozen=True)
class _Trial:
    """What statements were seen to do: elements settled, what would have to follow, sequences moved; and the elements
    that they settle if rows lie elsewhere, where nothing else would have to follow."""

    covers: frozenset[Element]
    mend: Effect
    moved: frozenset[TableName]
    hoped: frozenset[Element] = frozenset()


def _seen(context: Context, owed: Sequence[TableEffect], statements: Sequence[str]) -> _Trial | None:
    """What `statements` do here; None where they fail."""
    done, moved = observed(context, statements)
    return _judged(context, owed, done, moved) if isinstance(done, Effect) else None


def _judged(
    context: Context, owed: Sequence[TableEffect], done: Effect, moved: frozenset[TableName] = frozenset()
) -> _Trial:
    covers, mend = footprint(context.catalog, owed, done)
    if mend:
        other = as_numbered(context.catalog, {part.table.name: part.inserts for part in owed}, done)
        if other is not None:
            hoped, rest = footprint(context.catalog, owed, other)
            return _Trial(covers, mend, moved, frozenset() if rest else hoped)
    return _Trial(covers, mend, moved)


def _mended(
    context: Context, statements: tuple[str, ...], mend: Effect, *, anew: bool
) -> tuple[Effect | str, tuple[str, ...]]:
    """`statements` with a repair behind them, and what they do then; with `anew`, rows that an UPDATE could
    not bring right (a trigger stamps each) are deleted and inserted."""
    if mend.weight() > 2 * _MAX_MEND:
        return "too much to mend", statements
    context.meter.charge(TRIAL + mend.weight() * _MEND_ROW)
    effects = [effect.anew() if anew else effect for effect in table_effects(context.catalog, mend)]
    plain = [render(statement) for effect in effects for statement in compact_floor(effect, context.timezone)]
    if bytes_of(plain) > _LONG_REPAIR:
        short = (*statements, *_compact_repair(context, statements, effects))
        if bytes_of(short) < bytes_of((*statements, *plain)):
            done = context.lab.observe(short)
            if isinstance(done, Effect):
                return done, short
    return context.lab.observe((*statements, *plain)), (*statements, *plain)


def _compact_repair(context: Context, statements: Sequence[str], effects: Sequence[TableEffect]) -> list[str]:
    """Literal statements for `effects` that make use of the rows as `statements` leave them."""
    lab = context.lab
    found: list[str] = []
    standing = lab.sequences()
    with lab.savepoint():
        for statement in statements:
            lab.perform(statement)
        # A state of its own: what is known of the rows before stays known.
        state = State(lab.session, context.catalog)
        for effect in effects:
            places = sorted({place for pair in effect.updates for place in changed_places(*pair)})
            maps = value_map_updates(state, effect.table, effect.updates, places, context.timezone)
            ways = [compact_floor(effect, context.timezone)]
            if maps:
                rest = compact_floor(replace(effect, updates=()), context.timezone)
                split = len(rest) - bool(effect.inserts)
                ways.append([*rest[:split], maps[0], *rest[split:]])
            spelled = [tuple(render(statement) for statement in way) for way in ways]
            found.extend(min(spelled, key=lambda texts: bytes_of(list(texts))))
    lab.stand(standing)
    return found


def settle(
    context: Context, owed: Effect, changes: Sequence[RowChange] = (), *, most: int = 400
) -> tuple[str, ...] | None:
    """Literal statements that settle `owed` step by step, each made for what the ones before left.

    The way out where triggers write rows of their own.  First along the stream: of one statement a row change,
    those that still bring `owed` down are run.  Else in some order of the tables, so that those that fire triggers
    come before those that triggers write.  None where nothing works.
    """
    # Late or not, an answer there must be; late, fewer ways to it are tried.
    if len(changes) <= (_MAX_ROWWISE_LATE if context.late else _MAX_ROWWISE):
        for order in _along(context, changes):
            along = _settle_along(context, owed, starter(context.catalog, order, context.timezone), most)
            if along is not None:
                return along
    # Tables whose triggers write other tables come first.
    tables = sorted(owed.tables, key=lambda name: (not context.catalog[name].triggers, name))
    orders = itertools.permutations(tables) if len(tables) <= _MAX_PERMUTED else iter((tables, tables[::-1]))
    for tried, names in enumerate(itertools.islice(orders, _MAX_ORDERS)):
        if context.late and tried >= _MAX_ORDERS_LATE:
            break
        done = _settle_in(context, owed, names, most)
        if done is not None:
            return done
    return None


def _along(context: Context, changes: Sequence[RowChange]) -> Iterator[list[RowChange]]:
    """`changes` with those on tables whose triggers write others first (rows that BEFORE triggers write stand before
    the row that fired them), and as they are."""
    reach: dict[TableName, int] = {}
    for change in changes:
        if change.table not in reach and context.catalog[change.table].triggers:
            done = context.lab.observe(starter(context.catalog, [change], context.timezone))
            reach[change.table] = len(done.tables.keys() - {change.table}) if isinstance(done, Effect) else 0
    first = sorted(changes, key=lambda change: -reach.get(change.table, 0))
    yield first
    if first != list(changes):
        yield list(changes)


def _settle_along(context: Context, owed: Effect, rowwise: Sequence[str], most: int) -> tuple[str, ...] | None:
    done: list[str] = []
    standing = context.lab.sequences()
    with context.lab.savepoint():
        for statement in rowwise:
            if not owed:
                break
            effect = context.lab.observe([statement])
            if isinstance(effect, Effect) and owed.minus(effect).weight() < owed.weight():
                context.lab.perform(statement)
                owed = owed.minus(effect)
                done.append(statement)
        rest = _settle_in(context, owed, sorted(owed.tables), most) if owed else ()
    context.lab.stand(standing)
    return (*done, *rest) if rest is not None else None


def _settle_in(context: Context, owed: Effect, order: Sequence[TableName], most: int) -> tuple[str, ...] | None:
    """Table by table in `order`, what is still owed of each; again for what triggers then did to the others."""
    done: list[str] = []
    with context.lab.savepoint():
        for attempt, name in itertools.product(range(_MAX_REPAIRS), order):
            for effect in table_effects(context.catalog, owed):
                if effect.table.name != name:
                    continue
                for statement in compact_floor(effect.anew() if attempt > 1 else effect, context.timezone):
                    text = render(statement)
                    seen = context.lab.perform(text)
                    if isinstance(seen, Effect):
                        owed = owed.minus(seen)
                        done.append(text)
            if not owed or len(done) > most:
                break
    return tuple(done) if not owed else None


def cheapest(candidates: Iterable[Candidate | None]) -> Candidate | None:
    found = [candidate for candidate in candidates if candidate is not None]
    return min(found, key=lambda c: (c.size, c.statements), default=None)


__all__ = ["bytes_of", "cheapest", "prove", "settle", "try_statements"]

"""Proves a script: rules first, then a replay beside the stream, every transaction compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest

from emit.rules import Violation, check_script, split_script
from replay.difference import Difference, Kind
from replay.replayer import Replayer
from stream.model import Transaction


@dataclass(frozen=True, slots=True)
class Report:
    """What a verification found: `transactions` were replayed exactly, up to the first `difference`."""

    transactions: int
    violations: tuple[Violation, ...] = ()
    difference: Difference | None = None

    @property
    def exact(self) -> bool:
        return not self.violations and self.difference is None


def verify(
    script: str,
    stream: Iterable[Transaction],
    admin_dsn: str,
    template: str,
    *,
    timezone: str | None = None,
) -> Report:
    """Whether `script` obeys the rules and replays `stream` on the restored database `template`.

    `admin_dsn` is a superuser's on the scratch server, of a database other than `template`.  The
    script runs as the restricted role, with the sequences as the dump left them, under an odd time zone
    unless `timezone` promises one.  A script that breaks a rule is not run.
    Raises StreamError and ScratchError for a stream that cannot be read or does not fit the database.
    """
    violations = tuple(check_script(script))
    if violations:
        return Report(0, violations)
    with Replayer(admin_dsn, template, timezone=timezone) as replayer:
        done = 0
        for transaction, replay in zip_longest(stream, split_script(script)):
            if transaction is None:
                return Report(done, difference=_count(done, "more", f"at line {replay.line}"))
            if replay is None:
                return Report(done, difference=_count(done, "fewer", f"at line {transaction.line} of the stream"))
            replayer.expect(transaction)
            difference = replayer.run(replay.statements) or replayer.accept()
            if difference is not None:
                return Report(done, difference=difference)
            done += 1
        row = replayer.compare_all()
        return Report(done, difference=None if row is None else Difference.of_row(0, row))


def _count(done: int, what: str, where: str) -> Difference:
    return Difference(Kind.COUNT, done + 1, f"the script has {what} transactions than the stream: the next is {where}")

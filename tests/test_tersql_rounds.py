"""Who is searched twice, and what becomes of two searches."""

from __future__ import annotations

from dataclasses import replace

from encoder.context import Effort
from encoder.transaction import Solved, Variant
from tersql.rounds import effort, second_round
from tersql.worker import Done

FIRST = Effort(1.0, 3.0)


def done(index: int, size: int, *, cut: bool, work: float = 3.0) -> Done:
    variant = Variant(("x" * size,), "literal")
    return Done(Solved(index, 1, (variant,), 9_999, 9_999, size, frozenset(), work, cut))


def test_only_long_ones_that_were_cut_are_searched_again() -> None:
    found = [done(1, 5_000, cut=True), done(2, 5_000, cut=False), done(3, 40, cut=True)]
    assert list(second_round(found, FIRST)) == [1]


def test_the_longest_come_first_where_not_all_can() -> None:
    found = [done(index, 200 + index, cut=True, work=0.1) for index in range(1, 101)]
    again = second_round(found, FIRST)
    assert again
    assert min(again) == 101 - len(again)
    assert all(one.allowance > 2 * FIRST.allowance for one in again.values())


def test_nothing_is_left_of_work_that_was_spent() -> None:
    assert second_round([done(1, 5_000, cut=True, work=1e6)], FIRST) == {}


def test_those_that_the_clock_missed_come_before_all_others() -> None:
    late = [replace(done(index, 900, cut=True, work=0.0), late=True) for index in (7, 9)]
    assert list(second_round([done(1, 5_000, cut=True), *late], FIRST)) == [7, 9]


def test_every_transaction_is_worth_something_however_many_there_are() -> None:
    assert effort("default", 1).allowance > effort("default", 100).allowance >= 0.5
    assert effort("default", 10**6).allowance == 0.6
    assert effort("high", 30).scale > effort("low", 30).scale


def test_two_searches_join() -> None:
    first, second = done(1, 300, cut=True).solved, done(1, 200, cut=False).solved
    joined = first.joined(second)
    assert [variant.size for variant in joined.variants] == [201, 301]
    assert joined.work == 6.0
    assert not joined.cut

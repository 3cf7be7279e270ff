"""Who is searched twice, and what becomes of two searches."""

from __future__ import annotations

from dataclasses import replace

from encoder.context import Effort
from encoder.transaction import Solved, Variant
from stream.model import Op, RowChange, TableName, Transaction
from tersql.rounds import effort, efforts, second_round
from tersql.stakes import stake
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
    assert effort("default", 1).allowance > effort("default", 100).allowance >= 1
    assert effort("default", 10**6).allowance == 1.2
    assert effort("high", 30).scale > effort("low", 30).scale


def test_the_more_bytes_a_transaction_takes_the_more_it_is_worth() -> None:
    stakes = [100, 1_000, 10_000, 10**9]
    shares = [each.allowance for each in efforts("default", stakes).values()]
    assert shares == sorted(shares)
    assert shares[-1] <= 4 * shares[0]
    assert abs(sum(shares) - 4 * effort("default", 4).allowance) < 1e-9
    assert efforts("default", []) == {}


def test_a_stake_is_about_the_bytes_of_literals() -> None:
    table = TableName("public", "t")

    def update(key: int, value: str) -> RowChange:
        return RowChange(Op.UPDATE, table, {"id": str(key), "a": "x"}, {"id": str(key), "a": value})

    alike = [update(key, "y" * 50) for key in range(10)]
    each = [update(key, f"{key}" + "y" * 50) for key in range(10)]
    inserts = [RowChange(Op.INSERT, table, None, {"id": str(key), "a": "z" * 50}) for key in range(10)]
    deletes = [RowChange(Op.DELETE, table, {"id": str(key), "a": "z" * 50}, None) for key in range(10)]
    same, other, come, go = (stake(Transaction(1, tuple(changes))) for changes in (alike, each, inserts, deletes))
    assert 100 < same < 200 < 500 < other
    assert 500 < come < 700
    assert go < 150


def test_two_searches_join() -> None:
    first, second = done(1, 300, cut=True).solved, done(1, 200, cut=False).solved
    joined = first.joined(second)
    assert [variant.size for variant in joined.variants] == [201, 301]
    assert joined.work == 6.0
    assert not joined.cut

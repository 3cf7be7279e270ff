"""Up to where the ids of a sequence are taken from it, and from where on they are written out."""

from __future__ import annotations

from encoder.transaction import Solved, Variant
from stream.model import TableName
from tersql.sequencing import adjusted, choose

S, R, IDLE = (TableName("public", name) for name in ("s", "r", "idle"))


def variant(size: int, *starts: tuple[TableName, int]) -> Variant:
    """A variant of `size` bytes that moves sequences."""
    return Variant(("x" * (size - 1),), "test", starts)


def solved(index: int, *variants: Variant, consumes: frozenset[TableName] = frozenset({S})) -> Solved:
    return Solved(index, 1, variants, 0, 0, 0, consumes)


def sizes(*transactions: Solved) -> list[int]:
    return [variants[0].size for variants in choose(transactions)]


def test_no_transactions() -> None:
    assert choose([]) == []
    assert choose([solved(1)]) == [[]]


def test_a_transaction_without_sequences_takes_the_shortest() -> None:
    assert sizes(solved(1, variant(9), variant(5), consumes=frozenset())) == [5]


def test_the_sequence_is_used_as_long_as_all_before_did() -> None:
    both = solved(1, variant(5, (S, 1)), variant(9))
    # The second has no variant that takes its ids from the sequence, so the third must not either.
    assert sizes(both, solved(2, variant(7)), solved(3, variant(5, (S, 9)), variant(8))) == [5, 7, 8]
    willing = solved(2, variant(6, (S, 2)), variant(7))
    assert sizes(both, willing, solved(3, variant(5, (S, 9)), variant(8))) == [5, 6, 5]


def test_catching_up_is_cheaper_than_doing_without_at_length() -> None:
    without = solved(1, variant(7))
    assert sizes(without, solved(2, variant(5, (S, 9)), variant(200)), solved(3, variant(5, (S, 10)), variant(9))) == [
        7,
        5,
        5,
    ]


def test_one_that_pays_a_little_lets_many_gain() -> None:
    first = solved(1, variant(6, (S, 1)), variant(5))
    others = [solved(index, variant(5, (S, index)), variant(50)) for index in range(2, 5)]
    assert sizes(first, *others) == [6, 5, 5, 5]
    assert sizes(first) == [5]


def test_sequences_are_told_apart() -> None:
    first = solved(1, variant(20), consumes=frozenset({S}))
    second = solved(2, variant(5, (R, 1)), variant(9), consumes=frozenset({R}))
    assert sizes(first, second) == [20, 5]


def test_every_variant_is_kept_as_a_way_out() -> None:
    variants = (variant(9), variant(7, (S, 1)), variant(5, (S, 1), (R, 1)))
    (found,) = choose([solved(1, *variants)])
    assert sorted(v.size for v in found) == [5, 7, 9]


def test_a_variant_behind_its_sequence_first_takes_the_values_between() -> None:
    exact, late, early, plain = variant(50, (S, 10)), variant(40, (S, 12)), variant(30, (S, 9)), variant(200)
    found = adjusted([exact, late, early, plain], {S: 10}, IDLE)
    assert exact is found[0]
    assert early not in found
    assert plain in found
    (caught_up,) = (v for v in found if v.starts == late.starts)
    assert caught_up.statements == (
        "DELETE FROM idle WHERE(SELECT count(nextval('s'))FROM generate_series(1,2))<0",
        *late.statements,
    )
    assert [v.size for v in found[1:]] == sorted(v.size for v in found[1:])

"""Parts that some texts share and others lack."""

from __future__ import annotations

import doctest

from hypothesis import given
from hypothesis import strategies as st

from encoder.selection import infixes
from encoder.selection.infixes import shared_parts

TEXTS = st.lists(st.text("abc/", max_size=12), min_size=1, max_size=6)


def test_example() -> None:
    assert doctest.testmod(infixes).failed == 0


@given(TEXTS, TEXTS)
def test_parts_are_in_all_and_rarer_each_time(needed: list[str], others: list[str]) -> None:
    least = len(others)
    for part in shared_parts(needed, others):
        assert all(part in text for text in needed)
        count = sum(part in text for text in others)
        assert count < least
        least = count


def test_a_part_of_long_texts_among_many() -> None:
    needed = [f"{'lorem ' * n}https://ci.example/job/{n}" for n in range(20, 40)]
    others = [f"{'lorem ' * n}https://ci.{n}.example/wiki/{n}" for n in range(3_000)]
    *_, last = shared_parts(needed, others)
    assert not any(last in text for text in others)

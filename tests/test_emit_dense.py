"""Bits as numbers, decoded as the server would do it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from emit import dense


def _decoded(code: dense.Numbered) -> list[bool]:
    number = sum(digit * dense.BASE**place for place, digit in enumerate(code.digits))
    found = []
    while number > 1:
        found.append(number % code.total == 0)
        number = number // code.total if found[-1] else number - number // code.total
    return found


@given(st.lists(st.booleans(), max_size=400).filter(any))
def test_numbered_bits_come_back(bits: list[bool]) -> None:
    code = dense.numbered(np.array(bits))
    assert code is not None
    assert all(1 <= digit <= dense.BASE for digit in code.digits)
    found = _decoded(code)
    last = max(place for place, bit in enumerate(bits) if bit)
    assert found == [False] * code.earlier + bits[: last + 1]


def test_numbered_size_is_near_the_entropy() -> None:
    bits = np.random.default_rng(1).random(5_000) < 0.1
    code = dense.numbered(bits)
    assert code is not None
    ones = int(bits.sum())
    entropy = -ones * np.log2(ones / 5_000) - (5_000 - ones) * np.log2(1 - ones / 5_000)
    assert len(code.digits) * np.log2(dense.BASE) < 1.01 * entropy + 20
    assert abs(dense.numbered_size(ones, 5_000)[0] - len(code.digits)) < 10


def test_no_ones() -> None:
    assert dense.numbered(np.zeros(9, dtype=np.bool_)) is None

"""The score between baseline and target."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.score import score, target

SIZES = st.integers(1, 10**7)


def test_the_formula() -> None:
    assert target(4799) == 4511
    assert target(50) == 47
    assert score(4799, 35704, 4799) == pytest.approx(math.log(35704 / 4799) / math.log(35704 / 4511))
    assert score(4511, 35704, 4799) == 1
    assert score(35704, 35704, 4799) == 0
    assert score(99999, 35704, 4799) == 0
    assert score(100, 100, 200) == 1
    with pytest.raises(ValueError, match="positive"):
        score(0, 1, 1)


@given(SIZES, SIZES, SIZES)
def test_smaller_is_never_worse(s: int, b: int, k: int) -> None:
    assert 0 <= score(s + 1, b, k) <= score(s, b, k) <= 1

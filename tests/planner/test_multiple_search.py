"""The search for the least sufficient multiple, with classes that are each monotone."""

from math import gcd

import pytest
from hypothesis import given
from hypothesis import strategies as st

from basestation.planner.multiple_search import find_least_multiple


@pytest.mark.promise("lifetime")
@given(st.integers(1, 60), st.integers(1, 90), st.integers(0, 90), st.data())
def test_search_finds_least_multiple(beside, first, more, data):
    """Each class suffices from some number on, or never; some divisors suffice in any case."""
    last = first + more
    kinds = sorted({gcd(number, beside) for number in range(1, beside + 1)})
    begins = {kind: data.draw(st.integers(1, 250), label=f"kind {kind}") for kind in kinds}
    shared = data.draw(st.sets(st.sampled_from(kinds)))

    def enough(number):
        return number in shared or number >= begins[gcd(number, beside)]

    assert find_least_multiple(first, last, beside, enough) == min(filter(enough, range(first, last + 1)), default=None)


def test_search_tries_few_multiples():
    tried = []

    def enough(number):
        tried.append(number)
        return number % 12 == 0 and number >= 700_000

    assert find_least_multiple(1, 1_000_000, 12, enough) == 700_008
    assert len(tried) < 60

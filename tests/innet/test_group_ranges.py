"""Aggregates over ranges of groups against the same aggregates with a row per group."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from innet.aggregates import create_aggregate
from innet.aggregates.identity_memo import IdentityMemo

WHOLE = st.integers(-3, 3) | st.sampled_from([2**63 - 1, -(2**63)])
FLOAT = st.sampled_from([-0.0, 0.0, 0.5, -1.5, float("inf"), float("-inf")])


@st.composite
def stretches(draw, values):
    """(groups, [(first, last, value or None)])."""
    groups = draw(st.integers(1, 40))
    place = st.integers(0, groups - 1)
    rows = st.tuples(place, place, st.none() | values).map(lambda row: (min(row[:2]), max(row[:2]), row[2]))
    return groups, draw(st.lists(rows, max_size=25))


def check(type_, dtype, told):
    groups, rows = told
    first, last = (np.array([row[i] for row in rows], np.int64) for i in (0, 1))
    there = np.array([value is not None for *_, value in rows], bool)
    values = np.array([0 if value is None else value for *_, value in rows], dtype)
    spread = [(group, at) for at, (low, high, _) in enumerate(rows) for group in range(low, high + 1)]
    group, at = (np.array([pair[i] for pair in spread], np.int64) for i in (0, 1))
    memo = IdentityMemo()
    for name in ("MIN", "MAX", "COUNT"):
        aggregate = create_aggregate(name, type_)
        assert aggregate.can_evaluate_ranges
        for valid in (there, None):
            found = aggregate.evaluate_ranges(groups, first, last, values, valid, memo)
            expected = aggregate.evaluate(groups, group, values[at], None if valid is None else valid[at])
            for mine, theirs in zip(found, expected, strict=True):
                assert mine.dtype == theirs.dtype
                assert mine.tobytes() == theirs.tobytes()


@pytest.mark.promise("joins")
@given(stretches(WHOLE))
def test_integer_ranges_equal_row_per_group(told):
    check("integer", np.int64, told)


@pytest.mark.promise("joins")
@given(stretches(FLOAT))
def test_float_ranges_equal_row_per_group(told):
    check("float", np.float64, told)


def test_aggregates_without_range_evaluation():
    assert not any(create_aggregate(name, "float").can_evaluate_ranges for name in ("SUM", "AVG", "FIRST", "MEDIAN"))
    assert not create_aggregate("MIN", "string").can_evaluate_ranges
    assert not create_aggregate("COUNT", "integer", distinct=True).can_evaluate_ranges

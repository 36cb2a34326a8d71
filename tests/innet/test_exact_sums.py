"""Exact sums beyond the headroom of their digits, in any number of steps and merges."""

from fractions import Fraction

import numpy as np
import pytest

from innet.aggregates.exact_sums import HEADROOM, INTEGER_ORIGIN, ExactSums
from tests.innet.aggregate_fixtures import answers, made


@pytest.mark.promise("exact-aggregates")
@pytest.mark.parametrize("type_, value", [("float", 0.1), ("integer", 2**62 + 12345)])
def test_many_rows_do_not_exhaust_headroom(type_, value):
    """Far more is added than the headroom: a large batch, then merges that double each time."""
    n, doublings = 300_000, 40
    sum_, avg = made("SUM", type_), made("AVG", type_)
    state = avg.init(1)
    avg.update(state, np.zeros(n, np.int64), np.full(n, value))
    for _ in range(doublings):
        twice = avg.concatenate([state, avg.take(state, np.array([0]))])
        state = avg.init(1)
        avg.merge(state, twice, np.array([0, 0]))
    total = Fraction(value) * (n << doublings)
    assert answers(avg.finalize(state)) == [float(value)]
    if type_ == "float":
        assert answers(sum_.finalize(state)) == [float(total)]
    [found], exponent = state.sums["sum"].to_integers(np.array([0]))
    assert found * Fraction(2) ** exponent == total


@pytest.mark.promise("exact-aggregates")
@pytest.mark.parametrize(
    ("type_", "unit"), [("integer", 1), ("integer", -1), ("float", 2.0**-22), ("float", -(2.0**-22))]
)
def test_merging_many_groups_does_not_exhaust_headroom(type_, unit):
    """More rows than the headroom allows, each as large as a digit can be: added, merged, or reduced at once."""
    n, large, carried = 3 << 19, (1 << 44) - 1, (1 << 43) - 1
    avg = made("AVG", type_)

    def check(state, wanted):
        [found], exponent = state.sums["sum"].to_integers(np.array([0]))
        assert found * Fraction(2) ** exponent == n * Fraction(wanted)
        assert answers(avg.finalize(avg.take(state, np.array([0])))) == [float(wanted)]

    hot = np.zeros(n, np.int64)
    added = avg.init(n)
    avg.update(added, hot, np.full(n, large * unit))
    check(added, large * unit)

    each = avg.init(n)
    avg.update(each, np.arange(n), np.full(n, carried * unit))
    merged = avg.init(n)
    avg.merge(merged, each, hot)
    check(merged, carried * unit)
    check(
        avg.reduce_segments(each, 1, n, lambda fold, column, blank: fold.reduce(column, keepdims=True)), carried * unit
    )


def test_addition_beyond_headroom_is_refused():
    sums = ExactSums(1, INTEGER_ORIGIN)
    with pytest.raises(OverflowError, match="room"):
        sums._make_room(HEADROOM + 1)

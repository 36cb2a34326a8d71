"""Burst loss against an oracle that enumerates every course of a slot."""

from dataclasses import astuple
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from innet.costs.burst_loss import NO_BURSTS, BurstLoss, expect_in_slot, expect_with_bursts
from innet.costs.hop_delivery import HopDelivery, expect_delivery

ratios = st.floats(0.0, 1.0)


def every_course(there, back, limit, frames, room):
    """Return the means over all frames: attempt by attempt, each arrives or not, and is acknowledged or not."""

    @cache
    def rest(frames, tried, came, left):
        """(attempts, copies, delivered, acknowledged) from here on, of a frame that was tried so often."""
        if not frames or not left:
            return (0.0, 0.0, 0.0, 0.0)
        means = [1.0, there, there * (not came), there * back]
        for chance, comes, known in ((1 - there, 0, 0), (there * (1 - back), 1, 0), (there * back, 1, 1)):
            over = known or tried + 1 == limit
            after = (frames - 1, 0, False) if over else (frames, tried + 1, came or bool(comes))
            means = [m + chance * f for m, f in zip(means, rest(*after, left - 1), strict=True)]
        return tuple(means)

    return rest(frames, 0, False, room)


@pytest.mark.promise("predicted-energy")
@given(ratios, ratios, st.integers(1, 4), st.integers(1, 4), st.integers(0, 17))
def test_limited_slot_matches_enumeration(there, back, limit, frames, room):
    found = expect_in_slot(there, back, limit, frames, room)
    expected = every_course(there, back, limit, frames, room)
    assert [figure * frames for figure in astuple(found)] == pytest.approx(expected, abs=1e-6)


@given(ratios, ratios, st.integers(0, 9), st.floats(0.01, 0.99))
def test_fractional_frame_is_mean_of_both_counts(there, back, room, share):
    fewer, more = (every_course(there, back, 3, frames, room) for frames in (1, 2))
    found = expect_in_slot(there, back, 3, 1 + share, room)
    expected = [f + share * (m - f) for f, m in zip(fewer, more, strict=True)]
    assert [figure * (1 + share) for figure in astuple(found)] == pytest.approx(expected, abs=1e-6)


@given(ratios, ratios, st.floats(0, 1), st.floats(0, 1))
def test_expectation_is_mean_over_good_and_bad_times(there, back, bad, left):
    found = expect_with_bursts(BurstLoss(bad, left), there, back, 8, 1, 8)
    expected = [0.0] * 4
    for a, p in ((1.0, 1 - bad), (left, bad)):
        for b, q in ((1.0, 1 - bad), (left, bad)):
            each = astuple(expect_delivery(there * a, back * b, 8))
            expected = [e + p * q * figure for e, figure in zip(expected, each, strict=True)]
    assert astuple(found) == pytest.approx(expected)


def test_all_attempts_of_slot_meet_same_state():
    """In half of all times nothing arrives. Then all eight attempts are made, not two on average as with independent losses."""
    found = expect_with_bursts(BurstLoss(0.5, 0.0), 1.0, 1.0, 8, 1, 8)
    assert found == HopDelivery(0.25 * 1 + 0.75 * 8, 0.25 * 1 + 0.25 * 8, 0.5, 0.25)
    assert expect_with_bursts(NO_BURSTS, 0.5, 1.0, 8, 1, 8) == expect_delivery(0.5, 1.0, 8)

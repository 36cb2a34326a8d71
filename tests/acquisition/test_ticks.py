"""Ticks, epochs and the world's time."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.ticks import EpochGrid, date_of, grid_at_or_after, rfc3339_of, tick_of_ms, tick_of_rfc3339

EVENING = 1_763_510_399  # 2025-11-18T23:59:59Z


@given(st.integers(0, 10**9), st.integers(1, 10**5), st.integers(0, 10**6))
def test_epoch_and_tick_are_inverse(start, interval, epoch):
    epochs = EpochGrid(start, interval)
    assert epochs.epoch(epochs.tick(epoch)) == epoch
    assert epochs.epoch(start - 1) is None


def test_tick_between_epochs_has_no_epoch():
    assert EpochGrid(30, 10).epoch(35) is None


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**5))
def test_grid_at_or_after_is_the_next_multiple(tick, interval):
    found = grid_at_or_after(tick, interval)
    assert found % interval == 0
    assert tick <= found < tick + interval


@given(st.integers(-(10**9), 10**9), st.integers(0, 10**9), st.integers(1, 10**5))
def test_first_due_tick_is_not_before_the_start(tick, start, interval):
    epochs = EpochGrid(start, interval)
    found = epochs.first_from(tick)
    assert epochs.epoch(found) is not None
    assert found >= tick > found - interval or found == start >= tick


def test_ticks_longer_or_shorter_than_a_second():
    assert tick_of_ms(59_999, 60_000) == 0
    assert rfc3339_of(1_763_510_399_250, 1) == "2025-11-18T23:59:59.250Z"
    assert tick_of_rfc3339("1970-01-01T00:02:00Z", 60_000) == 2
    with pytest.raises(ValueError, match="not a whole number of ticks"):
        tick_of_rfc3339("1970-01-01T00:02:01Z", 60_000)


@pytest.mark.parametrize("text", ["2025-11-18T23:59:59Z", "2025-11-19T00:59:59+01:00", "2025-11-18T23:59:59"])
def test_rfc3339_round_trips(text):
    assert tick_of_rfc3339(text, 1000) == EVENING
    assert rfc3339_of(EVENING, 1000) == "2025-11-18T23:59:59Z"


def test_date_of_a_tick_is_in_utc():
    assert date_of(EVENING, 1000) == date(2025, 11, 18)
    assert date_of(EVENING + 1, 1000) == date(2025, 11, 19)

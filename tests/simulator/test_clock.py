import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.clock import Clock, SkewDetector

PPM = st.integers(-10_000, 10_000)
TIME = st.integers(0, 10**15)


@given(ppm=PPM, at=TIME, ms=st.integers(0, 10**12), ahead=st.integers(0, 10**13))
def test_true_time_is_first_moment_that_shows_local_time(ppm, at, ms, ahead):
    clock = Clock(ppm)
    clock.set(at, ms)
    shows = ms * 1_000 + ahead
    moment = clock.true_time(shows)
    assert clock.local_time(moment) >= shows
    assert moment == at or clock.local_time(moment - 1) < shows


@given(ppm=PPM, at=TIME, ms=st.integers(0, 10**12))
def test_a_crystal_is_wrong_by_its_millionths(ppm, at, ms):
    clock = Clock(ppm)
    clock.set(at, ms)
    assert clock.local_time(at + 10**9) - clock.local_time(at) == 10**9 + ppm * 1_000


@pytest.mark.promise("agenda")
def test_stamp_ahead_of_clock_reports_skew_once_a_minute():
    clock, comparing, second = Clock(), SkewDetector(), 1_000_000
    assert not comparing.detect_skew(clock, 0, 100 * second)  # who has no time does not know
    clock.set(0, 50_000)
    told = [
        comparing.detect_skew(clock, at * second, stamp * second)
        for at, stamp in ((0, 40), (0, 50.5), (1, 52), (2, 90))
    ]
    assert told == [False, False, True, False]
    assert comparing.detect_skew(clock, 61 * second, 150 * second)


def test_a_clock_is_set_jumps_and_stops():
    clock = Clock()
    assert not clock.is_set
    clock.jump(5, 1_000)  # one that knows no time has none to lose
    assert not clock.is_set
    clock.set(7, 100)
    clock.jump(1_007, -60)
    assert clock.local_time(2_007) == 42_000
    clock.jump(2_007, -1_000)
    assert clock.local_time(2_007) == 0  # it counts from tick 0
    clock.stop()
    assert not clock.is_set

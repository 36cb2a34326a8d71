from hypothesis import given
from hypothesis import strategies as st

from simulator.clock import Clock

PPM = st.integers(-10_000, 10_000)
TIME = st.integers(0, 10**15)


@given(ppm=PPM, at=TIME, ms=st.integers(0, 10**12), ahead=st.integers(0, 10**13))
def test_when_is_the_first_moment_at_which_a_clock_shows_that_much(ppm, at, ms, ahead):
    clock = Clock(ppm)
    clock.set(at, ms)
    shows = ms * 1_000 + ahead
    moment = clock.when(shows)
    assert clock.reads(moment) >= shows
    assert moment == at or clock.reads(moment - 1) < shows


@given(ppm=PPM, at=TIME, ms=st.integers(0, 10**12))
def test_a_crystal_is_wrong_by_its_millionths(ppm, at, ms):
    clock = Clock(ppm)
    clock.set(at, ms)
    assert clock.reads(at + 10**9) - clock.reads(at) == 10**9 + ppm * 1_000


def test_a_clock_is_set_jumps_and_stops():
    clock = Clock()
    assert not clock.runs
    clock.jump(5, 1_000)  # one that knows no time has none to lose
    assert not clock.runs
    clock.set(7, 100)
    clock.jump(1_007, -60)
    assert clock.reads(2_007) == 42_000
    clock.jump(2_007, -1_000)
    assert clock.reads(2_007) == 0  # it counts from tick 0
    clock.stop()
    assert not clock.runs

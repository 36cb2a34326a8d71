"""The runner: commands of other threads, clocks that leap or stand still, and motes that cannot keep up."""

import itertools

import pytest

from basestation.archive.memory import MemoryArchive
from basestation.planner.catalog import read_schema
from basestation.station.durable import DurableStation
from basestation.station.journal import Journal
from basestation.station.live_control import LiveControl
from basestation.station.runner import LONGEST_LEAP_MS, Runner, ScaledClock, StationBusyError
from basestation.station.service import Station
from tests.station.small_network import QUERIES, SmallNetwork


@pytest.mark.promise("durable")
def test_long_absence_loses_no_answer(tmp_path):
    network = SmallNetwork(tmp_path)
    network.submit("SELECT COUNT(*) AS n FROM field [FROM NOW-20 TO NOW SLIDE 1 SEC]")
    network.live(30)
    network.now_ms += 11_000_000  # more windows than a feed retains
    network.durable.step(network.now_ms)
    chunks = network.journal.results(1, 0, 10**9)
    assert [chunk.first for chunk in chunks] == [1, *(chunk.behind for chunk in chunks[:-1])]
    assert chunks[-1].behind > 11_000


def test_commands_to_a_station_that_stopped_are_refused_at_once(tmp_path):
    network = SmallNetwork(tmp_path)
    runner = Runner(network.durable, ScaledClock(lambda: 0.0, network.now_ms), beside=network)
    runner.stop()
    runner.run()
    with pytest.raises(StationBusyError, match="the station stops"):
        runner.call(lambda now_ms: now_ms)


def test_fast_clock_does_not_look_like_a_stalled_station(tmp_path):
    network, wall = SmallNetwork(tmp_path), [0.0]
    runner = Runner(network.durable, ScaledClock(lambda: wall[0], network.now_ms, speed=100), beside=network)
    control = LiveControl(runner)
    runner.look(runner.clock.now_ms())
    wall[0] = 1.0
    assert control.health()["ok"]
    wall[0] = 11.0
    assert control.health()["problems"] == ["the station has not looked for 11 s"]


class SlowMotes:
    """Simulated motes that need five seconds of the machine for each look."""

    def __init__(self, wall):
        self.wall, self.looks, self.stop = wall, [], None

    def advance(self, now_ms):
        self.looks.append(now_ms)
        self.wall[0] += 5
        if len(self.looks) == 6:
            self.stop()


def test_leap_over_ticks_longer_than_an_hour_ends(tmp_path):
    """
    ticks of 2 h   0      1      2      3      4      5
    looks                 │      │      │      │      │  │ the leap to 5.25
    """
    tick_ms, leaps = 7_200_000, []
    catalog = read_schema("belt: pushed (weight:integer) wait 4 hours\n", None, tick_ms)

    def begin(transport, now_ms):
        return Station(catalog, transport, MemoryArchive(), boot=1, now_ms=now_ms)

    def progress():
        leaps.append(durable.station.engine.clock)
        assert len(leaps) < 20, "the clock does not move"

    durable = DurableStation(Journal(tmp_path), begin, 0)
    runner = Runner(durable, ScaledClock(lambda: 0.0, 0), on_progress=progress)
    for quarter in (1, 2, 3, 21):
        runner.look(quarter * tick_ms // 4)
    assert leaps == [0, 1, 2, 3, 4] and durable.station.engine.clock == 4
    durable.journal.close()


def test_motes_that_cannot_keep_up_slow_the_clock_down(tmp_path):
    network, wall = SmallNetwork(tmp_path), [0.0]
    motes = SlowMotes(wall)
    runner = Runner(network.durable, ScaledClock(lambda: wall[0], network.now_ms, speed=1_000), beside=motes)
    motes.stop = runner.stop
    runner.run()
    assert [b - a for a, b in itertools.pairwise(motes.looks)] == [LONGEST_LEAP_MS] * 5
    assert LiveControl(runner).health()["ok"]


@pytest.mark.promise("durable")
def test_clock_that_leaps_is_followed_in_steps_with_commits(tmp_path, rng):
    """
    looks   … 30 s │ +1 h │ +2 h │ … │ +5 days │    the process ends in the middle, and its next start goes on from there
    """
    expected, network = SmallNetwork(tmp_path / "undisturbed"), SmallNetwork(tmp_path / "leaps")
    for each in (expected, network):
        each.submit(QUERIES[2])
        each.live(30)
    end, progress = network.now_ms + 5 * 86_400_000, []
    runner = Runner(expected.durable, ScaledClock(lambda: 0.0, end), on_progress=lambda: progress.append(1))
    runner.look(end)
    assert 118 <= len(progress) <= 120 and expected.durable.last_ms == end

    stopped = Runner(network.durable, ScaledClock(lambda: 0.0, end), on_progress=lambda: next(left) or stopped.stop())
    left = iter([True] * rng.randrange(1, 100) + [False] * 9)
    stopped.look(end)
    assert network.durable.last_ms < end
    network.restart()
    Runner(network.durable, ScaledClock(lambda: 0.0, end)).look(end)
    assert network.answers(1) == expected.answers(1) and network.journal.bounds(1)[1] > 21_600


@pytest.mark.promise("durable")
def test_clock_a_day_behind_waits_for_the_station_to_reach_it(tmp_path):
    network = SmallNetwork(tmp_path)
    network.submit(QUERIES[2])
    network.live(60)
    network.restart()
    answers, last = network.answers(1), network.durable.last_ms
    wall = [0.0]
    runner = Runner(network.durable, ScaledClock(lambda: wall[0], last - 86_400_000))
    assert runner._read_clock() == last
    runner.look(runner._read_clock())
    assert network.answers(1) == answers and network.durable.last_ms == last
    wall[0] = 86_400.0 + 60.0
    runner.look(runner._read_clock())
    assert network.durable.last_ms == last + 60_000 and network.answers(1).startswith(answers)

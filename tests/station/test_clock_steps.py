"""The machine's clock is set a day back or a year forward: a station that runs does not notice, a start says what it does.

A process cannot set the clock of the machine it is tested on, so the clock is moved in the process of the station alone.
"""

import signal

import pytest

from moteloom.client import connect
from tests.station.test_run_command import QUERY, StationProcess

DAY_S, YEAR_S, AHEAD_S = 86_400, 366 * 86_400, 7_200
FAST = 100
MOVED_CLOCK = """
import pathlib, sys, time
usual, moved = time.time_ns, pathlib.Path(sys.argv.pop(1))
time.time_ns = lambda: usual() + int(moved.read_text() or 0) * 10**9
time.time = lambda: time.time_ns() / 1e9
from gateway.cli import main
sys.exit(main())
"""
EPOCH = 60
"""Ticks between two windows: no query asks for a shorter schedule."""


@pytest.fixture
def station(tmp_path):
    moved = tmp_path / "seconds"
    moved.write_text("0")
    running = StationProcess(tmp_path, program=("-c", MOVED_CLOCK, moved), speed=FAST)
    running.set_clock = lambda seconds: (
        (tmp_path / "new").write_text(str(seconds)) and (tmp_path / "new").replace(moved)
    )
    yield running
    if running.process and running.process.poll() is None:
        running.end(signal.SIGKILL)


@pytest.mark.promise("durable")
@pytest.mark.timeout(300)
def test_no_window_is_missing_when_the_clock_is_set(station):
    station.start()
    with connect(f"http://127.0.0.1:{station.port}", data=station.data) as client:
        query = client.submit(QUERY)
        ticks = {}
        updates = query.updates()

        def await_windows(count):
            """A window is revised by further updates; what counts is that each comes, in order."""
            last = len(ticks) + count
            while len(ticks) < last:
                ticks.setdefault(next(updates).tick)

        await_windows(2)
        for seconds in (-DAY_S, YEAR_S):  # while it runs
            station.set_clock(seconds)
            await_windows(3)
        events = client.get("/v1/events")["events"]
        assert events and not [event for event in events if "clock" in event["event"]]
        station.end(signal.SIGKILL)
        station.set_clock(-DAY_S)  # before a start
        station.speed = 1  # a faster station is ahead of any clock
        station.start()
        events = client.get("/v1/events")["events"]
        [event] = [event for event in events if event["event"] == "the clock of this machine was set back"]
        assert DAY_S * 1_000 <= event["ms"] < (DAY_S + AHEAD_S) * 1_000
        station.end(signal.SIGTERM)
        station.set_clock(AHEAD_S)
        station.speed = FAST
        station.start()
        await_windows(AHEAD_S // EPOCH)
    assert list(ticks) == list(range(min(ticks), max(ticks) + 1, EPOCH))

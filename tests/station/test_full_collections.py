"""Full collections of Python's garbage collector: between the looks of a runner, as often as due, and memory of cycles is freed."""

import gc
import os
import platform
import random
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from basestation.station.full_collections import BACKSTOP, DUE, OVERDUE, REST, FullCollections
from basestation.station.runner import Runner, ScaledClock
from tests.station.small_network import QUERIES, SmallNetwork

LOOKS = 40


class Cycle:
    """An object that only a full collection frees, once it is old."""

    def __init__(self):
        self.own = self


@pytest.fixture(autouse=True)
def _whole_collector():
    """Each test begins after a full collection with Python's own thresholds, and leaves them as they were."""
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    gc.collect()
    yield
    gc.set_threshold(*before)


def keep_containers(middle, kept):
    """Create containers that live on, until so many middle generations were collected since the last full collection."""
    young, old, _ = gc.get_threshold()
    for _ in range((young + 1) * (old + 2) * (middle + 1)):
        if gc.get_count()[2] >= middle:
            return
        kept.append([])


def resident_mb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def full_collections():
    return gc.get_stats()[2]["collections"]


class Clock:
    """Seconds that pass only as a test lets them."""

    def __init__(self):
        self.seconds, self.step = 0.0, 0.0

    def __call__(self):
        self.seconds += self.step
        return self.seconds


@pytest.mark.promise("bounded-memory")
def test_old_cycle_is_freed_between_looks_not_before():
    kept, cycle = [], Cycle()
    seen = weakref.ref(cycle)
    with FullCollections(Clock()) as collections:
        keep_containers(DUE // 2, kept)  # the cycle is in the oldest generation
        del cycle
        assert not collections.tend(1.0)
        keep_containers(DUE, kept)
        assert seen() is not None
        assert collections.tend(1.0)
    assert seen() is None
    assert collections.count == 1


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries return memory by themselves")
@pytest.mark.promise("bounded-memory")
def test_collection_returns_freed_memory_to_the_system():
    kept = []
    with FullCollections(Clock()) as collections:
        blocks = [random.randbytes(64_000) for _ in range(1_000)]  # below the size that glibc maps by itself
        kept.append(random.randbytes(64_000))  # above them, so that the heap does not end with free memory
        full = resident_mb()
        del blocks
        keep_containers(DUE, kept)
        assert collections.tend(1.0)
    assert resident_mb() < full - 50


@pytest.mark.promise("speed")
def test_full_collections_run_between_looks_of_a_runner(tmp_path):
    inside, outside = run_looks(tmp_path, FullCollections(Clock()))
    assert inside == 0 < outside


def test_without_policy_full_collections_run_inside_looks(tmp_path):
    """The same looks as Python collects by itself: the test above sees a difference."""
    inside, outside = run_looks(tmp_path, None)
    assert outside == 0 < inside


def run_looks(folder, collections):
    """Full collections inside and outside of the looks of a runner whose surroundings create containers that live on."""
    network, wall, kept, found = SmallNetwork(folder), [0.0], [], {True: 0, False: 0}
    for text in QUERIES:
        network.submit(text)

    class Surroundings:
        def advance(self, now_ms):
            nonlocal is_looking
            is_looking = True
            kept.extend([] for _ in range(20_000))
            network.advance(now_ms)

    class Watched(Runner):
        def look(self, now_ms):
            nonlocal is_looking
            super().look(now_ms)
            is_looking = False

    def next_look():
        wall[0] += 0.25
        if wall[0] > LOOKS * 0.25:
            runner.stop()

    def note(phase, about):
        found[is_looking] += phase == "start" and about["generation"] == 2

    is_looking = False
    runner = Watched(
        network.durable, ScaledClock(lambda: wall[0], network.now_ms), beside=Surroundings(), snapshot_ms=10**9,
        on_progress=next_look, collections=collections,
    )  # fmt: skip
    gc.callbacks.append(note)
    try:
        if collections is None:
            runner.run()
        else:
            with collections:
                runner.run()
    finally:
        gc.callbacks.remove(note)
    return found[True], found[False]


@pytest.mark.promise("bounded-memory")
def test_look_without_end_is_collected_inside():
    kept, cycle = [], Cycle()
    seen, before = weakref.ref(cycle), full_collections()
    with FullCollections(Clock()):
        keep_containers(DUE, kept)
        del cycle
        keep_containers(BACKSTOP + 2, kept)
        assert full_collections() > before
    assert seen() is None


def test_collection_waits_for_a_look_that_leaves_time():
    clock, kept = Clock(), []
    with FullCollections(clock) as collections:
        clock.step = 0.3  # seconds of a collection
        keep_containers(DUE, kept)
        assert collections.tend(0.0)  # how long it takes is not known before the first one
        clock.seconds += REST
        keep_containers(DUE, kept)
        assert not collections.tend(0.2)
        assert collections.tend(0.4)
        clock.seconds += REST
        keep_containers(OVERDUE, kept)
        assert collections.tend(0.0)


def test_collections_take_two_percent_of_the_time():
    clock, kept = Clock(), []
    with FullCollections(clock) as collections:
        clock.step = 1.0
        keep_containers(DUE, kept)
        assert collections.tend(9.0)
        keep_containers(DUE, kept)
        clock.seconds += REST - 2
        assert not collections.tend(9.0)
        clock.seconds += 2
        assert collections.tend(9.0)
        assert collections.longest == 1.0


def test_thresholds_are_those_from_before_afterwards():
    before = gc.get_threshold()
    with FullCollections():
        assert gc.get_threshold() == (*before[:2], BACKSTOP)
    assert gc.get_threshold() == before


def test_import_leaves_the_collector_alone():
    """The policy is that of a process: a program that imports the packages keeps its own."""
    code = (
        "import gc; before = gc.get_threshold(), gc.isenabled()\n"
        "import moteloom, basestation.station.runner, basestation.station.full_collections, basestation.cli.run\n"
        "assert (gc.get_threshold(), gc.isenabled(), gc.get_freeze_count()) == (*before, 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

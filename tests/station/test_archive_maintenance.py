"""A running station merges the files of days that are over, and drops days above its limits, while it answers."""

import json
import resource
import sqlite3
import subprocess
import time
from dataclasses import replace

import pytest

from basestation.archive.manifest import FileChange
from basestation.archive.numbering import TupleNumbers
from basestation.station import archive_maintenance
from basestation.station.archive_maintenance import ArchiveMaintenance
from basestation.station.retention import Budget
from innet.deployment.archive_table import ArchiveSettings, KeepLimits
from tests.station.small_network import CATALOG, QUERIES
from tests.station.test_archiving import EXTENT, ArchivedNetwork

DAY_MS, MINUTE_MS = 86_400_000, 60_000


@pytest.fixture
def network(tmp_path):
    network = ArchivedNetwork(tmp_path / "run")
    network.submit(QUERIES[2])
    for _ in range(3):
        network.live(30)
        network.roll()
    yield network
    network.end()


def tend(maintenance, now_ms):
    """Look until no merge runs."""
    maintenance.tend(now_ms)
    until = time.monotonic() + 60
    while maintenance._merge is not None and time.monotonic() < until:
        time.sleep(0.05)
        maintenance.tend(now_ms)


def files(network):
    return [path.name for path in network.archive.files(EXTENT)]


@pytest.mark.promise("archived")
def test_day_that_is_over_becomes_one_file(network):
    maintenance = ArchiveMaintenance(network.durable, network.archive, roll_ms=400 * DAY_MS)
    before, names = network.readings(), files(network)
    tend(maintenance, network.now_ms + 2 * MINUTE_MS)
    assert files(network) == names and len(names) == 3  # the day goes on
    network.live(20)
    tend(maintenance, network.now_ms + 2 * DAY_MS)
    assert len(files(network)) == 1 and set(network.readings()) >= set(before)
    network.live(1)
    assert "files of the archive merged" in network.events()
    merged, now = files(network), network.readings()
    network.restart()
    assert files(network) == merged and network.readings() == now


def test_day_is_merged_once_a_day(network, monkeypatch):
    begun = []

    def record(archive, day):
        begun.append(day.day)
        raise OSError("no memory")

    monkeypatch.setattr(archive_maintenance, "MergeProcess", record)
    maintenance = ArchiveMaintenance(network.durable, network.archive, roll_ms=400 * DAY_MS)
    start = network.now_ms + 2 * DAY_MS
    for minute in range(1, 60):
        maintenance.tend(start + minute * MINUTE_MS)
    assert len(begun) == 1
    maintenance.tend(start + DAY_MS)
    assert len(begun) == 2
    network.live(1)
    assert "merging files of the archive fails" in network.events()
    assert len(files(network)) == 3


def test_damaged_file_stops_its_merge_only(network):
    path = network.archive.files(EXTENT)[0]
    body = bytearray(path.read_bytes())
    body[20] ^= 1
    path.write_bytes(body)
    maintenance = ArchiveMaintenance(network.durable, network.archive, roll_ms=400 * DAY_MS)
    tend(maintenance, network.now_ms + 2 * DAY_MS)
    network.live(1)
    assert "merging files of the archive fails" in network.events() and len(files(network)) == 3
    network.live(20)
    assert network.roll() > 0 and len(files(network)) == 4


@pytest.mark.promise("archived")
def test_merge_without_room_leaves_the_day_until_there_is_some(network, monkeypatch):
    """The process of the merge really fails to write: its files may have 512 bytes."""

    def with_little_room(*given, **named):
        return start(*given, **named, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512)))

    start, before, names = subprocess.Popen, network.readings(), files(network)
    maintenance = ArchiveMaintenance(network.durable, network.archive, roll_ms=400 * DAY_MS)
    with monkeypatch.context() as full:
        full.setattr(archive_maintenance.subprocess, "Popen", with_little_room)
        tend(maintenance, network.now_ms + 2 * DAY_MS)
    answered = network.answers(1)
    network.live(30)
    why = [json.loads(body) for _, _, kind, body in network.journal.events(0, 10_000) if "merging" in kind]
    assert "File too large" in str(why) and files(network) == names and len(network.answers(1)) > len(answered)
    tend(maintenance, network.now_ms + 3 * DAY_MS)
    assert len(files(network)) == 1 and set(network.readings()) >= set(before)
    assert not list(network.archive.staging.glob("part-*"))


@pytest.mark.promise("archived")
def test_roll_during_a_merge_keeps_both(network):
    """The merge is staged while a roll settles the tree, and a late reading enters the day that is merged."""
    maintenance = ArchiveMaintenance(network.durable, network.archive, roll_ms=400 * DAY_MS)
    later = network.now_ms + 2 * DAY_MS
    maintenance.tend(later)
    assert maintenance._merge is not None
    network.live(20)
    assert network.roll() > 0
    before = network.readings()
    tend(maintenance, later)
    assert len(files(network)) == 2 and network.readings() == before
    assert not list(network.archive.staging.glob("part-*"))


def test_end_during_a_merge_leaves_the_day_as_it_was(network):
    maintenance = ArchiveMaintenance(network.durable, network.archive, roll_ms=400 * DAY_MS)
    before = files(network)
    maintenance.tend(network.now_ms + 2 * DAY_MS)
    maintenance.close()
    assert not network.archive.reserved
    network.restart()
    assert files(network) == before and not list(network.archive.staging.glob("part-*"))


def add_day_before(network):
    """The readings of the network once more, a day earlier; how many."""
    batch = network.archive.read(EXTENT, 0, 2**60)
    earlier = replace(batch, tick=batch.tick - DAY_MS // CATALOG.tick_ms)
    staged = network.archive.stage(0, EXTENT, TupleNumbers().number(EXTENT, earlier))
    network.journal.commit([], files=FileChange(tuple(staged)))
    network.archive.settle(network.journal.archive_files())
    return len(batch)


def days(network):
    return sorted({path.parent.name for path in network.archive.files(EXTENT)})


def test_days_above_the_limits_are_dropped_and_counted(network):
    count = add_day_before(network)
    settings = ArchiveSettings(KeepLimits(days=1))
    maintenance = ArchiveMaintenance(network.durable, network.archive, settings, roll_ms=400 * DAY_MS)
    newest = days(network)[-1]
    tend(maintenance, network.now_ms + 2 * MINUTE_MS)
    assert days(network) == [newest]
    network.live(1)
    assert "day of the archive dropped" in network.events()
    network.journal.trim(Budget(), network.now_ms)
    assert network.journal.storage.dropped["archived readings"] == count
    tend(maintenance, network.now_ms + 900 * DAY_MS)  # the clock leaps
    assert days(network) == [newest]


def test_full_disk_drops_old_days(network):
    add_day_before(network)
    room = [10**9]
    settings = ArchiveSettings(free_bytes=10**6)
    maintenance = ArchiveMaintenance(
        network.durable, network.archive, settings, roll_ms=400 * DAY_MS, free_bytes=lambda: room[0]
    )
    older, newest = days(network)
    tend(maintenance, network.now_ms + 2 * MINUTE_MS)
    assert days(network) == [older, newest]
    room[0] = 10**6 - 1
    tend(maintenance, network.now_ms + 4 * MINUTE_MS)
    assert days(network) == [newest]


def test_disk_full_while_days_are_dropped_is_an_event(network, monkeypatch):
    """The day stays whole, answers go on, and a later look drops it."""
    add_day_before(network)
    settings = ArchiveSettings(KeepLimits(days=1))
    maintenance = ArchiveMaintenance(network.durable, network.archive, settings, roll_ms=400 * DAY_MS)

    def full(*_, **__):
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(network.journal, "commit", full)
        maintenance.tend(network.now_ms + 2 * MINUTE_MS)
    network.live(1)
    assert "changing the archive fails" in network.events() and len(days(network)) == 2
    tend(maintenance, network.now_ms + 4 * MINUTE_MS)
    assert len(days(network)) == 1

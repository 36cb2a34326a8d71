"""The archive of a running station: each acknowledged reading stands in it once, whatever ends the process."""

import sqlite3
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from acquisition.sources.pushed_tuples import read_tuples
from basestation.station.archive_maintenance import ArchiveMaintenance
from basestation.station.archive_recovery import open_archive
from basestation.station.journal import Upload
from basestation.station.runner import Runner, ScaledClock
from basestation.station.uploads import encode_tuples
from gateway import cli
from tests.station.small_network import CATALOG, QUERIES, Crash, SmallNetwork
from tests.station.test_uploads import CATALOG as UPLOADED

EXTENT = CATALOG.extents["field"]
SECONDS = 120


class ArchivedNetwork(SmallNetwork):
    """The small network with an archive; a start publishes what was committed."""

    def start(self):
        super().start()
        self.archive = open_archive(self.folder, CATALOG.tick_ms, self.journal)

    def roll(self):
        return self.durable.roll(self.now_ms, self.archive)

    def readings(self):
        """(tick, site, temp) of each reading in the archive and of those that wait for it, in order."""
        found = []
        for part in (self.archive, self.durable.station.archive):
            batch = part.read(EXTENT, 0, 2**60)
            found += zip(batch.tick.tolist(), batch.site.tolist(), batch.columns["temp"].tolist(), strict=True)
        return sorted(found)


@pytest.fixture
def expected(tmp_path):
    network = ArchivedNetwork(tmp_path / "undisturbed")
    network.submit(QUERIES[2])
    network.live(SECONDS)
    found = network.readings()
    assert len(found) >= 20 and len(set(found)) == len(found)
    network.end()
    return found


@pytest.mark.promise("archived")
def test_restarts_and_rolls_leave_each_reading_once(expected, tmp_path, rng, counts):
    for run in range(counts(3, 30)):
        network = ArchivedNetwork(tmp_path / str(run))
        network.submit(QUERIES[2])
        left = SECONDS
        while left:
            lived = min(left, rng.randrange(1, 25))
            network.live(lived)
            left -= lived
            if rng.random() < 0.6:
                network.roll()
            if rng.random() < 0.4:
                network.durable.snapshot(network.now_ms)
            if rng.random() < 0.6:
                network.restart()
        network.roll()
        assert network.readings() == expected
        assert network.durable.station.archive.rows == 0
        network.end()


@pytest.mark.promise("archived")
@pytest.mark.parametrize("point", ["staging", "before commit", "after commit", "publishing"])
def test_crash_during_a_roll_loses_and_doubles_nothing(point, expected, tmp_path, monkeypatch):
    network = ArchivedNetwork(tmp_path / "run")
    network.submit(QUERIES[2])
    network.live(50)
    network.roll()
    network.live(30)
    network.durable.snapshot(network.now_ms)
    network.live(20)

    def end(*_, **__):
        raise Crash

    with monkeypatch.context() as patch:
        if point == "staging":
            patch.setattr("basestation.archive.parquet.sync_path", end)
        elif point == "publishing":
            patch.setattr("basestation.archive.parquet.Path.rename", end)
        else:
            network.durable._commit(closing=True)
            network.journal.crashes_before, network.journal.commits_left = point == "before commit", 0
        with pytest.raises(Crash):
            network.roll()
    network.restart()
    assert not list((network.folder / "staging").iterdir())
    network.live(20)
    assert network.readings() == expected
    network.restart()
    network.roll()
    assert network.readings() == expected
    network.end()


def test_reading_behind_the_year_9999_is_rolled_with_the_others(tmp_path):
    """A mote whose clock is wrong sends it; epochs on the air are 32 bits."""
    network = ArchivedNetwork(tmp_path)
    network.submit(QUERIES[2])
    network.live(60)
    held = network.durable.station.archive
    far = replace(held.read(EXTENT, 0, 2**60).take([0]), tick=np.array([2**50]))
    held.append(EXTENT, far)
    before = network.readings()
    assert before[-1][0] == 2**50
    assert network.roll() == len(before) and network.readings() == before
    assert network.archive.files(EXTENT)[-1].parent.name == "date=9999-12-31"
    assert cli.main(["archive", "ls", "--data", str(tmp_path)]) == 0
    network.end()


@pytest.mark.parametrize("point", ["staging", "commit"])
def test_roll_that_fails_gives_its_readings_back(point, tmp_path, monkeypatch):
    network = ArchivedNetwork(tmp_path)
    network.submit(QUERIES[2])
    network.live(60)
    before = network.readings()

    def full(*_, **__):
        raise OSError("No space left on device") if point == "staging" else sqlite3.OperationalError("disk is full")

    with monkeypatch.context() as patch:
        network.durable._commit(closing=True)
        if point == "staging":
            patch.setattr("basestation.archive.parquet.pq.ParquetWriter", full)
        else:
            patch.setattr(network.journal, "commit", full)
        assert network.roll() == 0 and network.readings() == before
    network.live(1)
    assert "archiving fails" in network.events()
    assert network.roll() == len(before) and network.readings() == before
    assert network.durable.station.archive.rows == 0
    network.end()


def test_runner_rolls_regularly_and_where_there_is_much(tmp_path, monkeypatch):
    network = ArchivedNetwork(tmp_path)
    network.submit(QUERIES[2])
    clock = ScaledClock(lambda: 0.0, network.now_ms)
    maintenance = ArchiveMaintenance(network.durable, network.archive, roll_ms=30_000)
    runner = Runner(network.durable, clock, beside=network, archive=maintenance)
    rolled = []

    def look(seconds):
        for _ in range(seconds):
            network.now_ms += 1_000
            runner.look(network.now_ms)
            rolled.append(len(network.archive.files(EXTENT)))

    look(29)
    assert rolled[-1] == 0
    look(2)
    assert rolled[-1] == 1
    look(28)
    assert rolled[-1] == 1
    look(2)
    assert rolled[-1] == 2
    monkeypatch.setattr("basestation.station.archive_maintenance.MOST_UNARCHIVED", 2)
    look(15)
    assert rolled[-1] == 3
    network.end()


def test_files_are_read_by_any_tool_of_parquet(tmp_path):
    network = ArchivedNetwork(tmp_path)
    network.submit(QUERIES[2])
    network.live(60)
    network.roll()
    table = pq.read_table(tmp_path / "archive")
    assert {"_tick", "_time", "_site", "temp", "extent", "date"} <= set(table.column_names)
    rows = [(t, s) for t, s, _ in network.readings()]
    assert sorted(zip(table["_tick"].to_pylist(), table["_site"].to_pylist(), strict=True)) == rows
    network.end()


@pytest.mark.promise("archived")
def test_push_of_many_days_is_rolled_part_by_part(tmp_path, monkeypatch):
    class PushedNetwork(ArchivedNetwork):
        def __init__(self, folder):
            super().__init__(folder, UPLOADED)

    monkeypatch.setattr("basestation.station.durable.DAYS_OF_ROLL", 3)
    network, traffic = PushedNetwork(tmp_path), UPLOADED.extents["traffic"]
    network.live(5)
    first = network.now_ms // UPLOADED.tick_ms - 8 * 86_400
    body = "".join(f'{{"lane": {day}, "_tick": {first + day * 86_400}}}\n' for day in range(8)).encode()
    tuples = read_tuples(body, "jsonl", traffic, UPLOADED.tick_ms, network.now_ms)
    network.durable.take_data(Upload("push", network.now_ms, "traffic", encode_tuples(tuples)), "a")

    def lanes():
        parts = network.archive, network.durable.station.archive
        return [sorted(part.read(traffic, 0, 2**60).columns["lane"].tolist()) for part in parts]

    assert network.roll() == 3 and lanes() == [[0, 1, 2], [3, 4, 5, 6, 7]]
    network.restart()
    assert lanes() == [[0, 1, 2], [3, 4, 5, 6, 7]]
    seconds = iter([0.0, 0.01, 1.0, 1.01, 2.0, 2.5, 3.0, 3.5])  # before and after each slice
    maintenance = ArchiveMaintenance(network.durable, network.archive, roll_ms=1_000, timer=lambda: next(seconds))
    network.live(1)
    left = [network.durable.station.archive.rows]
    while left[-1]:
        network.live(0.25)
        maintenance.tend(network.now_ms)
        left.append(network.durable.station.archive.rows)
    assert left == [5, 4, 2, 0] and not maintenance._is_unfinished  # slices of one day, of two, of up to four
    network.restart()
    assert lanes() == [[*range(8)], []]
    network.end()

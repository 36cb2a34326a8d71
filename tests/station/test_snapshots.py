"""Snapshots of a station: written beside it, refused where they cannot be read, and of no harm where they fail."""

import json
import sqlite3
import time

import pytest

from basestation.station import station_snapshot
from basestation.station.journal_file import JournalError
from basestation.station.retention import Budget
from basestation.station.runner import Runner, ScaledClock
from tests.brokers import wait_until
from tests.station.small_network import QUERIES, SmallNetwork


def test_background_snapshot_is_the_state_of_its_moment(tmp_path):
    network = SmallNetwork(tmp_path)
    network.submit(QUERIES[0])
    network.live(30)
    network.durable.begin_snapshot(network.now_ms)
    entry = network.journal.last
    network.live(15)
    wait_until(lambda: network.durable.step(network.now_ms) and next(network.journal.snapshots())[0] == entry)
    before = network.answers(1)
    network.restart()
    assert 0 < network.durable.replayed < 4 * 30
    network.live(20)
    assert network.answers(1).startswith(before)
    assert [path.name for path in tmp_path.glob("*.part")] == []


def test_state_of_another_version_is_refused_once(tmp_path):
    network = SmallNetwork(tmp_path)
    for _ in range(3):
        network.live(15)
        network.durable.snapshot(network.now_ms)
    network.end()
    database = sqlite3.connect(network.journal.path)
    with database:
        database.execute("UPDATE snapshots SET body = ?", (b"moteloom station 1\n",))
    database.close()
    with pytest.raises(JournalError) as refused:
        network.start()
    assert str(refused.value).count("another version wrote this state, as `moteloom station 1`") == 1


def test_unreadable_snapshot_falls_back_to_the_one_before(tmp_path):
    network = SmallNetwork(tmp_path)
    network.submit(QUERIES[0])
    for _ in range(3):
        network.live(15)
        network.durable.snapshot(network.now_ms)
    network.live(5)
    before = network.answers(1)
    network.end()
    database = sqlite3.connect(network.journal.path)
    with database:
        database.execute("UPDATE snapshots SET body = x'00' WHERE entry = (SELECT max(entry) FROM snapshots)")
    database.close()
    network.start()
    network.live(15)
    assert network.answers(1).startswith(before)
    ticks = [json.loads(line)["tick"] for line in network.answers(1).splitlines() if json.loads(line)["revision"] == 0]
    assert ticks == sorted(set(ticks))


def test_full_disk_at_a_snapshot_leaves_the_station_running(tmp_path, monkeypatch):
    network = SmallNetwork(tmp_path)
    clock = ScaledClock(lambda: 0.0, network.now_ms)
    runner = Runner(network.durable, clock, beside=network, snapshot_ms=1_000)
    network.submit(QUERIES[0])

    def full(*_, **__):
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as broken:
        for name in ("save_snapshot", "trim"):
            broken.setattr(network.journal, name, full)
        broken.setattr("os.fork", lambda: full_memory())
        for second in range(20):
            runner.look(network.now_ms + second * 1_000)
        assert network.durable.snapshot(network.now_ms + 20_000) == 0
    kinds = {kind for _, _, kind, _ in network.journal.events(0, 100)}
    assert kinds - {"query deploying", "query running"} == {"snapshot fails", "old results stay"}
    network.now_ms += 21_000
    network.restart()
    network.live(20)
    assert network.answers(1)


def test_failing_snapshots_do_not_let_results_grow(tmp_path, monkeypatch):
    network = SmallNetwork(tmp_path)
    network.submit(QUERIES[0])
    clock = ScaledClock(lambda: 0.0, network.now_ms)
    runner = Runner(network.durable, clock, beside=network, snapshot_ms=30_000, budget=Budget(numbers=2))
    monkeypatch.setattr("os.fork", full_memory)
    for second in range(1, 62):
        runner.look(network.now_ms + second * 1_000)
    assert network.journal.storage.dropped["results"] > 0 and network.journal.storage.log_bytes > 0


def full_memory():
    raise OSError("Cannot allocate memory")


def test_hanging_snapshot_is_ended(tmp_path, monkeypatch):
    network = SmallNetwork(tmp_path)
    monkeypatch.setattr(station_snapshot, "save_station", lambda *_: time.sleep(3_600))
    network.durable.begin_snapshot(network.now_ms)
    monkeypatch.setattr(station_snapshot, "LONGEST_SECONDS", 0)
    network.live(1)
    assert [json.loads(body)["why"] for *_, body in network.journal.events(0, 9)] == [
        "the snapshot was not written in 0 s"]  # fmt: skip
    assert network.durable.begin_snapshot(network.now_ms)
    network.durable.close(network.now_ms)

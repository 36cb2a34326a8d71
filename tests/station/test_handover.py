"""A program of another version takes over what a station left when it stopped: queries, extents, tables and numbers.

Another version is this one under another head of its snapshots, so that neither reads those of the other.
"""

import json
import signal

import numpy as np
import pytest

from basestation.algebra.vector import Vector
from basestation.planner.catalog import read_schema
from basestation.station import station_snapshot
from basestation.station.declared_extents import TEXTS
from basestation.station.handover import HANDOVER
from basestation.station.journal import Command, Upload
from basestation.station.journal_file import JournalError
from basestation.station.query_changes import TAKEN_OVER
from basestation.station.recovery import PROGRAM
from basestation.station.uploads import encode_table
from moteloom.client import connect
from tests.station.small_network import QUERIES, SCHEMA
from tests.station.test_archiving import ArchivedNetwork
from tests.station.test_run_command import QUERY, StationProcess

HOUR_MS = 3_600_000
TABLE = "limits: stored (site:integer, most:float, place:string)"
NEVER_AWAKE = "03:00-03:01"


def other_version(monkeypatch):
    monkeypatch.setattr(station_snapshot, "_HEAD", station_snapshot._HEAD.replace(b"station ", b"station 9"))


def stop(network):
    """End the process as SIGTERM does."""
    while network.roll():
        pass
    network.durable.close(network.now_ms)
    network.end()


def start_later(network, monkeypatch):
    """Start another version a minute later, during which the motes went on."""
    other_version(monkeypatch)
    network.now_ms += 60_000
    network.network.run_until(network.now_ms)
    network.start()


def windows(network, query):
    return [json.loads(line) for line in network.answers(query).splitlines()]


@pytest.fixture
def network(tmp_path):
    return ArchivedNetwork(tmp_path / "data")


@pytest.mark.promise("durable")
def test_queries_go_on_under_another_version(network, monkeypatch):
    for text in QUERIES:
        network.submit(text, name="mean" if "AVG" in text else None)
    network.submit("SELECT temp FROM field [NOW] FOR 10 MIN")
    network.live(65)
    network.change("pause", 2)
    network.change("stop", 1)
    before = {number: network.answers(number) for number in range(1, 5)}
    ends, readings = network.query(4)["ends"], network.readings()
    stop(network)
    start_later(network, monkeypatch)
    assert network.events().count(TAKEN_OVER) == 1
    network.live(120)
    states = [network.query(number)["state"] for number in range(1, 5)]
    assert states == ["stopped", "paused", "running", "running"]
    assert (network.query(3)["name"], network.query(4)["ends"]) == ("mean", ends)
    for number, lines in before.items():
        found = windows(network, number)
        assert network.answers(number).startswith(lines)
        assert [line["number"] for line in found] == list(range(1, len(found) + 1))
    assert windows(network, 3)[-1]["coverage"]["field"] == [6, 6]
    ticks = [line["tick"] for line in windows(network, 4) if line["revision"] == 0]
    assert ticks == list(range(ticks[0], ticks[-1] + 1, 10)) and ticks[-1] * 1_000 > network.now_ms - 20_000
    assert network.readings()[: len(readings)] == readings
    assert network.submit("SELECT volt FROM field [NOW]") == 5
    network.restart()  # the new version reads its own state
    network.live(20)
    assert network.events().count(TAKEN_OVER) == 1
    assert [network.query(number)["state"] for number in (2, 3)] == ["paused", "running"]
    network.end()


@pytest.mark.promise("durable")
def test_declared_extents_and_tables_are_taken_over(network, monkeypatch):
    network.durable.take_data(Command("declare", network.now_ms, TABLE), TABLE)
    columns = {
        "site": Vector(np.array([3, 4])),
        "most": Vector(np.array([20.5, 0.0]), np.array([True, False])),
        "place": Vector(np.array(["hall", "über der Tür"], object)),
    }
    network.durable.take_data(Upload("load", network.now_ms, "limits", encode_table(columns)), "limits")
    text = "SELECT field.site, place, most FROM field [NOW], limits [SCAN 10 SEC] WHERE field.site = limits.site"
    network.submit(text)
    network.live(65)
    stop(network)
    start_later(network, monkeypatch)
    network.live(60)
    rows = [row for line in windows(network, 1)[-4:] for row in line.get("rows", line.get("added"))]
    assert sorted(set(map(tuple, rows)), key=str) == [(3, "hall", 20.5), (4, "über der Tür", None)]
    assert network.durable.station.world.catalog.extents["limits"].name == "limits"
    network.end()


@pytest.mark.promise("durable")
def test_query_that_cannot_go_on_fails_with_its_reason(network, monkeypatch):
    """One has a column that the schema has no more, one was draining, one sleeps outside its hours."""
    network.submit("SELECT volt FROM field [NOW]")
    network.submit("SELECT temp FROM field [NOW]")
    network.durable.submit("SELECT site FROM field [NOW]", network.now_ms, active=NEVER_AWAKE)
    network.live(35)
    network.change("drain", 2)
    stop(network)
    network.catalog = read_schema(SCHEMA.replace("volt:integer", "charge:integer"))
    start_later(network, monkeypatch)
    network.live(20)
    assert [network.query(number)["state"] for number in (1, 2, 3)] == ["failed", "stopped", "paused"]
    assert "volt" in network.query(1)["reason"] and network.query(2)["reason"] == TAKEN_OVER
    assert network.query(3)["reason"] == "outside its active hours"
    network.end()


@pytest.mark.promise("durable")
@pytest.mark.parametrize("what", ["killed", "went on", "not archived", "text unknown"])
def test_station_that_left_no_hand_over_is_refused(what, network, monkeypatch):
    network.durable.take_data(Command("declare", network.now_ms, TABLE), TABLE)
    network.submit(QUERIES[2])
    network.live(30)
    network.journal.state_fact(PROGRAM, "0.0.7")
    if what == "text unknown":
        network.journal.state_fact(TEXTS, "{}")
    if what not in ("not archived", "killed"):
        network.roll()
    if what != "killed":
        network.durable.close(network.now_ms)
    network.durable.snapshot(network.now_ms)
    network.restart()
    assert (network.journal.fact(HANDOVER) is None) == (what != "went on")
    network.live(20)
    network.durable.snapshot(network.now_ms)
    network.end()
    other_version(monkeypatch)
    with pytest.raises(JournalError, match="no snapshot") as refused:
        network.start()
    assert "start with `moteloom 0.0.7`, stop it by SIGTERM, and start this one" in refused.value.help


@pytest.mark.promise("durable")
@pytest.mark.parametrize("point", ["restarted links", "no snapshot"])
def test_start_that_ends_while_it_takes_over_is_repeated(point, network, monkeypatch):
    network.submit(QUERIES[2])
    network.live(65)
    before = network.answers(1)
    stop(network)

    class EndError(Exception):
        pass

    def end(*_, **__):
        raise EndError

    with monkeypatch.context() as patch:
        where = "forget_snapshots" if point == "restarted links" else "save_snapshot"
        patch.setattr(f"basestation.station.journal.Journal.{where}", end)
        with pytest.raises(EndError):
            start_later(network, patch)
        network.end()
    start_later(network, monkeypatch)
    network.live(60)
    assert network.answers(1).startswith(before) and network.answers(1) != before
    assert network.query(1)["state"] == "running"
    network.end()


OTHER = """
import sys
from basestation.station import station_snapshot
station_snapshot._HEAD = station_snapshot._HEAD.replace(b"station ", b"station 9")
from gateway.cli import main
sys.exit(main())
"""


@pytest.mark.promise("durable")
@pytest.mark.timeout(300)
def test_command_of_another_version_goes_on(tmp_path):
    station = StationProcess(tmp_path, speed=100)
    station.start()
    try:
        with connect(f"http://127.0.0.1:{station.port}", data=station.data) as client:
            updates = client.submit(QUERY).updates()
            found = [next(updates) for _ in range(2)]
            assert station.end(signal.SIGTERM) == 0
            station.program = ("-c", OTHER)
            station.start()
            found += [next(updates) for _ in range(3)]
            assert [update.number for update in found] == [1, 2, 3, 4, 5]
            events = [event["event"] for event in client.get("/v1/events")["events"]]
            assert events.count(TAKEN_OVER) == 1
    finally:
        station.end(signal.SIGKILL)

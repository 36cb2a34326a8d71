"""The truth about motes: health from their data against their schedule, what they missed, and their latest values."""

import json

import numpy as np
import pytest

from acquisition.batch import Batch
from basestation.cli.topology import draw_tree
from basestation.station import mote_status
from basestation.station.latest_readings import LatestReadings
from basestation.station.mote_description import describe_latest, describe_motes, describe_topology
from basestation.station.reading_account import DeliveryKind, ReadingAccount
from tests.station.small_network import QUERIES, SmallNetwork


class Wire:
    """Loses all frames while it is cut; motes keep theirs."""

    def __init__(self, wire):
        self._wire, self.is_cut = wire, False

    def receive(self):
        return b"" if self.is_cut else self._wire.receive()

    def send(self, data):
        if not self.is_cut:
            self._wire.send(data)


@pytest.fixture
def network(tmp_path):
    network = SmallNetwork(tmp_path)
    network.cut = Wire(network.wire)
    network.durable.connect(network.cut)
    return network


def motes(network):
    return {mote["mote"]: mote for mote in describe_motes(network.durable.station, network.now_ms)}


def states(network):
    return [mote["state"] for mote in motes(network).values()]


def test_mote_is_late_then_lost_and_back_when_it_speaks(network):
    """
    every 10 s, wait 5 s:  ok ── 15 s without a frame ──▶ late ── 45 s ──▶ lost ── frame ──▶ ok
    """
    network.live(2)
    assert set(states(network)) <= {"unknown", "idle"}
    network.submit(QUERIES[0])
    network.live(40)
    assert states(network) == ["ok", "ok"]
    network.cut.is_cut = True
    seen = {}
    heard = network.now_ms
    for _ in range(60):
        network.live(1)
        seen.setdefault(states(network)[0], (network.now_ms - heard) / 1_000)
    assert list(seen) == ["ok", "late", "lost"] and 5 <= seen["late"] <= 16 and seen["late"] + 29 <= seen["lost"] <= 46
    assert motes(network)[3]["late_seconds"] > 30
    network.restart()
    network.durable.connect(network.cut)
    network.live(1)
    assert states(network) == ["lost", "lost"] and network.events().count("mote lost") == 2
    network.cut.is_cut = False
    network.live(12)
    assert states(network) == ["ok", "ok"] and network.events().count("mote back") == 2
    assert [json.loads(body)["mote"] for *_, kind, body in network.journal.events(0, 99) if kind == "mote back"] == [
        3,
        4,
    ]


def test_other_schedules_bring_no_lost_mote_back(network, monkeypatch):
    """A plan with longer waits, or without the mote, is no frame of it."""
    network.submit(QUERIES[0])
    network.live(40)
    network.cut.is_cut = True
    network.live(60)
    assert states(network) == ["lost", "lost"]
    monkeypatch.setattr(mote_status, "find_reporting_waits", lambda world: {3: 1_000, 4: 1_000})
    network.durable.station.motes._known = None  # other schedules
    network.live(5)
    assert states(network) == ["lost", "lost"]
    network.change("stop", 1)
    network.live(5)
    assert set(states(network)) == {"idle"} and "mote back" not in network.events()
    network.submit(QUERIES[0])
    network.cut.is_cut = False
    network.live(40)
    assert states(network) == ["ok", "ok"]


def test_lost_mote_that_was_idle_is_back_when_it_speaks(network):
    """
    query    ├── 1 ──┤ idle ├── 2 ──┤ idle ├── 3
    frames   ├──┤   cut                ├── again
    """
    first = network.submit(QUERIES[0])
    network.live(40)
    network.cut.is_cut = True
    network.live(60)
    network.change("stop", first)
    network.live(5)
    assert states(network) == ["idle", "idle"]
    second = network.submit(QUERIES[0])
    network.live(3)
    assert states(network) == ["lost", "lost"]
    network.restart()
    network.durable.connect(network.cut)
    network.live(60)
    assert states(network) == ["lost", "lost"]
    network.change("stop", second)
    network.live(5)
    assert (network.events().count("mote lost"), network.events().count("mote back")) == (2, 0)
    network.cut.is_cut = False
    network.submit(QUERIES[0])
    network.live(40)
    assert states(network) == ["ok", "ok"]
    assert (network.events().count("mote lost"), network.events().count("mote back")) == (2, 2)


def test_mote_without_a_schedule_may_be_silent(network):
    number = network.submit(QUERIES[0])
    network.live(30)
    network.change("stop", number)
    network.live(300)
    assert states(network) == ["idle", "idle"] and "mote lost" not in network.events()
    network.submit(QUERIES[0])  # idle for long, but nothing was due
    network.live(2)
    assert states(network) == ["ok", "ok"]


def test_description_has_times_links_and_versions(network):
    network.submit(QUERIES[0])
    network.live(60)
    mote = motes(network)[3]
    assert mote["heard"] <= mote["next_due"] and mote["late_seconds"] == 0
    assert mote["missed"]["of"] >= 3 and mote["missed"]["readings"] == 0
    assert mote["path"] == [3, 0] and mote["parent"] == 0
    assert mote["battery_mv"] is None, "simulated motes do not measure it"
    assert mote["schedule"]["wanted"] == mote["schedule"]["reported"] is not None
    assert abs(mote["clock_off_ms"]) < 1_000
    tree = describe_topology(network.durable.station)
    assert tree["gateways"] == [0] and tree["parents"] == [{"mote": 3, "parent": 0}, {"mote": 4, "parent": 0}]
    assert {"sender": 0, "receiver": 3, "ratio": 1.0} in tree["links"] and mote["link"]["down"] == 1.0


def test_latest_values_have_unit_of_the_attribute_and_time(network):
    network.submit(QUERIES[0])
    network.live(60)
    first = describe_latest(network.durable.station, "field")
    assert [site["site"] for site in first] == [3, 4] and all(
        0 < site["values"]["temp"]["value"] < 50 for site in first
    )
    network.live(20)
    assert (
        describe_latest(network.durable.station, "field")[0]["values"]["temp"]["time"]
        > first[0]["values"]["temp"]["time"]
    )


def test_late_reading_is_not_the_latest():
    latest = LatestReadings()

    def batch(*rows):
        tick, site, value = (np.array(column) for column in zip(*rows, strict=True))
        return Batch(tick, site, tick, tick * 0 + 1, {"v": value}, {"v": value != 0})

    latest.record([("e", batch((10, 2, 5), (20, 1, 7), (20, 2, 0)))])
    latest.record([("e", batch((15, 1, 9), (15, 2, 9)))])
    latest.record([("e", batch((20, 1, 7)).take(slice(0, 0))), ("f", batch((1, 1, 1)))])
    assert latest.of("e") == {1: {"v": (20, 7)}, 2: {"v": (20, None)}} and latest.of("none") == {}


def test_missed_counts_the_last_due_readings_only():
    account = ReadingAccount(lambda: None)
    sampling = type("Sampling", (), {"epochs": type("Grid", (), {"interval": 10, "start": 0})})
    account.set_sampling(sampling, -1)
    for first, count in ((0, 50), (800, 15)):  # 50 … 79 are missing
        account.record(first * 10 if first < 50 else first, count, 10, DeliveryKind.DELIVERED, 2_000)
    assert account.recent(949, 100) == (95, 30)
    assert account.recent(949, 20) == (20, 5)
    assert account.recent(949, 10) == (10, 0)


def test_routing_tree_is_drawn_with_its_links():
    topology = {
        "gateways": [0, 100],
        "motes": [3, 4, 5, 6, 9],
        "parents": [{"mote": mote, "parent": parent} for mote, parent in ((3, 0), (4, 3), (5, 3), (6, 0))],
        "links": [{"sender": 4, "receiver": 3, "ratio": 0.5}, {"sender": 3, "receiver": 4, "ratio": 0.25}],
    }
    assert list(draw_tree(topology)) == [
        "gateway 0",
        "├─ 3  up ?  down ?",
        "│  ├─ 4  up 0.50  down 0.25",
        "│  └─ 5  up ?  down ?",
        "└─ 6  up ?  down ?",
        "gateway 100",
        "without a path: 9",
    ]


def test_tree_of_a_running_network_is_drawn(network):
    network.submit(QUERIES[0])
    network.live(60)
    drawn = list(draw_tree(describe_topology(network.durable.station)))
    assert [line.split("  ")[0] for line in drawn] == ["gateway 0", "├─ 3", "└─ 4"]
    assert all("down 1.00" in line for line in drawn[1:])

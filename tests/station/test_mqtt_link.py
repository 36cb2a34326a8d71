"""A station and its motes on both sides of a real broker that fails: answers become those of an undisturbed run."""

import json
import time

import pytest

from gateway.daemon import GatewayDaemon
from gateway.transports import mqtt
from gateway.transports.mqtt import MqttGateway, MqttTransport
from tests.brokers import KINDS, BrokerWire, wait_until
from tests.station.small_network import LOOK_MS, QUERIES, SmallNetwork

SECONDS, SETTLING = 65, 60
"""Compared after motes have their programs, and lived on after that."""
MOST_WAITED = 600
"""Virtual seconds that a busy machine gets: the broker's threads then have less than their time."""
PAUSE = 0.003
"""Real seconds for each look of 250 ms in virtual time: the broker is slower than the motes' world, as in the field."""


class BrokeredNetwork(SmallNetwork):
    """The small network with a gateway's daemon and a broker between motes and station."""

    def __init__(self, folder, broker):
        self.broker = broker
        super().__init__(folder)
        gateway = MqttGateway(broker.settings(), 0)
        gateway.open()
        self.daemon = GatewayDaemon(self.wire, {0: gateway})
        self.gateway = gateway

    def start(self):
        super().start()
        self.link = MqttTransport(self.broker.settings())
        self.link.open()
        self.durable.connect(self.link)

    def end(self):
        self.link.connection.problem = "is killed"  # without a word, as a process that ends here
        self.link.connection._client._sock_close()
        self.link.close()
        super().end()

    def live(self, seconds):
        for _ in range(int(seconds * 1_000 / LOOK_MS)):
            self.now_ms += LOOK_MS
            self.network.run_until(self.now_ms)
            self.daemon.look()
            time.sleep(PAUSE)
            self.durable.step(self.now_ms)
            self.daemon.look()

    def close(self):
        """End both; the gateway says that it stops."""
        self.gateway.close()
        self.end()


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__.lower())
def broker(request, tmp_path, monkeypatch):
    monkeypatch.setattr(mqtt, "FIRST_BACKOFF_SECONDS", 0.02)
    monkeypatch.setattr(mqtt, "LONGEST_BACKOFF_SECONDS", 0.1)
    wire = BrokerWire(request.param, tmp_path / "broker")
    yield wire
    wire.close()


@pytest.fixture
def expected(tmp_path):
    network = SmallNetwork(tmp_path / "undisturbed")
    for text in QUERIES:
        network.submit(text)
    yield network
    network.end()


def live_until(is_true, network):
    """Live on until something is true, within limits."""
    for _ in range(MOST_WAITED):
        if is_true():
            return
        network.live(1)


def is_whole(network, query, ticks):
    """Whether every window of a query in a range of ticks has all its readings."""
    found = [coverage["field"] for tick, (_, coverage) in readings(network, query).items() if tick in ticks]
    return len(found) >= 2 and all(used == due for used, due in found)


def readings(network, query):
    """By tick, the newest rows of each window, and its coverage."""
    found = {}
    for line in map(json.loads, network.answers(query).splitlines()):
        if line["type"] == "window":
            rows = found.setdefault(line["tick"], ([], None))[0]
            for row in line.get("removed", ()):
                rows.remove(row)
            found[line["tick"]] = (sorted(rows + line.get("rows", line.get("added", []))), line["coverage"])
    return found


FAULTS = ["broker killed", "connection cut", "station killed", "slow broker", "duplicates"]


@pytest.mark.promise("broker")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("fault", FAULTS)
def test_answers_survive_a_broker_that_fails(fault, broker, expected, tmp_path, rng, monkeypatch):
    network = BrokeredNetwork(tmp_path / "station", broker)
    for text in QUERIES:
        network.submit(text)
    network.live(20)  # motes have their programs then: what is lost from now on is repeated, not begun later
    live_until(lambda: all(network.query(query)["state"] == "running" for query in (1, 2, 3)), network)
    begun = network.now_ms // 1_000
    if fault == "slow broker":
        broker.delay = 0.02
    if fault == "duplicates":
        send = network.gateway.send
        monkeypatch.setattr(network.gateway, "send", lambda data: (send(data), send(data)))
    for _ in range(3):
        network.live(rng.randrange(4, 12))
        if fault == "broker killed":
            broker.kill()
            network.live(rng.randrange(1, 12))
            broker.revive()
        elif fault == "connection cut":
            broker.cut()
        elif fault == "station killed":
            network.restart()
    broker.delay = 0.0
    wait_until(lambda: network.link.connection.problem is None and network.gateway.connection.problem is None)
    network.live(begun + SECONDS + SETTLING - network.now_ms / 1_000)
    compared = {query: range(begun + 5 + window, begun + SECONDS) for query, window in ((1, 0), (3, 20))}
    live_until(lambda: all(is_whole(network, query, ticks) for query, ticks in compared.items()), network)
    expected.live((network.now_ms - expected.now_ms) / 1_000)
    for query, disturbed in compared.items():
        ours, theirs = readings(network, query), readings(expected, query)
        ticks = [tick for tick in theirs if tick in disturbed]
        assert len(ticks) >= 2
        for tick in ticks:  # clocks get their time through the broker, so a mote measures a moment earlier or later
            assert ours[tick][1] == theirs[tick][1] == {"field": [2, 2] if query == 1 else [6, 6]}, tick
            for row, other in zip(ours[tick][0], theirs[tick][0], strict=True):
                assert row == pytest.approx(other, abs=0.3)
    duplicates = sum(link.duplicates for link in network.durable.station.links.by_mote.values())
    assert duplicates > 0 or fault != "duplicates"
    network.close()

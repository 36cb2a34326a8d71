"""A query that ran out of memory at a durable station, and the commands that come before its failure is shown."""

import pytest

from basestation.execution.engine import Engine
from basestation.execution.query_block import QueryBlock
from tests.station.small_network import SmallNetwork
from tests.station.test_query_life import WINDOW, window_ticks

OTHER = "SELECT MAX(volt) AS v FROM field [FROM NOW-20 TO NOW SLIDE 20 SEC]"


def fail(*_):
    raise MemoryError("Unable to allocate 9 TiB")


def command(network, kind, number, since=""):
    """Carry a command out; return the number of the query in place of the first one, or its own."""
    if kind == "replace":
        return network.durable.replace(number, WINDOW + since, network.now_ms)
    network.change(kind, number)
    return number


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize(
    ("kind", "state"), [("replace", "failed"), ("drain", "failed"), ("stop", "stopped"), ("pause", "paused")]
)
def test_command_for_a_query_that_failed_at_submission(tmp_path, monkeypatch, kind, state):
    network = SmallNetwork(tmp_path)
    other = network.submit(OTHER)
    network.live(30)
    with monkeypatch.context() as scarce:
        scarce.setattr(Engine, "_run", fail)
        number = network.submit(WINDOW)
    last = command(network, kind, number)
    network.live(50)
    if kind == "pause":
        network.change("resume", number)
        network.live(50)
    assert network.query(number)["state"] == (state if kind != "pause" else "running")
    assert kind not in ("replace", "drain") or "9 TiB" in network.query(number)["reason"]
    assert (len(window_ticks(network, last)) >= 2) == (kind in ("replace", "pause"))
    ticks = window_ticks(network, other)
    assert ticks == list(range(ticks[0], ticks[0] + 20 * len(ticks), 20)) and len(ticks) >= 3


@pytest.mark.promise("queries-apart")
def test_query_fails_while_state_is_pruned_for_its_successor(tmp_path, monkeypatch):
    network = SmallNetwork(tmp_path)
    number = network.submit(WINDOW)
    network.live(50)
    with monkeypatch.context() as scarce:
        scarce.setattr(QueryBlock, "tidy", fail)
        successor = command(network, "replace", number, since=" SINCE NOW - 5 SEC")
    network.live(50)
    assert network.query(number)["state"] == "failed" and "9 TiB" in network.query(number)["reason"]
    assert network.query(successor)["state"] == "running" and len(window_ticks(network, successor)) >= 2


@pytest.mark.promise("queries-apart")
def test_finished_query_fails_before_it_is_forgotten(tmp_path, monkeypatch):
    network = SmallNetwork(tmp_path)
    number = network.submit(WINDOW)
    network.live(50)
    network.change("drain", number)
    network.live(60)
    assert network.query(number)["state"] == "finished"
    with monkeypatch.context() as scarce:
        scarce.setattr(QueryBlock, "tidy", fail)
        other = network.submit(OTHER + " SINCE NOW - 5 SEC")
    network.live(50)
    assert network.query(number)["state"] == "failed" and network.query(other)["state"] == "running"

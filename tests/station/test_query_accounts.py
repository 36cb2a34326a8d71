"""Accounts of queries: counts of what came and what was answered, and shares that add up to the whole."""

import json
from collections import Counter

import pytest

from basestation.controller.network_plan import PlanCache
from basestation.station.assembly import make_factory
from basestation.station.durable import DurableStation
from basestation.station.journal import Journal
from basestation.station.query_accounts import find_share, share_network
from basestation.testbed.live_motes import MoteScenario
from tests.docs.pages import ROOT
from tests.station.small_network import BEGIN_MS, QUERIES, SmallNetwork

WINDOW = QUERIES[2]
SCENARIO = ROOT / "examples/roadbridge/night.scenario.toml"


def counted(network, number):
    """The counts of a query by its published lines."""
    lines = [json.loads(line) for line in network.answers(number).splitlines()]
    windows = [line for line in lines if line["type"] == "window"]
    rows = sum(len(line.get(key, ())) for line in windows for key in ("rows", "added", "removed"))
    rows += sum(line["type"] == "tuple" for line in lines)
    revised = sum(line["revision"] > 0 for line in windows)
    return {"windows": len(windows) - revised, "revisions": revised, "rows": rows}


@pytest.mark.parametrize("text", QUERIES)
def test_account_counts_what_clients_read(text, tmp_path):
    network = SmallNetwork(tmp_path)
    number = network.submit(text)
    network.live(60)
    network.restart()
    network.live(60)
    account = network.durable.station.accounts.of(number)
    assert {name: getattr(account, name) for name in ("windows", "revisions", "rows")} == counted(network, number)
    assert account.tuples_in in range(18, 25) and account.partials_in == 0  # two sites each ten seconds


def test_account_of_an_ended_query_stays(tmp_path):
    network = SmallNetwork(tmp_path)
    number = network.submit(QUERIES[0])
    network.live(60)
    network.change("stop", number)
    network.live(1)
    found = network.query(number)["account"]
    assert found["windows"] == counted(network, number)["windows"] > 3 and found["tuples_in"] > 6
    assert number not in network.durable.station.accounts._by_number


def test_shares_of_time_and_state_add_up(tmp_path):
    network = SmallNetwork(tmp_path)
    wide = WINDOW.replace("NOW-20", "NOW-40")
    numbers = [network.submit(text) for text in (WINDOW, WINDOW, wide, QUERIES[1])]
    network.live(90)
    engine = network.durable.station.engine
    shares = [find_share(engine, number) for number in numbers]
    assert shares[0].bytes == shares[1].bytes and all(share.time > 0 for share in shares)
    graph, keys = engine._graph, set()
    for query in engine._queries.values():
        keys.update(graph._keys_below(query.key))
    assert sum(share.time for share in shares) == pytest.approx(sum(graph._operators[key].counts.time for key in keys))
    network.change("pause", numbers[1])
    assert find_share(engine, numbers[1]) is None
    assert find_share(engine, numbers[0]).bytes > shares[0].bytes  # its window is no longer shared


def test_shares_of_the_network_add_up_to_its_forecast(tmp_path):
    scenario = MoteScenario(str(SCENARIO))
    factory = make_factory(scenario.deployment, False)
    durable = DurableStation(Journal(tmp_path), factory, BEGIN_MS)
    assert share_network(durable.station.world, 0) == {}
    extent = next(extent.name for extent in factory.catalog if extent.interval)
    for text in (f"SELECT * FROM {extent} [NOW]", f"SELECT COUNT(*) AS n FROM {extent} [NOW]"):
        durable.submit(text, BEGIN_MS)
    world, now = durable.station.world, durable.station.engine.clock + 1
    shares = share_network(world, now)
    cost = PlanCache(now).plan(world).cost
    assert sum(share.joules for share in shares.values()) == pytest.approx(cost.joules)
    assert sum(share.messages for share in shares.values()) == pytest.approx(cost.messages)
    assert Counter(shares) == {1: shares[1], 2: shares[2]} and shares[1].joules == pytest.approx(shares[2].joules)
    durable.journal.close()

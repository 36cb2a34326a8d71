"""Queries of one clock tick are planned jointly: they never cost much more than to collect all readings."""

from itertools import permutations

import pytest

from basestation.controller.aggregate_placement import Candidate, add_query
from basestation.controller.network_plan import PlanCache
from basestation.controller.reoptimization import find_cheaper, plan_jointly
from basestation.controller.what_if import initial_world, plan_what_if
from basestation.explain.marginal_cost import HourlyCost
from basestation.planner.binder import bind_text
from basestation.planner.deployed_catalog import read_deployed_catalog
from bench.network import CASES, MIXED
from innet.deployment.toml_reader import read_deployment
from tests.docs.pages import ROOT

MOST = 1.2
MEAN = "SELECT AVG(temp) AS mean FROM lab [NOW]"
ALL = "SELECT site, temp, light FROM lab"
WIDE = "SELECT SUM(temp), SUM(light), VARIANCE(temp) FROM lab [FROM NOW-9 MIN TO NOW SLIDE 10 MIN]"


@pytest.fixture(scope="module")
def office():
    deployment = read_deployment(ROOT / "examples/lab54/deployment.toml")
    return deployment, read_deployed_catalog(deployment)


def hourly(office, texts):
    deployment, catalog = office
    plans = [plan for text in texts for plan in bind_text(text, catalog)]
    return HourlyCost.of(plan_what_if(plans, deployment, catalog).prediction)


@pytest.mark.promise("cheapest-placement")
@pytest.mark.parametrize("texts", [MIXED, MIXED[::-1], MIXED[:9]], ids=["folds first", "folds last", "folds alone"])
def test_twenty_queries_cost_at_most_1_2_times_full_collection(office, texts):
    one, many = hourly(office, CASES["collect"]), hourly(office, texts)
    for figure in ("messages", "bytes", "joules"):
        assert getattr(many, figure) <= MOST * getattr(one, figure)


@pytest.mark.promise("cheapest-placement")
def test_wider_fold_feeds_narrower_aggregation():
    deployment = read_deployment(ROOT / "examples/roadbridge/deployment.toml")
    bridge = deployment, read_deployed_catalog(deployment)
    window = "FROM road [FROM NOW-9 MIN TO NOW SLIDE 10 MIN]"
    texts = [
        f"SELECT AVG(temp), MAX(temp) {window}",
        f"SELECT AVG(temp) {window}",
        "SELECT site FROM road WHERE vibration > 20",
    ]
    costs = {hourly(bridge, order) for order in permutations(texts)}
    one = hourly(bridge, [texts[0], texts[2]])
    assert costs == {one}
    assert one.joules < hourly(bridge, ["SELECT site, temp FROM road", texts[2]]).joules


def asked_apart(office, texts):
    """A world with each query submitted in a clock tick of its own, without re-optimization."""
    deployment, catalog = office
    world = initial_world(deployment, catalog)
    for number, text in enumerate(texts, 1):
        world = add_query(bind_text(text, catalog)[0], world, PlanCache(number)).world
    return world


@pytest.mark.promise("cheapest-placement")
def test_fold_yields_to_readings_that_are_sent_anyway(office):
    world = asked_apart(office, [MEAN, ALL])
    assert (
        world.live[1].partial_sources and PlanCache(0).plan(world).cost.messages > 1.2 * hourly(office, [ALL]).messages
    )
    found = find_cheaper(world, PlanCache(3), 0.0)
    assert list(found.placements) == [1] and not found.placements[1].query.partial_sources
    changed = world.with_query(found.placements[1].query)
    assert (
        found.now == PlanCache(0).plan(world).cost
        and found.then == PlanCache(0).plan(changed).cost
        and found.then.joules < found.now.joules
    )
    assert find_cheaper(changed, PlanCache(3), 0.0) is None


@pytest.mark.promise("cheapest-placement")
def test_several_folds_yield_together(office):
    world = asked_apart(office, MIXED[:9])
    assert sum(bool(query.partial_sources) for query in world.live.values()) > 1
    found = find_cheaper(world, PlanCache(10), 0.0)
    assert not any(feeding.query.partial_sources for feeding in found.placements.values())
    assert found.placements.keys() == {number for number, query in world.live.items() if query.partial_sources}


def test_small_saving_keeps_placement(office):
    world = asked_apart(office, [MEAN, ALL])
    saved = 1 - (found := find_cheaper(world, PlanCache(3), 0.0)).then.joules / found.now.joules
    assert (
        find_cheaper(world, PlanCache(3), saved * 1.01) is None
        and find_cheaper(world, PlanCache(3), saved * 0.99) is not None
    )


def test_only_queries_of_one_tick_are_planned_jointly(office):
    deployment, catalog = office
    world = asked_apart(office, [MEAN, ALL])
    assert plan_jointly(Candidate(world), PlanCache(2)) == Candidate(
        world
    )  # a mote may already have the program of the mean
    world = initial_world(deployment, catalog)
    for text in (MEAN, WIDE, ALL):
        candidate = add_query(bind_text(text, catalog)[0], world, PlanCache(5))
        world = candidate.world
    changed = plan_jointly(candidate, PlanCache(5))
    assert changed.placements.keys() == {1, 2, 3} and not any(
        query.partial_sources for query in changed.world.live.values()
    )

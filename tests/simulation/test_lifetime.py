"""LIFETIME: a query is sampled as rarely as the batteries need; a query that would break a lifetime is refused."""

import re
from dataclasses import replace

import pytest

from basestation.controller.aggregate_placement import add_query
from basestation.controller.dispatch import dispatch
from basestation.controller.lifetime import (
    LifetimeError,
    fit_lifetime,
    predict_worst_days,
    recheck_lifetimes,
    with_interval,
)
from basestation.controller.network_plan import PlanCache
from basestation.controller.what_if import initial_world, plan_what_if
from basestation.controller.world import World
from basestation.explain import explain_statement, render_statement
from basestation.planner.binder import bind_text
from basestation.planner.deployed_catalog import read_deployed_catalog
from basestation.station.operational_events import BROKEN, KEPT, OperationalEventLog
from basestation.testbed.scenarios import measure, scenario_around
from basestation.testbed.vector_testbed import VectorTestbed
from gateway.diagnostics import DiagnosticError
from innet.deployment.toml_reader import read_deployment
from innet.routing.topology import LinksReport, NeighbourLink
from simulator.scenario import ScenarioQuery
from tests.docs.pages import ROOT

READINGS = "SELECT site, temp, light FROM lab"
MEAN = "SELECT AVG(temp) FROM lab [NOW]"


@pytest.fixture(scope="module")
def office():
    return read_deployment(ROOT / "examples/lab54/deployment.toml")


@pytest.fixture(scope="module")
def catalog(office):
    return read_deployed_catalog(office)


def asked(text, catalog):
    [plan] = bind_text(text, catalog)
    return plan


@pytest.mark.promise("lifetime")
@pytest.mark.parametrize("before", [(), (MEAN,)], ids=["alone", "beside a mean"])
@pytest.mark.parametrize(("text", "step"), [(READINGS, 30), (MEAN, 30), (f"{READINGS} ACQUIRE EVERY 2 MIN", 120)])
@pytest.mark.parametrize("days", [200, 400, 630])
def test_it_is_the_shortest_multiple_that_lasts(office, catalog, before, text, step, days):
    world = initial_world(office, catalog)
    for other in before:
        world = add_query(asked(other, catalog), world, PlanCache(0)).world
    plan = asked(f"{text} LIFETIME {days} DAY", catalog)
    lasts = {
        times: predict_worst_days(with_interval(plan, step * times, 1_000), world, PlanCache(0))
        for times in range(1, 6)
    }
    enough = [times for times, reached in lasts.items() if reached >= days]
    if enough:
        found = fit_lifetime(plan, world, PlanCache(0))
        assert found.options.acquire_every == step * min(enough) and found.options.lifetime == plan.options.lifetime
        assert (found.statement, found.extensions) == (plan.statement, plan.extensions)  # not those of ACQUIRE EVERY
    else:  # a mean that goes on all the time uses more than that
        with pytest.raises(LifetimeError, match=rf"motes last [\d,.]+ days at most, and are to last {days:,}\.0"):
            fit_lifetime(plan, world, PlanCache(0))


BRIDGE = "SELECT {} FROM road"


@pytest.mark.promise("lifetime")
@pytest.mark.parametrize(
    ("before", "text"),
    [
        (f"{BRIDGE.format('temp')} ACQUIRE EVERY 6 MIN", BRIDGE.format("vibration")),  # at 5, motes wake up each minute
        (None, f"{BRIDGE.format('AVG(vibration)')} [FROM NOW-11 MIN TO NOW SLIDE 12 MIN]"),
        (None, f"{BRIDGE.format('AVG(vibration)')} [FROM NOW TO NOW SLIDE 5 MIN]"),
        (None, f"{BRIDGE.format('vibration')} DELIVER WITHIN 10 MIN"),
    ],
    ids=["beside six minutes", "in windows of twelve", "at one tick of five", "some epochs in a round"],
)
def test_lifetime_takes_shortest_multiple_even_if_not_monotonic(before, text):
    bridge = read_deployment(ROOT / "examples/roadbridge/deployment.toml")
    catalog = read_deployed_catalog(bridge)
    world = initial_world(bridge, catalog)
    if before:
        world = add_query(asked(before, catalog), world, PlanCache(0)).world
    plan = asked(f"{text} LIFETIME 1 DAY", catalog)
    lasts = {
        times: predict_worst_days(with_interval(plan, 60 * times, 1_000), world, PlanCache(0)) for times in range(1, 21)
    }
    assert any(lasts[times] > lasts[times + 1] for times in range(1, 20))
    for goal in sorted({int(days) for days in lasts.values()}):
        [first, *_] = [times for times, days in lasts.items() if days >= goal]
        found = fit_lifetime(asked(f"{text} LIFETIME {goal} DAY", catalog), world, PlanCache(0))
        assert found.options.acquire_every == 60 * first


@pytest.mark.promise("lifetime")
def test_query_that_lasts_only_beside_others_is_accepted(office, catalog):
    """Beside three minutes, those lasts longest that are sampled at multiples of them: of the others none reaches 900 days."""
    other = asked("SELECT site, temp FROM lab ACQUIRE EVERY 3 MIN", catalog)
    world = add_query(other, initial_world(office, catalog), PlanCache(0)).world
    for days, every in ((600, 60), (900, 90), (1_500, 180)):
        assert (
            fit_lifetime(
                asked(f"SELECT light FROM lab LIFETIME {days} DAY", catalog), world, PlanCache(0)
            ).options.acquire_every
            == every
        )


@pytest.mark.promise("lifetime")
@pytest.mark.parametrize("text", [READINGS, MEAN])
def test_motes_last_as_long_as_was_promised(office, catalog, text):
    plan = asked(f"{text} LIFETIME 1000 DAY", catalog)
    placed = plan_what_if([plan], office, catalog)
    found = measure(placed, scenario_around(office, None), 3, 60, lambda over: None)
    hours = found.rounds * found.round_ms / 3_600_000
    days = min(office.motes[mote].battery / used * hours / 24 for mote, used in found.joules.items())
    assert 980 < days < 1_300


def station(office, *queries):
    scenario = replace(
        scenario_around(office, None), queries=tuple(ScenarioQuery(text, text, 0, None) for text in queries)
    )
    return VectorTestbed(scenario, 1, traced=False).station


@pytest.mark.promise("lifetime")
def test_a_station_samples_that_rarely_and_keeps_its_promise(office):
    running = station(office, f"{READINGS} LIFETIME 600 DAY")
    [sampling] = {s for schedule in running.world.scheduled.schedules.values() for s in schedule.samplings}
    assert sampling.epochs.interval == 60 == running.world.queries[1].plan.options.acquire_every
    before = running.world
    with pytest.raises(DiagnosticError) as refused:
        running.submit("SELECT humidity FROM lab", 1)
    [why] = refused.value.diagnostics
    assert why.code == "SN513" and why.message.startswith("query 1 asks for motes that last 600.0 days; mote ")
    assert running.world.queries == before.queries and running.world.desired == before.desired
    assert running.submit("SELECT site, temp FROM lab ACQUIRE EVERY 1 MIN", 2).number == 2
    running.stop(1, 3)
    assert running.submit("SELECT humidity FROM lab", 4).number == 3


@pytest.mark.promise("agenda")
def test_a_promise_is_judged_again_when_the_tree_has_changed(office):
    """Half of the frames are lost from some day on. No query was submitted since."""
    running = station(office, f"{READINGS} LIFETIME 600 DAY", "SELECT humidity FROM lab ACQUIRE EVERY 10 MIN")
    before = running.world
    assert [query.lifetime_violation for query in before.queries.values()] == [None, None]
    reports = [
        (mote, {other: NeighbourLink(other, quality // factor) for other, quality in heard.items()})
        for factor in (2, 1)
        for mote, heard in before.topology.links.items()
    ]
    half = len(reports) // 2
    worse = recheck_lifetimes(dispatch(before.with_links(_numbered(reports[:half], 1)), PlanCache(10)), PlanCache(10))
    better = recheck_lifetimes(dispatch(worse.with_links(_numbered(reports[half:], 2)), PlanCache(20)), PlanCache(20))
    assert re.fullmatch(
        r"query 1 asks for motes that last 600\.0 days; mote \d+ would last [\d.]+", worse.queries[1].lifetime_violation
    )
    assert worse.queries[2].lifetime_violation is None and better.queries[1].lifetime_violation is None
    incidents = OperationalEventLog()
    for now_ms, (was, now) in enumerate(((before, worse), (worse, worse), (worse, better))):
        incidents.compare(was, now, now_ms)
    assert [(each.at_ms, each.what, each.query) for each in incidents.latest] == [(0, BROKEN, 1), (2, KEPT, 1)]
    assert incidents.latest[0].why == worse.queries[1].lifetime_violation
    assert incidents.counts == {BROKEN: 1, KEPT: 1}


def _numbered(reports, number):
    return [LinksReport(mote, tuple(heard.values()), (1, number)) for mote, heard in reports]


@pytest.mark.promise("lifetime")
def test_impossible_lifetime_is_refused_with_the_possible(office):
    with pytest.raises(DiagnosticError) as refused:
        station(office, MEAN).submit(f"{READINGS} LIFETIME 9999 DAY", 1)
    [why] = refused.value.diagnostics
    assert why.code == "SN513" and "days at most, and are to last 9,999.0" in why.message


def test_query_that_no_interval_fits_states_why(office, catalog):
    with pytest.raises(LifetimeError, match=r"a sample arrives after [\d,]+ ms, and is to arrive within 1,000"):
        fit_lifetime(
            asked(f"{READINGS} DELIVER WITHIN 1 SEC LIFETIME 10 DAY", catalog),
            initial_world(office, catalog),
            PlanCache(0),
        )


def test_how_rarely_is_explained(office, catalog):
    told = explain_statement(asked(f"{READINGS} LIFETIME 800 DAY", catalog), 1, office, catalog)
    assert told["asked"]["acquire_every"] == 90
    text = render_statement(told)
    assert "  sampled every 90 ticks\n" in text and "acquire temp, light of lab every 90 ticks" in text
    assert min(each["lifetime_days"] for each in told["motes"]["energy"]) >= 800
    told = explain_statement(asked(f"{READINGS} LIFETIME 99999 DAY", catalog), 1, office, catalog)
    assert told["motes"]["refused"].startswith("motes last ")


def test_lifetime_needs_sleeping_motes(office, catalog):
    plan = asked(f"{READINGS} LIFETIME 100 DAY", catalog)
    with pytest.raises(LifetimeError, match="this station runs without a schedule"):
        fit_lifetime(plan, replace(initial_world(office, catalog), duty_cycled=False), PlanCache(0))
    assert fit_lifetime(plan, World(catalog), PlanCache(0)) is plan

"""One network plan per candidate state: its parts are computed once, and shared where candidate states agree."""

from collections import Counter
from dataclasses import replace

import pytest

from basestation.controller import network_plan, sampling_demand
from basestation.controller.aggregate_placement import add_query
from basestation.controller.network_plan import NetworkPlan, PlanCache
from basestation.controller.requirements import split_plan
from basestation.controller.what_if import initial_world
from basestation.downlink import deploy, register_queries
from basestation.execution.engine import Engine
from basestation.language import printer
from basestation.planner import binder
from basestation.planner.binder import bind_text
from basestation.planner.deployed_catalog import read_deployed_catalog
from basestation.planner.pushdown_policy import PushdownPolicy
from basestation.planner.rewriter import rewrite
from innet.deployment.toml_reader import read_deployment
from innet.errors import PlacementError
from innet.placement.agenda_scheduler import schedule_placement
from innet.placement.energy_prediction import predict_energy
from tests.docs.pages import ROOT

LAB = (
    "SELECT AVG(temp) AS mean FROM lab [NOW]",
    "SELECT AVG(temp), MAX(light) FROM lab [FROM NOW-9 MIN TO NOW SLIDE 10 MIN]",
)
BRIDGE = ("SELECT AVG(temp) FROM road [NOW]", "SELECT MAX(vibration) FROM road [FROM NOW-9 MIN TO NOW SLIDE 10 MIN]")


def world_of(name):
    deployment = read_deployment(ROOT / f"examples/{name}/deployment.toml")
    return initial_world(deployment, read_deployed_catalog(deployment))


@pytest.fixture
def counts(monkeypatch):
    """How often each costly computation ran."""
    found = Counter()

    def count(module, name):
        computed = getattr(module, name)

        def counted(*arguments, **options):
            found[name] += 1
            return computed(*arguments, **options)

        monkeypatch.setattr(module, name, counted)

    count(sampling_demand, "build_schedules")
    count(network_plan, "schedule_placement")
    count(network_plan, "compile_programs")
    count(binder, "parse")
    count(printer, "print_statement")
    return found


@pytest.mark.parametrize(
    ("name", "texts", "schedules", "agendas"),
    [("lab54", LAB, 1, 2), ("roadbridge", BRIDGE, 1, 2)],  # with a plan per candidate it was 13 and 12 in both
)
def test_second_query_of_a_tick_computes_few_plans(counts, name, texts, schedules, agendas):
    world = world_of(name)
    engine = Engine(world.catalog, live=True)
    first, second = texts
    world = deploy(first, world, engine).world
    counts.clear()
    deploy(second, world, engine)
    assert counts["build_schedules"] <= schedules
    assert counts["schedule_placement"] <= agendas


def test_candidate_state_is_planned_once(counts, monkeypatch):
    """At most one schedule set and one agenda per candidate state, though many callers ask for them."""
    planned = []
    made = NetworkPlan.__init__

    def note(self, world, *rest):
        planned.append(world)
        made(self, world, *rest)

    monkeypatch.setattr(NetworkPlan, "__init__", note)
    world = world_of("lab54")
    engine = Engine(world.catalog, live=True)
    for text in LAB:
        world = deploy(text, world, engine).world
    assert counts["build_schedules"] <= len(planned) and counts["schedule_placement"] <= len(planned)


def test_fold_begins_with_the_first_query_that_takes_it():
    """The removal of a query that is placed anew drops no fold that a later query of its tick is to begin."""
    world, plans = replace(world_of("lab54"), pushdown=PushdownPolicy.NOTHING), PlanCache(0)
    engine = Engine(world.catalog, live=True)
    for text in LAB:
        world = deploy(text, world, engine).world
    [plan] = bind_text("SELECT site, humidity FROM lab", world.catalog)
    candidate = add_query(plan, world, plans)
    for number, policy in (1, PushdownPolicy.NOTHING), (2, PushdownPolicy.EVERYTHING):
        live, tried = world.live[number], candidate.without([number])
        tried = replace(tried, world=replace(tried.world, pushdown=policy))
        candidate = tried.place(live, split_plan(live.plan, rewrite(live.plan)[0].root, tried.world), plans)
    queries = {number: placed.query for number, placed in candidate.placements.items()}
    assert [len(queries[number].partial_sources) for number in (1, 2, 3)] == [0, 1, 0]
    register_queries(3, queries, candidate.placements, engine, world)
    assert all(number in engine for number in queries)


def test_lifetime_search_neither_prints_nor_parses(counts):
    world = world_of("lab54")
    engine = Engine(world.catalog, live=True)
    change = deploy("SELECT site, temp FROM lab LIFETIME 600 DAY", world, engine)
    assert change.query.plan.options.acquire_every == 60
    assert counts["parse"] == 1 and counts["print_statement"] == 0


def test_equal_states_of_different_worlds_share_a_plan():
    world, plans = world_of("lab54"), PlanCache(0)
    [plan] = bind_text(LAB[0], world.catalog)
    one, other = (add_query(plan, world, plans).world for _ in range(2))
    assert one is not other
    assert plans.plan(one) is plans.plan(other)
    assert plans.plan(one, renewed=["lab"]) is not plans.plan(one)


def test_agenda_ignores_fold_numbers():
    """Placements that differ in fold numbers alone have the same agenda, so the cache computes it once."""
    world = world_of("lab54")
    [plan] = bind_text(LAB[1], world.catalog)
    first = PlanCache(0).plan(add_query(plan, world, PlanCache(0)).world)
    [fold] = first.placement.folds
    later = replace(world, folds={41: replace(fold, number=41)})  # 41 was the last number
    second = PlanCache(0).plan(add_query(plan, later, PlanCache(0)).world)
    assert (fold.number, second.placement.folds) == (1, (replace(fold, number=42),))
    assert first.agenda == second.agenda


def test_infeasible_agenda_is_raised_again(counts):
    world, plans = world_of("lab54"), PlanCache(0)
    [plan] = bind_text("SELECT site, temp FROM lab DELIVER WITHIN 1 SEC", world.catalog)
    network = plans.plan(add_query(plan, world, plans).world)
    for _ in range(2):
        with pytest.raises(PlacementError, match="within 1,000"):
            network.check()
    assert counts["schedule_placement"] == 1
    assert not network.is_cheaper_than(1e9)


def test_shared_schedules_plan_as_installed_ones_would():
    """Senders and numbers of samplings change neither agenda, prediction nor the sizes of programs."""
    world, plans = world_of("lab54"), PlanCache(7)
    texts = (LAB[1], "SELECT site, temp FROM lab WHERE light > 30", "SELECT light FROM lab WHERE site < 9")
    for text in texts:
        [plan] = bind_text(text, world.catalog)
        world = add_query(plan, world, plans).world
    found = plans.plan(world, tick=90, renewed=["lab"])
    assert found.scheduled is not found.planned
    assert found.scheduled.current("lab").channels != found.planned.current("lab").channels
    installed = replace(found.problem, schedules=found.scheduled.schedules)
    assert predict_energy(found.placement, installed) == found.prediction
    assert schedule_placement(found.placement, installed) == found.agenda
    running, programs = found.installation
    assert running == found.running
    assert [len(program.code) for program in programs] == [len(program.code) for program in found.programs]

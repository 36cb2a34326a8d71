"""When motes change to another agenda.

first agenda, or another routing tree:   begins at once
same tree:        ══ old agenda ═══════════════╗
                  ▲ sent from here on           ╚══ new agenda, in one round for all motes
                  └─ asks + hops + frames ─────▲
"""

from dataclasses import replace

import pytest

from basestation.controller import agenda
from basestation.controller.network_plan import PlanCache
from basestation.controller.query_lifecycle import QueryRecord
from basestation.controller.requirements import split_plan
from basestation.controller.world import World
from basestation.planner.binder import bind_text
from basestation.planner.deployed_catalog import read_deployed_catalog
from basestation.planner.rewriter import rewrite
from innet.errors import PlacementError
from innet.placement.agenda import MAX_FIRST_ROUND
from innet.routing.parent_selection import choose_tree
from innet.routing.tree import RoutingTree
from simulator.scenario import read_scenario
from tests.simulation.scenario_judge import FOLDER

HALL = read_scenario(FOLDER / "calm.toml").deployment
CATALOG = read_deployed_catalog(HALL)
NOW = 1_000


def sleeping():
    """The duty-cycled hall with all links known."""
    tree = choose_tree(HALL.topology, HALL.gateways)
    return replace(World.initial(CATALOG, HALL, duty_cycled=True), topology=HALL.topology, tree=tree)


def asking(world, text, now=NOW):
    """The world with one query more, and its agenda."""
    [plan] = bind_text(text, CATALOG)
    readings = split_plan(plan, rewrite(plan)[0].root, world).readings
    changed = world.with_query(QueryRecord(world.next_number(), text, plan, readings))
    return planned(changed, now)


def planned(world, now):
    plans = PlanCache(now)
    found = agenda.find_agenda(world, plans.plan(world), plans)
    return world.with_agenda(found, now)


def test_first_agenda_begins_at_once_and_stays():
    world = asking(sleeping(), "SELECT temp FROM hall")
    assert world.agenda.first == 0 and world.agenda_tick == NOW
    assert planned(world, NOW + 50).agenda is world.agenda
    assert asking(replace(world, duty_cycled=False), "SELECT supply FROM hall").agenda is None


def test_agenda_includes_all_queries_of_its_tick():
    both = asking(asking(sleeping(), "SELECT temp FROM hall"), "SELECT supply FROM hall")
    other = asking(asking(sleeping(), "SELECT supply FROM hall"), "SELECT temp FROM hall")
    assert both.agenda == other.agenda and both.agenda.first == 0


@pytest.mark.promise("agenda")
def test_next_agenda_begins_when_all_motes_have_it():
    first = asking(sleeping(), "SELECT temp FROM hall")
    second = asking(first, "SELECT supply FROM hall", NOW + 95)
    hops = max(map(second.tree.depth, second.tree.parent))
    assert second.agenda.sites != first.agenda.sites
    assert second.agenda.rounds.poll_every == 5
    assert second.agenda.begin == 10 * -(
        -(NOW + 95 + (5 + agenda.ROUNDS_PER_HOP * hops + agenda.ROUNDS_FOR_FRAMES) * 10) // 10
    )
    third = asking(second, "SELECT site FROM hall [NOW] WHERE temp > 20 ACQUIRE EVERY 20 SEC", NOW + 100)
    assert third.agenda is second.agenda
    assert (
        planned(replace(third, queries=first.queries, live=first.live), second.agenda.begin - 1).agenda is second.agenda
    )
    again = planned(replace(third, queries=first.queries, live=first.live), second.agenda.begin)
    assert again.agenda.sites == first.agenda.sites and again.agenda.begin > second.agenda.begin


@pytest.mark.promise("agenda")
def test_agenda_beyond_the_last_round_is_rejected():
    """Rounds of ten seconds, counted from tick 0 on: after 1,361 years there are too many."""
    last = 10 * MAX_FIRST_ROUND
    for now, fits in ((last - 1_000, True), (last, False)):
        first = asking(sleeping(), "SELECT temp FROM hall", now - 500)
        if fits:
            assert asking(first, "SELECT supply FROM hall", now).agenda.first <= MAX_FIRST_ROUND
        else:
            with pytest.raises(PlacementError, match=r"motes count 4,294,967,295 rounds; of 10,000 ms there were more"):
                asking(first, "SELECT supply FROM hall", now)


@pytest.mark.promise("agenda")
def test_agenda_for_another_tree_begins_at_once():
    first = asking(sleeping(), "SELECT temp FROM hall")
    second = asking(first, "SELECT supply FROM hall", NOW + 95)
    moved = RoutingTree(second.tree.roots, {**second.tree.parent, 5: 2 if second.tree.parent[5] == 1 else 1})
    third = planned(replace(second, tree=moved), NOW + 100)
    assert third.agenda.first == 0
    assert third.agenda.sites[5].parent == moved.parent[5]

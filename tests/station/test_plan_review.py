"""A review of many queries is spread over looks: it ends at the same look and as the same search, whenever the process ends."""

import json
import pickle
from dataclasses import replace

import pytest

from basestation.controller.aggregate_placement import add_query
from basestation.controller.network_plan import PlanCache
from basestation.controller.plan_review import MOST_DROPPED, QUERIES_AT_ONCE, PlanReview
from basestation.controller.reoptimization import PARTS_PER_QUERY, find_cheaper, search_cheaper
from basestation.controller.what_if import initial_world
from basestation.planner.binder import bind_text
from basestation.planner.deployed_catalog import read_deployed_catalog
from basestation.station.assembly import make_factory
from basestation.station.durable import DurableStation
from basestation.testbed.live_motes import MoteScenario
from innet.deployment.toml_reader import read_deployment
from tests.docs.pages import ROOT
from tests.station.small_network import BEGIN_MS, LOOK_MS, CrashingJournal

MEANS = ("SELECT AVG(temp) AS mean FROM road [NOW]", "SELECT MAX(vibration) AS most FROM road [NOW]")
ALL = "SELECT site, temp, vibration FROM road"
TEXTS = (
    *MEANS,
    ALL,
    *(f"SELECT site, temp FROM road WHERE temp > {bound}" for bound in range(-20, QUERIES_AT_ONCE - 20)),
)


def world_of(texts):
    """A world with each query submitted in a clock tick of its own."""
    deployment = read_deployment(ROOT / "examples/roadbridge/deployment.toml")
    catalog = read_deployed_catalog(deployment)
    world = initial_world(deployment, catalog)
    for number, text in enumerate(texts, 1):
        world = add_query(bind_text(text, catalog)[0], world, PlanCache(number)).world
    return world


def folded(comparison):
    """By query, whether it is folded after a search."""
    return {number: bool(placed.query.partial_sources) for number, placed in comparison.placements.items()}


@pytest.mark.promise("cheapest-placement")
@pytest.mark.parametrize("looks", [0, 1, 5, len(TEXTS)])
def test_review_finds_the_same_however_it_is_spread(looks):
    world = world_of(TEXTS)
    expected = find_cheaper(world, PlanCache(99), 0.03)
    assert folded(expected) == {1: False, 2: False}
    review = PlanReview(world, 99, 0.03)
    for _ in range(looks):
        assert not review.is_due
        review.count_look()
        review.advance()
    assert review.is_due == (looks == len(TEXTS))
    for found in (review.find(), pickle.loads(pickle.dumps(review)).find()):
        assert (found.now, found.then, folded(found)) == (expected.now, expected.then, folded(expected))


def test_search_has_few_parts_for_each_query():
    world = world_of(TEXTS)
    assert 1 < len(list(search_cheaper(world, PlanCache(99), 0.03))) <= PARTS_PER_QUERY * len(TEXTS)
    review = PlanReview(world, 99, 0.03)
    parts = review._parts_left
    review.advance()
    assert parts - review._parts_left == PARTS_PER_QUERY, "no look does much more than another"


def test_few_queries_are_reviewed_at_once():
    assert PlanReview(world_of(TEXTS[:QUERIES_AT_ONCE]), 99, 0.03).is_due
    assert not PlanReview(world_of(TEXTS[: QUERIES_AT_ONCE + 1]), 99, 0.03).is_due


def test_review_is_about_its_queries_and_routes():
    world = world_of(TEXTS)
    review = PlanReview(world, 99, 0.03)
    assert review.is_about(world) and review.is_about(world.with_query(replace(world.live[1], name="other")))
    assert not review.is_about(world.with_query(replace(world.live[1], last_tick=100)))
    assert not review.is_about(world_of(TEXTS[:-1]))
    tree = replace(world.tree, parent={**world.tree.parent, 4: 2})
    assert world.tree.parent[4] == 3 and not review.is_about(replace(world, tree=tree))


class Bridge:
    """A durable station with the four motes of the road bridge, in virtual time; its process can be ended at any point."""

    def __init__(self, folder):
        self.folder, self.now_ms = folder, BEGIN_MS
        scenario = MoteScenario(str(ROOT / "examples/roadbridge/night.scenario.toml"))
        self._make = make_factory(scenario.deployment, False)
        self.motes = scenario.start(BEGIN_MS, 1, None)
        self.start()

    def start(self):
        self.journal = CrashingJournal(self.folder)
        self.durable = DurableStation(self.journal, self._make, self.now_ms)
        self.durable.connect(self.motes.wire)

    def restart(self):
        """End the process behind a commit; looks without news since the last one would be gone."""
        assert self.durable._commit(closing=True)
        self.journal.close()
        self.start()

    @property
    def review(self):
        return self.durable.station._review

    def look(self):
        self.now_ms += LOOK_MS
        self.motes.advance(self.now_ms)
        self.durable.step(self.now_ms)

    def live_until_review(self, begins=True):
        """Live until a review begins, or ends; how many looks that takes."""
        for count in range(1, 10_000):
            self.look()
            if (self.review is not None) == begins:
                return count
        raise AssertionError("no review")

    def submit_all(self):
        for text in TEXTS:
            self.durable.submit(text, self.now_ms)
            for _ in range(8):
                self.look()

    def folded(self):
        return {number for number, query in self.durable.station.world.live.items() if query.partial_sources}

    def migrating(self):
        return {number for number, query in self.durable.station.world.live.items() if query.migration is not None}

    def outcome(self):
        """All that clients and motes have seen: answers and events, and the desired state of each mote."""
        answers = [
            "".join(chunk.lines for chunk in self.journal.results(number, 0, 10**9))
            for number in range(1, len(TEXTS) + 1)
        ]
        events = [(at_ms, kind, json.loads(body)) for _, at_ms, kind, body in self.journal.events(0, 10_000)]
        return answers, events, self.durable.station.world.desired


@pytest.mark.promise("durable")
@pytest.mark.parametrize("has_snapshot", [False, True])
def test_restart_within_a_review_takes_the_same_decision(has_snapshot, tmp_path):
    killed, undisturbed = Bridge(tmp_path / "killed"), Bridge(tmp_path / "undisturbed")
    for bridge in (killed, undisturbed):
        bridge.submit_all()
        bridge.live_until_review()
        assert not bridge.migrating() and bridge.folded() == {1, 2}
    for at in (4, 9):
        while killed.review._looks_left > len(TEXTS) - at:
            killed.look()
            undisturbed.look()
        if has_snapshot:
            killed.durable.snapshot(killed.now_ms)
        killed.restart()
        assert killed.review._looks_left == undisturbed.review._looks_left and killed.review._search is None
    assert killed.live_until_review(begins=False) == undisturbed.live_until_review(begins=False)
    assert killed.migrating() == undisturbed.migrating() == {1, 2}
    killed.restart()  # the log has the look in which the migrations started
    for _ in range(4 * 240):
        killed.look()
        undisturbed.look()
    assert killed.folded() == undisturbed.folded() == set()
    assert killed.outcome() == undisturbed.outcome()


def test_change_of_queries_ends_a_review_and_another_follows(tmp_path):
    bridge = Bridge(tmp_path)
    bridge.submit_all()
    bridge.live_until_review()
    for _ in range(3):
        bridge.look()
    bridge.durable.submit("SELECT site FROM road WHERE vibration > 7", bridge.now_ms)
    bridge.look()
    assert bridge.review is None and not bridge.migrating()
    bridge.live_until_review()
    bridge.live_until_review(begins=False)
    assert bridge.migrating() == {1, 2}


def test_steady_change_of_queries_puts_no_review_off_for_ever(tmp_path):
    bridge = Bridge(tmp_path)
    bridge.submit_all()
    for dropped in range(MOST_DROPPED):
        bridge.live_until_review()
        bridge.durable.submit(f"SELECT site FROM road WHERE vibration > {7 + dropped}", bridge.now_ms)
        bridge.look()
        assert bridge.review is None and not bridge.migrating()
    bridge.restart()
    for _ in range(10_000):
        bridge.look()
        assert bridge.review is None
        if bridge.migrating():
            break
    assert bridge.migrating() == {1, 2}

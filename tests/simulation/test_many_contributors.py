"""Networks so large that partials count their contributors: the sender of a partial is known, and no other."""

import json
from collections import Counter
from dataclasses import replace
from functools import cache, partial

import pytest

from basestation.planner.pushdown_policy import PushdownPolicy
from basestation.testbed.event_testbed import EventTestbed
from basestation.testbed.trials import TrialRun
from gateway.mote_lifecycle import MoteState
from innet.deployment.toml_reader import read_deployment
from innet.partials import MAX_SLOTS
from simulator.scenario import InjectedFault, ScenarioQuery, default_scenario
from tests.simulation.scenario_judge import answers, judge, run_scenario

MOTES, NEAR, SECONDS, DIES = MAX_SLOTS + 1, 12, 400, 129
"""A dozen receive the gateway, and each of them some of the others, which receive no other mote."""


@pytest.fixture(scope="module")
def hall(tmp_path_factory):
    return make_hall(tmp_path_factory.mktemp("many"), MOTES)


def make_hall(folder, motes):
    above = {mote: 0 if mote <= NEAR else mote % NEAR + 1 for mote in range(1, motes + 1)}
    places = "\n".join(f'{mote} = {{ at = [{mote}, 0], board = "b" }}' for mote in above)
    links = ", ".join(f"[{mote}, {parent}, 0.95], [{parent}, {mote}, 0.95]" for mote, parent in above.items())
    path = folder / "many.toml"
    path.write_text(f"""name = "many"
[gateways]
0 = {{ at = [0, 0] }}
[boards.b]
hardware = "telosb"
sensors.y = {{ raw = [0, 4095] }}
[motes]
{places}
[links]
table = [{links}]
[extents]
text = "hall: sensed (site:integer, y:integer) every 30 sec at sites all wait 60 sec late revise by 1 hour"
""")
    return read_deployment(path)


@pytest.fixture(scope="module")
def ran(hall):
    @cache
    def run(agenda):
        asked = ScenarioQuery("mean", "SELECT AVG(y) AS mean, COUNT(*) AS n FROM hall [NOW]", 0, None)
        dies = InjectedFault("dies", "dies", 200_000, None, (DIES,))
        scenario = replace(default_scenario(hall), queries=(asked,), faults=(dies,))
        return run_scenario(
            scenario, SECONDS, kind=partial(EventTestbed, agenda=agenda, pushdown=PushdownPolicy.EVERYTHING)
        )

    return run


@pytest.mark.promise("placement")
@pytest.mark.parametrize("agenda", [False, True], ids=["awake", "by agenda"])
def test_counting_partials_answer_as_replay(ran, agenda):
    bed = ran(agenda)
    [fold] = bed.station.world.running.values()
    assert not fold.shape.has_bitmap and len(fold.sites) == MOTES
    assert judge(bed, "mean") >= SECONDS // 30 - 1
    used = {tick: coverage["hall"] for (tick, _), (coverage, _) in answers(bed, "mean").items()}
    assert used[180] == [MOTES, MOTES] and used[300] == [MOTES - 1, MOTES]


@pytest.mark.promise("placement")
@pytest.mark.parametrize("agenda", [False, True], ids=["awake", "by agenda"])
def test_unnamed_contributors_are_not_taken_for_silent(ran, agenda):
    """Else those below would be silent for ever, and their parents be given up. Those near the gateway are as everywhere."""
    station = ran(agenda).station
    assert station.world.silence_limits.keys() == set(range(1, NEAR + 1))
    assert station.failure_detector.motes == frozenset()
    assert MoteState.LATE not in {station.reconcilers.of(mote).state for mote in range(1, MOTES + 1)}


def test_swept_step_with_more_tuples_than_a_feed_retains(tmp_path):
    """The engine simulates 120 rounds at once. Their 84,000 tuples come in two updates, and a feed retains 10,000."""
    motes, rounds = 700, 121
    query = ScenarioQuery("all", "SELECT site, y FROM hall", 0, None)
    scenario = replace(default_scenario(make_hall(tmp_path, motes)), queries=(query,))
    trial = TrialRun(scenario, 1, tmp_path, swept=True).run(rounds * 30_000)
    types = Counter(json.loads(line)["type"] for line in (tmp_path / "answers.jsonl").read_text().splitlines())
    assert trial.ledger["hall"]["received"] == types["tuple"] > 0.99 * motes * rounds
    assert trial.answers["all"] == types["epoch"] == rounds

"""Swept networks: a hall whose answers are those of a replay of what arrived; `test_offices` has larger ones."""

from dataclasses import replace
from functools import partial

import pytest

from basestation.testbed.vector_testbed import VectorTestbed
from simulator.radio_medium import Bursts
from simulator.scenario import ScenarioQuery, read_scenario
from simulator.vector_engine.layout import NotVectorisableError
from tests.simulation.reading_accounts import hold
from tests.simulation.scenario_judge import FOLDER, delivered, judge, run_scenario


def produced(bed):
    return {(e.mote, e["tick"]) for e in bed.trace.of("produced")}


@pytest.mark.promise("placement")
@pytest.mark.parametrize("delivery, bursts", [(1.0, None), (0.7, Bursts(begin=0.05, end=0.3, left=0.2))])
def test_swept_hall_answers_as_replay(delivery, bursts):
    scenario = replace(read_scenario(FOLDER / "calm.toml"), delivery=delivery, bursts=bursts)
    bed = run_scenario(scenario, 1_200, kind=VectorTestbed)
    assert judge(bed, "now") >= 115
    assert judge(bed, "minute") >= 18
    assert bed.station.engine.ledger()["hall"]["received"] == len(delivered(bed))
    assert hold(bed, {("hall", mote): range(0, 1_200, 10) for mote in range(1, 9)})[1] == 960
    lost = 1 - len(delivered(bed)) / len(produced(bed))
    assert (0.01 < lost < 0.5) if bursts else lost < 0.02
    # Motes that sleep but for their slots: no radio of them is on for a hundredth of the time.
    assert max(bed.spent().values()) < 0.1 * 1_200 * 3.0 * 0.0215


def test_swept_batteries_end_and_coverage_falls():
    deployment = read_scenario(FOLDER / "calm.toml").deployment
    weak = {n: replace(site, battery=0.4) for n, site in deployment.motes.items()}
    scenario = replace(read_scenario(FOLDER / "calm.toml"), deployment=replace(deployment, motes=weak))
    bed = run_scenario(scenario, 7_200, kind=VectorTestbed)
    judge(bed, "now")
    died = bed.tally.died
    assert died and {why for _, why in died.values()} == {"battery"}
    assert [e.mote for e in bed.trace.of("died")] == list(died)
    for mote, (time, _) in died.items():
        assert 0.4 <= bed.spent()[mote] < 0.41
        assert max(tick for site, tick in produced(bed) if site == mote) == time // 1_000_000 - 10
    # A forwarding mote is empty before those below it.
    parent = bed.station.world.tree.parent
    assert all(died[parent[mote]][0] <= died[mote][0] for mote in died if parent[mote] in died)


@pytest.mark.parametrize("name", ["parent_dies_mid_epoch", "duplicates_and_reordering"])
def test_scenario_with_changes_cannot_be_swept(name):
    with pytest.raises(NotVectorisableError, match=r"injects faults|the wire"):
        VectorTestbed(read_scenario(FOLDER / f"{name}.toml"), 1)


@pytest.mark.promise("predicted-energy")
def test_filter_report_across_two_steps_is_sent():
    scenario = replace(
        read_scenario(FOLDER / "calm.toml"), delivery=1.0, queries=(ScenarioQuery("rare", RARELY, 0, None),)
    )
    bed = run_scenario(scenario, 4_000, kind=VectorTestbed)
    told = sum(event["count"] for event in bed.trace.of("posted"))
    ledger = bed.station.engine.ledger()["hall"]
    assert ledger["received"] == told and not bed.trace.of("given_up")
    assert told > ledger["filtered"] > 1_000
    motes = hold(bed, {("hall", mote): range(0, 4_000, 10) for mote in range(1, 9)})[0].values()
    assert sum(sums["filtered"] for sums in motes) == ledger["filtered"]
    assert sum(sums["delivered"] for sums in motes) == told - ledger["filtered"]


@pytest.mark.promise("ledger")
@pytest.mark.parametrize("window", ["NOW", "FROM NOW-50 TO NOW SLIDE 60 SEC"])
def test_swept_merged_readings_are_accounted_by_mote(window):
    query = ScenarioQuery("sum", f"SELECT SUM(temp) AS total FROM hall [{window}]", 0, None)
    scenario = replace(read_scenario(FOLDER / "calm.toml"), delivery=0.7, queries=(query,))
    bed = run_scenario(scenario, 1_200, kind=partial(VectorTestbed, pushdown="everything"))
    motes = hold(bed, {("hall", mote): range(0, 1_200, 10) for mote in range(1, 9)})[0].values()
    assert sum(sums["merged"] for sums in motes) == bed.station.engine.ledger()["hall"]["merged"] > 800
    assert bed.station.ledger.unattributed() == {}


RARELY = "SELECT site, temp FROM hall WHERE temp > 22.1"

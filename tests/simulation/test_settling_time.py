"""Many frames at once in a sleeping network: a later query, or lost frames that are requested."""

from dataclasses import replace
from functools import partial

import pytest

from basestation.testbed.event_testbed import EventTestbed
from gateway.frame import FrameKind
from gateway.source import Source
from innet.placement.round_pattern import RoundPattern
from innet.routing.topology import MAX_NEIGHBOURS
from simulator.scenario import InjectedFault, ScenarioQuery, read_scenario
from tests.conftest import count_of
from tests.docs.pages import ROOT
from tests.simulation.scenario_judge import FOLDER, delivered, judge, run_scenario

MINUTE = 60_000
LATER_AT = 20 * MINUTE
SEEDS = pytest.mark.parametrize("seed", count_of([1, 2], [1, 2, 3, 4]))
LATER = ScenarioQuery("later", "SELECT site, supply FROM hall [NOW]", LATER_AT, None)


def hall_of_minutes():
    """The hall, measured once a minute; in the twentieth a query asks for more of it."""
    calm = read_scenario(FOLDER / "calm.toml")
    text = calm.deployment.extents.text.replace("10 sec", "60 sec")
    deployment = replace(calm.deployment, extents=Source(text))
    return replace(calm, deployment=deployment, queries=(calm.queries[0], LATER))


def since(bed, ms, what):
    return [e for e in bed.trace.of(what) if e.time >= (bed.scenario.begin_ms + ms) * 1_000]


@pytest.mark.promise("agenda")
@SEEDS
def test_later_query_runs_on_all_motes_within_ten_rounds(seed):
    bed = EventTestbed(hall_of_minutes(), seed, agenda=True)
    bed.run_until(LATER_AT)
    settled = {}
    while bed.elapsed_ms < LATER_AT + 30 * MINUTE:
        bed.run_until(bed.elapsed_ms + MINUTE)
        for mote in bed.station.reconcilers.up_to_date_motes() & set(bed.built.motes):
            settled.setdefault(mote, bed.elapsed_ms)
    assert set(settled) == set(bed.built.motes)
    assert max(settled.values()) <= LATER_AT + 10 * MINUTE
    assert all(mote.forwarder.is_always_on is False for mote in bed.built.motes.values())
    # And then no frame is left to send.
    assert {e["kind"] for e in since(bed, LATER_AT + 20 * MINUTE, "sent")} <= {"READING", "TIME"}
    assert since(bed, LATER_AT, "given_up") == []
    assert {(e.mote, e["tick"]) for e in since(bed, 0, "produced")} == set(delivered(bed))
    assert judge(bed, "later") >= 20


@pytest.mark.promise("agenda")
@SEEDS
def test_folding_network_gets_new_program_within_eight_rounds(seed):
    """Five until all have asked, one for each of three hops."""
    calm = read_scenario(FOLDER / "calm.toml")
    fold = ScenarioQuery("mean", "SELECT AVG(temp) AS mean FROM hall [FROM NOW-90 TO NOW SLIDE 100 SEC]", 0, None)
    bed = EventTestbed(replace(calm, queries=(fold, LATER)), seed, agenda=True)
    bed.run_until(LATER_AT)
    motes = set(bed.built.motes)
    assert bed.station.reconcilers.up_to_date_motes() == motes and bed.station.world.agenda.period == 10
    assert bed.station.world.agenda.rounds == RoundPattern(10, 0, 5)
    assert {e["kind"] for e in since(bed, 10 * MINUTE, "sent")} == {"PARTIAL", "EVENT"}  # and no readings
    bed.run_until(LATER_AT + 8 * 10_000)
    assert bed.station.reconcilers.up_to_date_motes() == motes
    assert all(mote.forwarder.is_always_on is False for mote in bed.built.motes.values())
    assert len(bed.station.world.queries) == 2


@pytest.mark.promise("delivery")
@SEEDS
def test_all_readings_arrive_after_half_the_frames_were_lost(seed):
    calm = read_scenario(FOLDER / "calm.toml")
    topology = calm.deployment.topology
    links = tuple((s, r, topology.ratio(s, r) / 2) for r, heard in topology.links.items() for s in heard)
    fault = InjectedFault("half", "links_change", 300_000, until_ms=500_000, links=links)
    scenario = replace(calm, queries=calm.queries[:1], faults=(fault,))
    bed = run_scenario(scenario, 1_500, seed, partial(EventTestbed, agenda=True))
    asked = [e for e in bed.trace.of("sent") if e["kind"] == FrameKind.ACK.name]
    assert len(asked) > 20 and len(bed.trace.of("given_up")) > 20  # much was missing
    measured = {
        (e.mote, e["tick"]) for e in bed.trace.of("produced") if e.time < (bed.scenario.begin_ms + 800_000) * 1_000
    }
    assert len(measured) > 600
    assert measured <= set(delivered(bed))


@pytest.mark.promise("agenda")
def test_more_neighbours_than_a_report_holds_cause_no_collision():
    day = replace(read_scenario(ROOT / "examples/lab54/day.scenario.toml"), begin_ms=0)
    heard = [sum(map(bool, links.values())) for links in day.deployment.topology.links.values()]
    assert min(heard) > MAX_NEIGHBOURS
    bed = run_scenario(day, 1_000, 1, partial(EventTestbed, agenda=True))
    assert bed.trace.of("disturbed") == bed.trace.of("forsaken") == []
    assert bed.station.reconcilers.up_to_date_motes() >= set(bed.built.motes)
    assert all(mote.forwarder.is_always_on is False for mote in bed.built.motes.values())
    assert judge(bed, "mean") >= 2

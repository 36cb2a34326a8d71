"""Motes that measure nothing, on the way of others."""

from collections import Counter
from dataclasses import replace

import pytest

from basestation.testbed.event_testbed import EventTestbed
from basestation.testbed.vector_testbed import VectorTestbed
from gateway.frame import BROADCAST
from gateway.source import Source
from simulator.scenario import InjectedFault, ScenarioQuery, read_scenario
from tests.simulation.scenario_judge import FOLDER, delivered, judge, run_scenario

FAR = """
far: sensed (site:integer, temp:float {scale 2, sensor 'temperature'}) every 10 sec at sites 6, 7, 8
"""


def far_away(**more):
    """The hall where only the motes in the third row measure."""
    scenario = read_scenario(FOLDER / "filtering.toml")
    deployment = replace(scenario.deployment, extents=Source(FAR))
    asked = ScenarioQuery("far", "SELECT site, temp FROM far [NOW]", 0, None)
    return replace(scenario, deployment=deployment, queries=(asked,), **more)


@pytest.mark.promise("delivery")
@pytest.mark.parametrize("kind", [EventTestbed, VectorTestbed])
def test_forwarding_mote_gets_its_parent(kind):
    bed = run_scenario(far_away(), 300, kind=kind)
    ways = {mote for site in (6, 7, 8) for mote in bed.station.world.tree.path(site)[:-1]}
    assert len(ways) > 3
    assert {mote for mote, desired in bed.station.world.desired.items() if desired.program} == ways
    assert {e.mote for e in bed.trace.of("produced")} == {6, 7, 8}
    assert set(delivered(bed)) == {(e.mote, e["tick"]) for e in bed.trace.of("produced")}
    assert judge(bed, "far") >= 25
    if kind is EventTestbed:
        assert all(bed.built.motes[mote].forwarder.parent != BROADCAST for mote in ways)


@pytest.mark.promise("delivery")
def test_frame_does_not_circle_without_a_way_up():
    """A forwarding mote loses its memory: for a while it broadcasts the frames of its children, also to them."""
    bed = run_scenario(far_away(faults=(InjectedFault("again", "reboots", 100_000, motes=(1, 2)),)), 300)
    to_all = Counter((e.mote, e["origin"], e["boot"], e["seq"]) for e in bed.trace.of("sent") if e["to"] == BROADCAST)
    assert any(mote != origin for mote, origin, _, _ in to_all)
    assert set(to_all.values()) == {1}

"""An hour of the office by agenda: configured motes send partials, and two reports of their counts."""

from collections import Counter
from functools import cache, partial

import pytest

from basestation.testbed.event_testbed import EventTestbed
from gateway.frame import FrameKind
from innet.costs.hardware import MAX_ATTEMPTS
from simulator.scenario import read_scenario
from tests.docs.pages import ROOT
from tests.simulation.scenario_judge import run_scenario

TOLD, HOUR = 20 * 60, 3_900  # seconds; counts of the sixtieth epoch are on their way for some minutes


@cache
def office():
    return run_scenario(
        read_scenario(ROOT / "examples/lab54/day.scenario.toml"), HOUR, 1, partial(EventTestbed, agenda=True)
    )


def said(kind):
    """(mote, origin, seq) of the hand-overs since all motes were configured."""
    told_us = (office().scenario.begin_ms + TOLD * 1_000) * 1_000
    events = [e for e in office().trace.of("sent") if e.time >= told_us and e["kind"] == kind.name]
    return [(e.mote, e["origin"], e["seq"]) for e in events]


@pytest.mark.promise("delivery")
def test_no_frame_is_requested_without_a_gap():
    assert said(FrameKind.ACK) == []
    assert {each.lost for each in office().station.reconcilers.links.by_mote.values()} == {0}


@pytest.mark.promise("delivery")
def test_quiet_mote_sends_partials_and_two_counts_an_hour():
    motes, windows = set(office().built.motes), (HOUR - TOLD) // 300
    assert Counter(mote for mote, _, _ in said(FrameKind.PARTIAL)) == dict.fromkeys(motes, windows)
    events = {(origin, seq) for _, origin, seq in said(FrameKind.EVENT)}
    assert Counter(origin for origin, _ in events) == dict.fromkeys(motes, 2)
    assert said(FrameKind.HELLO) == said(FrameKind.PROGRAM) == said(FrameKind.SCHEDULE) == []


@pytest.mark.promise("delivery")
def test_only_partials_with_all_attempts_lost_are_lost():
    sent = [e for e in office().trace.of("sent") if e["kind"] == FrameKind.PARTIAL.name]
    assert all(e["attempts"] == MAX_ATTEMPTS for e in sent if not e["known"])
    assert {e["kind"] for e in office().trace.of("given_up")} == {FrameKind.PARTIAL.name}
    assert sum(not e["came"] for e in sent) <= 0.02 * len(sent)

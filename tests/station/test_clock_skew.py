"""Clock skew by the timestamps of data that arrives.

round:      ├──── 10 s ────┤├──── 10 s ────┤
slots end:             9.8 s↑
on time:    ●───────────────▶                   late: ●──────────────────────────▶ (after 9.8 s + tolerance)
"""

import numpy as np
import pytest

from basestation.station.clock_skew import ClockSkewDetector
from innet.placement.agenda import Activity, Agenda, SiteAgenda, Slot

ROUND = Agenda(10, 1_000, {3: SiteAgenda(3, 0, (Slot(9_600, 200, Activity.SEND, 0),))})
"""Rounds of 10 s; the last slot ends after 9.8 s."""


def stamped(*stamps):
    """Columns of (site, first, last)."""
    return [tuple(np.array(column) for column in zip(*stamps, strict=True))]


@pytest.mark.promise("agenda")
@pytest.mark.parametrize(("last", "now", "late"), [
    (110_000, 119_999, False), (119_000, 120_300, False), (119_000, 120_301, True), (50_000, 120_301, True),
])  # fmt: skip
def test_data_after_its_round_shows_slow_clock(last, now, late):
    assert ClockSkewDetector(500).find_skewed_sites(stamped((3, last, last)), now, ROUND) == [3] * late
    assert (
        ClockSkewDetector(500).find_skewed_sites(stamped((3, last, last)), now, None) == []
    )  # who is awake may take its time


def test_data_that_fills_a_gap_shows_no_skew():
    clocks = ClockSkewDetector(500)
    assert clocks.find_skewed_sites(stamped((3, 120_000, 120_000), (4, 110_000, 110_000)), 121_000, ROUND) == [4]
    assert clocks.find_skewed_sites(stamped((3, 20_000, 20_000), (3, 30_000, 30_000)), 125_000, ROUND) == []


@pytest.mark.promise("agenda")
@pytest.mark.parametrize("rounds", [ROUND, None])
def test_data_from_the_future_shows_fast_clock(rounds):
    clocks = ClockSkewDetector(500)
    assert clocks.find_skewed_sites(stamped((3, 130_000, 130_000), (4, 120_400, 120_400)), 120_000, rounds) == [3]
    assert clocks.find_skewed_sites(stamped((5, 110_000, 169_000)), 120_000, rounds) == []  # of a slice that has begun
    assert clocks.find_skewed_sites(stamped((3, 130_000, 130_000)), 130_000, rounds) == []
    # And who was a day ahead once is not taken to repeat itself from then on.
    assert clocks.find_skewed_sites(stamped((3, 86_400_000, 86_400_000)), 140_000, ROUND) == [3]
    assert clocks.find_skewed_sites(stamped((3, 150_000, 150_000)), 170_000, rounds) == ([3] if rounds else [])


@pytest.mark.promise("placement")
def test_partials_of_unknown_sites_show_no_skew():
    """Partials of many sites count who is in them."""
    nobodys = tuple(np.zeros(0, np.int64) for _ in range(3))
    assert ClockSkewDetector(500).find_skewed_sites([nobodys], 120_000, None) == []
    assert ClockSkewDetector(500).find_skewed_sites([nobodys, *stamped((3, 130_000, 130_000))], 120_000, None) == [3]

"""Observed statistics repeat what was observed, and guess the rest."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from innet.operators.column_evaluation import ValueColumn
from innet.operators.mote_expression import MoteConstant, make_instruction
from innet.operators.mote_select import MoteSelect
from innet.placement.observed_statistics import FoldStatistics, ObservedStatistics, sensor_conditions
from innet.placement.statistics import GUESS, CountedStatistics, ExtentReadings
from tests.innet.placement_fixtures import ACQUIRE, BY_SITE, BY_VOLT, TEMP, WARM, deliver, mean

SITES = tuple(range(1, 9))
NOTHING = CountedStatistics.of({})
HOT = MoteSelect(ACQUIRE, make_instruction("GT", TEMP, MoteConstant(3000)))


def heard_of(values, asked=()):
    """Statistics of readings of two sites, tick by tick; None was filtered."""
    there = np.array([value is not None for value in values])
    lane = ValueColumn.of(np.array([value or 0 for value in values], np.int64), there)
    place = np.arange(len(values))
    counted = CountedStatistics.of({"field": ExtentReadings(place % 2 + 1, place // 2 * 10, {"temp": lane})})
    return ObservedStatistics(counted, {"field": asked} if asked else {}, {})


@pytest.mark.promise("cheapest-placement")
@given(st.floats(0.01, 1.0), st.floats(0.5, 20.0), st.sampled_from([(BY_VOLT,), (BY_VOLT, BY_SITE)]))
@example(0.03125, 2.0, (BY_VOLT,))  # few readings, each with a group of its own
def test_observed_fold_predicts_itself(share, groups, keys):
    fold = mean(*keys, child=WARM)
    heard = ObservedStatistics(NOTHING, {}, {fold: (FoldStatistics(100, share, groups, 30), SITES)})
    readings = len(SITES) * fold.slices.max_ticks(fold.interval) * share
    least = readings and heard.contents(fold, SITES).whole[0]
    many = len(SITES) if BY_SITE in keys else 1
    fewest = many * (1 - (1 - share) ** (readings / share / many))
    assert least == pytest.approx(min(max(groups, fewest), readings), rel=0.02)
    assert heard.contents(fold, SITES[:2]).whole[0] <= least + 1e-9
    assert heard.most_groups(fold, SITES) == 30
    assert heard.wanted_shares([deliver(WARM)], [1], 10)[0] == pytest.approx(share)  # the same readings, if delivered


def test_filtered_readings_fail_active_filters():
    heard = heard_of([2100, None, None, 3100], asked=(sensor_conditions(deliver(WARM)),))
    assert heard.wanted_shares([deliver(WARM)], [1], 10)[0] == heard.wanted_shares([deliver(WARM)], [2], 10)[0] == 0.5
    both = MoteSelect(WARM, make_instruction("GT", TEMP, MoteConstant(3000)))
    assert (
        heard.wanted_shares([deliver(both)], [1], 10)[0] == 0.0
        and heard.wanted_shares([deliver(both)], [2], 10)[0] == 0.5
    )
    # For other conditions it is unknown.
    for other in (HOT, ACQUIRE):
        assert heard.wanted_shares([deliver(other)], [1], 10)[0] == GUESS.wanted_shares([deliver(other)], [1], 10)[0]


def test_unfiltered_readings_count_any_condition():
    heard = heard_of([2000, 2060, 2100, 3100])
    assert [heard.wanted_shares([deliver(HOT)], [site], 10)[0] for site in (1, 2)] == [0.0, 0.5]
    assert heard.contents(mean(child=HOT), (1, 2)).whole.tolist() == [1]


def test_unobserved_extent_is_guessed():
    heard, fold = ObservedStatistics(NOTHING, {}, {}), mean(BY_VOLT, child=WARM)
    assert heard.wanted_shares([deliver(WARM)], [1], 10)[0] == GUESS.wanted_shares([deliver(WARM)], [1], 10)[0]
    assert heard.contents(fold, SITES) == GUESS.contents(fold, SITES)
    assert heard.most_groups(fold, SITES) == GUESS.most_groups(fold, SITES)

"""Statistics: counts equal counting one by one, and guesses agree with random readings."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from innet.operators.column_evaluation import ValueColumn, evaluate_columns
from innet.operators.mote_expression import Instruction, MoteConstant, SiteNumber, all_of, make_instruction
from innet.operators.mote_select import MoteSelect
from innet.operators.scalar_evaluation import BINARY, UNARY, choose_value
from innet.operators.slices import SlicePattern
from innet.placement.placement import conditions
from innet.placement.statistics import (
    DEFAULT_DISTINCT_VALUES,
    DEFAULT_SELECTIVITY,
    GUESS,
    CountedStatistics,
    estimate_selectivity,
)
from tests.innet.placement_fixtures import ACQUIRE, BY_SITE, BY_VOLT, TEMP, VOLT, WARM, deliver, mean

SOME = st.none() | st.sampled_from([-1, 0, 1, 2, 3000]) | st.integers(-(2**31), 2**31 - 1)
COLD = MoteSelect(ACQUIRE, make_instruction("LT", TEMP, MoteConstant(2000)))
LEAVES = st.sampled_from([TEMP, VOLT, SiteNumber()]) | st.builds(MoteConstant, SOME)


def applied(parts):
    one = st.builds(lambda name, a: make_instruction(name, a), st.sampled_from(sorted(UNARY)), parts)
    two = st.builds(lambda name, a, b: make_instruction(name, a, b), st.sampled_from(sorted(BINARY)), parts, parts)
    return one | two | st.builds(lambda a, b, c: make_instruction("PICK", a, b, c), parts, parts, parts)


def one_by_one(expression, site, reading):
    """The value for one reading, by scalar evaluation."""
    if isinstance(expression, Instruction):
        values = [one_by_one(part, site, reading) for part in expression.parts]
        return (choose_value if expression.name == "PICK" else UNARY.get(expression.name) or BINARY[expression.name])(
            *values
        )
    if isinstance(expression, MoteConstant):
        return expression.value
    return site if expression == SiteNumber() else reading[expression]


def counted(readings):
    """Statistics of {(site, tick): {sensor: value}}."""
    site, tick = (np.array(part, np.int64) for part in zip(*readings, strict=True))
    lanes = {
        place: ValueColumn.of(
            np.array([reading[place] or 0 for reading in readings.values()], np.int64),
            np.array([reading[place] is not None for reading in readings.values()]),
        )
        for place in (TEMP, VOLT)
    }
    return CountedStatistics(site, tick, lanes, {"field": np.ones(len(site), bool)})


@st.composite
def recordings(draw):
    """Readings of a few sites, with gaps."""
    there = draw(st.sets(st.tuples(st.integers(1, 4), st.integers(0, 12).map(lambda n: 10 * n)), min_size=1))
    value = st.none() | st.sampled_from([0, 1500, 1999, 2000, 2051, 9000])
    return {place: {TEMP: draw(value), VOLT: draw(st.sampled_from([None, 1, 2, 3]))} for place in sorted(there)}


@given(st.recursive(LEAVES, applied, max_leaves=8), st.integers(1, 9), SOME, SOME)
def test_column_equals_value_of_each_reading(expression, site, temp, volt):
    readings = {(site, 0): {TEMP: temp, VOLT: volt}, (site + 1, 0): {TEMP: volt, VOLT: temp}}
    known = counted(readings)
    lane = evaluate_columns(expression, known.site, known.measured)
    found = [value if there else None for value, there in zip(lane.values.tolist(), lane.valid.tolist(), strict=True)]
    assert found == [one_by_one(expression, at, reading) for (at, _), reading in readings.items()]


@given(recordings(), st.sampled_from([[WARM], [WARM, COLD], [ACQUIRE]]), st.sampled_from([10, 20]))
def test_shares_of_many_sites_are_those_of_each(readings, children, every):
    operators, sites, known = [deliver(child) for child in children], (1, 2, 3, 99), counted(readings)
    each = [known.wanted_shares(operators, [site], every)[0] for site in sites]
    assert known.wanted_shares(operators, sites, every) == each


@pytest.mark.promise("predicted-energy")
@given(recordings(), st.sampled_from([[WARM], [WARM, COLD], [ACQUIRE]]), st.sampled_from([10, 20]))
def test_wanted_share_counts_readings_of_any_operator(readings, children, every):
    for site in {site for site, _ in readings}:
        due = [reading for (at, tick), reading in readings.items() if at == site and tick % every == 0]
        operators = [deliver(child) for child in children]
        said = counted(readings).wanted_shares(operators, [site], every)[0]
        if due:
            wants = [
                any(one_by_one(all_of([*conditions(o)]), site, reading) == 1 for o in operators) for reading in due
            ]
            assert said == pytest.approx(sum(wants) / len(due))
        else:
            assert said == GUESS.wanted_shares(operators, [site], every)[0]


@pytest.mark.promise("predicted-energy")
@given(
    recordings(), st.sampled_from([(), (BY_SITE,), (BY_VOLT,), (BY_SITE, BY_VOLT)]), st.sampled_from([ACQUIRE, WARM])
)
def test_contents_count_groups_of_each_slice(readings, keys, child):
    fold = mean(*keys, child=child, slices=SlicePattern.cut(40, (0,), 10))
    some = {site for site, _ in readings if site != 2}
    groups, filtered = {}, {}
    for (site, tick), reading in readings.items():
        if site in some:
            number = fold.slices.number(tick)
            taken = all(one_by_one(term, site, reading) == 1 for term in conditions(fold))
            groups.setdefault(number, set())
            if taken:
                groups[number].add(tuple(one_by_one(key, site, reading) for key in keys))
            filtered[number] = filtered.get(number, False) or not taken
    found = counted(readings).contents(fold, sorted(some))
    if groups:
        assert found.whole.tolist() == [len(groups[number]) for number in sorted(groups)]
        assert found.bare.tolist() == [filtered[number] for number in sorted(groups)]
    else:
        assert found.whole == GUESS.contents(fold, ()).whole


@pytest.mark.promise("predicted-energy")
@pytest.mark.parametrize("keys", [(), (BY_SITE,), (BY_VOLT,), (BY_SITE, BY_VOLT)])
@pytest.mark.parametrize("child", [ACQUIRE, WARM])
@pytest.mark.parametrize("sites", [1, 5])
def test_guess_agrees_with_random_readings(keys, child, sites):
    fold, chance = mean(*keys, child=child, slices=SlicePattern.cut(20, (0,), 10)), Random(7)
    share = DEFAULT_SELECTIVITY["GT"] if child is WARM else 1.0
    whole = bare = 0
    for _ in range(4_000):
        groups, filtered = set(), 0
        for reading in range(2 * sites):  # two of each
            if chance.random() < share:
                groups.add(
                    tuple(
                        reading % sites if key == BY_SITE else chance.randrange(DEFAULT_DISTINCT_VALUES) for key in keys
                    )
                )
            else:
                filtered = 1
        whole, bare = whole + len(groups), bare + filtered
    said = GUESS.contents(fold, range(sites))
    assert said.whole[0] == pytest.approx(whole / 4_000, rel=0.06)
    assert said.bare[0] == pytest.approx(bare / 4_000, abs=0.02)
    assert estimate_selectivity(fold) == pytest.approx(share)

"""Rounds with slots: those with due data, and polls; against an inspection of each round."""

from itertools import pairwise
from math import gcd

import pytest
from hypothesis import given
from hypothesis import strategies as st

from innet.operators.slices import SlicePattern
from innet.placement.load_model import Round
from innet.placement.placement import PlacedOperator, Placement
from innet.placement.round_pattern import RoundPattern
from innet.placement.slot_rounds import find_slot_rounds
from innet.routing.tree import RoutingTree
from tests.innet.placement_fixtures import BY_SITE, BY_VOLT, deliver, mean

INTERVAL = 10
HUNDRED = SlicePattern.cut(100, (0,), INTERVAL)
TREE = RoutingTree((0,), {1: 0, 2: 0, 3: 2})  # readings of two sites pass the second


def fold(slices, *keys, room=255):
    return PlacedOperator(mean(*keys, slices=slices), (1, 2, 3), 1, room=room)


def due(*placed, round=Round(1, INTERVAL)):
    return find_slot_rounds(Placement(TREE, placed), round)


@st.composite
def slices(draw):
    period = INTERVAL * draw(st.integers(1, 12))
    edges = draw(st.lists(st.integers(0, period - 1), min_size=1, max_size=2))
    return SlicePattern.cut(period, tuple(edges), INTERVAL, gap=draw(st.booleans()))


@pytest.mark.promise("agenda")
@given(st.lists(slices(), min_size=1, max_size=3), st.integers(1, 4))
def test_slot_rounds_are_those_in_which_slices_end(found, epochs):
    round = Round(epochs, INTERVAL)
    rounds = due(*(fold(each) for each in found), round=round)
    over = sorted({
        -(-each.end(number) // round.ticks) - 1
        for each in found
        for number in range(each.number(0), each.number(40_000))
        if each.is_in_windows(number)
    })  # fmt: skip
    assert all(number % rounds.every == rounds.phase for number in over)
    aligned = all(each.period % round.ticks == 0 for each in found)
    assert rounds.every == (gcd(*(b - a for a, b in pairwise(over))) if aligned else 1)


@pytest.mark.promise("agenda")
@pytest.mark.parametrize(
    "placed",
    [
        [fold(SlicePattern.cut(100, (0,), 10)), PlacedOperator(deliver(), (1, 2, 3))],
        [fold(SlicePattern.cut(100, (0,), 10), BY_VOLT, room=8)],
    ],
    ids=["readings are delivered", "a table may be too small"],
)
def test_data_due_any_time_has_slots_every_round(placed):
    assert due(fold(HUNDRED)) == due(fold(HUNDRED, BY_SITE, room=4)) == RoundPattern(10, 9, 5)
    assert due(fold(SlicePattern.cut(100, (20, 60), INTERVAL, gap=True))) == RoundPattern(
        10, 5, 5
    )  # and not where the gap ends
    assert due(*placed) == RoundPattern(1, 0, 5)
    assert due(*placed, round=Round(16, 10)) == due(round=Round(16, 10)) == RoundPattern(1, 0, 1)


@pytest.mark.promise("agenda")
@given(st.integers(1, 12), st.integers(0, 11), st.integers(0, 6), st.integers(0, 20))
def test_round_shares_equal_counted_rounds(every, phase, asks, hops):
    rounds = RoundPattern(every, phase % every, asks)
    turn = rounds.poll_phase(hops)
    due = [number % every == rounds.phase for number in range(every * 60)]
    turns = [asks > 0 and (number - hops) % asks == 0 for number in range(every * 60)]
    both = [one and other for one, other in zip(due, turns, strict=True)]
    some = [one or other for one, other in zip(due, turns, strict=True)]
    assert rounds.overlap_share(turn) == pytest.approx(sum(both) / len(both))
    assert rounds.slot_share(turn) == pytest.approx(sum(some) / len(some))

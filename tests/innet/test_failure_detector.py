"""The failure detector finds silent motes by the arrivals, and missing arrivals, of whole subtrees."""

import pytest

from innet.routing.failure_detector import FailureDetector
from innet.routing.tree import RoutingTree

TREE = RoutingTree((0,), {1: 0, 2: 0, 3: 1, 4: 3, 5: 2})
DUE = dict.fromkeys(range(1, 6), 30)


def heard(frames, until=100, tree=TREE, due=DUE):
    """All motes are heard at first. Then, every ten, the frames (origin, last hop) arrive. Return the silent motes at the end."""
    silence = FailureDetector()
    silence.begin(tree.parent, 0)
    for now in range(0, until, 10):
        silence.record_arrivals(frames, tree, now)
        silence.find_overdue(tree, due, now)
    return silence.motes


@pytest.mark.promise("network-heals")
@pytest.mark.parametrize(
    ("frames", "silent"),
    [
        ([(4, 1), (5, 2)], set()),  # a forwarding mote works
        ([(4, 1)], {2}),  # of two overdue motes, the upper one
        ([(1, 1), (5, 2)], {3}),
        ([(3, 1), (5, 2)], {4}),
        ([(5, 2)], {1}),
        ([(4, 2), (5, 2)], {1}),  # it arrived on another route than the tree's
        ([(4, 2), (1, 1), (5, 2)], {3}),
    ],
)
def test_top_of_overdue_subtree_is_silent(frames, silent):
    assert heard(frames, until=60) == silent


@pytest.mark.promise("network-heals")
def test_mote_below_silent_parent_gets_new_timeout():
    silence, tree = FailureDetector(), TREE
    silence.begin(tree.parent, 0)
    found = []
    for now in range(0, 130, 10):
        silence.record_arrivals([(5, 2)], tree, now)
        silence.find_overdue(tree, DUE, now)
        found.append(silence.motes)
        tree = TREE if not silence.motes else RoutingTree((0,), {1: 0, 2: 0, 3: 2, 4: 3, 5: 2})
    assert found == [set()] * 4 + [{1}] * 4 + [{1, 3}] * 5  # and 4 is below 3


def test_arrival_clears_silent_mote():
    silence = FailureDetector()
    silence.begin(TREE.parent, 0)
    assert silence.find_overdue(TREE, DUE, 31) == {1, 2, 3, 4, 5}
    assert silence.motes == {1, 2}
    silence.record_arrivals([(4, 1)], TREE, 40)
    assert silence.motes == {2}


def test_forwarder_is_silent_when_all_below_are_overdue():
    due = {4: 30, 5: 30}
    assert heard([(5, 2)], until=50, due=due) == {1}
    assert heard([(4, 1)], until=50, due=due) == {2}
    assert heard([], until=50, due={}) == set()

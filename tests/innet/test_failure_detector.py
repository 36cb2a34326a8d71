"""Who is silent is found by what comes, and what does not come, of whole subtrees."""

import pytest

from innet.routing.failure_detector import FailureDetector
from innet.routing.tree import RoutingTree

TREE = RoutingTree((0,), {1: 0, 2: 0, 3: 1, 4: 3, 5: 2})
DUE = dict.fromkeys(range(1, 6), 30)


def heard(frames, until=100, tree=TREE, due=DUE):
    """All are heard at first; from then on, every ten, the frames of (origin, last hop); who is silent in the end."""
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
        ([(4, 1), (5, 2)], set()),  # whoever passes on is well
        ([(4, 1)], {2}),  # of two that are not heard it is the one above
        ([(1, 1), (5, 2)], {3}),
        ([(3, 1), (5, 2)], {4}),
        ([(5, 2)], {1}),
        ([(4, 2), (5, 2)], {1}),  # it came another way than the tree says
        ([(4, 2), (1, 1), (5, 2)], {3}),
    ],
)
def test_the_one_at_the_top_of_those_who_are_not_heard_is_silent(frames, silent):
    assert heard(frames, until=60) == silent


@pytest.mark.promise("network-heals")
def test_who_is_below_gets_time_to_be_heard_through_another_and_is_silent_itself_only_then():
    silence, tree = FailureDetector(), TREE
    silence.begin(tree.parent, 0)
    found = []
    for now in range(0, 130, 10):
        silence.record_arrivals([(5, 2)], tree, now)
        silence.find_overdue(tree, DUE, now)
        found.append(silence.motes)
        tree = TREE if not silence.motes else RoutingTree((0,), {1: 0, 2: 0, 3: 2, 4: 3, 5: 2})
    assert found == [set()] * 4 + [{1}] * 4 + [{1, 3}] * 5  # and 4 is below 3


def test_who_speaks_again_is_silent_no_longer():
    silence = FailureDetector()
    silence.begin(TREE.parent, 0)
    assert silence.find_overdue(TREE, DUE, 31) == {1, 2, 3, 4, 5}
    assert silence.motes == {1, 2}
    silence.record_arrivals([(4, 1)], TREE, 40)
    assert silence.motes == {2}


def test_who_only_passes_on_is_silent_when_all_are_of_whom_something_is_due_through_it():
    due = {4: 30, 5: 30}
    assert heard([(5, 2)], until=50, due=due) == {1}
    assert heard([(4, 1)], until=50, due=due) == {2}
    assert heard([], until=50, due={}) == set()

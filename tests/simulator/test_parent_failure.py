"""When a mote leaves its parent: after as many fruitless hand-overs in a row as the quality of the link does not explain."""

import pytest

from simulator.parent_failure import LEAST, REMEMBERED, ParentFailureDetector
from tests.simulator.test_duty_cycling import PARENTS, ROUND_US, Line

MINUTE_US = 60_000_000


def detector(known=(), parent=1):
    """A detector that has seen these hand-overs, one in each round."""
    made = ParentFailureDetector()
    made.begin(parent)
    for round_, acknowledged in enumerate(known):
        if acknowledged:
            made.succeed()
        else:
            made.fail(round_, round_)
    return made


def fail_until_gone(made, pause_us):
    """The fruitless hand-overs after which the parent is gone."""
    return next(n for n in range(1, 1_000) if made.fail(n * pause_us, 10_000 + n))


@pytest.mark.promise("network-heals")
def test_parent_on_a_good_link_is_gone_after_three():
    assert fail_until_gone(detector(), MINUTE_US) == LEAST == 3
    assert fail_until_gone(detector([True] * 200), MINUTE_US) == 3
    assert fail_until_gone(detector(), MINUTE_US // 10) == 11  # a minute after the first of them


@pytest.mark.promise("network-heals")
def test_parent_on_a_weak_link_is_gone_later():
    """One in three is lost: (21 + 0.1) / 74 to the twelfth is 3e-7, to the eleventh 1.02e-6."""
    weak = [True, True, False] * 30 + [True]
    assert fail_until_gone(detector(weak), MINUTE_US) == 12
    assert fail_until_gone(detector([False, True] * 32), MINUTE_US) == 17


def test_hand_overs_of_one_round_count_once():
    made = detector()
    assert not any(made.fail(time * MINUTE_US, 7) for time in range(100))
    assert [made.fail(time * MINUTE_US, None) for time in (100, 101)] == [False, True]


def test_old_hand_overs_are_forgotten():
    made = detector([False, True] * 100 + [True] * REMEMBERED)
    assert made.limit == detector([True] * REMEMBERED).limit == 3


def test_another_parent_is_judged_anew_and_the_same_is_not():
    made = detector([False, True] * 32)
    made.begin(1)
    assert made.limit == 17
    made.begin(2)
    assert made.limit == 3


def test_mote_with_a_weak_link_does_not_leave_its_agenda():
    """A hand-over fails with a chance of 0.34."""
    line = Line(0.355)
    line.kernel.run_until(600 * ROUND_US)
    failed = [event for event in line.trace.of("sent") if not event["known"]]
    assert len(failed) > 0.3 * 600 * len(PARENTS)
    assert len(line.trace.of("forsaken")) <= len(PARENTS)

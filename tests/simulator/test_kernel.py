"""Time moves from event to event, and ties are never random."""

import pytest

from simulator.kernel import Kernel


def test_order_is_time_then_priority_then_planning():
    kernel, done = Kernel(), []
    kernel.at(20, lambda: done.append("late"))
    kernel.at(10, lambda: done.append("second"), priority=1)
    kernel.at(10, lambda: done.append("third"), priority=1)
    kernel.at(10, lambda: done.append("first"))
    kernel.run_until(15)
    assert (done, kernel.now) == (["first", "second", "third"], 15)
    kernel.run_until(20)
    assert done[-1] == "late"


def test_event_scheduled_for_now_runs_now():
    kernel, done = Kernel(), []
    kernel.after(5, lambda: kernel.after(0, lambda: done.append(kernel.now)))
    kernel.run_until(5)
    assert done == [5]


def test_the_past_is_over():
    kernel = Kernel(now=7)
    with pytest.raises(ValueError, match="6 us cannot be scheduled at 7 us"):
        kernel.at(6, lambda: None)

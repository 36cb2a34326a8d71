"""The readings that a mote keeps for frames, and its counts of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.payload import filter_report_interval
from acquisition.schedule import Sampling
from acquisition.ticks import EpochGrid
from gateway.payload import ReadingCounts, decode_event, encode_event
from innet.program.interpreter import ProgramOutcome
from simulator.reading_counters import REPORT_EPOCHS, ReadingCounters
from simulator.sample_buffer import CAPACITY, SampleBuffer

SAMPLINGS = tuple(Sampling(number, "", EpochGrid(0, 10), ()) for number in (0, 1))
SENT, FILTERED, MERGED = ProgramOutcome((1,), True), ProgramOutcome(None, True), ProgramOutcome(None, False)

kept = st.tuples(st.sampled_from(SAMPLINGS), st.integers(1, 3), st.booleans())


@given(st.lists(kept, max_size=60), st.sets(st.integers(0, 60)))
def test_buffered_readings_leave_once_in_order_and_in_runs(rows, taken):
    """A row is None where it was filtered; epochs may be skipped; now and then all that waits is taken."""
    waiting, epoch, expected, found = SampleBuffer(), {0: 0, 1: 0}, {0: [], 1: []}, {0: [], 1: []}
    for at, (sampling, step, filtered) in enumerate(rows):
        epoch[sampling.number] += step
        row = None if filtered else (at,)
        assert waiting.keep(sampling, epoch[sampling.number], row) == 0
        expected[sampling.number].append((epoch[sampling.number], row))
        if at in taken:
            for of, first, run in waiting.take(SAMPLINGS):
                found[of.number] += [(first + n, row) for n, row in enumerate(run)]
    for of, first, run in waiting.take(SAMPLINGS):
        found[of.number] += [(first + n, row) for n, row in enumerate(run)]
    for number, all_of_it in found.items():
        held = expected[number][len(all_of_it) :]
        assert all_of_it + held == expected[number]
        assert len(held) < filter_report_interval(SAMPLINGS[number]) and all(row is None for _, row in held)


@pytest.mark.promise("agenda")
def test_filtered_run_leaves_when_its_sampling_ends():
    waiting = SampleBuffer()
    for sampling in SAMPLINGS:
        waiting.keep(sampling, 0, None)
    assert waiting.take(SAMPLINGS) == []
    assert waiting.take(SAMPLINGS[1:]) == [(SAMPLINGS[0], 0, [None])]
    assert waiting.take(()) == [(SAMPLINGS[1], 0, [None])]


def test_where_there_is_no_room_the_oldest_is_dropped():
    waiting = SampleBuffer()
    epochs = [0, *range(2, CAPACITY + 4)]  # one in a run of its own
    dropped = [waiting.keep(SAMPLINGS[0], epoch, (epoch,)) for epoch in epochs]
    assert dropped == [0] * CAPACITY + [1] * 3
    [(_, first, rows)] = waiting.take(SAMPLINGS)
    assert (first, len(rows), rows[0], rows[-1]) == (4, CAPACITY, (4,), (CAPACITY + 3,))


@pytest.mark.promise("ledger")
def test_counts_are_due_after_enough_epochs_or_at_the_end():
    counting = ReadingCounters()
    for epoch, outcome in enumerate([SENT, FILTERED, MERGED] * (REPORT_EPOCHS // 3)):
        assert counting.due(SAMPLINGS) == []
        counting.count(SAMPLINGS[0], 7 + epoch, outcome, dropped=epoch == 5)
    third = REPORT_EPOCHS // 3
    assert counting.due(SAMPLINGS) == [ReadingCounts(0, 7, REPORT_EPOCHS, REPORT_EPOCHS, third, third, 1)]
    assert counting.due(SAMPLINGS) == []
    counting.count(SAMPLINGS[1], 3, SENT, 0)
    counting.count(SAMPLINGS[1], 5, SENT, 0)  # epoch 4 was missed
    assert counting.due(SAMPLINGS[:1]) == [ReadingCounts(1, 3, 3, 2, 0, 0, 0)]


@pytest.mark.promise("ledger")
def test_counts_of_too_many_epochs_are_split():
    """A clock that jumps a day, where readings are due every second; the mote may have to wait until it can tell."""
    counting = ReadingCounters()
    for epoch in (3, 4, 86_404, 86_405):
        counting.count(SAMPLINGS[0], epoch, SENT, 0)
    told = counting.due(())
    assert told == [ReadingCounts(0, 3, 2, 2, 0, 0, 0), ReadingCounts(0, 86_404, 2, 2, 0, 0, 0)]
    assert [decode_event(encode_event(each)) for each in told] == told

"""TupleLog and the containers in it, against lists and dictionaries."""

import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from basestation.algebra.vector import Vector, constant
from basestation.execution.columns.segmented_log import SegmentedLog
from basestation.execution.columns.sparse_flags import SparseFlags
from basestation.execution.columns.tuple_indexes import TupleIndexes
from basestation.execution.columns.tuples import Tuples, empty_like
from basestation.execution.columns.watermark_buffer import WatermarkBuffer
from basestation.execution.ingest.tuple_log import TupleLog


def tuples(first, ticks, late=0):
    """Tuples numbered from `first` on, whose value is their number; they arrive `late` ticks after their own."""
    ticks, none = np.array(ticks, np.int64), constant(0, len(ticks))
    numbers = first + np.arange(len(ticks))
    columns = {"n": Vector(numbers * 1)}
    return Tuples(numbers, ticks, ticks + late, none, none, numbers, none, constant(False, len(ticks)), columns)


def values(found):
    return list(zip(found.ident.tolist(), found.columns["n"].to_list(), strict=True))


NONE = empty_like(tuples(0, [0]))


class Known:
    """The expected state of one tuple."""

    def __init__(self, tick):
        self.tick, self.index, self.there, self.live, self.value, self.said = tick, 0, True, True, None, None


@pytest.mark.promise("bounded-memory")
@given(st.data())
def test_tuple_log_equals_dict_after_corrections_and_drops(data):
    log, known, entered, clock = TupleLog(NONE), {}, 0, 0

    def some(of):
        chosen = data.draw(st.lists(st.sampled_from(of), unique=True, max_size=3)) if of else []
        return np.array(chosen, np.int64)

    for _ in range(data.draw(st.integers(1, 12))):
        what = data.draw(st.sampled_from(["add", "add", "enter", "delete", "revise", "withhold", "forget"]))
        here = [number for number in known if number >= log.first]
        clock += data.draw(st.integers(0, 3))
        if what == "add":
            came = tuples(log.next, [clock] * data.draw(st.integers(1, 4)))
            live = np.array(data.draw(st.lists(st.booleans(), min_size=len(came), max_size=len(came))))
            known |= {number: Known(clock) for number in came.ident.tolist()}
            for number, seen in zip(came.ident.tolist(), live.tolist(), strict=True):
                known[number].live, known[number].value, known[number].said = seen, number, number
            log.add(came, live, constant(True, len(came)), ("v",))
        elif what == "enter":
            waiting = [n for n in here if known[n].live and not known[n].index]
            if waiting and data.draw(st.booleans()):  # all in a row, as most do
                numbers = np.array(waiting[: data.draw(st.integers(1, len(waiting)))])
            else:
                numbers = some(waiting)
            if len(numbers):
                log.enter(log.current(numbers))
                for number in numbers.tolist():
                    entered += 1
                    known[number].index = entered
        elif what == "delete":
            numbers = some([n for n in here if known[n].there])
            said = np.array(data.draw(st.lists(st.booleans(), min_size=len(numbers), max_size=len(numbers))), bool)
            log.delete(numbers, said)
            for number, seen in zip(numbers.tolist(), said.tolist(), strict=True):
                known[number].there, known[number].live = False, known[number].live and not seen
        elif what == "revise":
            numbers = some([n for n in here if known[n].said == known[n].value])
            log.revise(replace(log.current(numbers), columns={"n": Vector(numbers + 1000)}))
            for number in numbers.tolist():
                known[number].value = known[number].said = number + 1000
        elif what == "withhold":
            numbers = some([n for n in here if known[n].there])
            old = log.current(numbers)
            log.withhold(old)
            log.revise(replace(old, columns={"n": Vector(numbers + 2000)}))
            for number in numbers.tolist():
                known[number].value = number + 2000
        else:
            before, watermark = data.draw(st.integers(0, clock)), data.draw(st.integers(0, clock))
            log.forget(before, watermark)
            young = [n for n in here if known[n].tick >= min(before, watermark + 1)]
            assert log.first <= min(young, default=log.next)

        here = np.array([number for number in known if number >= log.first], np.int64)
        of = [known[number] for number in here.tolist()]
        assert values(log.current(here[::-1])) == [(n, k.value) for n, k in zip(here.tolist(), of, strict=True)][::-1]
        assert values(log.visible(here)) == [(n, k.said) for n, k in zip(here.tolist(), of, strict=True)]
        assert log.index_of(here).tolist() == [k.index for k in of]
        assert log.is_visible(here).tolist() == [k.live for k in of]
        assert values(log.correctable()) == [(n, k.value) for n, k in zip(here.tolist(), of, strict=True) if k.there]
        assert values(log.all_visible()) == [(n, k.said) for n, k in zip(here.tolist(), of, strict=True) if k.live]
        rows = sorted((k.index, n) for n, k in zip(here.tolist(), of, strict=True) if k.index)
        assert log.row_history()[0].tolist() == [number for _, number in rows]
        asked = np.array([0, *(index for index, _ in rows), log.next + 1], np.int64)
        assert log.find(asked).tolist() == [-1, *(number for _, number in rows), -1]
        assert log.is_correctable(here).tolist() == [each.there for each in of]


@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4), max_size=5), st.integers(0, 10), st.integers(0, 12)
)
def test_segmented_log_keeps_young_and_waiting_tuples(batches, before, watermark):
    """At most about half of a segment stays needlessly."""
    parts, first, all_ = SegmentedLog(), 0, []
    for ticks in batches:
        parts.add(tuples(first, ticks, late=2))
        all_ += ticks
        first += len(ticks)
    young = [number for number, tick in enumerate(all_) if tick >= before or tick + 2 > watermark]
    number = parts.forget(before, watermark)
    held = parts.all().ident.tolist() if parts else []
    assert held == list(range(len(all_) - len(held), len(all_)))
    assert number == (None if len(held) == len(all_) else len(all_) - len(held))
    needless = min(young, default=len(all_)) - (len(all_) - len(held))
    assert 0 <= needless <= max(map(len, batches), default=0) // 2


@pytest.mark.promise("bounded-memory")
@given(st.lists(st.integers(0, 30), max_size=20), st.lists(st.integers(1, 4), max_size=8), st.integers(0, 31))
def test_ordered_segments_drop_same_tuples_as_searched_ones(ticks, sizes, before):
    known, looked_at, first = SegmentedLog(), SegmentedLog(), 0
    for size in sizes:
        of = sorted(ticks)[first : first + size]
        if of:
            for parts, ordered in ((known, True), (looked_at, False)):
                parts.add(tuples(first, of), ordered)
        first += size
    for upto in (before // 2, before):
        assert known.forget(upto, 31) == looked_at.forget(upto, 31)
        held = [parts.all().ident.tolist() if parts else [] for parts in (known, looked_at)]
        assert held[0] == held[1]


@pytest.mark.promise("bounded-memory")
def test_few_kept_tuples_release_large_arrays():
    parts, many = SegmentedLog(), tuples(0, range(1000))
    parts.add(many)
    parts.forget(400, 1000)
    assert np.shares_memory(parts.all().tick, many.tick)
    parts.forget(900, 1000)
    assert np.shares_memory(parts.all().tick, many.tick)
    parts.forget(900, 1000)  # a few have stayed
    assert not np.shares_memory(parts.all().tick, many.tick)


@given(st.lists(st.lists(st.integers(0, 30), max_size=4), max_size=6))
def test_sparse_flags_are_false_for_cleared_numbers(noted):
    excepted, dead = SparseFlags(), set()
    for numbers in noted:
        excepted.clear(np.array(numbers, np.int64))
        dead |= set(numbers)
        assert excepted[np.arange(31)].tolist() == [number not in dead for number in range(31)]
    excepted.drop_before(10)
    assert excepted[np.arange(10, 31)].tolist() == [number not in dead for number in range(10, 31)]


def test_restored_empty_indexes_find_nothing():
    again = pickle.loads(pickle.dumps(TupleIndexes()))
    assert again.find(np.array([1, 3])).tolist() == [-1, -1]


@given(st.permutations(range(12)), st.lists(st.integers(1, 4), min_size=12, max_size=12), st.booleans())
def test_index_is_position_in_order_of_entry(order, sizes, rising):
    """Consecutive numbers or not, at once or in parts: the n-th tuple to enter has index n."""
    indexes, entered = TupleIndexes(), []
    numbers = sorted(order) if rising else order
    while numbers and sizes:
        some, numbers = numbers[: sizes[0]], numbers[sizes.pop(0) :]
        in_a_row = all(b == a + 1 for a, b in pairwise(some))
        indexes.enter(np.array(some), in_a_row)
        entered += some
        found = indexes.of(np.arange(12)).tolist()
        assert found == [entered.index(n) + 1 if n in entered else 0 for n in range(12)]
    assert indexes.find(np.arange(len(entered)) + 1).tolist() == entered


@pytest.mark.promise("bounded-memory")
@given(st.lists(st.tuples(st.lists(st.integers(0, 9), max_size=4), st.integers(-1, 12)), max_size=6), st.data())
def test_watermark_buffer_releases_arrived_tuples_in_order(steps, data):
    arrivals, waiting, first = WatermarkBuffer(), {}, 0
    for ticks, watermark in steps:
        came = tuples(first, ticks)
        first += len(ticks)
        gone = data.draw(st.lists(st.sampled_from(sorted(waiting)), unique=True, max_size=2)) if waiting else []
        arrivals.apply(came, np.ones(len(came), bool), replace(NONE, ident=np.array(gone, np.int64)))
        waiting = {n: tick for n, tick in waiting.items() if n not in gone}
        waiting |= dict(zip(came.ident.tolist(), ticks, strict=True))
        assert arrivals.first == min(waiting.values(), default=None)
        found = arrivals.ready(watermark)
        expected = [n for tick, n in sorted((tick, n) for n, tick in waiting.items()) if tick <= watermark]
        assert (found is None) == (not expected) and (found is None or found.ident.tolist() == expected)
        waiting = {n: tick for n, tick in waiting.items() if n not in expected}

"""Bag differences, ranges and maps by number, against naive versions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from basestation.algebra.dictionary_vector import Dictionary, DictionaryVector, decode
from basestation.algebra.vector import Vector
from basestation.execution.columns.bags import number_occurrences, subtract_bag
from basestation.execution.columns.dense_id_map import DenseIdMap
from basestation.execution.columns.integer_arrays import locate_ranges
from basestation.execution.columns.tuple_indexes import TupleIndexes
from basestation.execution.columns.tuples import concatenate_vectors
from basestation.execution.columns.window_batch import expand_ranges, merge_ranges, select_ranges
from basestation.execution.columns.window_contents import WindowContents, diff_both_ways, diff_windows

HUGE = 2**40
few = st.lists(st.integers(0, 6), max_size=30)
texts = st.lists(st.sampled_from(["", "a", "b", "cold"]), max_size=12)


def ints(values):
    return np.array(values, np.int64)


def all_of(which, length=0):
    return list(range(which.start, which.stop)) if isinstance(which, slice) else which.tolist()


def taken_away(rows, others):
    """Positions of the rows that remain after each of the others has removed the first equal one."""
    left = list(enumerate(rows))
    for other in others:
        gone = next((each for each in left if each[1] == other), None)
        if gone is not None:
            left.remove(gone)
    return [at for at, _ in left]


@pytest.mark.promise("late-readings")
@given(few, few, st.sampled_from([1, 7, 2**31 + 11]))
def test_subtract_bag_removes_first_equal_row_per_other(keys, others, apart):
    """Dense keys are counted in a table; for sparse ones a filter finds candidates."""
    found = subtract_bag(ints(keys) * apart, ints(others) * apart, 7 * apart)
    assert found.tolist() == taken_away(keys, others)
    assert number_occurrences(ints(keys) * apart).tolist() == [keys[:at].count(key) for at, key in enumerate(keys)]


def test_subtract_bag_finds_few_equal_among_many():
    keys = np.arange(60_000) * 1_000_003
    others = np.concatenate([keys[::7], keys[::7] + 1, keys[70:700:70]])
    assert np.array_equal(
        subtract_bag(keys, others, HUGE), np.setdiff1d(np.arange(len(keys)), np.arange(0, len(keys), 7))
    )


rows = st.tuples(st.integers(0, 2), st.one_of(st.none(), st.sampled_from(["", "x", "y"])))


def frame_of(windows, placed):
    listed = [row for window in windows for row in window]
    numbers = Vector(ints([number for number, _ in listed]))
    some, entries = ["", "y", "x", "unused"], [text for _, text in listed]
    if placed:
        table = Dictionary(np.array([*some, ""], object), np.array([True] * len(some) + [False]))
        text = DictionaryVector(table, ints([len(some) if each is None else some.index(each) for each in entries]))
    else:
        values = np.empty(len(entries), object)
        values[:] = ["" if each is None else each for each in entries]
        text = Vector(values, np.array([each is not None for each in entries], bool))
    window = np.repeat(np.arange(len(windows)), [len(each) for each in windows])
    return WindowContents(len(windows), window, {1: numbers, 2: text})


def windows_in(frame):
    bounds, listed = frame.bounds(), list(zip(*(v.to_list() for v in frame.columns.values()), strict=True))
    return [listed[bounds[at] : bounds[at + 1]] for at in range(frame.windows)]


@pytest.mark.promise("late-readings")
@given(st.lists(st.lists(rows, max_size=5), min_size=1, max_size=6), st.data(), st.booleans())
def test_diff_windows_equals_naive_bag_difference(windows, data, placed):
    number = st.integers(0, len(windows) - 1)
    mine = sorted(data.draw(st.sets(number, min_size=1)))
    theirs = data.draw(st.lists(number, min_size=len(mine), max_size=len(mine)))
    found = diff_windows(frame_of(windows, placed), ints(mine), ints(theirs))
    left = [[windows[a][at] for at in taken_away(windows[a], windows[b])] for a, b in zip(mine, theirs, strict=True)]
    assert windows_in(found) == left


@pytest.mark.promise("late-readings")
@given(
    st.lists(st.tuples(st.lists(rows, max_size=5), st.lists(rows, max_size=5)), min_size=1, max_size=5), st.booleans()
)
def test_diff_both_ways_equals_naive_bag_difference(pairs, placed):
    mine, theirs = frame_of([a for a, _ in pairs], placed), frame_of([b for _, b in pairs], not placed)
    came, went = (each.take(at) for each, at in zip((mine, theirs), diff_both_ways(mine, theirs), strict=True))
    assert windows_in(came) == [[a[at] for at in taken_away(a, b)] for a, b in pairs]
    assert windows_in(went) == [[b[at] for at in taken_away(b, a)] for a, b in pairs]


@pytest.mark.promise("late-readings")
@given(texts, texts, st.lists(st.booleans(), min_size=12, max_size=12), st.data())
def test_dictionary_vector_equals_decoded_vector(some, more, there, data):
    table = Dictionary(np.array([*some, "z"], object), np.array([*there[: len(some)], True]))
    places = st.lists(st.integers(0, len(some)), max_size=20)
    a, b = (DictionaryVector(table, ints(data.draw(places))) for _ in range(2))
    plain = Vector(np.array([*more, "end"], object))
    both = [
        concatenate_vectors([a, b]),
        concatenate_vectors([a, plain]),
        concatenate_vectors([b, a.take(slice(1, None))]),
    ]
    full = [concatenate_vectors([decode(a), decode(b)]), concatenate_vectors([decode(a), plain])]
    full.append(concatenate_vectors([decode(b), decode(a).take(slice(1, None))]))
    assert [each.to_list() for each in both] == [each.to_list() for each in full]
    mask = np.arange(len(a)) % 2 == 0
    assert a.take(mask).to_list() == decode(a).take(mask).to_list() and len(a.take(mask)) == mask.sum()


spans = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6)), max_size=12)


@pytest.mark.promise("late-readings")
@given(spans)
def test_merged_ranges_contain_each_number_once(given_spans):
    first, counts = (ints([span[at] for span in given_spans]) for at in (0, 1))
    assert all_of(select_ranges(first, counts)) == expand_ranges(first, counts).tolist()
    begins, held = merge_ranges(first, counts)
    held = all_of(held)
    assert held == sorted(set(held)) and len(held) <= max(counts.sum(), 1)
    for (begin, count), at in zip(given_spans, begins.tolist(), strict=True):
        assert not count or held[at : at + count] == list(range(begin, begin + count))


@given(st.lists(st.integers(-5, 30), max_size=15), st.integers(0, 4), st.data())
def test_located_ranges_contain_exactly_numbers_in_range(numbers, apart, data):
    numbers = [apart * number for number in range(len(numbers))] if apart else sorted(numbers)
    asked = data.draw(st.lists(st.tuples(st.integers(-8, 35), st.integers(0, 9)), max_size=6))
    left, right = (ints([low + more * far for low, far in asked]) for more in (0, 1))
    first, counts = locate_ranges(ints(numbers), left, right)
    for low, high, begin, count in zip(left, right, first, counts, strict=True):
        assert numbers[begin : begin + count] == [number for number in numbers if low <= number <= high]


steps = st.lists(st.tuples(st.sampled_from(["in a row", "singly", "leave", "drop"]), st.integers(0, 4)), max_size=25)


@given(steps, st.randoms(use_true_random=False))
def test_tuple_indexes_equal_dict_after_reentry_and_drops(told, rng):
    indexes, known, next_, base = TupleIndexes(), {}, 0, 0
    for what, count in told:
        if what == "in a row" and count:
            entering = list(range(next_, next_ + count))
            next_ += count
        elif what == "singly":
            entering = [n for n in range(base, next_ + count) if known.get(n, 0) == 0]
            entering = rng.sample(entering, min(2, len(entering)))
            next_ = max([next_, *(n + 1 for n in entering)])
        else:
            entering = []
        if entering:
            last = indexes.last
            known |= {number: last + 1 + at for at, number in enumerate(entering)}
            indexes.enter(ints(entering), entering == list(range(entering[0], entering[0] + len(entering))))
        if what == "leave":
            again = rng.sample(range(base, next_ + 2), min(count, next_ + 2 - base))
            known |= dict.fromkeys(again, 0)
            indexes.leave(ints(again))
        if what == "drop":
            base = min(base + count, next_)
            indexes.drop_before(base)
        asked = rng.sample(range(base, next_ + 3), min(3, next_ + 3 - base))
        assert indexes.of(ints(asked)).tolist() == [known.get(number, 0) for number in asked]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9), st.integers(0, 30)), max_size=20))
def test_dense_id_map_equals_dict_after_drops(told):
    numbered, known, base = DenseIdMap(np.int64), {}, 0
    for ahead, count, drop in told:
        numbers = np.arange(base + ahead, base + ahead + count)
        numbered[numbers] = numbers + 1
        known |= {number: number + 1 for number in numbers.tolist()}
        base += drop
        numbered.drop_before(base)
        asked = np.arange(base, base + 60)
        assert numbered[asked].tolist() == [known.get(number, 0) for number in asked.tolist()]

"""Shortcuts for ordered values and shared arrays give the results of sorting and copying."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from basestation.algebra.vector import Vector, constant, unique_by_identity
from basestation.execution.columns.integer_arrays import distinct, rank_distinct
from basestation.execution.columns.tuples import Tuples, concatenate_tuples

integers = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=12)
runs = st.lists(st.integers(-4, 4), max_size=12)


@given(st.one_of(integers, runs, runs.map(sorted)).map(lambda n: np.array(n, np.int64)))
def test_distinct_and_ranks_equal_numpy_unique(values):
    found, place = np.unique(values, return_inverse=True)
    assert distinct(values).tolist() == found.tolist()
    assert [of.tolist() for of in rank_distinct(values)] == [found.tolist(), place.tolist()]


@given(st.lists(st.text("ab", max_size=2), max_size=12), st.sampled_from([1, 1000]), st.data())
def test_unique_by_identity_returns_each_object_once(strings, times, data):
    """Some equal strings are one object, others are not."""
    found_again_by_identity(["".join(list(s)) if data.draw(st.booleans()) else s for s in strings] * times)


def test_unique_by_identity_of_many_objects():
    found_again_by_identity([str(number) for number in range(20_000)])


def found_again_by_identity(again):
    objects = np.empty(len(again), object)
    objects[:] = again
    some, place = unique_by_identity(objects)
    assert [some[at] for at in place.tolist()] == again
    assert len({id(each) for each in some}) == len(some)


def some_tuples(first, count):
    """Tuples whose tick, arrival and column 1 are one array, with constants for all else."""
    tick, none = first + np.arange(count), constant(0, count)
    columns = {1: Vector(tick), 2: Vector(np.arange(count) % 3, np.arange(count) % 2 == 0)}
    return Tuples(first + np.arange(count), tick, tick, none, none, none, none, constant(False, count), columns)


def told(tuples):
    system = [
        getattr(tuples, name).tolist() for name in ("ident", "tick", "arrival", "part", "rank", "place", "append")
    ]
    return list(zip(*system, *(vector.to_list() for vector in tuples.columns.values()), strict=True))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=4), st.data())
def test_shared_arrays_stay_shared_after_concatenate_and_take(lengths, data):
    parts = [some_tuples(10 * at, length) for at, length in enumerate(lengths)]
    whole = concatenate_tuples(parts)
    assert told(whole) == [row for part in parts for row in told(part)]
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(whole), max_size=len(whole))), bool)
    kept = whole.take(mask)
    assert told(kept) == [row for row, stays in zip(told(whole), mask.tolist(), strict=True) if stays]
    assert kept.arrival is kept.tick is kept.columns[1].values
    assert not len(kept) or kept.rank.strides == (0,)

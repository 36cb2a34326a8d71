"""Numbers of tuples and corrections: what they are, and that their state does not grow with the corrections."""

import pickle

import numpy as np
import pytest

from acquisition.batch import BY_KEY, Batch
from basestation.archive.numbering import TupleNumbers
from basestation.planner.catalog import read_schema

CATALOG = read_schema(
    "traffic: pushed (weight:integer)\ndock: pushed (weight:integer) ahead 5 sec\n"
    "lab: sensed (temp:integer) every 1 sec at sites 1, 2\n"
)
LAB, TRAFFIC, DOCK = (CATALOG.extents[name] for name in ("lab", "traffic", "dock"))


def corrections(ticks, replaces):
    """Of the readings of site 1 at some ticks; `replaces` has BY_KEY, the index of a tuple, or 0 for one that is inserted."""
    ticks, replaces = np.asarray(ticks), np.broadcast_to(replaces, len(ticks))
    ones = np.ones(len(ticks), np.int64)
    return Batch(ticks, ones, ticks + 5, ones, {}, {}, replaces)


def delivered(ticks, arrival):
    """Tuples of site 1, all delivered at once."""
    ones = np.ones(len(ticks), np.int64)
    return Batch(np.asarray(ticks), ones, arrival * ones, ones, {}, {})


def numbers_of(batch):
    return list(zip(batch.columns["_index"].tolist(), batch.columns["_revision"].tolist(), strict=True))


@pytest.mark.parametrize(("extent", "replaces"), [(LAB, BY_KEY), (TRAFFIC, 7)])
def test_numbers_of_many_corrections_take_no_more_memory(extent, replaces):
    sizes = []
    for count in (200, 20_000):
        numbers = TupleNumbers()
        for begin in range(0, count, 100):
            numbers.number_corrections(
                extent, corrections(range(begin, begin + 100), replaces + begin * (extent is TRAFFIC))
            )
        sizes.append(len(pickle.dumps(numbers)))
    assert sizes[1] <= sizes[0] + 8


def test_insert_in_the_place_of_a_deleted_reading_counts_on():
    numbers = TupleNumbers()
    assert numbers_of(numbers.number_corrections(LAB, corrections([3], 0))) == [(1, 0)], "the extent has no corrections"
    found = numbers_of(numbers.number_corrections(LAB, corrections([4, 3, 3, 3], [0, BY_KEY, BY_KEY, 0])))
    assert found == [(2, 0), (0, 1), (0, 2), (3, 3)]
    assert numbers_of(numbers.number_corrections(LAB, corrections([3, 3], [BY_KEY, 0]))) == [(0, 4), (4, 5)]


def test_pushed_tuple_too_far_ahead_has_no_index():
    """
    tick      10   16   15   16   20
    arrival   10 (until 15 is taken) | 20
    index      1    0    2  |   3    4
    """
    numbers = TupleNumbers()
    assert numbers_of(numbers.number(DOCK, delivered([10, 16, 15], 10))) == [(1, 0), (0, 0), (2, 0)]
    assert numbers_of(numbers.number(DOCK, delivered([16, 20], 20))) == [(3, 0), (4, 0)]
    assert numbers_of(TupleNumbers().number(TRAFFIC, delivered([10, 900], 10))) == [(1, 0), (2, 0)], "no limit"


def test_insert_of_a_pushed_tuple_is_no_revision():
    numbers = TupleNumbers()
    found = numbers_of(numbers.number_corrections(TRAFFIC, corrections([3, 3, 4], [7, 0, 7])))
    assert found == [(7, 1), (1, 0), (7, 2)]

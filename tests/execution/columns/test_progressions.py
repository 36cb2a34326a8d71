"""ProgressionOrArray and DenseCounts against lists and dictionaries."""

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from basestation.execution.columns.compact_arrays import ProgressionOrArray
from basestation.execution.columns.dense_id_map import DenseCounts

RUNS = st.lists(
    st.one_of(
        st.tuples(st.just("run"), st.integers(-50, 50), st.integers(-3, 3), st.integers(0, 5)),
        st.tuples(st.just("on"), st.integers(0, 5), st.just(0), st.just(0)),
        st.tuples(st.just("drop"), st.integers(0, 6), st.just(0), st.just(0)),
    ),
    max_size=8,
)


@given(RUNS)
def test_progression_holds_what_was_appended(runs):
    held, expected, step = ProgressionOrArray(np.empty(0, np.int64)), [], 1
    for how, a, b, count in runs:
        if how == "drop":
            a = min(a, len(expected))
            held.drop(a)
            del expected[:a]
        else:
            if how == "run":
                step, values = b, a + b * np.arange(count)
            else:  # go on as before
                values = (expected[-1] + step if expected else 0) + step * np.arange(a)
            held.extend(values)
            expected += values.tolist()
        assert held.values.tolist() == expected and len(held) == len(expected)
        held = pickle.loads(pickle.dumps(held))
    middle = slice(1, max(1, len(expected) - 1))
    assert held[middle].tolist() == expected[middle]
    at = np.arange(len(expected))[::-1]
    assert held[at].tolist() == expected[::-1]


def test_progression_takes_the_same_room_however_long_it_is():
    held = ProgressionOrArray(np.arange(0, 60, 30))
    held.extend(np.arange(60, 30_000, 30))
    assert len(held) == 1_000 and len(pickle.dumps(held)) < 200


@given(st.dictionaries(st.integers(0, 60), st.sampled_from([0, 1, 54, 32_767, 32_768, 2**31, 2**40]), min_size=1))
def test_counts_of_any_size_are_found_again(counts):
    held = DenseCounts()
    for number, count in counts.items():
        held[np.array([number])] = np.array([count])
    assert held[np.array(list(counts))].tolist() == list(counts.values())

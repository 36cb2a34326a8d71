"""PackedArray against a list: appended, dropped, replaced and read in any order, whatever the size of blocks."""

import pickle

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from basestation.execution import thresholds
from basestation.execution.columns import packed_array
from basestation.execution.columns.packed_array import PackedArray

VALUES = st.lists(st.sampled_from([0, 1, 5, 30, 127, 128, -129, 2**15, 2**31, 2**40]), max_size=9)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("append"), VALUES),
        st.tuples(st.just("drop"), st.integers(0, 12)),
        st.tuples(st.just("put"), st.integers(0, 40)),
    ),
    max_size=20,
)


@given(CHANGES, st.integers(1, 3))
@example([("append", [0, 1, 5, 30, 127, 128]), ("append", [5]), ("put", 1)], 1)  # of a block, packed by the second call
def test_packed_array_holds_what_was_appended(changes, size):
    usual = thresholds.PACKED_VALUES
    thresholds.PACKED_VALUES = size
    try:
        held, expected = PackedArray(np.empty(0, np.int64)), []
        for how, what in changes:
            if how == "append":
                held.extend(np.array(what, np.int64))
                expected += what
            elif how == "drop":
                held.drop(min(what, len(expected)))
                del expected[:what]
            elif what < len(expected):
                held.put(np.array([what]), np.array([-7]))
                expected[what] = -7
            assert held.values.tolist() == expected and len(held) == len(expected)
            held = pickle.loads(pickle.dumps(held))
        at = np.arange(len(expected))[::-1]
        assert held[at].tolist() == expected[::-1]
        assert [held[slice(i, i + 2)].tolist() for i in at] == [expected[i : i + 2] for i in at]
    finally:
        thresholds.PACKED_VALUES = usual


def test_ticks_of_windows_take_few_bytes():
    held = PackedArray(np.empty(0, np.int64))
    for epoch in range(2_880):
        held.extend(np.full(5 + epoch % 2, 30 * epoch))
    assert len(held) == 15_840 and len(pickle.dumps(held)) < 8_000


def test_values_of_the_last_call_are_read_without_unpacking(monkeypatch):
    """A step appends the windows of a batch, and reads them: they are packed when the next one appends."""
    squares = np.arange(9_000) ** 2
    held = PackedArray(squares[:5_000])
    held.extend(squares[5_000:])
    assert held.values.tolist() == squares.tolist()
    monkeypatch.delattr(packed_array, "_unpack")
    assert held[5_000:].tolist() == squares[5_000:].tolist()
    assert held[np.array([8_999, 6_000])].tolist() == [8_999**2, 6_000**2]

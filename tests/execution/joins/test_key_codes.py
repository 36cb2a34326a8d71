"""Codes against a dictionary."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from basestation.execution.joins.key_codes import _MIX, KeyCodes


def crowded(n):
    """Hashes for small numbers that all want the first slot when their own is taken."""
    folded = n * pow(int(_MIX), -1, 2**64) % 2**64
    return folded ^ (folded >> 32)


SAME = [hash_ for hash_ in map(crowded, range(40_000)) if hash_ % 2**10 == 0]
"""Of these all want the same slot at first as well."""
HASHES = st.integers(0, 40).map(crowded) | st.sampled_from(SAME) | st.integers(0, 2**64 - 1) | st.integers(0, 9)
NEAR = st.integers(-30, 30).map(lambda n: n % 2**64)
FARTHER = st.integers(-3_000, 3_000).map(lambda n: n % 2**64)
LISTS = st.lists(HASHES, max_size=60) | st.lists(NEAR, max_size=60) | st.lists(FARTHER, max_size=9)
CALLS = st.lists(st.tuples(st.booleans(), LISTS), max_size=8)


@pytest.mark.promise("joins")
@given(CALLS)
def test_a_key_has_one_number_and_no_other_key_has_it(calls):
    codes, known = KeyCodes(), {}
    for adds, hashes in calls:
        asked = np.array(hashes, np.uint64)
        if adds:
            for hash_, code in zip(hashes, codes.add(asked).tolist(), strict=True):
                assert known.setdefault(hash_, code) == code
        assert codes.of(asked).tolist() == [known.get(hash_, -1) for hash_ in hashes]
        assert sorted(known.values()) == list(range(len(codes)))


def test_numbers_stay_while_the_table_grows():
    codes = KeyCodes()
    first = codes.add(np.arange(100, dtype=np.uint64))
    codes.add(np.array([crowded(n) for n in range(5_000)], np.uint64))
    assert codes.of(np.arange(100, dtype=np.uint64)).tolist() == first.tolist()


def test_keys_that_come_twice_at_once_do_not_copy_all_that_are_held():
    codes = KeyCodes()
    codes.add(np.arange(1000, dtype=np.uint64) << np.uint64(40))
    before = codes._hashes.values
    for key in range(5):
        codes.add(np.full(2, key + 1, np.uint64))
    assert np.shares_memory(codes._hashes.values, before)

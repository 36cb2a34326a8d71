"""Bundles of states against the states themselves, merged one by one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from innet.aggregates import create_aggregate
from innet.aggregates.exact_sums import HEADROOM
from innet.aggregates.identity_memo import IdentityMemo
from innet.aggregates.state_bundle import bundle_states, can_merge

MADE = [create_aggregate(name, "float") for name in ("MIN", "MAX", "AVG", "SUM", "COUNT")]
VALUES = (
    st.integers(-(10**8), 10**8).map(lambda n: n / 100)
    | st.floats(-1e6, 1e6)
    | st.sampled_from([0.0, -0.0, 1e-30, 1e300, 0.25])
)


def states(values):
    """States of groups with one value each, which share their counts."""
    memo, counts = IdentityMemo(), np.ones(len(values), np.int64)
    return [made.aggregate_rows(counts, None, np.array(values), None, None, memo) for made in MADE]


def answers(of):
    return [[column.tolist() for column in made.finalize(state)] for made, state in zip(MADE, of, strict=True)]


@pytest.mark.promise("exact-aggregates")
@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=8))
def test_combined_bundles_equal_combined_states(rows):
    parts = [states(values) for values in rows]
    bundles = [bundle_states(MADE, part) for part in parts]
    whole, found = parts[0], bundles[0]
    for part, bundle in zip(parts[1:], bundles[1:], strict=True):
        whole = [made.combine(*both) for made, *both in zip(MADE, whole, part, strict=True)]
        found = found.combine(bundle) if found is not None and found.form == bundle.form else None
    if found is not None:
        assert answers(found.states()) == answers(whole)
    assert answers(bundles[0].states()) == answers(parts[0])


def test_bundle_has_shared_arrays_once():
    found = bundle_states(MADE, states([1.5, 2.25]))
    assert len(found.arrays) == 6  # count, seen, min, max, one limb of each of two sums
    assert len({id(array) for array in found.arrays}) == len(found.arrays)


def test_bundles_beyond_headroom_cannot_merge():
    half = replace(bundle_states(MADE, states([1.5])), bound=HEADROOM // 2)
    assert can_merge([half] * 2) and not can_merge([half] * 3)

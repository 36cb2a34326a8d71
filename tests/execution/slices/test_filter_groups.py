"""Group ids of filters and keys, against a dictionary."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from acquisition.schema import Type
from basestation.algebra.expression import Column
from basestation.algebra.expressions import Attr
from basestation.algebra.vector import Vector
from basestation.execution.slices.filter_groups import FilterGroups

FILTER, KEY = Column(1, Type.INTEGER), Column(2, Type.INTEGER)
PAIRS = st.lists(st.tuples(st.integers(1, 5), st.integers(-3, 3)), min_size=1, max_size=12)


def keys_of(pairs, with_keys):
    vectors = [Vector(np.array(values, np.int64)) for values in zip(*pairs, strict=True)]
    return vectors if with_keys else vectors[:1]


@given(st.lists(PAIRS, min_size=1, max_size=6), st.booleans(), st.data())
def test_groups_of_filters_and_keys_have_numbers_of_their_own(batches, with_keys, data):
    columns = ((FILTER, Attr(FILTER)), (KEY, Attr(KEY)))
    groups, known = FilterGroups(columns if with_keys else columns[:1]), {}
    for batch in batches:
        numbers = groups.of(keys_of(batch, with_keys), len(batch)).tolist()
        for pair, number in zip(batch, numbers, strict=True):
            key = pair if with_keys else pair[:1]
            assert known.setdefault(key, number) == number
        assert sorted(known.values()) == list(range(len(groups)))
        shown = [vector.values.tolist() for vector in groups.keys(np.arange(len(groups)))]
        assert list(zip(*shown, strict=True)) == sorted(known, key=known.__getitem__)
        kept = sorted(data.draw(st.sets(st.sampled_from(range(len(groups))))))
        renumbered = groups.keep(np.array(kept, np.int64)).tolist()
        known = {key: renumbered[number] for key, number in known.items() if number in kept}
        assert all(renumbered[number] == -1 for number in set(range(len(renumbered))) - set(kept))
        assert len(groups) == len(kept)

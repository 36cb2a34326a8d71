"""Batches have columns of equal length; scaled values are exact until they become doubles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.batch import Batch, concatenate, dtype_of, empty_batch, mask_of, values_of
from acquisition.schema import Attribute, Schema, Type


def batch(ticks, values, nulls=None):
    size = len(ticks)
    valid = {} if nulls is None else {"v": ~np.array(nulls, bool)}
    ones = np.ones(size, np.int64)
    return Batch(np.array(ticks), 3 * ones, np.array(ticks), ones, {"v": np.array(values, np.int64)}, valid)


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="expected 2 entries in v, as in tick; found 1"):
        batch([1, 2], [7])


def test_concatenation_keeps_nulls_where_they_were():
    both = concatenate([batch([1], [7]), batch([2, 3], [8, 0], [False, True])])
    assert both.columns["v"].tolist() == [7, 8, 0]
    assert mask_of(both, "v").tolist() == [True, True, False]


def test_take_keeps_columns_nulls_and_weights():
    found = batch([1, 2, 3], [7, 8, 0], [False, False, True]).take(np.array([2, 0]))
    assert (found.tick.tolist(), found.columns["v"].tolist(), found.valid["v"].tolist()) == (
        [3, 1],
        [0, 7],
        [False, True],
    )


def test_dtype_of_each_attribute_type():
    kinds = [(Type.INTEGER, None), (Type.TIME, None), (Type.FLOAT, None), (Type.FLOAT, 2), (Type.STRING, None)]
    assert [str(dtype_of(Attribute("a", type_, scale=scale))) for type_, scale in kinds] == [
        "int64", "int64", "float64", "int64", "object"]  # fmt: skip
    assert len(empty_batch(Schema((Attribute("a", Type.STRING),)))) == 0


@given(st.integers(-(2**53), 2**53), st.integers(0, 18))
def test_scaled_value_is_the_nearest_double(multiple, scale):
    """Against Python's own correctly rounded reading of the decimal."""
    assert values_of(np.array([multiple]), scale)[0] == float(f"{multiple}e-{scale}")


def test_without_a_scale_integers_stay_integers():
    assert values_of(np.array([2**53 + 1]), None)[0] == 2**53 + 1

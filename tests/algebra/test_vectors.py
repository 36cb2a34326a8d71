"""Vectors and their comparison: nulls apart, integers and floats by value."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.schema import Type
from basestation.algebra.comparison import compare
from basestation.algebra.vector import Vector, both_valid, constant_vector, dtype_of, null_vector
from tests.algebra import strategies
from tests.algebra.vectors import vector_of
from tests.oracles import values

_PAIRS = {
    Type.INTEGER: strategies.integers, Type.FLOAT: strategies.floats, Type.STRING: strategies.strings,
}  # fmt: skip


@pytest.mark.parametrize("type_", list(Type))
def test_vector_returns_its_values(type_):
    items = {Type.STRING: ["a", None, ""], Type.FLOAT: [1.5, None, -0.0]}.get(type_, [2**63 - 1, None, -(2**63)])
    found = vector_of(items, type_)
    assert found.to_list() == items and found.values.dtype == dtype_of(type_)
    assert [type(v) for v in found.to_list()] == [type(v) for v in items]


def test_vector_without_nulls_has_no_mask():
    assert vector_of([1, 2], Type.INTEGER).valid is None
    assert vector_of([], Type.STRING).to_list() == []


def test_validity_and_is_true_masks():
    truths = Vector(np.array([True, False, True]), np.array([True, True, False]))
    assert truths.validity.tolist() == [True, True, False] and truths.is_true.tolist() == [True, False, False]
    assert Vector(np.array([True, False])).validity.tolist() == [True, True]


def test_take_and_where_select_entries():
    found = vector_of([1, None, 3], Type.INTEGER)
    assert found.take([2, 1, 2]).to_list() == [3, None, 3]
    assert found.where(np.array([False, True, True])).to_list() == [None, None, 3]
    assert vector_of([1, 2], Type.INTEGER).where(np.array([True, False])).to_list() == [1, None]


@pytest.mark.parametrize("type_", list(Type))
def test_null_and_constant_vectors(type_):
    assert null_vector(2, type_).to_list() == [None, None]
    value = {Type.STRING: "x", Type.FLOAT: 1.5}.get(type_, 7)
    assert constant_vector(value, type_, 2).to_list() == [value, value]
    assert constant_vector(None, type_, 2).to_list() == [None, None]


def test_both_valid_combines_masks():
    some, all_ = vector_of([1, None], Type.INTEGER), vector_of([1, 2], Type.INTEGER)
    assert both_valid(all_, all_) is None
    assert both_valid(some, all_).tolist() == both_valid(all_, some).tolist() == [True, False]


@pytest.mark.parametrize("op", sorted(values.COMPARISONS))
@pytest.mark.parametrize(
    ("left", "right"),
    [
        (Type.INTEGER, Type.INTEGER), (Type.INTEGER, Type.FLOAT), (Type.FLOAT, Type.INTEGER), (Type.FLOAT, Type.FLOAT),
        (Type.STRING, Type.STRING),
    ],
    ids=str,
)  # fmt: skip
@given(data=st.data())
def test_comparison_equals_the_oracle(op, left, right, data):
    pairs = data.draw(st.lists(st.tuples(_PAIRS[left], _PAIRS[right]), max_size=8))
    found = compare(op, vector_of([a for a, _ in pairs], left), vector_of([b for _, b in pairs], right))
    assert found.to_list() == [values.compare(op, a, b) for a, b in pairs]

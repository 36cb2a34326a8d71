"""Factors: a predicate is true exactly where a value lies in its ranges and the residual is true."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from acquisition.schema import Type
from basestation.algebra.evaluation import Evaluation
from basestation.algebra.expression import Column
from basestation.algebra.expressions import Attr, Between, Compare, Literal, conjunction
from basestation.algebra.factors import extract_ranges
from tests.algebra.vectors import vector_of

INTEGERS = st.one_of(
    st.integers(-3, 3),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]),
)
FLOATS = st.one_of(
    st.sampled_from([0.0, -0.0, 0.5, 2.0**53, 2.0**63, 1e300]),
    st.floats(-5, 5),
    st.floats(allow_nan=False, allow_infinity=False),
)
STRINGS = st.text(st.sampled_from("\0ab~é"), max_size=3)
KINDS = {
    (Type.INTEGER, None): (INTEGERS, INTEGERS | FLOATS), (Type.TIME, None): (INTEGERS, INTEGERS),
    (Type.FLOAT, None): (FLOATS, INTEGERS | FLOATS), (Type.STRING, None): (STRINGS, STRINGS),
    (Type.FLOAT, 1): (INTEGERS, st.integers(-3, 3) | FLOATS), (Type.FLOAT, 6): (INTEGERS, FLOATS),
}  # fmt: skip
TYPES = {int: Type.INTEGER, float: Type.FLOAT, str: Type.STRING}


@st.composite
def asked(draw):
    """(a column, terms over it, values that it may hold)."""
    (type_, scale), (held, constants) = draw(st.sampled_from(sorted(KINDS.items(), key=str)))
    column = Column(1, type_, scale=scale)
    terms = draw(st.lists(term(column, constants), min_size=1, max_size=3))
    near = [
        value for t in terms for part in t.parts if isinstance(part, Literal) for value in beside(part.value, column)
    ]
    return column, terms, [*draw(st.lists(st.none() | held, max_size=6)), *near]


def beside(constant, column):
    """Values of a column beside a constant."""
    if column.type is Type.STRING:
        return [constant, constant + "\0", constant[:-1]]
    if column.type is Type.FLOAT and column.scale is None:
        double = float(constant)
        return [double, *(math.nextafter(double, to) for to in (-1e308, 1e308))]
    whole = int(constant * 10 ** (column.scale or 0)) if abs(constant) < 1e15 else int(constant)
    return [value for value in range(whole - 2, whole + 3) if -(2**63) <= value < 2**63]


@st.composite
def term(draw, column, constants):
    one, two = (Literal(value, TYPES[type(value)]) for value in (draw(constants), draw(constants)))
    if draw(st.integers(0, 3)) == 0:
        return Between(Attr(column), one, two)
    sides = draw(st.sampled_from([(Attr(column), one), (one, Attr(column))]))
    return Compare(draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="])), *sides)


def in_range(value, range_):
    if value is None:
        return False
    return (range_.begin is None or value >= range_.begin) and (range_.stop is None or value < range_.stop)


@pytest.mark.promise("queries-apart")
@given(asked())
@example(
    (
        Column(1, Type.INTEGER),
        [Compare(">", Attr(Column(1, Type.INTEGER)), Literal(2**63 - 1, Type.INTEGER))],
        [2**63 - 1],
    )
)
@example(
    (Column(1, Type.FLOAT), [Compare("<", Attr(Column(1, Type.FLOAT)), Literal(0.0, Type.FLOAT))], [0.0, -0.0, -5e-324])
)
def test_ranges_and_residual_equal_the_predicate(case):
    column, terms, values = case
    ranges, others = extract_ranges(conjunction(terms))
    held = vector_of(values, Type.INTEGER if column.scale is not None else column.type)
    evaluation = Evaluation({column.id: held}, len(values))
    wanted = evaluation.of(conjunction(terms)).is_true
    inside = np.array([all(in_range(value, each) for each in ranges.values()) for value in values], bool)
    for other in others:
        inside &= evaluation.of(other).is_true
    assert inside.tolist() == wanted.tolist()
    assert all(t.op == "<>" for t in others), "each comparison with a constant, but one, is a range"


@given(asked())
def test_point_ranges_are_equal_or_disjoint(case):
    _, terms, _ = case
    points = [range_ for t in terms for range_ in extract_ranges(t)[0].values() if range_.is_point]
    for one in points:
        for other in points:
            assert (one.begin, one.stop) == (other.begin, other.stop) or one.intersect(other).is_empty


def test_terms_without_a_range_stay_in_the_residual():
    v, w = Attr(Column(1, Type.INTEGER)), Attr(Column(2, Type.INTEGER))
    left = [Compare("=", v, Literal(None, None)), Compare("<", v, w)]
    ranges, others = extract_ranges(conjunction([*left, Compare("<", v, Literal(3, Type.INTEGER))]))
    assert others == left and list(ranges) == [v.column]

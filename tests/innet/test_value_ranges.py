"""Ranges hold: no value of an expression lies outside the interval that was found for it."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from innet.operators.mote_expression import BINARY, UNARY, Apply, Measured, Number, SiteNumber, apply
from innet.operators.scalar_evaluation import BINARY as MEANING
from innet.operators.scalar_evaluation import UNARY as MEANING_OF_ONE
from innet.operators.scalar_evaluation import picked
from innet.operators.value_ranges import REGISTER, SITES, Interval, TooWide, interval_of

A, B = Measured("f", "a"), Measured("f", "b")
LEAF = st.one_of(st.sampled_from([A, B]), st.builds(Number, st.one_of(st.none(), st.integers(-5, 5))))
EXPRESSION = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        st.builds(apply, st.sampled_from(UNARY), inner),
        st.builds(apply, st.sampled_from(BINARY), inner, inner),
        st.builds(apply, st.just("PICK"), inner, inner, inner),
    ),
    max_leaves=4,
)
ENDS = st.tuples(st.integers(-6, 6), st.integers(-6, 6)).map(lambda ends: Interval(min(ends), max(ends)))


def value_of(expression, known):
    match expression:
        case Number(value):
            return value
        case Apply(name, parts):
            function = picked if name == "PICK" else MEANING_OF_ONE.get(name) or MEANING[name]
            return function(*(value_of(part, known) for part in parts))
    return known[expression]


@given(EXPRESSION, ENDS, ENDS)
def test_every_value_is_within(expression, a, b):
    """Over all values of both sensors, nulls among them."""
    found = interval_of(expression, {A: a, B: b})
    for x, y in product([None, *range(a.low, a.high + 1)], [None, *range(b.low, b.high + 1)]):
        value = value_of(expression, {A: x, B: y})
        assert value is None or found.low <= value <= found.high


@pytest.mark.parametrize(
    ("expression", "interval"),
    [
        (apply("ADD", A, B), Interval(-7, 9)),
        (apply("SUB", A, B), Interval(-7, 9)),
        (apply("MUL", A, B), Interval(-20, 20)),
        (apply("DIV", A, B), Interval(-5, 5)),
        (apply("DIV", A, Number(-2)), Interval(-2, 1)),
        (apply("DIV", A, apply("ADD", apply("ABS", B), Number(2))), Interval(-1, 2)),
        (apply("MOD", A, B), Interval(-3, 3)),
        (apply("NEG", A), Interval(-5, 3)),
        (apply("ABS", A), Interval(0, 5)),
        (apply("ABS", apply("ADD", A, Number(4))), Interval(1, 9)),
        (apply("LEAST", A, Number(9)), Interval(-3, 9)),
        (apply("EQ", A, B), Interval(0, 1)),
        (SiteNumber(), SITES),
    ],
)
def test_intervals(expression, interval):
    """Of a from -3 to 5 and b from -4 to 4."""
    assert interval_of(expression, {A: Interval(-3, 5), B: Interval(-4, 4)}) == interval


def test_what_is_not_known_of_a_sensor_is_a_whole_register():
    assert interval_of(A, {}) == REGISTER
    with pytest.raises(TooWide, match=r"^NEG\(f\.a\) can be -2147483647 to 2147483648$"):
        interval_of(apply("NEG", A), {})


def test_a_part_that_does_not_fit_is_told_though_the_whole_would():
    with pytest.raises(TooWide, match=r"f\.a \+ f\.b can be -4294967296 to 4294967294"):
        interval_of(apply("MOD", apply("ADD", A, B), Number(7)), {})

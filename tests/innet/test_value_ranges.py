"""Value ranges: no value of an expression lies outside its inferred range."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from innet.operators.mote_expression import (
    BINARY,
    UNARY,
    Instruction,
    MoteConstant,
    SensorValue,
    SiteNumber,
    make_instruction,
)
from innet.operators.scalar_evaluation import BINARY as MEANING
from innet.operators.scalar_evaluation import UNARY as MEANING_OF_ONE
from innet.operators.scalar_evaluation import choose_value
from innet.operators.value_ranges import REGISTER, SITES, Interval, ValueRangeError, infer_range

A, B = SensorValue("f", "a"), SensorValue("f", "b")
LEAF = st.one_of(st.sampled_from([A, B]), st.builds(MoteConstant, st.one_of(st.none(), st.integers(-5, 5))))
EXPRESSION = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        st.builds(make_instruction, st.sampled_from(UNARY), inner),
        st.builds(make_instruction, st.sampled_from(BINARY), inner, inner),
        st.builds(make_instruction, st.just("PICK"), inner, inner, inner),
    ),
    max_leaves=4,
)
ENDS = st.tuples(st.integers(-6, 6), st.integers(-6, 6)).map(lambda ends: Interval(min(ends), max(ends)))


def value_of(expression, known):
    match expression:
        case MoteConstant(value):
            return value
        case Instruction(name, parts):
            function = choose_value if name == "PICK" else MEANING_OF_ONE.get(name) or MEANING[name]
            return function(*(value_of(part, known) for part in parts))
    return known[expression]


@given(EXPRESSION, ENDS, ENDS)
def test_every_value_lies_in_inferred_range(expression, a, b):
    """Over all values of both sensors, nulls included."""
    found = infer_range(expression, {A: a, B: b})
    for x, y in product([None, *range(a.low, a.high + 1)], [None, *range(b.low, b.high + 1)]):
        value = value_of(expression, {A: x, B: y})
        assert value is None or found.low <= value <= found.high


@pytest.mark.parametrize(
    ("expression", "interval"),
    [
        (make_instruction("ADD", A, B), Interval(-7, 9)),
        (make_instruction("SUB", A, B), Interval(-7, 9)),
        (make_instruction("MUL", A, B), Interval(-20, 20)),
        (make_instruction("DIV", A, B), Interval(-5, 5)),
        (make_instruction("DIV", A, MoteConstant(-2)), Interval(-2, 1)),
        (
            make_instruction("DIV", A, make_instruction("ADD", make_instruction("ABS", B), MoteConstant(2))),
            Interval(-1, 2),
        ),
        (make_instruction("MOD", A, B), Interval(-3, 3)),
        (make_instruction("NEG", A), Interval(-5, 3)),
        (make_instruction("ABS", A), Interval(0, 5)),
        (make_instruction("ABS", make_instruction("ADD", A, MoteConstant(4))), Interval(1, 9)),
        (make_instruction("LEAST", A, MoteConstant(9)), Interval(-3, 9)),
        (make_instruction("EQ", A, B), Interval(0, 1)),
        (SiteNumber(), SITES),
    ],
)
def test_inferred_range_of_expression(expression, interval):
    """Ranges for a from -3 to 5 and b from -4 to 4."""
    assert infer_range(expression, {A: Interval(-3, 5), B: Interval(-4, 4)}) == interval


def test_unknown_sensor_has_register_range():
    assert infer_range(A, {}) == REGISTER
    with pytest.raises(ValueRangeError, match=r"^NEG\(f\.a\) can be -2147483647 to 2147483648$"):
        infer_range(make_instruction("NEG", A), {})


def test_part_beyond_register_is_refused():
    with pytest.raises(ValueRangeError, match=r"f\.a \+ f\.b can be -4294967296 to 4294967294"):
        infer_range(make_instruction("MOD", make_instruction("ADD", A, B), MoteConstant(7)), {})

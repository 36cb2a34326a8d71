"""Lines as text are those of `json.dumps`, to the byte, whatever the values."""

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from acquisition.schema import Type
from basestation.algebra.expression import Column
from basestation.algebra.vector import Vector
from basestation.results.feed import NumberedUpdate
from basestation.results.line_text import encode_lines
from basestation.results.schema import ResultSchema
from basestation.results.wire import numbered_lines
from basestation.updates.update import EpochMarks, Interleaved, QueryFailure, Rows, TupleUpdates

WHOLE = st.integers(-(2**63), 2**63 - 1)
LARGE = st.integers(-(2**80), 2**80)
DOUBLES = st.floats() | st.sampled_from([-0.0, 1e-7, 1e16, 1e22, 0.1, 5e-324, float("inf"), float("nan")])
TEXTS = st.text(st.characters(), max_size=6) | st.sampled_from(['"', "\\", "\n", "\x00", "é", "😀", "\ud800", ""])
KINDS = {
    "whole": (WHOLE, np.int64),
    "large": (LARGE, object),
    "double": (DOUBLES, np.float64),
    "text": (TEXTS, object),
    "truth": (st.booleans(), bool),
}
NAMES = ("road", 'a "quoted" one')


@st.composite
def columns(draw, length):
    """(a column, its scale)."""
    kind = draw(st.sampled_from(list(KINDS)))
    values, dtype = KINDS[kind]
    held = np.array([None] * length, object)
    held[:] = draw(st.lists(values, min_size=length, max_size=length))
    valid = draw(st.none() | st.lists(st.booleans(), min_size=length, max_size=length).map(np.array))
    scale = draw(st.sampled_from([None, 0, 2, 6])) if kind in ("whole", "large", "double") else None
    return Vector(held.astype(dtype), valid if valid is None else valid.astype(bool)), scale


@st.composite
def rows(draw, length):
    """Rows of some columns, and the scales of these."""
    made = draw(st.lists(columns(length), max_size=3))
    return Rows(tuple(column for column, _ in made), length), [scale for _, scale in made]


def whole_numbers(draw, length, low=0, high=2 * 10**11):
    return np.array(draw(st.lists(st.integers(low, high), min_size=length, max_size=length)), np.int64)


@st.composite
def coverages(draw, length):
    names = draw(st.sampled_from([(), NAMES[:1], NAMES]))
    return {
        name: (whole_numbers(draw, length), whole_numbers(draw, length)) if draw(st.booleans()) else None
        for name in names
    }


@st.composite
def tuple_updates(draw):
    length = draw(st.integers(0, 4))
    held, scales = draw(rows(length))
    ticks, indexes = whole_numbers(draw, length), whole_numbers(draw, length)
    return TupleUpdates(7, ticks, indexes, whole_numbers(draw, length, -1, 1), held), scales


@st.composite
def interleaved(draw):
    tuples, scales = draw(tuple_updates())
    count = draw(st.integers(0, 3))
    marks = EpochMarks(7, whole_numbers(draw, count), draw(coverages(count)))
    at = np.sort(whole_numbers(draw, count, 0, len(tuples)))
    return Interleaved(7, tuples, marks, at), scales


ODD = Vector(np.array([float("inf"), float("nan"), -0.0, 1e22]), np.array([True, True, True, False]))
TAGS = np.arange(4), np.arange(4), np.ones(4, np.int64)
EXAMPLE = TupleUpdates(7, *TAGS, Rows((ODD, Vector(np.array(["\ud800", '"', "é", ""], object))), 4)), [None, None]
FAILURE = QueryFailure(7, "SN511", "division by zero at\n^", 60), []


@pytest.mark.promise("resume")
@given(
    tuple_updates() | interleaved() | st.just(FAILURE),
    st.integers(1, 10**9),
    st.sampled_from([1, 1_000]),
)
@example(EXAMPLE, 1, 1)
def test_text_is_that_of_json(made, number, tick_ms):
    update, scales = made
    schema = ResultSchema(7, "stream", tuple(Column(at, Type.INTEGER, "c", scale=of) for at, of in enumerate(scales)))
    numbered = NumberedUpdate(number, update)
    expected = [json.dumps(line) for line in numbered_lines(numbered, schema, tick_ms)]
    assert encode_lines(numbered, schema, tick_ms) == expected

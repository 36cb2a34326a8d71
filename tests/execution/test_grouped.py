"""Grouped: who is found for a value is who finds it by looking at its own ranges, whoever else is asked."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from acquisition.schema import Type
from basestation.algebra.expression import Column
from basestation.algebra.factors import Range
from basestation.algebra.vector import vector_of
from basestation.execution.grouped import Grouped
from basestation.execution.kinds import Kinds
from basestation.execution.noted import Noted, pairs
from basestation.execution.spans import Spans

SITE, TEMP, NAME, TIME = (
    Column(id_, type_) for id_, type_ in enumerate((Type.INTEGER, Type.FLOAT, Type.STRING, Type.INTEGER))
)
VALUES = {
    SITE: st.integers(-2, 4), TEMP: st.sampled_from([-1.5, 0.0, -0.0, 0.25, 7.0]),
    NAME: st.sampled_from(["", "a", "ab", "b"]), TIME: st.integers(0, 60),
}  # fmt: skip
NEXT = {
    SITE: lambda v: v + 1,
    TEMP: lambda v: np.nextafter(v, np.inf),
    NAME: lambda v: v + "\0",
    TIME: lambda v: v + 10,
}


@st.composite
def ranges(draw):
    columns = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3, unique=True))
    return {column: draw(range_of(column)) for column in columns}


@st.composite
def range_of(draw, column):
    value = VALUES[column]
    if draw(st.booleans()):
        at = draw(value) // 10 * 10 if column is TIME else draw(value)  # multiples that are one double each ten
        return Range(at, NEXT[column](at), True)
    return Range(draw(st.none() | value), draw(st.none() | value))


ROWS = st.lists(st.fixed_dictionaries({column: st.none() | values for column, values in VALUES.items()}), max_size=12)


def lies(row, asked):
    return all(
        row[column] is not None
        and (of.begin is None or row[column] >= of.begin)
        and (of.behind is None or row[column] < of.behind)
        for column, of in asked.items()
    )


@given(
    st.lists(st.tuples(st.integers(0, 25), st.none() | ranges()), max_size=60), st.lists(ROWS, min_size=1, max_size=4)
)
def test_each_finds_what_it_would_find_alone(changes, batches):
    """Those who ask come and go between batches; None: that slot goes."""
    grouped, asked = Grouped(), {}
    for part, rows in zip(np.array_split(np.arange(len(changes)), len(batches)), batches, strict=True):
        for slot, of in (changes[at] for at in part.tolist()):
            if slot in asked:
                grouped.remove(slot)
                del asked[slot]
            if of is not None:
                grouped.add(slot, of)
                asked[slot] = of
        columns = {column.id: vector_of([row[column] for row in rows], column.type) for column in VALUES}
        slots, found = grouped.of(columns, len(rows))
        wanted = [(slot, at) for slot in sorted(asked) for at, row in enumerate(rows) if lies(row, asked[slot])]
        assert list(zip(slots.tolist(), found.tolist(), strict=True)) == wanted
        assert len(grouped) == len(asked)


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=30), st.lists(st.integers(0, 39), max_size=30)
)
def test_a_place_lies_in_the_spans_that_begin_at_it_or_before_and_end_behind_it(spans, places):
    bounds = np.array(spans, np.int64).reshape(-1, 2)
    where, found = Spans(bounds[:, 0], bounds[:, 1], 40).of(np.array(places, np.int64))
    wanted = [(at, n) for at, place in enumerate(places) for n, (a, b) in enumerate(spans) if a <= place < b]
    assert sorted(zip(where.tolist(), found.tolist(), strict=True)) == wanted


def test_spans_that_overlap_take_no_room_for_each_piece():
    many = 4096
    begin = np.arange(many)
    spans = Spans(begin, begin + many, 2 * many)
    assert sum(len(owners) for _, _, owners in spans._levels) < 2 * many * 13  # not many * many


def test_what_is_noted_is_given_once_and_forgotten_when_it_is_gone():
    noted = Noted()
    noted.add(pairs(np.array([2, 1]), np.array([7, 9])), 5)
    assert [part.tolist() for part in noted.ready(4)] == [[], [], []]
    noted.add(pairs(np.array([0]), np.array([9])), 6)
    assert [part.tolist() for part in noted.ready(5)] == [[1, 2], [9, 7], [5, 5]]
    asked = pairs(np.array([0, 1, 2, 3]), np.array([9, 9, 7, 7]))
    assert noted.given(asked, np.array([True, False, False, True])).tolist() == [False, True, True, True]
    noted.drop(asked[1:2])
    assert noted.given(asked, np.zeros(4, bool)).tolist() == [False, False, True, False]
    noted.forget(8)
    noted.leave(0)
    assert not len(noted)


def test_a_kind_is_there_for_as_long_as_it_is_used():
    kinds = Kinds()
    first, again, other = kinds.take("a", "A"), kinds.take("a", "another A"), kinds.take("b", "B")
    assert first == again != other and [kinds[first], kinds[other]] == ["A", "B"]
    kinds.let_go(first)
    assert kinds[first] == "A" and len(kinds) == 2
    kinds.let_go(first)
    assert len(kinds) == 1 and kinds.take("a", "A") not in (first, other)

"""Grouped: who is found for a value is who finds it by looking at its own ranges, whoever else is asked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.schema import Type
from basestation.algebra.expression import Column
from basestation.algebra.factors import ValueRange
from basestation.algebra.vector import Vector, vector_of
from basestation.execution.columns.intern_table import InternTable
from basestation.execution.output.corrected_matches import CorrectedMatches, pack_pairs
from basestation.execution.streams.predicate_index import boundaries, segment_tree
from basestation.execution.streams.predicate_index.boundaries import Boundaries, IntLookup, Segments
from basestation.execution.streams.predicate_index.grouped_filter import GroupedFilter
from basestation.execution.streams.predicate_index.segment_tree import SegmentTree
from tests.conftest import count_of

SITE, TEMP, NAME, TIME = (
    Column(id_, type_) for id_, type_ in enumerate((Type.INTEGER, Type.FLOAT, Type.STRING, Type.INTEGER))
)
VALUES = {
    SITE: lambda rng: rng.randint(-2, 4), TEMP: lambda rng: rng.choice([-1.5, 0.0, -0.0, 0.25, 7.0]),
    NAME: lambda rng: rng.choice(["", "a", "ab", "b"]), TIME: lambda rng: rng.randint(0, 60),
}  # fmt: skip
NEXT = {SITE: lambda v: v + 1, TEMP: lambda v: np.nextafter(v, np.inf), NAME: lambda v: v + "\0", TIME: lambda v: v + 10}  # fmt: skip


def range_of(column, point, rng):
    of = VALUES[column]
    if point:
        at = of(rng) // 10 * 10 if column is TIME else of(rng)  # multiples, of which ten are one double
        return ValueRange(at, NEXT[column](at), True)
    return ValueRange(*(rng.choice([None, of(rng), of(rng)]) for _ in range(2)))


def row_of(rng):
    return {column: None if rng.random() < 0.1 else of(rng) for column, of in VALUES.items()}


def lies(row, asked):
    return all(
        row[column] is not None
        and (of.begin is None or row[column] >= of.begin)
        and (of.stop is None or row[column] < of.stop)
        for column, of in asked.items()
    )


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize("shard", range(4))
def test_each_finds_what_it_would_find_alone(shard, rng, monkeypatch):
    """Those who ask come and go between batches, over few columns, so that many ask of the same."""
    if shard % 2:  # no integers lie close, and spans overlap much
        for of, size in (
            (boundaries, "_LOOSE"),
            (boundaries, "_SMALL"),
            (segment_tree, "_LITTLE"),
            (segment_tree, "_SMALL"),
        ):
            monkeypatch.setattr(of, size, 0)
    for _ in range(count_of(30, 1000)):
        columns = rng.sample(list(VALUES), rng.randint(1, 3))
        forms = [{c: rng.random() < 0.5 for c in columns[: rng.randint(1, 3)]} for _ in range(rng.randint(1, 3))]
        grouped, asked, many = GroupedFilter(), {}, rng.choice([3, 20, 150])
        for _ in range(4):
            for slot in rng.choices(range(many), k=rng.choice([2, many])):
                if slot in asked:
                    grouped.remove(slot)
                    del asked[slot]
                if rng.random() < 0.7:
                    asked[slot] = {c: range_of(c, point, rng) for c, point in rng.choice(forms).items()}
                    grouped.add(slot, asked[slot])
            rows = [row_of(rng) for _ in range(rng.choice([0, 1, 12]))]
            vectors = {c.id: vector_of([row[c] for row in rows], c.type) for c in VALUES}
            found = grouped.of(vectors, len(rows))
            wanted = [(slot, at) for slot in sorted(asked) for at, row in enumerate(rows) if lies(row, asked[slot])]
            assert list(zip(*(part.tolist() for part in found), strict=True)) == wanted
            assert np.flatnonzero(grouped.any(vectors, len(rows))).tolist() == sorted({at for _, at in wanted})
            assert len(grouped) == len(asked)


@pytest.mark.promise("queries-apart")
@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=30),
    st.lists(st.integers(0, 39), max_size=30),
    st.booleans(),
)
def test_a_place_lies_in_the_spans_that_begin_at_it_or_before_and_end_behind_it(asked, places, cut):
    bounds = np.array(asked, np.int64).reshape(-1, 2)
    with pytest.MonkeyPatch.context() as patch:
        if cut:  # into blocks, however little they overlap
            patch.setattr(segment_tree, "_LITTLE", 0)
            patch.setattr(segment_tree, "_SMALL", -1)
        found = SegmentTree(bounds[:, 0], bounds[:, 1], 40)
    where, found = found.of(np.array(places, np.int64))
    wanted = [(at, n) for at, place in enumerate(places) for n, (a, b) in enumerate(asked) if a <= place < b]
    assert sorted(zip(where.tolist(), found.tolist(), strict=True)) == wanted


_FAR = [-(2**63), -(2**62), -5, 0, 3, 4, 9, 2**62, 2**63 - 1]


@pytest.mark.promise("queries-apart")
@given(st.sets(st.sampled_from(_FAR) | st.integers(-3, 12), min_size=1), st.lists(st.sampled_from(_FAR), min_size=1))
def test_the_place_of_an_integer_is_how_many_ends_are_not_above_it_however_far_it_is(asked, values):
    found = Boundaries([ValueRange(end, None) for end in asked]).places(Vector(np.array(values, np.int64)))
    assert found.tolist() == [sum(end <= value for end in asked) for value in values]


@given(st.sets(st.integers(0, 40) | st.integers(0, 2**40), min_size=1), st.lists(st.integers(-1, 2**40)))
def test_what_is_known_has_its_place_and_all_else_none(known, asked):
    asked += known
    found = IntLookup(np.array(sorted(known), np.int64)).of(np.array(asked, np.int64))
    assert found.tolist() == [sorted(known).index(each) if each in known else -1 for each in asked]


_ENDS = st.sampled_from([-np.inf, -1.5, -0.0, 0.0, 2.5, 7.0, np.inf])


@pytest.mark.promise("queries-apart")
@given(st.lists(st.tuples(st.integers(0, 3), st.none() | _ENDS, st.none() | _ENDS), min_size=1), st.lists(_ENDS))
def test_a_value_lies_in_the_ranges_of_its_group_whose_pieces_hold_it(ranges, values):
    asked = [each for each in ranges if None in each[1:] or each[1] < each[2]] or [(0, None, None)]
    groups = sorted({group for group, _, _ in asked})
    pieces = Segments(
        np.array([groups.index(group) for group, _, _ in asked]), *zip(*(each[1:] for each in asked), strict=True)
    )
    for number, group in enumerate(groups):
        found = pieces.of(np.full(len(values), number), np.array(values, float))
        for value, piece in zip(values, found.tolist(), strict=True):
            held = [a <= piece < b for a, b in zip(pieces.begin, pieces.stop, strict=True)]
            lies = [g == group and (a is None or a <= value) and (b is None or value < b) for g, a, b in asked]
            assert held == lies


@pytest.mark.promise("speed")
def test_spans_that_overlap_take_no_room_for_each_piece():
    many = 4096
    begin = np.arange(many)
    found = SegmentTree(begin, begin + many, 2 * many)
    assert sum(len(owners) for _, _, owners in found._levels) < 2 * many * 13  # not many * many


def test_what_is_noted_is_given_once_and_forgotten_when_it_is_gone():
    noted = CorrectedMatches()
    noted.add(pack_pairs(np.array([2, 1]), np.array([7, 9])), np.array([5, 5]))
    assert [part.tolist() for part in noted.ready(4)] == [[], [], []]
    noted.add(pack_pairs(np.array([0]), np.array([9])), np.array([6]))
    assert [part.tolist() for part in noted.ready(5)] == [[1, 2], [9, 7], [5, 5]]
    asked = pack_pairs(np.array([0, 1, 2, 3]), np.array([9, 9, 7, 7]))
    assert noted.given(asked, np.array([True, False, False, True])).tolist() == [False, True, True, True]
    noted.drop(asked[1:2])
    assert noted.given(asked, np.zeros(4, bool)).tolist() == [False, False, True, False]
    noted.forget(8)
    noted.leave(0)
    assert not len(noted)


def test_a_kind_is_there_for_as_long_as_it_is_used():
    kinds = InternTable()
    first, again, other = kinds.take("a", "A"), kinds.take("a", "another A"), kinds.take("b", "B")
    assert first == again != other and [kinds[first], kinds[other]] == ["A", "B"]
    kinds.release(first)
    assert kinds[first] == "A" and len(kinds) == 2
    kinds.release(first)
    assert len(kinds) == 1 and kinds.take("a", "A") not in (first, other)

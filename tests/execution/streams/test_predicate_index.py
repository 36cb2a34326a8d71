"""The predicate index finds for each row exactly the queries whose ranges contain it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.schema import Type
from basestation.algebra.expression import Column
from basestation.algebra.factors import ValueRange
from basestation.algebra.vector import Vector
from basestation.execution import thresholds
from basestation.execution.columns.intern_table import InternTable
from basestation.execution.columns.match_pairs import pack_pairs
from basestation.execution.output.corrected_matches import CorrectedMatches
from basestation.execution.streams.predicate_index.boundaries import Boundaries, IntLookup, Segments
from basestation.execution.streams.predicate_index.grouped_filter import GroupedFilter
from basestation.execution.streams.predicate_index.segment_tree import SegmentTree
from tests.algebra.vectors import vector_of
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
def test_grouped_filter_finds_what_each_query_finds_alone(shard, rng, monkeypatch):
    """Queries come and go between batches. There are few columns, so that many queries share a group."""
    if shard % 2:  # no integers count as dense, and spans as overlapping much
        for size in ("DENSE_FACTOR", "DENSE_SLACK", "SPAN_FACTOR", "SPAN_SLACK"):
            monkeypatch.setattr(thresholds, size, 0)
    for _ in range(count_of(30, 300)):
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
def test_segment_tree_finds_spans_that_contain_place(asked, places, cut):
    bounds = np.array(asked, np.int64).reshape(-1, 2)
    with pytest.MonkeyPatch.context() as patch:
        if cut:  # into blocks, however little they overlap
            patch.setattr(thresholds, "SPAN_FACTOR", 0)
            patch.setattr(thresholds, "SPAN_SLACK", -1)
        found = SegmentTree(bounds[:, 0], bounds[:, 1], 40)
    where, found = found.of(np.array(places, np.int64))
    wanted = [(at, n) for at, place in enumerate(places) for n, (a, b) in enumerate(asked) if a <= place < b]
    assert sorted(zip(where.tolist(), found.tolist(), strict=True)) == wanted


_FAR = [-(2**63), -(2**62), -5, 0, 3, 4, 9, 2**62, 2**63 - 1]


@pytest.mark.promise("queries-apart")
@given(st.sets(st.sampled_from(_FAR) | st.integers(-3, 12), min_size=1), st.lists(st.sampled_from(_FAR), min_size=1))
def test_place_of_far_integer_counts_bounds_not_above_it(asked, values):
    found = Boundaries([ValueRange(end, None) for end in asked]).places(Vector(np.array(values, np.int64)))
    assert found.tolist() == [sum(end <= value for end in asked) for value in values]


@given(st.sets(st.integers(0, 40) | st.integers(0, 2**40), min_size=1), st.lists(st.integers(-1, 2**40)))
def test_int_lookup_finds_known_integers_only(known, asked):
    asked += known
    found = IntLookup(np.array(sorted(known), np.int64)).of(np.array(asked, np.int64))
    assert found.tolist() == [sorted(known).index(each) if each in known else -1 for each in asked]


_ENDS = st.sampled_from([-np.inf, -1.5, -0.0, 0.0, 2.5, 7.0, np.inf])


@pytest.mark.promise("queries-apart")
@given(st.lists(st.tuples(st.integers(0, 3), st.none() | _ENDS, st.none() | _ENDS), min_size=1), st.lists(_ENDS))
def test_segment_of_value_is_in_exactly_the_ranges_with_value(ranges, values):
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
def test_overlapping_spans_take_room_of_spans_times_log_places():
    many = 4096
    begin = np.arange(many)
    found = SegmentTree(begin, begin + many, 2 * many)
    assert sum(len(owners) for _, _, owners in found._levels) < 2 * many * 13  # not many * many


def test_corrected_match_is_given_once_and_dropped_when_removed():
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


def test_interned_thing_lives_as_long_as_it_is_used():
    kinds = InternTable()
    first, again, other = kinds.take("a", "A"), kinds.take("a", "another A"), kinds.take("b", "B")
    assert first == again != other and [kinds[first], kinds[other]] == ["A", "B"]
    kinds.release(first)
    assert kinds[first] == "A" and len(kinds) == 2
    kinds.release(first)
    assert len(kinds) == 1 and kinds.take("a", "A") not in (first, other)

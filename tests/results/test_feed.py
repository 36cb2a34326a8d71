"""A feed resumes after a number, or reports that the updates have expired."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.schema import Type
from basestation.algebra.expression import Column
from basestation.results.feed import Feed, UpdatesExpiredError
from basestation.results.schema import ResultSchema
from basestation.updates.update import EpochMark, EpochMarks, Interleaved, TupleUpdates, split_interleaved
from tests.results.single_update import as_columns
from tests.results.test_view import tuples, window

SHAPE = ResultSchema(1, "window", tuple(Column(n, t, c) for n, (t, c) in enumerate(
    [(Type.FLOAT, "v"), (Type.INTEGER, "w"), (Type.STRING, "s")])))  # fmt: skip


def opened(limit=10_000):
    feed = Feed(limit)
    feed.open(SHAPE)
    return feed


@pytest.mark.promise("resume")
def test_feed_resumes_after_number():
    feed = opened()
    assert feed.read(1) == []
    updates = [as_columns(window(tick=tick)) for tick in range(5)]
    feed.publish(updates[:2])
    feed.publish(updates[2:])
    assert [(n.number, n.update.tick) for n in feed.read(1)] == [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4)]
    assert [n.number for n in feed.read(1, after=3)] == [4, 5]
    assert [n.number for n in feed.read(1, after=1, limit=2)] == [2, 3]
    assert feed.read(1, after=5) == []
    with pytest.raises(KeyError):
        feed.read(2)
    with pytest.raises(KeyError):
        feed.schema(2)


def stream(*ticks):
    return tuples(*((tick, tick, 1, (0.5, tick, "a")) for tick in ticks))


@pytest.mark.promise("resume")
def test_each_tuple_has_own_number():
    feed = opened()
    feed.publish([stream(1, 2, 3), as_columns(EpochMark(1, 3, {})), stream(4)])
    assert [(n.number, type(n.update).__name__) for n in feed.read(1)] == [
        (1, "TupleUpdates"), (4, "EpochMarks"), (5, "TupleUpdates")]  # fmt: skip
    [part] = feed.read(1, after=1, limit=1)
    assert (part.number, part.update.index.tolist(), part.update.rows.to_lists()) == (2, [2], [(0.5, 2, "a")])
    assert [n.number for n in feed.read(1, after=2)] == [3, 4, 5]


@given(st.lists(st.lists(st.integers(0, 4), max_size=3), max_size=6), st.integers(1, 5), st.integers(1, 8))
def test_pages_of_any_size_join_to_whole_feed(published, size, limit):
    """Each number stands for one update: 0 for a window, others for so many tuples. The feed keeps the newest `limit`."""
    feed, wanted = opened(limit), []
    for pieces in published:
        new = []
        for length in pieces:
            first = len(wanted) + 1
            new.append(stream(*range(first, first + length)) if length else as_columns(window(tick=first)))
            wanted += range(first, first + max(1, length))
        feed.publish(new)
    try:
        feed.read(1)
        after = 0
    except UpdatesExpiredError as gone:
        after = gone.first - 1
        assert len(wanted) - after >= limit
    found = []
    while page := feed.read(1, after, size):
        numbers = [
            tick
            for n in page
            for tick in (n.update.tick.tolist() if isinstance(n.update, TupleUpdates) else [n.update.tick])
        ]
        assert len(numbers) <= size
        assert page[0].number == after + 1
        found += numbers
        after += len(numbers)
    assert found == wanted[len(wanted) - len(found) :]
    assert after == len(wanted)


@pytest.mark.promise("resume")
@given(st.lists(st.booleans(), min_size=1), st.integers(1, 5))
def test_tuples_and_marks_form_one_sequence(marked, size):
    """Each position is a mark or a tuple; pages of any size return each once, in order."""
    ticks = list(range(len(marked)))
    marks = EpochMarks(1, np.array([t for t in ticks if marked[t]], np.int64), {})
    at = np.array([t - sum(marked[:t]) for t in ticks if marked[t]], np.int64)
    feed = opened()
    feed.publish([Interleaved(1, stream(*(t for t in ticks if not marked[t])), marks, at)])
    found = []
    while page := feed.read(1, len(found), size):
        pieces = list(split_interleaved(numbered.update for numbered in page))
        assert all(pieces)
        found += [(tick, isinstance(piece, EpochMarks)) for piece in pieces for tick in piece.tick.tolist()]
    assert found == list(zip(ticks, marked, strict=True))


def test_full_feed_expires_oldest_updates():
    feed = opened(limit=3)
    for tick in range(10):
        feed.publish([as_columns(window(tick=tick))])
    assert [n.number for n in feed.read(1, after=7)] == [8, 9, 10]
    with pytest.raises(UpdatesExpiredError) as caught:
        feed.read(1, after=6)
    assert caught.value.first == 8


def test_opening_feed_twice_loses_nothing():
    feed = opened()
    feed.publish([as_columns(window())])
    feed.open(SHAPE)
    assert len(feed.read(1)) == 1

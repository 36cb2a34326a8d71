"""The current answer is the sum of the updates."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from basestation.results.feed import Feed, Gone
from basestation.results.view import current
from basestation.revisions.update import Update, consolidate


def update(rows, weights, revision=0, tick=10, query=1):
    """An update with columns v (float), w (integer or null) and s (string)."""
    v, w, s = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [])
    mask = np.array([x is not None for x in w], bool)
    columns = {
        "v": np.array(v, float),
        "w": np.array([x or 0 for x in w], np.int64),
        "s": np.array(s, object),
    }
    valid = {} if mask.all() else {"w": mask}
    return Update(query, tick, 1, revision, (revision, 9), columns, np.array(weights, np.int64), valid)


rows = st.tuples(st.sampled_from([0.5, 1.5]), st.sampled_from([None, 0, 7]), st.sampled_from(["a", "b"]))


@given(st.lists(st.lists(rows, max_size=4), min_size=1, max_size=5), st.data())
def test_consolidate_is_the_sum(given_, data):
    """Against a Counter; what an update takes back was there."""
    there, updates = Counter(), []
    for revision, new in enumerate(given_):
        old = data.draw(st.lists(st.sampled_from(sorted(there.elements(), key=repr)), max_size=3)) if there else []
        old = list((Counter(old) & there).elements())
        updates.append(update(old + new, [-1] * len(old) + [1] * len(new), revision))
        there = there - Counter(old) + Counter(new)
    found = consolidate(updates)
    assert Counter(found.rows()) == there
    assert set(found.weight.tolist()) <= {1}
    assert (found.revision, found.coverage) == (len(given_) - 1, (len(given_) - 1, 9))


def test_null_is_not_zero():
    found = consolidate([update([(1.0, None, "a"), (1.0, 0, "a")], [1, 1]), update([(1.0, 0, "a")], [-1], 1)])
    assert found.rows() == [(1.0, None, "a")]


def test_taking_back_what_was_never_given_is_a_bug():
    with pytest.raises(AssertionError, match="had not given"):
        consolidate([update([(1.0, 1, "a")], [-1])])


def test_the_view_has_each_window_once_in_order():
    late, early = update([(1.0, 1, "a")], [1], tick=20), update([(2.0, 2, "b")], [1], tick=10)
    fix = update([(2.0, 2, "b"), (3.0, 2, "b")], [-1, 1], 1, tick=10)
    assert [(u.tick, u.revision, u.rows()) for u in current([early, late, fix])] == [
        (10, 1, [(3.0, 2, "b")]),
        (20, 0, [(1.0, 1, "a")]),
    ]


def test_a_feed_goes_on_where_one_stopped():
    feed = Feed()
    feed.open(1)
    assert feed.read(1) == []
    updates = [update([], [], tick=tick) for tick in range(5)]
    feed.publish(updates[:2])
    feed.publish(updates[2:])
    assert [(n.number, n.update.tick) for n in feed.read(1)] == [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4)]
    assert [n.number for n in feed.read(1, after=3)] == [4, 5]
    assert [n.number for n in feed.read(1, after=1, limit=2)] == [2, 3]
    assert feed.read(1, after=5) == []
    with pytest.raises(KeyError):
        feed.read(2)


def test_a_feed_forgets_the_oldest_and_says_so():
    feed = Feed(limit=3)
    feed.open(1)
    for tick in range(10):
        feed.publish([update([], [], tick=tick)])
    assert [n.number for n in feed.read(1, after=7)] == [8, 9, 10]
    with pytest.raises(Gone) as caught:
        feed.read(1, after=6)
    assert caught.value.first == 8


def test_opening_a_feed_twice_loses_nothing():
    feed = Feed()
    feed.open(1)
    feed.publish([update([], [])])
    feed.open(1)
    assert len(feed.read(1)) == 1

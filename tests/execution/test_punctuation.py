"""Marks keep their places through every operator, once each, and change no other update."""

from itertools import pairwise

import numpy as np
import pytest

from acquisition.batch import Batch, concatenate
from basestation.execution.engine import Engine
from basestation.execution.snapshot import restore_engine, save_engine
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.updates.update import EpochMarks, PunctuationUpdate, TupleUpdates, WindowUpdates, split_interleaved

CATALOG = read_schema(
    "hits: pushed (v:integer)\nmore: pushed (v:integer)\nslow: pushed (v:integer) wait 4 sec\n"
    "road: sensed (site:integer, v:integer) every 2 sec at sites 5, 3\n"
)


def batch(rows, marks=(), arrival=None):
    """Rows are (tick, v) or (tick, site, v)."""
    columns = np.array(rows, np.int64).reshape(len(rows), len(rows[0]) if len(rows) else 2)
    tick, v = columns[:, 0], columns[:, -1]
    site = columns[:, 1] if columns.shape[1] == 3 else np.zeros_like(tick)
    return Batch(
        tick, site, tick if arrival is None else np.array(arrival), np.ones_like(tick), {"v": v}, marks=tuple(marks)
    )


def engine_with(*texts):
    engine = Engine(CATALOG, tidy_every=1)
    for number, text in enumerate(texts, 1):
        engine.add(number, bind_text(text, CATALOG)[0])
    return engine


def played(engine, steps, again=False):
    """The updates of steps (clock, {extent: batch})."""
    said = []
    for clock, parts in steps:
        for name, part in parts.items():
            engine.deliver(name, part)
        said += engine.on_clock(clock)
        engine = restore_engine(save_engine(engine)) if again else engine
    return said


def sequence(said, number=1):
    """The values of tuples, the ticks of windows and the marks of a query, in the order of its updates."""
    found = []
    for update in split_interleaved(said):
        if update.query != number:
            continue
        match update:
            case PunctuationUpdate(value=value):
                found.append(("mark", value))
            case TupleUpdates():
                found += [v for (v,) in update.rows.to_lists()]
            case WindowUpdates():
                found += [("window", tick) for tick in update.tick.tolist()]
            case EpochMarks():
                found += [("epoch", tick) for tick in update.tick.tolist()]
    return found


@pytest.mark.promise("live-is-replay")
def test_mark_keeps_place_between_tuples_of_stream():
    engine = engine_with("SELECT v FROM hits", "SELECT v FROM hits WHERE v <> 2")
    said = played(engine, [(9, {"hits": batch([(1, 1), (1, 2), (3, 3)], [(0, "a"), (1, "b"), (2, "c"), (3, "d")])})])
    assert sequence(said, 1) == [("mark", "a"), 1, ("mark", "b"), 2, ("mark", "c"), 3, ("mark", "d")]
    assert sequence(said, 2) == [("mark", "a"), 1, ("mark", "b"), ("mark", "c"), 3, ("mark", "d")]


def test_mark_waits_with_tuple_after_it():
    engine = engine_with("SELECT v FROM slow")
    first = played(engine, [(2, {"slow": batch([(2, 7)], [(0, "a"), (1, "z")])})])
    assert sequence(first) == []
    assert sequence(played(engine, [(9, {})])) == [("mark", "a"), 7, ("mark", "z")]


def test_mark_stays_before_reading_in_any_delivery_order():
    engine = engine_with("SELECT v FROM road")
    said = played(engine, [(0, {"road": batch([(0, 3, 30), (0, 5, 50)], [(0, "of 3"), (1, "of 5")])})])
    assert sequence(said) == [("mark", "of 5"), 50, ("mark", "of 3"), 30, ("epoch", 0)]


def test_mark_precedes_windows_made_at_arrival_or_later():
    engine = engine_with("SELECT COUNT(*) FROM hits [FROM NOW-1 TO NOW SLIDE 2 SEC]")
    said = played(engine, [(7, {"hits": batch([(1, 1), (3, 1), (4, 1), (5, 1)], [(1, "three"), (2, "four")])})])
    assert sequence(said) == [
        ("window", 0), ("window", 2), ("mark", "three"), ("mark", "four"), ("window", 4), ("window", 6)]  # fmt: skip


@pytest.mark.promise("live-is-replay")
@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.v FROM hits [FROM NOW TO NOW SLIDE 1 SEC] AS a, hits [FROM NOW-1 TO NOW SLIDE 1 SEC] AS b",
        "SELECT v FROM hits UNION ALL SELECT v FROM hits WHERE v > 1",
        "ISTREAM(SELECT v FROM hits [FROM NOW-2 TO NOW SLIDE 1 SEC])",
        "SELECT COUNT(*) FROM (RSTREAM(SELECT v FROM hits [FROM NOW TO NOW SLIDE 1 SEC])) [FROM NOW-1 TO NOW SLIDE 2 SEC]",
    ],
)
def test_mark_comes_once_if_query_reads_extent_twice(text):
    marks = [(at, at) for at in range(7)]
    said = played(engine_with(text), [(6, {"hits": batch([(tick, tick) for tick in range(6)], marks)}), (9, {})])
    assert [each[1] for each in sequence(said) if isinstance(each, tuple) and each[0] == "mark"] == list(range(7))


def test_union_keeps_marks_of_both_sides_in_place():
    engine = engine_with("SELECT v FROM hits UNION ALL SELECT v FROM more")
    parts = {"more": batch([(1, 10), (2, 20)], [(0, "m"), (1, "n")]), "hits": batch([(1, 1), (2, 2)], [(1, "h")])}
    assert sequence(played(engine, [(3, parts)])) == [1, ("mark", "m"), 10, ("mark", "h"), 2, ("mark", "n"), 20]


TEXTS = (
    "SELECT v FROM hits WHERE v % 3 <> 1",
    "SELECT v FROM road",
    "SELECT v, COUNT(*) FROM hits [FROM NOW-3 TO NOW SLIDE 2 SEC] GROUP BY v",
    "ISTREAM(SELECT hits.v FROM hits [FROM NOW-2 TO NOW SLIDE 2 ROWS], road [FROM NOW-4 TO NOW SLIDE 2 SEC])",
    "SELECT v FROM slow UNION ALL SELECT v FROM hits",
)


@pytest.mark.promise("live-is-replay")
@pytest.mark.parametrize("text", TEXTS)
def test_marks_change_no_other_update(text, rng, counts):
    """With batches cut anywhere, late tuples, and snapshots between any two."""
    for _ in range(counts(6, 100)):
        steps, numbers, with_marks = [], iter(range(10_000)), []
        for clock in range(8):
            parts, marked = {}, {}
            for name in ("hits", "slow", "road"):
                size = rng.randrange(4)
                rows = [(max(0, clock - rng.randrange(3)), rng.randrange(5)) for _ in range(size)]
                rows = [(tick // 2 * 2, rng.choice((5, 3)), v) for tick, v in rows] if name == "road" else rows
                places = sorted(rng.choices(range(size + 1), k=rng.randrange(3)))
                if rows:
                    parts[name] = batch(rows, arrival=[clock] * size)
                    marked[name] = batch(rows, [(at, next(numbers)) for at in places], [clock] * size)
            steps.append((clock, parts))
            with_marks.append((clock, marked))
        without = sequence(played(engine_with(text), steps))
        said = sequence(played(engine_with(text), with_marks))
        assert [each for each in said if not (isinstance(each, tuple) and each[0] == "mark")] == without
        assert sequence(played(engine_with(text), with_marks, again=True)) == said


def test_parts_of_batch_have_each_mark_once(rng, counts):
    for _ in range(counts(25, 500)):
        size = rng.randrange(6)
        marks = [(at, number) for number, at in enumerate(sorted(rng.choices(range(size + 1), k=rng.randrange(5))))]
        whole = batch([(tick, tick) for tick in range(size)], marks)
        edges = sorted({0, *rng.choices(range(size + 1), k=2), size})
        parts = [whole.take(slice(a, b)) for a, b in pairwise(edges)] or [whole]
        assert concatenate(parts).marks == whole.marks
        mask = np.array([rng.random() < 0.5 for _ in range(size)], bool)
        assert [value for _, value in whole.take(mask).marks] == [value for _, value in marks]

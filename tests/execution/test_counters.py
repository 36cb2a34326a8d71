"""Counters of operators by query: rows, state, probes, and time by a given timer."""

from itertools import count

import pytest

from basestation.execution.engine import Engine
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from tests.execution.test_punctuation import batch

CATALOG = read_schema("hits: pushed (v:integer) late drop\nmore: pushed (v:integer) late drop\n")


def engine_with(*texts, timer=None):
    engine = Engine(CATALOG, tidy_every=1, timer=timer)
    for number, text in enumerate(texts, 1):
        engine.add(number, bind_text(text, CATALOG)[0])
    return engine


def counted(engine, number=1):
    return {each.operator: each.counts for each in engine.counts(number)}


def test_filter_counts_rows_in_and_rows_out():
    engine = engine_with("SELECT v FROM hits WHERE v + 0 > 1")
    engine.deliver("hits", batch([(0, 1), (0, 2), (1, 3)]))
    engine.on_clock(1)
    found = counted(engine)
    assert list(found) == ["ExtentStream", "FilterStream", "StreamOutput"]
    assert [(c.rows_in, c.rows_out) for c in found.values()] == [(3, 3), (3, 2), (2, 2)]


def test_subscribers_have_counters_of_their_own():
    engine = engine_with("SELECT v FROM hits WHERE v > 1", "SELECT v FROM hits WHERE v = 1")
    engine.deliver("hits", batch([(0, 1), (0, 2), (1, 3)]))
    engine.on_clock(1)
    engine.add(3, bind_text("SELECT v FROM hits WHERE v < 9", CATALOG)[0])
    engine.deliver("hits", batch([(2, 1)]))
    engine.on_clock(2)
    rows = {
        number: [(name, c.rows_in, c.rows_out) for name, c in counted(engine, number).items()] for number in (1, 2, 3)
    }
    shared = [("ExtentStream", 4, 4), ("SharedFilterOutput", 4, 5)]
    assert rows == {n: [*shared, ("Subscriber", *own)] for n, own in {1: (4, 2), 2: (4, 2), 3: (1, 1)}.items()}
    assert {each.operator: each.queries for each in engine.counts(2)}["SharedFilterOutput"] == 3


@pytest.mark.promise("speed")
def test_rows_inserted_into_state_are_purged_later():
    engine = engine_with("SELECT v FROM hits [FROM NOW-2 TO NOW SLIDE 1 SEC]")
    for tick in range(20):
        engine.deliver("hits", batch([(tick, tick), (tick, tick)]))
        engine.on_clock(tick)
    store = counted(engine)["TickOrderedStore"]
    assert (store.rows_in, store.inserted) == (40, 40)
    assert store.purged == 34  # what is left is in the last window
    assert counted(engine)["QueryBlock"].rows_out == counted(engine)["WindowOutput"].rows_out == 2 * (1 + 2 + 18 * 3)


def test_join_counts_probes_of_other_side():
    window = "[FROM NOW-2 TO NOW SLIDE 1 SEC]"
    engine = engine_with(f"SELECT hits.v FROM hits {window}, more {window} WHERE hits.v = more.v")
    for tick in range(5):
        engine.deliver("hits", batch([(tick, 1)]))
        engine.deliver("more", batch([(tick, 1), (tick, 2)]))
        engine.on_clock(tick)
    assert counted(engine)["QueryBlock"].probed >= 1 + 2 + 3 + 3 + 3  # each window's rows of one side at least


@pytest.mark.promise("speed")
def test_operator_time_is_measured_with_given_timer():
    ticks = count()
    engine = engine_with("SELECT v FROM hits WHERE v > 1", "SELECT v + 1 FROM hits", timer=lambda: next(ticks))
    for tick in range(7):
        engine.on_clock(tick)
    assert [c.time for c in counted(engine).values()] == [7, 7, 0]
    assert [c.time for c in counted(engine, 2).values()] == [7, 7, 7]
    assert next(ticks) == 2 * 4 * 7
    assert all(c.time == 0 for c in counted(engine_with("SELECT v FROM hits")).values())


@pytest.mark.promise("speed")
def test_counters_say_how_many_queries_share_operator():
    window = "[FROM NOW-2 TO NOW SLIDE 1 SEC]"
    engine = engine_with(
        f"SELECT v FROM hits {window}", f"SELECT v FROM hits {window}", f"SELECT v + 1 FROM hits {window}"
    )
    shared = {each.operator: each.queries for each in engine.counts(1)}
    assert shared["ViewMember"] == 2 and shared["ExtentStream"] > 1
    engine.remove(2)
    assert {each.operator: each.queries for each in engine.counts(1)}["ViewMember"] == 1

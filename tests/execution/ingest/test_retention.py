"""How long an extent keeps its tuples: as declared, at least an hour, longer where it would show in an answer (semantics 14)."""

import numpy as np
import pytest

from acquisition.batch import Batch, unit_weights
from basestation.execution.engine import Engine
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.updates.update import WindowUpdate, split_singly

HOUR = 3_600
EVERY = 30  # seconds between tuples


def engine_of(schema, texts, tick_ms=1_000):
    catalog = read_schema(schema, tick_ms=tick_ms)
    engine = Engine(catalog, live=True, tidy_every=1)
    for number, text in enumerate(texts, 1):
        engine.add(number, bind_text(text, catalog)[0])
    return engine, catalog


def deliver(engine, name, tick, clock, site=0):
    one = np.array([tick])
    engine.deliver(name, Batch(one, one * 0 + site, one * 0 + clock, unit_weights(1), {"v": one % 97}))


def run(engine, name, seconds, tick_ms=1_000, site=0):
    updates = []
    for tick in range(0, seconds * 1_000 // tick_ms, EVERY * 1_000 // tick_ms):
        deliver(engine, name, tick, tick, site)
        updates += engine.on_clock(tick)
    return updates


def logged(engine):
    """How many tuples the log of the extent of query 1 holds."""
    return max(
        op.state.entries for op in engine.describe(1) if op.state is not None and op.state.what == "logged tuples"
    )


@pytest.mark.promise("bounded-memory")
@pytest.mark.parametrize("tick_ms", [1_000, 100])
@pytest.mark.parametrize(
    ("late", "hours"),
    [
        ("late drop", 1),
        ("late append", 1),
        ("late revise by 10 min", 1),
        ("late revise by 2 hour", 2),
        ("late revise", 6),
    ],
)
def test_pushed_extent_keeps_what_it_declares(tick_ms, late, hours):
    engine, _ = engine_of(f"p: pushed (v:integer) {late}", ["SELECT v FROM p WHERE v > 90"], tick_ms)
    run(engine, "p", 6 * HOUR, tick_ms)
    expected = hours * HOUR // EVERY
    assert expected <= logged(engine) <= 2 * expected + 64


@pytest.mark.promise("bounded-memory")
@pytest.mark.parametrize(("late", "hours"), [("late revise by 10 min", 1), ("late drop", 1), ("late append", 6)])
def test_sensed_extent_keeps_what_it_declares(late, hours):
    schema = f"r: sensed (site:integer, v:integer) every 30 sec at sites 1 {late}"
    engine, _ = engine_of(schema, ["SELECT v FROM r WHERE v > 90"])
    run(engine, "r", 6 * HOUR, site=1)
    expected = hours * HOUR // EVERY
    assert expected <= logged(engine) <= 2 * expected + 64


def test_later_query_reaches_back_an_hour():
    engine, catalog = engine_of("p: pushed (v:integer) late drop", ["SELECT v FROM p WHERE v > 90"])
    run(engine, "p", 4 * HOUR)
    engine.add(2, bind_text("SELECT COUNT(*) AS n FROM p [FROM NOW-59 TO NOW SLIDE 1 MIN]", catalog)[0])
    updates = [each for each in split_singly(engine.on_clock(4 * HOUR)) if isinstance(each, WindowUpdate)]
    assert [each.added.to_lists() for each in updates] == [[(59 * 60 // EVERY,)]]


def test_old_copy_is_no_new_tuple_of_late_append():
    engine, _ = engine_of(
        "r: sensed (site:integer, v:integer) every 30 sec at sites 1 late append", ["SELECT v FROM r WHERE v > 90"]
    )
    run(engine, "r", 3 * HOUR, site=1)
    deliver(engine, "r", 600, 3 * HOUR, 1)
    engine.on_clock(3 * HOUR)
    assert engine.ledger()["r"]["duplicate"] == 1


@pytest.mark.parametrize(
    ("history", "counted"),
    [(False, "rejected: no such tuple"), (True, "revised in history")],
    ids=["no history", "history"],
)
def test_correction_names_old_tuple_only_where_history_shows_it(history, counted):
    texts = ["SELECT v FROM p WHERE v > 90", *(["SELECT MAX(v) AS m FROM p.HISTORY [SCAN 1 HOUR]"] if history else [])]
    engine, _ = engine_of("p: pushed (v:integer) late drop", texts)
    run(engine, "p", 3 * HOUR)
    one = np.array([3 * HOUR])
    engine.deliver("p", Batch(one, one * 0, one, -unit_weights(1), {"v": one * 0}, replaces=np.array([2])))
    engine.on_clock(3 * HOUR)
    assert engine.ledger()["p"][counted] == 1

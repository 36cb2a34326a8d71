"""The engine against an oracle that remembers everything, and the rules of SEMANTICS 1.5 and 12 one by one."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.batch import Batch
from basestation.execution.engine import Engine, NotYet
from basestation.planner.bind import bind_text
from basestation.planner.catalog import read_schema
from basestation.planner.rewrite import rewrite
from basestation.results.view import current

SCHEMA = "field: sensed (site:integer, temp:float {scale 1}) every 5 sec at sites 4, 3 wait 7 sec late revise by 20 sec"
CATALOG = read_schema(SCHEMA)
ROAD = read_schema(
    "road: sensed (v:integer) every 5 sec at sites 1 late append\n"
    "traffic: pushed (v:integer)\n"
    "field: sensed (site:integer, temp:float {scale 1}) every 5 sec at sites 4, 3 late revise by 20 sec"
)


EVERY_TICK = read_schema("field: sensed (site:integer, temp:float {scale 1}) every 1 sec at sites 4, 3 wait 1 sec")


def plan(text, catalog=CATALOG):
    return rewrite(bind_text(text, catalog)[0])[0]


def readings(*triples, delivery=0):
    """From (tick, site, multiple of 0.1 or None)."""
    tick, site, temp = (list(column) for column in zip(*triples, strict=True))
    there = np.array([value is not None for value in temp])
    size = len(tick)
    columns = {"temp": np.array([value or 0 for value in temp], np.int64), "site": np.array(site, np.int64)}
    valid = {} if there.all() else {"temp": there}
    arrival = np.full(size, delivery, np.int64)
    return Batch(np.array(tick, np.int64), np.array(site, np.int64), arrival, np.ones(size, np.int64), columns, valid)


def play(text, deliveries, until, catalog=CATALOG):
    """What comes out when `deliveries` {clock: [(tick, site, temp)]} go in."""
    engine, out = Engine(), []
    engine.add(1, plan(text, catalog))
    for clock in range(until + 1):
        if found := deliveries.get(clock):
            engine.deliver("field", readings(*found))
        out.append((clock, engine.on_clock(clock)))
    return engine, [(clock, update) for clock, updates in out for update in updates]


def test_a_window_is_answered_as_soon_as_all_is_here():
    _, out = play("SELECT temp FROM field [NOW]", {1: [(0, 3, 1), (0, 4, 2)], 6: [(5, 3, 3)], 13: [(10, 4, 4)]}, 20)
    assert [(clock, u.tick, u.revision, u.coverage, u.rows()) for clock, u in out] == [
        (1, 0, 0, (2, 2), [(0.2,), (0.1,)]),  # complete; rows in the declared order of sites
        (12, 5, 0, (1, 2), [(0.3,)]),  # site 4 was waited for, 7 ticks
        (17, 10, 0, (1, 2), [(0.4,)]),
    ]


def test_late_is_a_revision_of_every_window_that_holds_the_tick():
    deliveries = {0: [(0, 3, 1)], 5: [(5, 3, 2)], 10: [(10, 3, 3)], 20: [(5, 4, 9)]}
    _, out = play("SELECT temp FROM field [FROM NOW-5 TO NOW SLIDE 5 SEC]", deliveries, 21)
    late = [(u.tick, u.revision, u.coverage, u.rows(), u.weight.tolist()) for clock, u in out if clock == 20]
    assert late == [(5, 1, (3, 4), [(0.9,)], [1]), (10, 1, (3, 4), [(0.9,)], [1])]


def test_the_tick_that_the_watermark_has_just_reached_is_late():
    """Tick 0 has waited its one tick at the end of clock tick 1, and is the watermark itself."""
    engine, out = play("SELECT temp FROM field [NOW]", {0: [(0, 3, 1)], 2: [(0, 4, 2)]}, 2, EVERY_TICK)
    assert [(clock, u.tick, u.revision, u.coverage) for clock, u in out] == [
        (1, 0, 0, (1, 2)),
        (2, 0, 1, (2, 2)),
        (2, 1, 0, (0, 2)),
    ]
    assert engine.readings["field"].counts["late"] == 1


def test_what_is_delivered_in_one_clock_tick_is_one_revision():
    engine = Engine()
    engine.add(1, plan("SELECT temp FROM field [NOW]"))
    for clock in range(12):
        engine.on_clock(clock)
    engine.deliver("field", readings((0, 3, 1)))
    engine.deliver("field", readings((0, 4, 2)))
    assert [(u.tick, u.revision, u.coverage) for u in engine.on_clock(12)] == [(0, 1, (2, 2)), (5, 0, (0, 2))]


def test_what_became_of_every_reading_is_counted():
    deliveries = {
        5: [(5, 3, 1), (5, 3, 1), (5, 4, 2)],  # the second is a copy
        6: [(5, 4, 3), (5, 7, 1), (6, 3, 1), (15, 3, 1)],  # conflict, no such site, no such tick, ahead of one interval
        30: [(10, 3, 1), (5, 3, 1)],  # late by the horizon of 20, and beyond it (a copy at that, which nobody can tell)
        31: [(10, 4, 1)],  # beyond the horizon
    }
    engine, _ = play("SELECT temp FROM field [NOW]", deliveries, 40)
    counts = engine.readings["field"].counts
    assert counts == {
        "used": 3, "late": 1, "duplicate": 1, "conflict": 1, "unknown site": 1, "off schedule": 1, "beyond horizon": 2,
        "ahead": 1}  # fmt: skip
    assert counts.total() - counts["late"] == sum(len(found) for found in deliveries.values())  # law 3: none is lost


def test_the_first_window_is_the_next_on_the_grid_and_counts_from_there():
    engine = Engine(clock=999)
    engine.add(1, plan("SELECT temp FROM field [FROM NOW-20 TO NOW SLIDE 10 SEC]"))
    updates = [u for clock in range(1000, 1030) for u in engine.on_clock(clock)]
    assert [(u.tick, u.coverage) for u in updates] == [(1000, (0, 2)), (1010, (0, 6)), (1020, (0, 10))]


def test_a_coarser_query_reads_the_multiples_only():
    deliveries = {tick: [(tick, 3, tick), (tick, 4, tick)] for tick in range(0, 21, 5)}
    _, out = play("SELECT temp FROM field [FROM NOW-9 TO NOW SLIDE 10 SEC] ACQUIRE EVERY 10 SEC", deliveries, 20)
    assert [(u.tick, u.coverage, u.rows()) for _, u in out] == [
        (0, (2, 2), [(0.0,), (0.0,)]),
        (10, (2, 2), [(1.0,), (1.0,)]),
        (20, (2, 2), [(2.0,), (2.0,)]),
    ]


def test_clock_ticks_without_a_step_lose_nothing():
    engine = Engine()
    engine.add(1, plan("SELECT temp FROM field [NOW]"))
    assert [u.tick for u in engine.on_clock(23)] == [0, 5, 10, 15]
    with pytest.raises(ValueError, match="after 23 has ended"):
        engine.on_clock(23)


def test_queries_come_and_go():
    engine = Engine()
    engine.add(1, plan("SELECT temp FROM field [NOW]"))
    engine.on_clock(8)
    engine.add(2, plan("SELECT site FROM field [NOW]"))
    with pytest.raises(ValueError, match="a query 2 already"):
        engine.add(2, plan("SELECT site FROM field [NOW]"))
    assert [(u.query, u.tick) for u in engine.on_clock(17)] == [(1, 5), (1, 10), (2, 10)]
    engine.remove(1)
    assert [(u.query, u.tick) for u in engine.on_clock(22)] == [(2, 15)]
    with pytest.raises(KeyError):
        engine.remove(1)
    with pytest.raises(KeyError, match="road"):
        engine.deliver("road", readings((0, 3, 1)))


def test_memory_is_bounded_by_horizon_and_reach():
    engine = Engine()
    engine.add(1, plan("SELECT temp FROM field [FROM NOW-10 TO NOW SLIDE 5 SEC]"))
    for clock in range(0, 500, 5):
        engine.deliver("field", readings((clock, 3, 1), (clock, 4, 1)))
        engine.on_clock(clock)
    kept = engine.readings["field"].between(-(2**62), 2**62)
    assert kept.tick.min() == 495 - 20 - 10
    assert len(engine.readings["field"].watermark._reported) <= len(kept) / 2


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("SELECT temp FROM field", "queries that give a stream"),
        ("SELECT AVG(temp) FROM field [NOW]", "the operator"),
        ("SELECT temp + 1 FROM field [NOW]", "more than a column"),
        ("SELECT temp FROM field [NOW] WHERE temp > 3", "the operator StreamSelect"),
        ("SELECT temp FROM field [FROM NOW-3 TO NOW SLIDE 3 ROWS]", "the operator RowWindow"),
        ("SELECT a.temp, b.temp FROM field [NOW] a, field [NOW] b", "the operator"),
        ("SELECT temp, temp FROM field [NOW]", "two columns of one name"),
        ("SELECT temp FROM field [NOW] FOR 1 HOUR", "FOR"),
        ("SELECT temp FROM field [NOW] DELIVER WITHIN 10 SEC", "DELIVER WITHIN"),
        ("SELECT v FROM road [NOW]", "`late append`"),
        ("SELECT v FROM traffic [FROM NOW-5 TO NOW SLIDE 5 SEC]", "the operator StreamReceive"),
    ],
)
def test_what_is_for_later_is_named(text, what):
    engine = Engine()
    with pytest.raises(NotYet) as caught:
        engine.add(1, plan(text, ROAD))
    assert what in caught.value.what
    assert engine.on_clock(0) == []


# --- against everything, remembered --------------------------------------------------------------------------------

TICKS = range(0, 31, 5)
KEYS = [(tick, site) for tick in TICKS for site in (4, 3)]
WINDOWS = [(0, 0, 5), (-10, 0, 5), (-7, -2, 3), (-4, -4, 10)]


@given(st.dictionaries(st.sampled_from(KEYS), st.tuples(st.integers(0, 30), st.none() | st.integers(-9, 9))),
       st.sampled_from(WINDOWS))  # fmt: skip
def test_the_sum_of_the_updates_is_the_answer_from_scratch(came, window):
    """Law 2. Each reading comes at most 20 ticks (the horizon) after its tick, in any order."""
    begin, end, slide = window
    bounds = [f"NOW-{-at} SEC" if at else "NOW" for at in (begin, end)]
    text = f"SELECT site, temp FROM field [FROM {bounds[0]} TO {bounds[1]} SLIDE {slide} SEC]"
    deliveries = {}
    for (tick, site), (delay, temp) in came.items():
        if delay <= 20:
            deliveries.setdefault(tick + delay, []).append((tick, site, temp))
    _, out = play(text, deliveries, until=60)
    updates = [update for _, update in out]
    revisions = {}
    for update in updates:
        assert update.revision == revisions.get(update.tick, -1) + 1
        revisions[update.tick] = update.revision
    here = {key: temp for (key, (delay, temp)) in came.items() if delay <= 20}
    for answer in current(updates):
        first, last = answer.tick + begin, answer.tick + end
        held = {key: temp for key, temp in here.items() if first <= key[0] <= last}
        expected = Counter((site, None if temp is None else temp / 10) for (_, site), temp in held.items())
        assert Counter(answer.rows()) == expected
        due = sum(first <= tick <= last for tick in range(0, 61, 5)) * 2
        assert answer.coverage == (len(held), due)
    assert [answer.tick for answer in current(updates)] == list(range(0, max(revisions) + 1, slide))

"""State of windows: as far back as open windows reach, whatever the horizon; what a revision asks for is recalled."""

import numpy as np
import pytest

from acquisition.batch import Batch, unit_weights
from basestation.execution.engine import Engine
from basestation.execution.snapshot import restore_engine, save_engine
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.updates.update import EpochMark, TupleUpdates, WindowUpdate, split_singly
from tests.conftest import count_of

SITES, EVERY, EPOCHS = 6, 30, 600
SCHEMA = """
r: sensed (site:integer, time:integer, v:integer) every 30 sec at sites 1 .. 6 wait 10 sec {late}
s: sensed (site:integer, time:integer, w:integer) every 30 sec at sites 1 .. 6 wait 10 sec {late}
p: pushed (site:integer, v:integer) wait 10 sec {late}
"""
WINDOW = "[FROM NOW-5 TO NOW SLIDE 1 MIN]"
FORMS = {
    "tuples": "SELECT site, v FROM r WHERE v > 3",
    "aggregate": f"SELECT site, AVG(v) AS a, COUNT(*) AS n FROM r {WINDOW} GROUP BY site",
    "extremes": f"SELECT MIN(v) AS low, MAX(v) AS high FROM p {WINDOW} GROUP BY site",
    "own filter": f"SELECT site, MIN(v) AS low, COUNT(*) AS n FROM r {WINDOW} WHERE v > 20 GROUP BY site",
    "another filter": f"SELECT site, AVG(v) AS a FROM r {WINDOW} WHERE v < 40 GROUP BY site",
    "landmark": "SELECT SUM(v) AS a, COUNT(*) AS n FROM r [UNBOUNDED SLIDE 1 MIN] GROUP BY site",
    "rows of a window": f"SELECT site, v FROM r {WINDOW} WHERE v > 30",
    "insertions": f"ISTREAM(SELECT site, MAX(v) AS high FROM r {WINDOW} GROUP BY site)",
    "deletions": f"DSTREAM(SELECT site, v FROM r {WINDOW})",
    "join": f"SELECT SUM(v) AS a, MAX(w) AS b FROM r {WINDOW}, s {WINDOW} WHERE r.site = s.site AND r.time = s.time",
    "join of rows": f"SELECT v, w FROM r {WINDOW}, s {WINDOW} WHERE r.site = s.site AND r.time = s.time AND v > w",
    "union": f"SELECT AVG(v) AS a FROM (SELECT v FROM r UNION ALL SELECT w AS v FROM s) {WINDOW}",
    "indexes": f"SELECT x, v FROM (SELECT index AS x, v FROM p WHERE v > 20) {WINDOW}",
    "nested": f"SELECT SUM(a) AS b FROM RSTREAM(SELECT SUM(v) AS a FROM r {WINDOW}) [FROM NOW-20 TO NOW SLIDE 2 MIN]",
}


def engine_of(texts, late="", **how):
    catalog = read_schema(SCHEMA.format(late=late), tick_ms=1_000)
    engine = Engine(catalog, **how)
    for number, text in enumerate(texts, 1):
        engine.add(number, bind_text(text, catalog)[0])
    return engine


def epochs_of(first, count):
    """Batches of some epochs, in which all sites report at one tick."""
    tick = np.repeat((first + np.arange(count)) * EVERY, SITES)
    site = np.tile(np.arange(1, SITES + 1), count)
    value = (tick * 7 + site * 13) % 61
    arrival = tick + 5
    for name, column in (("r", "v"), ("s", "w"), ("p", "v")):
        values = {"site": site, column: value} if name == "p" else {"site": site, "time": tick, column: value}
        yield name, Batch(tick, np.zeros_like(site) if name == "p" else site, arrival, unit_weights(len(tick)), values)


def saved_after(form, late, queries):
    # Queries with their own computed column below the window share nothing there.
    texts = [FORMS[form].replace("r [", f"(SELECT site, time, v + {k} AS v FROM r) AS r [", 1) for k in range(queries)]
    engine = engine_of(texts, late)
    for first in range(0, EPOCHS, 20):
        for name, batch in epochs_of(first, 20):
            engine.deliver(name, batch)
        engine.on_clock((first + 19) * EVERY + 5)
    return len(save_engine(engine))


@pytest.mark.promise("bounded-memory")
@pytest.mark.parametrize("form", ["aggregate", "rows of a window", "join"])
def test_state_of_a_query_does_not_grow_with_the_horizon(form):
    short, long = (
        saved_after(form, late, 5) - saved_after(form, late, 1)
        for late in ("late revise by 10 min", "late revise by 1 day")
    )
    assert 0 < long < 1.5 * short


@pytest.mark.promise("bounded-memory")
def test_query_of_ten_groups_takes_50_kb_after_a_day():
    """Of 54 motes at 30 s, in steps of five epochs."""
    catalog = read_schema(
        "r: sensed (site:integer, v:integer) every 30 sec at sites 1 .. 54 wait 10 sec", tick_ms=1_000
    )
    text = (
        "SELECT k, MIN(v) AS low, MAX(v) AS high, AVG(v) AS mean, COUNT(*) AS n "
        "FROM (SELECT site - FLOOR(site / 10) * 10 AS k, v + {} AS v FROM r) [FROM NOW-10 TO NOW SLIDE 1 MIN] GROUP BY k"
    )
    saved = []
    for queries in (1, 4):
        engine = Engine(catalog)
        for number in range(queries):
            engine.add(number, bind_text(text.format(number), catalog)[0])
        for first in range(0, 2_880, 5):
            tick, site = np.repeat((first + np.arange(5)) * EVERY, 54), np.tile(np.arange(1, 55), 5)
            values = {"site": site, "v": (tick * 7 + site * 13) % 61}
            engine.deliver("r", Batch(tick, site, tick + 5, unit_weights(len(tick)), values))
            engine.on_clock((first + 4) * EVERY + 5)
        saved.append(len(save_engine(engine)))
    assert 0 < (saved[1] - saved[0]) / 3 < 50_000


@pytest.mark.promise("bounded-memory")
def test_saved_state_has_no_updates_of_the_last_step():
    """Forty queries show each tuple of a large step; what they gave is not saved again for each of them."""
    saved = []
    for queries in (1, 41):
        engine = engine_of([f"SELECT site + {number} AS s, v FROM r WHERE v > 3" for number in range(queries)])
        for name, batch in epochs_of(0, 200):
            engine.deliver(name, batch)
        engine.on_clock(200 * EVERY)
        saved.append(len(save_engine(engine)))
    assert saved[1] < 1.5 * saved[0]


def disturbances(rng, epochs):
    """By epoch, rows to hold back until that epoch, and corrections at it."""
    held, corrections = {}, {}
    for _ in range(12):
        at = rng.randrange(1, epochs)
        held.setdefault(at, []).append((rng.randrange(at), rng.randrange(SITES), rng.choice("rsp")))
    for _ in range(6):
        at, tick = rng.randrange(2, epochs), rng.randrange(epochs) * EVERY
        change = rng.choice(["REVISE r SET v = v * 2 WHERE tick = {}", "DELETE FROM r WHERE tick = {} AND site < 4",
                             "REVISE p SET v = 60 - v WHERE tick = {}", "DELETE FROM s WHERE tick = {} AND w > 20"])  # fmt: skip
        corrections.setdefault(at, []).append(change.format(tick))
    return held, corrections


def answers_of(rng_state, rng, epochs, **how):
    """All updates of all forms, under late rows and corrections, as values that can be compared."""
    rng.setstate(rng_state)
    held, corrections = disturbances(rng, epochs)
    restored = how.pop("restored", False)
    engine = engine_of(FORMS.values(), **how)
    catalog = read_schema(SCHEMA.format(late=""), tick_ms=1_000)
    away = {(name, epoch, row): at for at, rows in held.items() for epoch, row, name in rows}
    updates = []
    for epoch in range(epochs):
        clock = epoch * EVERY + 5
        for name, batch in epochs_of(epoch, 1):
            engine.deliver(name, batch.take(np.array([(name, epoch, row) not in away for row in range(SITES)])))
        for (name, earlier, row), at in away.items():
            if at == epoch:
                batch = dict(epochs_of(earlier, 1))[name].take(np.array([row]))
                engine.deliver(name, Batch(batch.tick, batch.site, np.array([clock]), batch.weight, batch.columns))
        for text in corrections.get(epoch, ()):
            engine.correct(bind_text(text, catalog)[0])
        updates += engine.on_clock(clock)
        if restored and epoch % 7 == 0:
            engine = restore_engine(save_engine(engine))
    return sorted((line for update in split_singly(updates) for line in lines_of(update)), key=lambda line: line[0])


def lines_of(update):
    """An update as tuples that begin with its query."""
    match update:
        case WindowUpdate():
            tags = update.tick, update.revision, update.coverage
            return [(update.query, *tags, update.removed.to_lists(), update.added.to_lists())]
        case TupleUpdates():
            tags = update.tick.tolist(), update.index.tolist(), update.weight.tolist()
            return [(update.query, line) for line in zip(*tags, update.rows.to_lists(), strict=True)]
        case EpochMark():
            return [(update.query, update.tick, update.coverage)]
    raise TypeError(f"expected a window, tuples or a mark, found {update!r}")


@pytest.mark.promise("late-readings")
@pytest.mark.parametrize("seed", range(count_of(3, 30)))
def test_answers_are_the_same_however_often_state_is_tidied(seed, rng):
    state = rng.getstate()
    seldom = answers_of(state, rng, 60, tidy_every=10_000)
    assert answers_of(state, rng, 60, tidy_every=1) == seldom
    assert answers_of(state, rng, 60, tidy_every=5, restored=True) == seldom

"""State of windows: as far back as open windows reach, whatever the horizon; what a revision asks for is recalled."""

import numpy as np
import pytest

from acquisition.batch import Batch, unit_weights
from basestation.execution import thresholds
from basestation.execution.engine import Engine
from basestation.execution.query_block import QueryBlock
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
ROWS = "[FROM NOW-9 TO NOW SLIDE 4 ROWS]"
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
ROW_FORMS = {
    "rows": f"SELECT site, v FROM r {ROWS}",
    "each row": "SELECT MAX(v) AS high FROM p [FROM NOW-9 TO NOW-2 SLIDE 1 ROWS]",
    "rows of a selection": f"SELECT SUM(v) AS a, COUNT(*) AS n FROM (SELECT v FROM r WHERE v > 20) {ROWS}",
    "rows of a union": f"SELECT v FROM (SELECT v FROM r WHERE v > 9 UNION ALL SELECT w AS v FROM s UNION ALL SELECT v FROM p) {ROWS}",
    "rows of insertions": f"SELECT COUNT(*) AS n, MAX(v) AS high FROM ISTREAM(SELECT v FROM r {WINDOW}) {ROWS}",
    "insertions of rows": f"ISTREAM(SELECT site, v FROM r {ROWS})",
    "deletions of rows": f"DSTREAM(SELECT site, MAX(v) AS high FROM p {ROWS} GROUP BY site)",
    "join with rows": f"SELECT COUNT(*) AS n, MAX(w) AS b FROM r {ROWS}, s {WINDOW} WHERE r.site = s.site",
    "loop over rows": "SELECT MAX(v) AS high FROM r FOR (t = 10; t < 400; t += 3) { WindowIs(r ROWS, t - 8, t); }",
    "backward loop over rows": "SELECT SUM(v) AS a FROM p FOR (t = 200; t > 0; t -= 9) { WindowIs(p ROWS, t - 8, t); }",
    "rows since the start": "SELECT SUM(v) AS a FROM r [UNBOUNDED SLIDE 20 ROWS]",
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
    below = f"(SELECT site, time, v + {{}} AS v FROM r{' WHERE v > 9' if form == 'rows of a selection' else ''}) AS r ["
    text = (FORMS | ROW_FORMS)["rows" if form == "rows of a selection" else form]
    texts = [text.replace("r [", below.format(k), 1) for k in range(queries)]
    engine = engine_of(texts, late)
    for first in range(0, EPOCHS, 20):
        for name, batch in epochs_of(first, 20):
            engine.deliver(name, batch)
        engine.on_clock((first + 19) * EVERY + 5)
    return len(save_engine(engine))


@pytest.mark.promise("bounded-memory")
@pytest.mark.parametrize("form", ["aggregate", "rows of a window", "join", "rows", "rows of a selection"])
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


def answers_of(texts, rng_state, rng, epochs, **how):
    """All updates of some queries, under late rows and corrections, as values that can be compared."""
    rng.setstate(rng_state)
    held, corrections = disturbances(rng, epochs)
    restored = how.pop("restored", False)
    engine = engine_of(texts, **how)
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
@pytest.mark.parametrize("seed", range(count_of(2, 30)))
@pytest.mark.parametrize("forms", [FORMS, ROW_FORMS], ids=["ticks", "rows"])
def test_answers_are_the_same_however_often_state_is_tidied(forms, seed, rng, monkeypatch):
    state, texts, epochs = rng.getstate(), forms.values(), count_of(32, 50)
    seldom = answers_of(texts, state, rng, epochs, tidy_every=10_000)
    assert answers_of(texts, state, rng, epochs, tidy_every=5, restored=True) == seldom
    monkeypatch.setattr(thresholds, "UNTRIMMED_ROWS", 0)
    monkeypatch.setattr(thresholds, "SEGMENT_ROWS", 7)
    assert answers_of(texts, state, rng, epochs, tidy_every=1) == seldom


@pytest.mark.promise("late-readings")
@pytest.mark.parametrize(
    "change",
    ["DELETE FROM r WHERE tick = 90 AND site < 3", "REVISE r SET v = 60 WHERE tick = 60 AND v <= 20"],
    ids=["deleted", "let pass"],
)
def test_segment_whose_first_rows_are_final_is_recalled(change, monkeypatch):
    """Windows reach the end of a segment, and no longer its exceptions: numbers of deleted rows, and rows that passed late.

    rows      [ 9  10  -  -  13  14  15 ][ 16  17  18 …
    windows                         [ 15   16 ]             revised; those before are final
    """
    query = "SELECT SUM(v) AS a FROM (SELECT v FROM r WHERE v > 20) [FROM NOW-1 TO NOW SLIDE 1 ROWS]"
    catalog = read_schema(SCHEMA.format(late=""), tick_ms=1_000)
    monkeypatch.setattr(thresholds, "UNTRIMMED_ROWS", 0)
    monkeypatch.setattr(thresholds, "SEGMENT_ROWS", 12)
    answers = []
    for every in (10_000, 1):
        engine, updates = engine_of([query], "late revise by 5 min", tidy_every=every), []
        for epoch in range(30):
            for name, batch in epochs_of(epoch, 1):
                engine.deliver(name, batch)
            revision = f"REVISE r SET v = v + 1 WHERE tick = {(epoch - 9) * EVERY} AND v > 20"
            engine.correct(bind_text(change if epoch == 4 else revision, catalog)[0])
            updates += engine.on_clock(epoch * EVERY + 5)
        answers.append([line for update in split_singly(updates) for line in lines_of(update)])
    assert answers[0] == answers[1]
    assert len(answers[0]) > 200


def test_row_that_waits_is_not_read_with_a_segment(monkeypatch):
    """A tuple that a correction lets pass becomes a row once the wait of its extent is over; a window near it is revised before."""
    query = "SELECT SUM(v) AS a FROM (SELECT v FROM p WHERE v > 20) [FROM NOW-1 TO NOW SLIDE 1 ROWS]"
    catalog = read_schema(SCHEMA.format(late=""), tick_ms=1_000)
    answers = []
    for rows in (thresholds.UNTRIMMED_ROWS, 0):
        monkeypatch.setattr(thresholds, "UNTRIMMED_ROWS", rows)
        engine, updates = engine_of([query]), []
        for epoch in range(12):
            for name, batch in epochs_of(epoch, 1):
                engine.deliver(name, batch)
            updates += engine.on_clock(epoch * EVERY + 5)
        for clock, revised in (
            (340, "v = 60 WHERE tick = 60 AND v <= 20"),
            (342, "v = v + 1 WHERE tick = 60 AND v > 20"),
        ):
            engine.correct(bind_text(f"REVISE p SET {revised}", catalog)[0])
            updates += engine.on_clock(clock)
        updates += engine.on_clock(400)
        answers.append([line for update in split_singly(updates) for line in lines_of(update)])
    assert answers[0] == answers[1]
    assert len(answers[0]) > 40


@pytest.mark.promise("bounded-memory")
def test_row_windows_hold_few_rows_until_state_is_tidied():
    engine = engine_of([ROW_FORMS["rows"]], tidy_every=10_000)
    for epoch in range(200):
        for name, batch in epochs_of(epoch, 1):
            engine.deliver(name, batch)
        engine.on_clock(epoch * EVERY + 5)
    [block] = [of for of in engine._graph._operators.values() if isinstance(of, QueryBlock)]
    assert len(block.inputs[0]._rows.held()) <= thresholds.UNTRIMMED_ROWS + 2 * SITES


def test_loop_over_rows_that_is_over_holds_none():
    engine = engine_of(
        ["SELECT v FROM r FOR (t = 1; t < 40; t += 1) { WindowIs(r ROWS, t - 1, t); }"], "late revise by 1 min"
    )
    for first in range(200):
        for name, batch in epochs_of(first, 1):
            engine.deliver(name, batch)
        engine.on_clock(first * EVERY + 5)
    [block] = [of for of in engine._graph._operators.values() if isinstance(of, QueryBlock)]
    held = block.inputs[0]._rows.held()
    assert len(held) <= 64 * SITES


def test_late_reading_of_each_epoch_recalls_rows_that_it_covers():
    """A reading that comes 100 epochs late changes the coverage of the windows of its epoch, and their rows are not held."""
    engine = engine_of([ROW_FORMS["rows"]])
    late = {epoch: 2 for epoch in range(50)}
    revised = []
    for epoch in range(250):
        for name, batch in epochs_of(epoch, 1):
            engine.deliver(name, batch.take(np.arange(SITES) != late.get(epoch)))
        if epoch - 100 in late:
            batch = dict(epochs_of(epoch - 100, 1))["r"].take(np.array([late[epoch - 100]]))
            engine.deliver(
                "r", Batch(batch.tick, batch.site, np.array([epoch * EVERY + 5]), batch.weight, batch.columns)
            )
        for update in split_singly(engine.on_clock(epoch * EVERY + 5)):
            if update.revision:
                revised.append((update.tick, update.coverage["r"]))
    assert len(revised) >= 100 and {tick // EVERY for tick, _ in revised} >= set(range(10, 49))

"""Aggregates of queries that differ in the range of their windows: folded once, each query gives the updates that it gives alone."""

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from basestation.execution.engine import Engine
from basestation.execution.slices.ranged_slices import RangedSlices
from basestation.execution.snapshot import restore_engine, save_engine
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.replay.inputs import read_recording
from basestation.updates.update import split_singly
from tests.execution.test_sharing import NEVER, Asked, Case, plainly

GROUPED = "SELECT site, COUNT(*) AS n, MIN(v) AS m, AVG(x) AS a FROM road {} GROUP BY site"
WHOLE = "SELECT COUNT(*) AS n, AVG(v) AS m, SUM(x) AS s FROM road {}"
UNSHOWN = "SELECT MAX(v) AS m FROM road {} GROUP BY site"
HAVING = "SELECT v, SUM(w) AS s, MAX(x) AS x FROM road {} GROUP BY v HAVING COUNT(*) > 1"
ORDERED = "SELECT FIRST(v) AS first, LAST(x) AS last, STDEV(x) AS d FROM road {} GROUP BY site"
PLAIN = 100
"""The number of a plain query beside those with windows."""
TEXTS = (GROUPED, GROUPED, WHOLE, HAVING, UNSHOWN, ORDERED)


def recorded(seed, epochs=40, interval=1, sites=3, pushed=False, horizon=8):
    """Epochs in which sites report, or others push tuples; some are late, some are missing."""
    rng = random.Random(seed)
    how = "wait 1 sec" if pushed else f"every {interval} sec at sites 1..{sites}"
    kind = "pushed" if pushed else "sensed"
    catalog = read_schema(
        f"road: {kind} (site:integer, v:integer, w:integer, x:float) {how} late revise by {horizon} sec"
    )
    rows = [
        {"_tick": tick, "site" if pushed else "_site": site, "_arrival": tick + rng.choice((0, 0, 0, 0, 2, 7)),
         "v": rng.randrange(6), "w": rng.randrange(9), "x": rng.choice((0.1, 1e16, -1e16, 2.5, 1e-9))}
        for tick in range(0, epochs, interval) for site in range(1, sites + 1) if rng.random() < 0.9
    ]  # fmt: skip
    return rng, read_recording(catalog, {"road": sorted(rows, key=lambda row: (row["_arrival"], row["_tick"]))})


def window(rng, slide=(1, 1, 1, 2, 3)):
    """A window of one of few slides, with a range of its own."""
    begin, end = rng.randrange(1, 16), rng.choice((0, 0, 0, 1, 3))
    begin += end
    return f"[FROM NOW-{begin} TO NOW{-end if end else ''} SLIDE {rng.choice(slide)} SEC]"


def case_of(seed, count=14, texts=TEXTS, corrections=2, interval=1):
    """Queries over ranges of their own, of which some come later or go."""
    rng, recording = recorded(seed, interval=interval)
    queries = []
    for _ in range(count):
        text = rng.choice(texts).format(window(rng)) + rng.choice(("", "", "", " FOR 12 SEC"))
        queries.append(Asked(text, rng.choice((0, 0, 7, 16)), rng.choice((NEVER, NEVER, 12, 25))))
    queries += rng.choices(queries, k=3)
    kept = [query for query in queries if query.comes < query.goes]
    found = {
        clock: bind_text(f"REVISE road SET v = {rng.randrange(6)} WHERE w = {rng.randrange(9)}", recording.catalog)
        for clock in rng.sample(range(8, 38), corrections)
    }
    return Case(recording, kept, found)


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize("interval", (1, 4))
@pytest.mark.parametrize("tidy_every", (1, 3, NEVER))
def test_queries_with_own_range_give_updates_of_query_alone(tidy_every, interval, rng):
    seed = rng.randrange(2**32)
    found = case_of(seed, interval=interval).difference(tidy_every)
    assert found is None, f"case {seed}: {found}"


def answers_of(engine, recording, clocks):
    """The current rows and coverage of each window of each query, after deliveries up to each of some clock ticks.

    The query PLAIN gives no windows; beside it an engine tracks no versions.
    """
    shown, covered, begin = {}, {}, -1
    for clock in clocks:
        batch = recording.batches["road"]
        engine.deliver("road", batch.take((batch.arrival > begin) & (batch.arrival <= clock)))
        begin = clock
        for update in (each for each in split_singly(engine.on_clock(clock)) if each.query != PLAIN):
            for tick, _, _, _, coverage, added, removed in plainly(update):
                rows = shown.setdefault((update.query, tick), Counter())
                rows.update(added)
                rows.subtract(removed)
                covered[update.query, tick] = coverage
    return {key: (+rows, covered[key]) for key, rows in shown.items()}


@pytest.mark.promise("live-is-replay")
@pytest.mark.parametrize("beside", ((), ("SELECT v FROM road",)), ids=("alone", "beside a plain stream"))
@pytest.mark.parametrize("pushed", (False, True))
def test_one_step_gives_answers_of_one_step_per_tick(pushed, beside, rng):
    """Late tuples in one step of many clock ticks revise the windows of all ranges as they do tick by tick."""
    seed = rng.randrange(2**32)
    made, recording = recorded(seed, epochs=25, pushed=pushed)
    texts = [made.choice(TEXTS).format(window(made)) for _ in range(6)]
    found = []
    for step in (recording.end(), 1, 7):
        clocks = sorted({min(clock, recording.end()) for clock in range(0, recording.end() + step, step)})
        engine = engine_with(texts, recording)
        for text in beside:
            engine.add(PLAIN, bind_text(text, recording.catalog)[0])
        found.append(answers_of(engine, recording, clocks))
    assert found[0] == found[1] == found[2], f"{seed}, {texts}"


def engine_with(texts, recording, tidy_every=64):
    engine = Engine(recording.catalog, tidy_every=tidy_every)
    for number, text in enumerate(texts):
        engine.add(number, bind_text(text, recording.catalog)[0])
    return engine


def ranges(count, text=GROUPED):
    return [text.format(f"[FROM NOW-{number + 3} TO NOW SLIDE 1 SEC]") for number in range(count)]


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize("text", (GROUPED, WHOLE, HAVING))
def test_queries_that_differ_in_range_share_all_but_output(text):
    _, recording = recorded(3, epochs=2)
    few, many = (len(engine_with(ranges(count, text), recording)._graph) for count in (2, 60))
    assert many == few + 58  # for each what it shows


def store_of(engine):
    [store] = [each for each in engine._graph._operators.values() if isinstance(each, RangedSlices)]
    return store


def test_window_of_many_ranges_costs_few_merges():
    """A slice is merged some three times, and the windows of a tick together, whether there are 2 or 100 ranges."""
    _, recording = recorded(3, epochs=120)
    counted = []
    for count in (2, 100):
        engine = engine_with([ranges(1)[0], *ranges(100)[: -count - 1 : -1]], recording)
        batch = recording.batches["road"]
        batch = batch.take(batch.arrival == batch.tick)
        for clock in range(120):
            engine.deliver("road", batch.take(batch.arrival == clock))
            engine.on_clock(clock)
            if clock == 110:
                store = store_of(engine)
                before = store._blocks.merges
        counted.append(store._blocks.merges - before)
        assert store.counts.inserted <= 120 * 3
    assert counted[1] <= counted[0] + 9 * 15  # windows that begin behind all blocks need the slices there merged
    assert counted[1] <= 9 * 40


LATE = 20


def block_ticks(block):
    return [int(part.slice[0]) for part in block.parts]


def test_late_reading_merges_only_its_block_again():
    _, recording = recorded(3, epochs=60, horizon=40)
    engine, batch = engine_with(ranges(50), recording), recording.batches["road"]
    late = batch.take((batch.tick == LATE) & (batch.site == 2))
    assert len(late)
    rest = batch.take((batch.arrival == batch.tick) & ((batch.tick != LATE) | (batch.site != 2)))
    for clock in range(48):
        engine.deliver("road", rest.take(rest.arrival == clock))
        engine.on_clock(clock)
    store = store_of(engine)
    [place] = [at for at, block in enumerate(store._blocks._blocks) if LATE in block_ticks(block)]
    assert place < len(store._blocks._blocks) - 1  # there are blocks behind it
    before, known = store._blocks.merges, [block.parts for block in store._blocks._blocks]
    engine.deliver("road", replace(late, arrival=np.full(1, 48)))
    engine.deliver("road", rest.take(rest.arrival == 48))
    engine.on_clock(48)
    kept = sum(any(block.parts is parts for parts in known) for block in store._blocks._blocks)
    assert kept == len(known) - 1
    assert store._blocks.merges - before <= 45  # to merge all slices again would take some 100


def test_corrections_in_one_step_need_no_step_per_tick():
    _, recording = recorded(3, epochs=10, pushed=True)
    engine = engine_with(ranges(5), recording)
    assert [list(group.per_tick_extents) for group in engine._registry.groups] == [[], []]


def test_released_range_frees_its_number_and_its_readings():
    _, recording = recorded(1, epochs=60)
    engine, batch = engine_with(ranges(1), recording, tidy_every=1), recording.batches["road"]
    far = GROUPED.format("[FROM NOW-{} TO NOW SLIDE 1 SEC]")
    for clock in range(60):
        engine.add(clock + 1, bind_text(far.format(5 + clock % 40), recording.catalog)[0])
        if clock >= 4:
            engine.remove(clock - 3)
        engine.deliver("road", batch.take(batch.arrival == clock))
        engine.on_clock(clock)
    [windows] = [
        block.inputs[0] for query in engine._queries.values() for block in query.blocks if block.ranged is not None
    ][:1]
    assert windows.ranges.room <= 8
    assert len(windows.store) <= (5 + 59 % 40 + 8) * 3


def test_past_of_later_wider_range_is_read_once(monkeypatch):
    _, recording = recorded(3, epochs=60)
    engine, batch = engine_with(ranges(2), recording, tidy_every=1), recording.batches["road"]
    batch, read = batch.take(batch.arrival == batch.tick), []
    read_parts = RangedSlices.read_parts
    for clock in range(50):
        if clock == 25:
            monkeypatch.setattr(
                RangedSlices,
                "read_parts",
                lambda store, low, high: read.append((low, high)) or read_parts(store, low, high),
            )
            engine.add(2, bind_text(GROUPED.format("[FROM NOW-15 TO NOW SLIDE 1 SEC]"), recording.catalog)[0])
        engine.deliver("road", batch.take(batch.arrival == clock))
        engine.on_clock(clock)
    assert len(read) == 1, read


def test_snapshot_between_steps_changes_no_answer(rng):
    seed = rng.randrange(2**32)
    made, recording = recorded(seed, epochs=24)
    texts = [made.choice(TEXTS).format(window(made)) for _ in range(6)]
    found = []
    for saved in (None, 9, 16):
        engine, batch, updates = engine_with(texts, recording, 3), recording.batches["road"], []
        for clock in range(24):
            if clock == saved:
                engine = restore_engine(save_engine(engine))
            engine.deliver("road", batch.take(batch.arrival == clock))
            updates += [(each.query, plainly(each)) for each in split_singly(engine.on_clock(clock))]
        found.append(updates)
    assert found[0] == found[1] == found[2], seed

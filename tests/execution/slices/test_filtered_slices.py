"""Aggregates of queries that differ in WHERE: folded in one pass, each query gives the updates that it gives alone."""

import random
from collections import Counter
from itertools import zip_longest

import pytest

from basestation.execution import thresholds
from basestation.execution.engine import Engine
from basestation.execution.slices.filtered_slices import FilteredSlices
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.replay.inputs import read_recording
from basestation.updates.update import split_singly
from tests.execution.test_sharing import NEVER, Asked, Case, operators, plainly

WINDOW = "[FROM NOW-5 TO NOW SLIDE 1 SEC]"
LANDMARK = "[UNBOUNDED SLIDE 2 SEC]"
HOPPING = "[FROM NOW-6 TO NOW-1 SLIDE 3 SEC]"
GROUPED = "SELECT site, COUNT(*) AS n, MIN(v) AS m FROM road {} WHERE {} GROUP BY site"
WHOLE = "SELECT COUNT(*) AS n, AVG(v) AS m FROM road {} WHERE {}"
UNSHOWN = "SELECT MAX(v) AS m FROM road {} WHERE {} GROUP BY site"
HAVING = "SELECT v, SUM(w) AS s FROM road {} WHERE {} GROUP BY v HAVING COUNT(*) > 1"


def recorded(seed, epochs=40):
    """Epochs in which three sites report; some readings are late, some are missing."""
    rng = random.Random(seed)
    catalog = read_schema(
        "road: sensed (site:integer, v:integer, w:integer) every 1 sec at sites 1..3 late revise by 8 sec"
    )
    rows = [
        {"_tick": tick, "_site": site, "_arrival": tick + rng.choice((0, 0, 0, 0, 2, 7)), "v": rng.randrange(6),
         "w": rng.randrange(9)}
        for tick in range(epochs) for site in (1, 2, 3) if rng.random() < 0.9
    ]  # fmt: skip
    return rng, read_recording(catalog, {"road": sorted(rows, key=lambda row: (row["_arrival"], row["_tick"]))})


def condition(rng):
    return rng.choice((
        f"v > {rng.randrange(-1, 7)}", f"v = {rng.randrange(6)}", f"v > {rng.randrange(4)} AND w < {rng.randrange(9)}",
        f"v + w > {rng.randrange(12)}", f"site <> {rng.randrange(1, 4)} AND v > {rng.randrange(4)}", f"v BETWEEN 1 AND {rng.randrange(5)}", f"v <> {rng.randrange(6)}",
    ))  # fmt: skip


def case_of(seed, count=14, texts=(GROUPED, GROUPED, WHOLE, HAVING, UNSHOWN)):
    """Queries over few windows, under conditions of their own, of which some come later or go."""
    rng, recording = recorded(seed)
    queries = []
    for _ in range(count):
        text = rng.choice(texts).format(rng.choice((WINDOW, WINDOW, HOPPING, LANDMARK)), condition(rng))
        queries.append(Asked(text, rng.choice((0, 0, 7, 16)), rng.choice((NEVER, NEVER, 12, 25))))
    kept = [query for query in queries if query.comes < query.goes]
    corrections = {
        clock: bind_text(f"REVISE road SET v = {rng.randrange(6)} WHERE w = {rng.randrange(9)}", recording.catalog)
        for clock in rng.sample(range(8, 38), 2)
    }
    return Case(recording, kept, corrections)


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize("tidy_every", (1, 3, NEVER))
def test_queries_with_own_where_give_updates_of_query_alone(tidy_every, rng):
    seed = rng.randrange(2**32)
    found = case_of(seed).difference(tidy_every)
    assert found is None, f"case {seed}: {found}"


def alone_in_one_step(case, at):
    """The last answer of each window of one query whose readings come all at once."""
    engine = Engine(case.recording.catalog)
    engine.add(0, bind_text(case.queries[at].text, case.recording.catalog)[0])
    batch = case.recording.batches["road"]
    engine.deliver("road", batch)
    shown = {}
    for update in split_singly(engine.on_clock(case.recording.end())):
        for tick, _, _, _, _, added, removed in plainly(update):
            rows = shown.setdefault(tick, Counter())
            rows.update(added)
            rows.subtract(removed)
    return {tick: +rows for tick, rows in shown.items()}


@pytest.mark.promise("live-is-replay")
@pytest.mark.parametrize("texts", ((GROUPED, HAVING), (GROUPED, UNSHOWN), (WHOLE,)))
def test_late_readings_revise_windows_of_all_filters(texts, rng):
    seed = rng.randrange(2**32)
    case = case_of(seed, 10, texts)
    case.corrections.clear()
    case.queries[:] = [Asked(query.text) for query in case.queries]
    said, _ = case.run(range(len(case.queries)), 3)
    for at in range(len(case.queries)):
        shown = {}
        for _, tick, _, _, _, _, added, removed in said[at]:
            rows = shown.setdefault(tick, Counter())
            rows.update(added)
            rows.subtract(removed)
        expected = alone_in_one_step(case, at)
        assert {tick: +rows for tick, rows in shown.items()} == expected, f"case {seed}, {case.queries[at]}"


@pytest.mark.promise("queries-apart")
def test_past_read_in_many_parts_gives_same_updates(rng, monkeypatch):
    seed = rng.randrange(2**32)
    expected, _ = case_of(seed).run(range(8), 3)
    monkeypatch.setattr(thresholds, "LINEAGE_PAIRS", 3)
    found, _ = case_of(seed).run(range(8), 3)
    for at, updates in expected.items():
        for one, other in zip_longest(updates, found[at]):
            assert one == other, f"case {seed}, query {at}"


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize("text", (GROUPED, WHOLE, HAVING))
def test_queries_that_differ_in_where_share_all_but_output(text):
    texts = [text.format(WINDOW, f"v > {number}").replace("w", "v") for number in range(100)]
    assert operators(texts) == operators(texts[:1]) + 99  # for each what it shows


def store_of(engine):
    [store] = [each for each in engine._graph._operators.values() if isinstance(each, FilteredSlices)]
    return store


def test_released_filter_leaves_no_group_and_frees_its_number():
    _, recording = recorded(1, epochs=60)
    engine = Engine(recording.catalog, tidy_every=1)
    batch = recording.batches["road"]
    for clock in range(60):
        engine.add(clock, bind_text(GROUPED.format(WINDOW, f"v > {clock / 10}"), recording.catalog)[0])
        if clock >= 4:
            engine.remove(clock - 4)
        engine.deliver("road", batch.take(batch.arrival == clock))
        engine.on_clock(clock)
    filters = store_of(engine).lineage.filters
    assert max(filters.number_of(filters[number]) for number, _ in filters._predicates.items()) <= 8
    assert len(store_of(engine)._groups_by_filter) <= 8 * 3


@pytest.mark.promise("queries-apart")
def test_query_whose_filter_nothing_passes_has_its_row():
    """Also where states are too sparse for a matrix of slices and filters."""
    _, recording = recorded(1, epochs=12)
    engine, count = Engine(recording.catalog), 400
    for number in range(count):
        engine.add(number, bind_text(WHOLE.format(WINDOW, f"v = {number}"), recording.catalog)[0])
    engine.deliver("road", recording.batches["road"])
    shown = {number: {} for number in range(count)}
    for update in split_singly(engine.on_clock(20)):
        shown[update.query].setdefault(update.tick, Counter()).update(update.added.to_lists())
        shown[update.query][update.tick].subtract(update.removed.to_lists())
    for rows in shown.values():
        assert list(rows) == list(range(20)) and all((+found).total() == 1 for found in rows.values())
    assert all(+found == {(0, None): 1} for found in shown[count - 1].values())

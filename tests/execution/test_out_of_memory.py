"""A query that needs more memory than there is ends alone, with its figures; all other queries go on."""

import importlib
from dataclasses import replace

import numpy as np
import pytest

from acquisition.batch import Batch, replaced_indexes, unit_weights
from basestation.execution.engine import Engine
from basestation.execution.output.stream_output import StreamOutput
from basestation.execution.step_loop import StepLoop
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.updates.update import QueryFailure, WindowUpdates, split_by_query

CATALOG = read_schema("hits: pushed (k:integer, v:integer) late revise by 20 sec")
WINDOW = "[FROM NOW-1 TO NOW SLIDE 1 SEC]"
COUNT = f"SELECT COUNT(*) AS n FROM hits {WINDOW}"
PRODUCT = f"SELECT a.v FROM hits {WINDOW} AS a, hits {WINDOW} AS b, hits {WINDOW} AS c"
ROWS = 100_000  # 10 ** 15 combinations are more than any address space of today has bytes for


def batch(tick, count):
    ticks, zeros = np.full(count, tick), np.zeros(count, np.int64)
    return Batch(ticks, zeros, ticks, unit_weights(count), {"k": zeros, "v": np.arange(count)})


def run(texts, counts):
    engine = Engine(CATALOG)
    for number, text in enumerate(texts, 1):
        engine.add(number, bind_text(text, CATALOG)[0])
    found = []
    for tick, count in enumerate(counts):
        engine.deliver("hits", batch(tick, count))
        found += [(tick, update) for update in split_by_query(engine.on_clock(tick))]
    return engine, found


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize("text", [PRODUCT, f"ISTREAM({PRODUCT})"])
def test_query_out_of_memory_ends_alone_with_figures(text):
    engine, found = run([COUNT, text, COUNT], [2, ROWS, 3, 1])
    [(clock, failure)] = [(clock, update) for clock, update in found if isinstance(update, QueryFailure)]
    assert failure.query == 2 and failure.code == "SN516" and clock == 1
    assert "shape" in failure.message or "memory" in failure.message.lower()
    fresh = Engine(CATALOG)
    fresh.add(2, bind_text(text, CATALOG)[0])
    assert failure.message.partition(": ")[0] in {line.name for line in fresh.describe(2)}, "as EXPLAIN calls it"
    for number in (1, 3):
        counts = [
            row for _, u in found if isinstance(u, WindowUpdates) and u.query == number for row in u.added.to_lists()
        ]
        assert counts == [(2,), (ROWS + 2,), (ROWS + 3,), (4,)]
    engine.remove(1)
    engine.remove(3)
    assert not len(engine._graph)


@pytest.mark.promise("queries-apart")
def test_query_can_be_added_again_after_it_ran_out_of_memory():
    engine, _ = run([PRODUCT], [1, ROWS])
    engine.add(1, bind_text(COUNT, CATALOG)[0])
    engine.deliver("hits", batch(2, 1))
    [update] = split_by_query(engine.on_clock(2))
    assert update.added.to_lists() == [(ROWS + 1,)]


PAIRS = f"SELECT a.v, b.v AS w FROM hits {WINDOW} AS a, hits {WINDOW} AS b WHERE a.v < {{}}"


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize("text", [PAIRS.format(10**9), f"ISTREAM({PAIRS.format(10**9)})"])
def test_answer_whose_text_finds_no_room_ends_its_query_alone(text, monkeypatch):
    """100 tuples in a window make 10,000 pairs, 4 MB of text; there is room for half."""
    monkeypatch.setattr("basestation.execution.step_loop.is_limited", lambda: True)
    monkeypatch.setattr("basestation.execution.step_loop.has_room", lambda size: size < 2_000_000)
    engine, found = run([COUNT, text, PAIRS.format(5)], [2, 3, 95, 2])
    [(clock, failure)] = [(clock, update) for clock, update in found if isinstance(update, QueryFailure)]
    assert (failure.query, failure.code, clock) == (2, "SN516", 2) and "bytes of text" in failure.message
    assert [clock for clock, update in found if update.query == 2][:-1] == [0, 1]
    lengths = [len(update.added) for _, update in found if update.query == 3]
    assert lengths == [4, 25, 8 * 98, 7 * 97]
    assert [update.added.to_lists() for _, update in found if update.query == 1] == [[(n,)] for n in (2, 5, 98, 97)]
    assert 2 not in engine


@pytest.mark.promise("queries-apart")
def test_large_answer_ends_alone_among_shared_windows(monkeypatch):
    monkeypatch.setattr("basestation.execution.step_loop.is_limited", lambda: True)
    monkeypatch.setattr("basestation.execution.step_loop.has_room", lambda size: size < 2_000_000)
    texts = [f"SELECT k, v FROM hits {WINDOW} WHERE v < {most}" for most in (10, 100_000, 20)]
    _, found = run(texts, [10, 20_000, 10])
    assert [(clock, update.query) for clock, update in found if isinstance(update, QueryFailure)] == [(1, 2)]
    for number, most in ((1, 10), (3, 20)):
        rows = [len(update.added) for _, update in found if update.query == number]
        assert rows == [10, 10 + most, most + 10], number


@pytest.mark.promise("queries-apart")
def test_two_plans_of_a_query_end_with_one_failure(monkeypatch):
    """A late reading revises windows of the plan before the switch and of the one after it; neither revision has room."""
    catalog = read_schema(
        "r: sensed (site:integer, v:integer) every 10 sec at sites 1 .. 4 wait 2 sec late revise by 5 min"
    )
    window = "[FROM NOW-15 TO NOW SLIDE 10 SEC]"
    plan = bind_text(f"SELECT site, v FROM r {window}", catalog)[0]
    engine, is_scarce, found = Engine(catalog, live=True), [False], []
    monkeypatch.setattr("basestation.execution.step_loop.is_limited", lambda: True)
    monkeypatch.setattr("basestation.execution.step_loop.has_room", lambda size: not is_scarce[0] or size != 400)
    monkeypatch.setattr(StepLoop, "_make_room", lambda *_: [])
    monkeypatch.setattr("basestation.execution.thresholds.UNCHECKED_BYTES", 0)
    engine.add(1, plan)
    engine.add(2, bind_text(f"SELECT COUNT(*) AS n FROM r {window}", catalog)[0])
    for tick in range(0, 120, 10):
        if tick == 50:
            engine.start_variant(1, plan, reports_from={"r": 50})
        if tick == 80:
            engine.switch_variant(1)
        engine.deliver("r", readings(tick, range(1, 4 if tick == 70 else 5)))
        if tick == 110:
            engine.deliver("r", readings(70, [4], arrival=111))
            is_scarce[0] = True
        found += [(tick, update) for update in split_by_query(engine.on_clock(tick + 3))]
    last = [update for tick, update in found if tick == 110 and update.query != 2]
    assert [isinstance(update, QueryFailure) for update in last] == [False, True] and {u.query for u in last} == {1}
    assert 1 not in engine and 2 in engine


def readings(tick, sites, arrival=None):
    site = np.array(sites)
    ticks = np.full(len(site), tick)
    return Batch(
        ticks,
        site,
        ticks if arrival is None else np.full(len(site), arrival),
        unit_weights(len(site)),
        {"site": site, "v": site},
    )


@pytest.mark.promise("queries-apart")
def test_one_long_string_counts_once(monkeypatch):
    monkeypatch.setattr("basestation.execution.step_loop.is_limited", lambda: True)
    monkeypatch.setattr("basestation.execution.step_loop.has_room", lambda size: size < 4_000_000)
    catalog = read_schema("notes: pushed (v:integer, s:string) late drop")
    engine = Engine(catalog)
    engine.add(1, bind_text("SELECT v, s FROM notes [FROM NOW-1 TO NOW SLIDE 1 SEC]", catalog)[0])
    ticks = np.zeros(4_000, np.int64)
    texts = np.array(["ok"] * 3_999 + ["x" * 200_000], object)
    engine.deliver("notes", Batch(ticks, ticks, ticks, unit_weights(4_000), {"v": ticks, "s": texts}))
    [update] = split_by_query(engine.on_clock(0))
    assert isinstance(update, WindowUpdates) and len(update.added) == 4_000


def failing(monkeypatch, place, times=1):
    """Let a method run out of memory the first times that it is called, half-way where it takes a step; return the calls left."""
    owner, _, name = place.rpartition(".")
    module, _, cls = owner.rpartition(".")
    whose = getattr(importlib.import_module(module), cls)
    method, left = getattr(whose, name), [times]

    def fail(self, *args, **kwargs):
        found = method(self, *args, **kwargs)
        if left[0]:
            left[0] -= 1
            raise MemoryError("Unable to allocate 9 TiB")
        return found

    monkeypatch.setattr(whose, name, fail)
    return left


EXECUTION = "basestation.execution"
OTHERS = read_schema(
    "hits: pushed (k:integer, v:integer) late revise by 20 sec\nmisses: pushed (k:integer, v:integer) late revise by 20 sec"
)


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize(
    "place",
    [
        f"{EXECUTION}.ingest.intake.Intake.insert",
        f"{EXECUTION}.ingest.intake.Intake._enter",
        f"{EXECUTION}.ingest.intake.Intake.forget",
        f"{EXECUTION}.windowing.window_store.TickOrderedStore.tidy",
        f"{EXECUTION}.query_block.QueryBlock.tidy",
        f"{EXECUTION}.output.stream_output.StreamOutput._make_updates",
        f"{EXECUTION}.ingest.tuple_log.TupleLog.add",
        f"{EXECUTION}.columns.segmented_log.SegmentedLog.forget",
    ],
)
def test_failure_outside_of_operators_ends_its_readers_alone(place, monkeypatch):
    """`hits` is the first intake, and the first query the first that tidies: they run out of memory once, in clock tick 3."""
    engine, texts = (
        Engine(OTHERS, tidy_every=1),
        {1: "SELECT v FROM hits {}", 2: "SELECT SUM(v) AS n FROM misses {}", 3: "SELECT v FROM hits"},
    )
    for number, text in texts.items():
        engine.add(number, bind_text(text.format(WINDOW), OTHERS)[0])
    failures, sums = [], []
    for tick in range(8):
        for extent in ("hits", "misses"):
            engine.deliver(extent, batch(tick, 2))
        if tick == 3:
            left = failing(monkeypatch, place)
        for update in split_by_query(engine.on_clock(tick)):
            if isinstance(update, QueryFailure):
                failures.append((update.query, update.code, update.clock, update.message))
            elif update.query == 2:
                sums += update.added.to_lists()
    assert left == [0] and failures
    ended = {query for query, *_ in failures}
    assert all((code, clock) == ("SN516", 3) and "9 TiB" in message for _, code, clock, message in failures)
    assert ended == ({1, 3} if ".ingest." in place or "Log" in place else ended) and len(ended) < 3
    survivor = 2 not in ended
    assert not survivor or sums == [(1,), *[(2,)] * 7]
    engine.add(4, bind_text(f"SELECT COUNT(*) AS n FROM hits {WINDOW}", OTHERS)[0])
    engine.deliver("hits", batch(8, 2))
    [count] = [update for update in split_by_query(engine.on_clock(8)) if update.query == 4]
    assert count.added.to_lists()[-1] in [(2,), (4,)]


@pytest.mark.promise("queries-apart")
def test_lost_deliveries_are_counted(monkeypatch):
    engine = Engine(OTHERS)
    engine.add(1, bind_text("SELECT v FROM hits", OTHERS)[0])
    engine.deliver("hits", batch(0, 5))
    engine.on_clock(0)
    failing(monkeypatch, f"{EXECUTION}.ingest.intake.Intake._enter")
    engine.deliver("hits", batch(1, 7))
    [failure] = engine.on_clock(1)
    assert "the intake of hits held 12 tuples" in failure.message
    assert engine.ledger()["hits"] == {"accepted": 5, "out of memory": 7, "received": 12}


@pytest.mark.promise("archived")
@pytest.mark.parametrize("place", ["insert", "_enter"])
def test_later_steps_of_an_operation_lose_their_deliveries_too(place, monkeypatch):
    """Two clock ticks end in one operation, and the intake runs out of memory in the first: the archive has 2 + 4 + 3 tuples."""
    engine = Engine(OTHERS, live=True)
    engine.archive_corrections()
    engine.add(1, bind_text("SELECT v FROM hits", OTHERS)[0])
    engine.deliver("hits", batch(0, 2))
    engine.on_clock(0)
    failing(monkeypatch, f"{EXECUTION}.ingest.intake.Intake.{place}")
    for clock, count in ((1, 4), (2, 3)):  # late tuples, so that each clock tick is a step
        engine.deliver("hits", replace(batch(clock - 1, count), arrival=np.full(count, clock)))
    [failure] = [each for each in engine.on_clock(2) if isinstance(each, QueryFailure)]
    assert failure.query == 1
    assert engine.ledger()["hits"] == {"accepted": 2, "out of memory": 7, "received": 9}
    engine.deliver("hits", batch(3, 2))
    engine.on_clock(3)
    engine.correct(bind_text("REVISE hits SET v = 30 WHERE v = 1;", OTHERS)[0])
    engine.on_clock(4)
    [(_, rows)] = engine.take_applied()
    assert rows.replaces.tolist() == [9 + 2]


AHEAD = read_schema("hits: pushed (k:integer, v:integer) ahead 5 sec late revise by 20 sec")


@pytest.mark.promise("archived")
@pytest.mark.parametrize(
    "place",
    [
        f"{EXECUTION}.ingest.intake.Intake.insert",
        f"{EXECUTION}.ingest.intake.Intake._enter",
        f"{EXECUTION}.ingest.intake.Intake.forget",
        f"{EXECUTION}.step_loop.StepLoop._step",  # as where deliveries cannot be cut
        f"{EXECUTION}.ingest.intake.Intake.corrected",
    ],
)
def test_corrections_after_lost_deliveries_name_archived_tuples(place, monkeypatch):
    """Archived: 2 tuples, 5 of the step that fails without the one too far ahead, an inserted one or none, and 2 tuples."""
    engine = Engine(AHEAD, live=True, tidy_every=1)
    engine.archive_corrections()
    engine.deliver("hits", batch(0, 2))
    engine.on_clock(0)
    engine.ledger()  # nothing waits
    far = batch(90, 1)
    failing(monkeypatch, place)
    engine.deliver("hits", batch(1, 4))
    engine.deliver("hits", replace(far, arrival=np.ones(1, np.int64)))
    engine.deliver("hits", batch(1, 1))
    for text in ("INSERT INTO hits (k, v) VALUES (7, 7);", "REVISE hits SET v = 8 WHERE k = 7;"):
        engine.correct(bind_text(text, AHEAD)[0])
    engine.on_clock(1)
    monkeypatch.undo()
    inserted = sum(int((replaced_indexes(rows) == 0).sum()) for _, rows in engine.take_applied())
    assert inserted == (0 if place.endswith("insert") else 1)
    engine.deliver("hits", batch(2, 2))
    engine.on_clock(2)
    engine.correct(bind_text("REVISE hits SET v = 30 WHERE v = 1 AND tick = 2;", AHEAD)[0])
    engine.on_clock(3)
    [(_, rows)] = engine.take_applied()
    assert rows.replaces.tolist() == [2 + 5 + inserted + 2]


@pytest.mark.promise("queries-apart")
def test_deliveries_that_cannot_be_cut_end_their_readers(monkeypatch):
    engine = Engine(OTHERS)
    for number, extent in ((1, "hits"), (2, "misses")):
        engine.add(number, bind_text(f"SELECT v FROM {extent}", OTHERS)[0])

    def fail(*_):
        raise MemoryError("Unable to allocate 9 TiB")

    engine.deliver("hits", batch(1, 3))
    monkeypatch.setattr(f"{EXECUTION}.step_loop.plan_steps", fail)
    [failure] = engine.on_clock(1)
    monkeypatch.undo()
    assert (failure.query, failure.clock) == (1, 1)
    engine.deliver("misses", batch(2, 3))
    [update] = split_by_query(engine.on_clock(2))
    assert (update.query, len(update)) == (2, 3)


@pytest.mark.promise("queries-apart")
def test_updates_before_deliveries_that_cannot_be_cut_are_given(monkeypatch):
    engine, step = Engine(OTHERS), StepLoop._step
    for number, text in ((1, "SELECT v FROM hits"), (2, f"SELECT COUNT(*) AS n FROM misses {WINDOW}")):
        engine.add(number, bind_text(text, OTHERS)[0])

    def fail(loop, *given):
        step(loop, *given)
        raise MemoryError("Unable to allocate 9 TiB")

    engine.deliver("hits", batch(0, 3))
    monkeypatch.setattr(StepLoop, "_step", fail)
    updates = list(split_by_query(engine.on_clock(0)))
    monkeypatch.undo()
    assert [update.added.to_lists() for update in updates if update.query == 2] == [[(0,)]]
    assert isinstance(updates[-1], QueryFailure) and updates[-1].query == 1


@pytest.mark.promise("queries-apart")
def test_filter_ends_with_the_intake_of_its_extent(monkeypatch):
    engine = Engine(OTHERS)
    for number, extent in ((1, "hits"), (2, "misses")):
        engine.add(number, bind_text(f"SELECT v FROM {extent} WHERE v > 0", OTHERS)[0])
        engine.deliver(extent, batch(0, 3))
    failing(monkeypatch, f"{EXECUTION}.ingest.intake.Intake._enter")
    found = list(split_by_query(engine.on_clock(0)))
    assert [update.query for update in found if isinstance(update, QueryFailure)] == [1]
    assert sum(len(update) for update in found if update.query == 2) == 2


@pytest.mark.promise("queries-apart")
def test_updates_without_memory_end_their_queries(monkeypatch):
    engine = Engine(OTHERS)
    for number, extent in ((1, "hits"), (2, "misses")):
        engine.add(number, bind_text(f"SELECT v FROM {extent}", OTHERS)[0])
        engine.deliver(extent, batch(0, 3))
    updates = StreamOutput.updates.fget

    def fail(output):
        if 1 in output.numbers:
            raise MemoryError("Unable to allocate 9 TiB")
        return updates(output)

    monkeypatch.setattr(StreamOutput, "updates", property(fail))
    failure, update = split_by_query(engine.on_clock(0))
    assert (failure.query, failure.message, update.query) == (1, "its updates: Unable to allocate 9 TiB", 2)

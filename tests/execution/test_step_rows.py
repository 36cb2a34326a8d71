"""A step takes in as much time as makes STEP_ROWS rows, whatever queries make of a tuple; that changes no answer."""

import re
import subprocess
import sys

import numpy as np
import pytest

from acquisition.batch import Batch, unit_weights
from basestation.execution import thresholds
from basestation.execution.engine import Engine
from basestation.execution.graph import OperatorGraph
from basestation.execution.ingest.step_size import StepSize
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.updates.update import QueryFailure, WindowUpdates, split_by_query, split_singly

CATALOG = read_schema("hits: pushed (k:integer, v:integer) late revise by 20 sec")
WINDOW = "[FROM NOW-1 TO NOW SLIDE 1 SEC]"
QUERIES = {
    "product": f"SELECT a.v, b.v AS w FROM hits {WINDOW} AS a, hits {WINDOW} AS b",
    "hot key": f"SELECT a.v, b.v AS w FROM hits {WINDOW} AS a, hits {WINDOW} AS b WHERE a.k = b.k",
    "overlap": "SELECT v FROM hits [FROM NOW-60 TO NOW SLIDE 1 SEC]",
}
COUNT = "SELECT COUNT(*) AS n FROM hits [FROM NOW TO NOW SLIDE 60 SEC]"
TICKS, EACH = 300, 10


def recording(ticks, each):
    tick = np.repeat(np.arange(ticks), each)
    return Batch(tick, 0 * tick, tick, unit_weights(len(tick)), {"k": 0 * tick, "v": tick % 97})


def answers(engine, batch, ends):
    """[(tick, rows)] of each query, when the clock ticks up to each of `ends` end together; no query fails."""
    found, begin = {}, 0
    for end in ends:
        stop = int(np.searchsorted(batch.arrival, end, "right"))
        engine.deliver("hits", batch.take(slice(begin, stop)))
        begin = stop
        for update in split_by_query(engine.on_clock(end)):
            assert isinstance(update, WindowUpdates), update
            found.setdefault(update.query, []).extend(
                (each.tick, each.added.to_lists()) for each in split_singly([update])
            )
    return found


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize("query", QUERIES)
def test_rows_of_a_step_are_bounded_and_answers_are_alike(query, monkeypatch):
    monkeypatch.setattr(thresholds, "STEP_ROWS", 20_000)
    monkeypatch.setattr(thresholds, "FIRST_STEP", (32, 32))
    made, step = [], OperatorGraph.step

    def counted(graph, clock):
        before = graph.rows_out
        failed = step(graph, clock)
        made.append(graph.rows_out - before)
        return failed

    engine, single = Engine(CATALOG), Engine(CATALOG)
    for each in (engine, single):
        for number, text in enumerate((QUERIES[query], COUNT), 1):
            each.add(number, bind_text(text, CATALOG)[0])
    expected = answers(single, recording(TICKS, EACH), range(TICKS))
    monkeypatch.setattr(OperatorGraph, "step", counted)
    assert answers(engine, recording(TICKS, EACH), [TICKS - 1]) == expected
    # Steps grow by 4 at most, so a step makes at most 4 times what it should, and there are not many more than needed.
    assert max(made) <= thresholds.STEP_GROWTH * 20_000 < sum(made)
    assert len(made) < 12 + 4 * sum(made) // 20_000


def test_windows_without_deliveries_are_cut_too(monkeypatch):
    monkeypatch.setattr(thresholds, "STEP_ROWS", 1_000)
    monkeypatch.setattr(thresholds, "FIRST_STEP", (32, 32))
    clocks, step = [], OperatorGraph.step
    monkeypatch.setattr(OperatorGraph, "step", lambda graph, clock: (clocks.append(clock), step(graph, clock))[1])
    engine = Engine(CATALOG)
    engine.add(1, bind_text("SELECT k, COUNT(*) AS n FROM hits [UNBOUNDED SLIDE 1 SEC] GROUP BY k", CATALOG)[0])
    engine.deliver("hits", recording(1, 5))
    given = [len(update) for update in split_by_query(engine.on_clock(9_999))]
    assert sum(given) == 10_000 and max(given) <= 4_000 and len(clocks) > 5


def test_step_grows_while_few_rows_are_made():
    size = StepSize()
    assert (size.tuples, size.ticks) == thresholds.FIRST_STEP
    size.adapt(*thresholds.FIRST_STEP, 10)
    assert (size.tuples, size.ticks) == tuple(thresholds.STEP_GROWTH * each for each in thresholds.FIRST_STEP)
    size.adapt(1, 1, 0)  # a short step says nothing
    assert (size.tuples, size.ticks) == tuple(thresholds.STEP_GROWTH * each for each in thresholds.FIRST_STEP)
    size.adapt(4_000, 4_000, 4 * thresholds.STEP_ROWS)
    assert (size.tuples, size.ticks) == (1_000, 1_000)


LIMITED = """
import resource, sys
from tests.execution.test_step_rows import CATALOG, QUERIES, Engine, QueryFailure, bind_text, recording
engine = Engine(CATALOG)
engine.add(1, bind_text(QUERIES[sys.argv[1]], CATALOG)[0])
with open("/proc/self/status") as status:
    size = next(int(line.split()[1]) for line in status if line.startswith("VmSize")) * 1024
resource.setrlimit(resource.RLIMIT_AS, (size + 450_000_000,) * 2)
engine.deliver("hits", recording(1_000, 54))
print([update for update in engine.finish(1_000) if isinstance(update, QueryFailure)])
"""


@pytest.mark.promise("queries-apart")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of address space are those of Linux")
@pytest.mark.parametrize("query", ["product", "hot key"])
def test_recording_in_one_batch_fits_into_little_memory(query):
    """The rows of the answer, twelve million of two columns, are 187 MB."""
    run = subprocess.run([sys.executable, "-c", LIMITED, query], capture_output=True, text=True, timeout=100)
    assert (run.returncode, run.stdout, run.stderr) == (0, "[]\n", "")


@pytest.mark.promise("queries-apart")
def test_query_without_memory_for_its_past_ends_alone(monkeypatch):
    engine = Engine(CATALOG)
    engine.add(1, bind_text(COUNT, CATALOG)[0])

    def fail(builder, split, view):
        raise MemoryError("Unable to allocate 9 TiB")

    operators, interned = len(engine._graph), +engine._interner._uses
    monkeypatch.setattr("basestation.execution.operator_builder.OperatorBuilder.output", fail)
    engine.add(2, bind_text(QUERIES["overlap"], CATALOG)[0])
    monkeypatch.undo()
    assert (len(engine._graph), +engine._interner._uses) == (operators, interned)
    engine.deliver("hits", recording(1, 5))
    failure, update = split_by_query(engine.on_clock(0))
    assert (failure.query, failure.code, failure.message) == (2, "SN516", "Unable to allocate 9 TiB")
    assert update.added.to_lists() == [(5,)]
    engine.add(2, bind_text(QUERIES["overlap"], CATALOG)[0])
    engine.remove(2)
    assert len(engine._graph) == operators


@pytest.mark.promise("queries-apart")
def test_query_out_of_memory_while_another_comes_ends_alone(monkeypatch):
    engine = Engine(CATALOG)
    engine.add(1, bind_text("SELECT v FROM hits [FROM NOW TO NOW SLIDE 60 SEC]", CATALOG)[0])
    assert engine.on_clock(0)
    engine.deliver("hits", Batch(*(np.ones(1, np.int64),) * 4, {"k": np.ones(1, np.int64), "v": np.ones(1, np.int64)}))
    assert not engine.on_clock(1)  # it waits

    def fail(store, clock):
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr("basestation.execution.windowing.window_store.TickOrderedStore.apply", fail)
    engine.add(2, bind_text("SELECT k FROM hits", CATALOG)[0])
    monkeypatch.undo()
    [failure] = engine.on_clock(2)
    assert isinstance(failure, QueryFailure) and (failure.query, failure.code, failure.clock) == (1, "SN516", 1)


NO_ROOM = """
import resource
import numpy as np
from tests.execution.test_step_rows import Batch, Engine, QueryFailure, bind_text, read_schema, split_by_query, unit_weights
catalog = read_schema("hits: pushed (k:integer, v:integer) wait 5 sec late revise by 20 sec")
engine = Engine(catalog)
engine.add(1, bind_text("SELECT COUNT(*) AS n FROM hits [FROM NOW-4 TO NOW SLIDE 100 SEC]", catalog)[0])
engine.add(2, bind_text("SELECT k, COUNT(*) AS n FROM hits [UNBOUNDED SLIDE 9 HOUR] GROUP BY k", catalog)[0])

def hits(first, arrival, count):
    tick = arrival - np.arange(count) % 5
    key = np.arange(first, first + count)
    return Batch(tick, 0 * tick, 0 * tick + arrival, unit_weights(count), {"k": key, "v": 0 * key})

engine.on_clock(0)
for second in range(10, 40, 10):
    engine.deliver("hits", hits(second * 100_000, second, 800_000))
    assert not any(isinstance(update, QueryFailure) for update in engine.on_clock(second))
last = hits(0, 99, 200_000)
with open("/proc/self/status") as status:
    size = next(int(line.split()[1]) for line in status if line.startswith("VmSize")) * 1024
free = []  # what the allocator has without asking the system
resource.setrlimit(resource.RLIMIT_AS, (size, size))
try:
    while True:
        free.append(np.empty(1 << 18, np.uint8))
except MemoryError:
    del free[-8:]
engine.deliver("hits", last)
[failure] = [update for update in engine.on_clock(99) if isinstance(update, QueryFailure)]
free.clear()
print(failure.query, failure.code, failure.message)
[answer] = split_by_query(engine.finish(100))
print(answer.added.to_lists())
"""


@pytest.mark.promise("queries-apart")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of address space are those of Linux")
def test_query_with_most_state_ends_where_the_intake_has_no_room():
    run = subprocess.run([sys.executable, "-c", NO_ROOM], capture_output=True, text=True, timeout=100)
    assert (run.returncode, run.stderr) == (0, "")
    failure, answer = run.stdout.splitlines()
    assert re.fullmatch(
        r"2 SN516 it holds [\d,]+ bytes, more than any other query; new tuples need 76,800,000 bytes", failure
    )
    assert answer == "[(160000,)]"  # ticks 96 to 99, with all tuples of the last delivery

"""Aggregates of queries that come and go over the same slices: removed ones leave nothing, and no answer changes."""

import numpy as np
import pytest

from acquisition.batch import Batch
from basestation.execution.engine import Engine
from basestation.execution.snapshot import restore_engine, save_engine
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.updates.update import split_singly
from tests.execution.test_sharing import plainly

CATALOG = read_schema("hits: pushed (k:integer, v:integer) late revise by 10 sec")
GROUPED = "FROM hits [FROM NOW-9 TO NOW SLIDE 2 SEC] GROUP BY k"
JOINED = "FROM hits [FROM NOW-9 TO NOW SLIDE 2 SEC] AS a, hits [FROM NOW-3 TO NOW SLIDE 2 SEC] AS b WHERE a.k = b.k"
FEW = 4_000
"""Bytes that two such states may differ by: numbers are larger, and arrays have grown otherwise."""
STANDING = 0


def run(rng, standing, others, ends):
    """(what the standing query says, how large the state is at the end); others come and go, each with some clock ticks."""
    engine, said = Engine(CATALOG, tidy_every=4), []
    engine.add(STANDING, bind_text(standing, CATALOG)[0])
    running = []
    for clock in range(ends):
        if others and clock % 2:
            engine.add(1 + clock, bind_text(others.pop(), CATALOG)[0])
            running.append(1 + clock)
        while running and (clock > ends // 2 or len(running) > 3):
            engine.remove(running.pop(0))
        count = rng.randrange(5)
        tick = np.sort(np.array([max(0, clock - rng.randrange(8)) for _ in range(count)], np.int64))
        values = {name: np.array([rng.randrange(4) for _ in range(count)], np.int64) for name in "kv"}
        arrival = np.full(count, clock)
        engine.deliver("hits", Batch(tick, 0 * arrival, arrival, np.ones(count, np.int64), values))
        said += [(clock, *each) for update in split_singly(engine.on_clock(clock)) if update.query == STANDING
                 for each in plainly(update)]  # fmt: skip
        engine = engine if clock % 8 else restore_engine(save_engine(engine))
    return said, len(save_engine(engine))


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize(
    ("standing", "other"),
    [
        (f"SELECT k, COUNT(*) AS n {GROUPED}", f"SELECT k, AVG(v + {{}}) AS n {GROUPED}"),
        (f"SELECT k, COUNT(*) AS n {GROUPED}", f"RSTREAM(SELECT k, MAX(v * {{}}) AS n {GROUPED})"),
        (f"RSTREAM(SELECT k, MIN(v) AS n {GROUPED})", f"SELECT k, SUM(v - {{}}) AS n {GROUPED} HAVING COUNT(v) > 1"),
        (f"SELECT a.k {JOINED}", f"SELECT a.v, b.v, a.k {JOINED} AND b.v < {{}}"),
    ],
)
def test_removed_queries_leave_no_aggregate_behind(standing, other, rng):
    seed, ends = rng.random(), 100
    alone, _ = run(type(rng)(seed), standing, [], ends)
    among_equal, size = run(type(rng)(seed), standing, [other.format(1)] * 20, ends)
    among_others, left = run(type(rng)(seed), standing, [other.format(at) for at in range(20)], ends)
    assert alone == among_equal == among_others
    assert left < size + FEW

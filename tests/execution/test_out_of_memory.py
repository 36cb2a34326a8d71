"""A query that needs more memory than there is ends alone, with its figures; all other queries go on."""

import numpy as np
import pytest

from acquisition.batch import Batch, unit_weights
from basestation.execution.engine import Engine
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

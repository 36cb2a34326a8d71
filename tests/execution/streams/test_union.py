"""Unions keep no more than their parts do."""

import numpy as np

from acquisition.batch import Batch
from basestation.execution.engine import Engine
from basestation.execution.streams.union import UnionStream
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema

CATALOG = read_schema(
    "road: sensed (site:integer, v:integer) every 1 min at sites 1..3 late revise by 8 min\n"
    "slow: pushed (v:integer) late revise by 8 min\n"
)
TEXT = (
    "SELECT v, COUNT(*) FROM (SELECT v FROM road WHERE v > 2 UNION ALL SELECT v FROM slow) AS u "
    "[FROM NOW-5 MIN TO NOW SLIDE 1 MIN] GROUP BY v"
)


def test_union_of_unequal_parts_forgets_what_revisions_added():
    """One part numbers its tuples three times as fast as the other."""
    engine = Engine(CATALOG, tidy_every=1)
    engine.add(1, bind_text(TEXT, CATALOG)[0])
    [union] = [each for each in engine._graph._operators.values() if isinstance(each, UnionStream)]
    [correction] = bind_text("REVISE road SET v = 4 WHERE v = 2", CATALOG)
    site, one, counts = np.arange(1, 4), np.ones(1, np.int64), []
    for tick in range(0, 400 * 60, 60):
        engine.deliver("road", Batch(0 * site + tick, site, 0 * site + tick, 0 * site + 1, {"site": site, "v": site}))
        engine.deliver("slow", Batch(one * tick, 0 * one, one * tick, one, {"v": one}))
        engine.on_clock(tick)
        if tick % 180 == 0:  # of tuples that have entered
            engine.correct(correction)
        counts.append(len(union._added))
    assert 50 < max(counts[200:]) <= max(counts[:200]) + 2 < 150

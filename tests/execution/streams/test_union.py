"""Unions keep no more than their parts do, and number tuples that are corrected before they enter."""

import numpy as np
import pytest

from acquisition.batch import Batch
from basestation.execution.engine import Engine
from basestation.execution.streams.union import UnionStream
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from tests.agreement.compare import agree

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


WAITING = (
    "road: sensed (site:integer, v:integer) every 2 sec at sites 1, 2 wait 3 sec late revise by 8 sec\n"
    "slow: pushed (v:integer) late revise by 8 sec\n"
)


@pytest.mark.parametrize("condition", ["x < 9", "v <= x", "x IS NULL", "x > 3 OR v = 1"])
def test_correction_before_entry_is_selected_by_its_index(condition, rng):
    """Tuples wait for the slower part; a correction in the step in which they enter takes back a version without an index."""
    text = (
        f"SELECT v FROM (SELECT v, index AS x FROM (SELECT v FROM slow UNION ALL SELECT v FROM road)) WHERE {condition}"
    )
    for _ in range(12):
        slow = [{"_tick": tick, "_arrival": tick, "v": rng.randrange(4)} for tick in range(12)]
        for tick in rng.sample(range(12), 6):
            weight = {"_weight": -1} if rng.random() < 0.3 else {}
            slow.append({"_arrival": tick + rng.randrange(1, 5), "_replaces": tick + 1, "v": rng.randrange(4)} | weight)
        slow.sort(key=lambda row: (row["_arrival"], "_replaces" in row))
        places = {row["_tick"]: place for place, row in enumerate(slow, 1) if "_tick" in row}
        for row in slow:
            if "_replaces" in row:
                row["_replaces"] = places[row["_replaces"] - 1]
        road = [
            {"_tick": tick, "_site": site, "_arrival": tick + rng.randrange(3), "v": rng.randrange(4)}
            for tick in range(0, 12, 2)
            for site in (1, 2)
        ]
        outcome = agree(WAITING, {"road": sorted(road, key=lambda row: row["_arrival"]), "slow": slow}, [text])
        assert outcome.verdict == "agree", outcome.report

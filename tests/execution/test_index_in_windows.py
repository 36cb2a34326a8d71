"""Windows over a column `index`: answers do not depend on how deliveries are batched (semantics 14 on 1.5).

clock tick   10   11   12                13
delivered    a    b
enters                 a (index 1)       b (index 2)
window 10              [a 1, b null]     [a 1, b 2]     revised
"""

import numpy as np
import pytest

from acquisition.batch import Batch
from basestation.execution.engine import Engine
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.updates.update import EpochMark, TupleUpdates, WindowUpdate, split_singly

CATALOG = read_schema(
    "p: pushed (v:integer) wait 2 sec\n"
    "o: pushed (v:integer) wait 5 sec\n"
    "s: sensed (site:integer, v:integer) every 4 sec at sites 1, 2 wait 3 sec\n"
)
INNER = [
    "SELECT index AS x, v FROM p",
    "SELECT index AS x, v FROM p WHERE v > 1",
    "SELECT index AS x, v FROM s",
    "SELECT index AS x, v FROM (SELECT v FROM p UNION ALL SELECT v FROM o)",
    "SELECT index AS x, v FROM (ISTREAM(SELECT v FROM p [FROM NOW-3 TO NOW SLIDE 2 SEC]))",
]
OUTER = [
    "SELECT x, v FROM ({}) [FROM NOW-2 TO NOW SLIDE 5 SEC]",
    "SELECT COUNT(x) AS n, SUM(v) AS t FROM ({}) [FROM NOW-5 TO NOW SLIDE 3 SEC]",
    "SELECT x FROM ({}) [FROM NOW-1 TO NOW SLIDE 2 ROWS]",
    "ISTREAM(SELECT x, v FROM ({}) [FROM NOW-2 TO NOW SLIDE 5 SEC])",
    "DSTREAM(SELECT x, v FROM ({}) [FROM NOW-4 TO NOW SLIDE 2 SEC])",
]
END = 40


def deliveries(rng):
    """(extent, site, tick, arrival, v) of tuples that may be late, ahead of none."""
    found = []
    for _ in range(rng.randrange(3, 25)):
        extent, arrival = rng.choice("pos"), rng.randrange(1, 30)
        tick = max(0, arrival - rng.choice((0, 0, 0, 1, 2, 3, 6)))
        found.append(
            (extent, rng.choice((1, 2)), tick - tick % 4 if extent == "s" else tick, arrival, rng.randrange(4))
        )
    return sorted(found, key=lambda each: each[3])


def run(text, given, ends):
    """The updates of a query, each as one line, when the clock ticks of `ends` end."""
    engine, updates = Engine(CATALOG), []
    engine.add(0, bind_text(text, CATALOG)[0])
    before = -1
    for end in ends:
        for extent in "pos":
            rows = [row for row in given if row[0] == extent and before < row[3] <= end]
            if rows:
                site, tick, arrival, v = np.array([row[1:] for row in rows], np.int64).T
                columns = {"site": site, "v": v} if extent == "s" else {"v": v}
                engine.deliver(extent, Batch(tick, site, arrival, np.ones_like(tick), columns))
        updates += split_singly(engine.on_clock(end))
        before = end
    return [line for update in updates for line in lines(update)]


def lines(update):
    """The changes of an update, without how much of it comes at once."""
    if isinstance(update, WindowUpdate):
        return [(update.tick, update.n, update.revision, *map(sorted_rows, (update.removed, update.added)))]
    if isinstance(update, TupleUpdates):
        tags = update.tick.tolist(), update.index.tolist(), update.weight.tolist()
        return list(zip(*tags, update.rows.to_lists(), strict=True))
    assert isinstance(update, EpochMark)
    return [("epoch", update.tick)]


def sorted_rows(rows):
    return sorted(rows.to_lists(), key=repr)


def test_window_contains_null_until_the_tuple_gets_its_index():
    given = [("p", 1, 10, 10, 1), ("p", 1, 8, 11, 2)]
    text = "SELECT x, v FROM (SELECT index AS x, v FROM p) [FROM NOW-2 TO NOW SLIDE 10 SEC]"
    single = run(text, given, range(20))
    assert run(text, given, [19]) == single
    assert [line for line in single if line[0] == 10] == [
        (10, 1, 0, [], [(1, 1), (None, 2)]),
        (10, 1, 1, [(None, 2)], [(2, 2)]),
    ]


@pytest.mark.promise("live-is-replay")
@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("inner", INNER)
def test_batches_with_indexes_answer_as_single_ticks_do(inner, outer, rng, counts):
    text = outer.format(inner)
    for _ in range(counts(3, 60)):
        given = deliveries(rng)
        single = run(text, given, range(END + 1))
        assert run(text, given, [END]) == single
        cuts = sorted(rng.sample(range(END), 3))
        assert run(text, given, [*cuts, END]) == single

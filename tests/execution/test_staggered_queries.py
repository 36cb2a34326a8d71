"""Queries that begin at different ticks share their windows of time, and each has the updates that it has alone."""

import numpy as np
import pytest

from acquisition.batch import Batch
from basestation.execution.engine import Engine
from basestation.execution.snapshot import restore_engine, save_engine
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.replay.inputs import read_recording
from basestation.updates.update import PunctuationUpdate, WindowUpdates, split_by_query
from gateway.diagnostics import DiagnosticError
from tests.conftest import count_of
from tests.execution.test_sharing import FAR, JOIN, NEVER, ROWS, SHORT, Asked, Case, SeveralMaker, recorded

CATALOG = read_schema(
    "road: sensed (site:integer, v:integer) every 1 sec at sites 1, 2 late revise by 10 sec\n"
    "slow: pushed (v:integer) wait 4 sec late revise by 20 sec\n"
    "kinds: stored (v:integer, name:string)\n"
)
MANY = 20


def engine_apart(texts):
    """An engine to which one query more is added in each clock tick."""
    engine = Engine(CATALOG)
    engine.load("kinds", 0, bind_columns(v=[1, 2], name=["a", "b"]))
    for clock, text in enumerate(texts):
        engine.add(clock, bind_text(text, CATALOG)[0])
        engine.on_clock(clock)
    return engine


def bind_columns(**columns):
    recording = read_recording(
        CATALOG, {"kinds": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]}
    )
    [(_, found)] = recording.versions["kinds"]
    return found


def slow(rows, marks=()):
    """Rows (tick, arrival, v)."""
    tick, arrival, v = np.array(rows, np.int64).reshape(len(rows), 3).T
    return Batch(tick, 0 * tick, arrival, np.ones_like(tick), {"v": v}, marks=tuple(marks))


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize(
    "text",
    [
        f"SELECT v FROM road {SHORT}",
        f"SELECT v FROM road {SHORT} WHERE v > 2",
        JOIN.format(SHORT),
        f"SELECT v, COUNT(*) FROM road {SHORT} WHERE v > 2 GROUP BY v",
        f"SELECT kinds.name FROM road {SHORT}, kinds [SCAN 2 SEC] WHERE road.v = kinds.v",
        f"SELECT MAX(a.v) FROM road AS a {SHORT}, slow AS b {FAR} WHERE a.v = b.v",
        f"SELECT MEDIAN(v) FROM road {SHORT} FOR 5 SEC",
        f"SELECT v FROM road {SHORT} DELIVER WITHIN 2 SEC",
        f"SELECT v FROM slow {ROWS}",
        f"SELECT MAX(v) FROM road {ROWS} WHERE v > 1",
        f"SELECT COUNT(*) FROM road AS a {FAR}, slow AS b {ROWS} WHERE a.v = b.v",
        f"SELECT v, COUNT(*) FROM (SELECT v FROM road UNION ALL SELECT v FROM slow) AS u {SHORT} GROUP BY v",
        f"RSTREAM(SELECT v FROM road {SHORT})",
        f"ISTREAM({JOIN.format(SHORT)})",
        f"DSTREAM(SELECT v, COUNT(*) FROM road {SHORT} GROUP BY v)",
        f"ISTREAM(SELECT v FROM slow {ROWS}) FOR 5 SEC",
    ],
)
def test_queries_that_begin_apart_share_operators(text):
    assert len(engine_apart([text] * MANY)._graph) == len(engine_apart([text])._graph)


def test_queries_with_own_columns_share_all_but_member():
    text = f"SELECT a.v + {{}} AS k FROM road AS a {SHORT}, road AS b {SHORT} WHERE a.v = b.v"
    alone = len(engine_apart([text.format(0)])._graph)
    assert len(engine_apart([text.format(number) for number in range(MANY)])._graph) == alone + MANY - 1


def test_later_query_has_no_window_before_its_start():
    """The watermark of `slow` is four ticks behind the clock.

    clock      0    2    4    6    8    10
    first      w0   w2   w4   w6   w8   w10
    second               |    w6   w8   w10      added in clock tick 5
    """
    engine, found = Engine(CATALOG), {1: [], 2: []}
    text = "SELECT v FROM slow [FROM NOW-3 TO NOW SLIDE 2 SEC]"
    for clock in range(16):
        if clock in (0, 5):
            engine.add(1 if clock == 0 else 2, bind_text(text, CATALOG)[0])
        engine.deliver("slow", slow([(clock, clock, clock)]))
        for update in split_by_query(engine.on_clock(clock)):
            found[update.query] += zip(update.tick.tolist(), update.revision.tolist(), strict=True)
    assert found[1] == [(tick, 0) for tick in (0, 2, 4, 6, 8, 10)]
    assert found[2] == [(tick, 0) for tick in (6, 8, 10)]


def test_later_query_of_rows_begins_with_rows_that_wait():
    """Rows count from the query on if they have not entered yet: the watermark of `slow` is 2 at clock tick 6.

    row        1    2    3    4    5
    arrival    1    2    3    4    8
    second          |    w3   w4   w8      added in clock tick 7
    """
    engine, found = Engine(CATALOG), {1: [], 2: []}
    for clock in range(14):
        if clock in (0, 7):
            engine.add(1 if clock == 0 else 2, bind_text(f"SELECT v FROM slow {ROWS}", CATALOG)[0])
        if clock in (1, 2, 3, 4, 8):
            engine.deliver("slow", slow([(clock, clock, clock)]))
        for update in split_by_query(engine.on_clock(clock)):
            found[update.query] += zip(update.tick.tolist(), update.added.to_lists(), strict=False)
    assert [tick for tick, _ in found[1]] == [1, 2, 3, 4, 8]
    assert [tick for tick, _ in found[2]] == [3, 4, 8]


def test_later_product_begins_with_windows_of_all_inputs():
    """A window of rows before the query is not combined with its windows of time (4.2)."""
    engine, ticks = Engine(CATALOG), {1: [], 2: []}
    text = f"SELECT COUNT(*) FROM road {SHORT}, slow {ROWS}"
    for clock in range(20):
        if clock in (0, 9):
            engine.add(1 if clock == 0 else 2, bind_text(text, CATALOG)[0])
        if clock in (1, 12):
            engine.deliver("slow", slow([(clock, clock, clock)]))
        for update in split_by_query(engine.on_clock(clock)):
            ticks[update.query] += update.tick.tolist()
    assert ticks[1] == list(range(1, 16)) and ticks[2] == list(range(12, 16))


def test_first_step_of_query_may_have_corrections():
    engine = Engine(CATALOG)
    engine.add(1, bind_text("SELECT COUNT(*) FROM slow [FROM NOW-1 TO NOW SLIDE 2 SEC]", CATALOG)[0])
    engine.deliver("slow", slow([(0, 0, 1), (1, 1, 1), (2, 2, 1), (2, 12, 1), (8, 13, 1)]))
    found = [(u.tick.tolist(), u.revision.tolist(), u.added.to_lists()) for u in split_by_query(engine.on_clock(13))]
    assert found == [([0, 2, 4, 6, 2, 8, 8], [0, 0, 0, 0, 1, 0, 1], [(1,), (2,), (0,), (0,), (3,), (0,), (1,)])]


def test_revision_of_earlier_window_is_not_for_later_query():
    engine, found = Engine(CATALOG), []
    text = "SELECT v FROM slow [FROM NOW-1 TO NOW SLIDE 1 SEC]"
    engine.add(1, bind_text(text, CATALOG)[0])
    engine.on_clock(12)
    engine.add(2, bind_text(text, CATALOG)[0])
    engine.on_clock(20)
    engine.deliver("slow", slow([(12, 21, 7)]))  # late: in the windows at 12 and 13
    for update in split_by_query(engine.on_clock(21)):
        [rows] = [update.added.to_lists()]
        found.append((update.query, update.tick.tolist(), update.revision.tolist(), rows))
    late = [each for each in found if any(each[2])]
    assert late == [(1, [12, 13], [1, 1], [(7,), (7,)]), (2, [13], [1], [(7,)])]


def test_mark_that_waits_is_not_for_later_query():
    engine, marks = Engine(CATALOG), []
    text = f"SELECT v FROM slow {SHORT}"
    engine.add(1, bind_text(text, CATALOG)[0])
    engine.deliver("slow", slow([(2, 2, 1)], [(1, "a")]))
    engine.on_clock(2)
    engine.add(2, bind_text(text, CATALOG)[0])
    engine.deliver("slow", slow([(3, 3, 1)], [(1, "b")]))
    for clock in range(3, 12):
        marks += [
            (u.query, u.value) for u in split_by_query(engine.on_clock(clock)) if isinstance(u, PunctuationUpdate)
        ]
    assert sorted(marks) == [(1, "a"), (1, "b"), (2, "b")]


def test_query_with_end_shares_windows_of_query_without():
    queries = [
        Asked(f"SELECT v FROM road {SHORT} FOR 10 SEC", 3),
        Asked(f"SELECT v FROM road {SHORT}", 20),
        Asked(f"SELECT v FROM road {SHORT} FOR 4 SEC", 40),
    ]
    Case(recorded(61), queries).check(tidy_every=1)


def test_restored_engine_remembers_ticks_of_each_query():
    text = JOIN.format(SHORT)
    engine, again = engine_apart([text] * 3), None
    again = restore_engine(save_engine(engine))
    said = [
        [(u.query, u.tick.tolist()) for u in split_by_query(each.on_clock(6)) if isinstance(u, WindowUpdates)]
        for each in (engine, again)
    ]
    assert said[0] == said[1] and len(said[0]) == 3


class ApartMaker(SeveralMaker):
    """Related queries over few kinds of windows, of which each begins and ends at any tick."""

    def window(self):
        if self.chance(0.4):
            return f"[FROM NOW-{self.rng.randint(0, 9)} TO NOW SLIDE 1 ROW]"
        return super().window()

    def several(self):
        texts = [*self.related()]
        return self.rng.choices(texts, k=6)


def generated(seed, maker=ApartMaker):
    make = maker(seed)
    catalog = read_schema(make.schema())
    recording = read_recording(catalog, make.inputs())
    corrections = {clock: bind_text(text, catalog) for text, clock in make.statements()}
    queries = []
    for text in make.several():
        comes = make.rng.randint(0, make.end)
        goes = make.pick(NEVER, make.rng.randint(comes + 1, make.end + 2))
        try:
            bind_text(text, catalog)
        except DiagnosticError:
            continue
        queries.append(Asked(text, comes, goes))
    return Case(recording, queries, corrections)


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize("shard", range(count_of(2, 20)))
def test_query_that_begins_apart_gives_updates_of_query_alone(shard, rng):
    for _ in range(count_of(2, 4)):
        seed = rng.randrange(2**32)
        what = generated(seed).difference(tidy_every=rng.choice((1, 5, NEVER)))
        assert what is None, f"case {seed}: {what}"

"""Partial states instead of readings: an aggregation fed by a fold answers as it would from the readings in them."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.batch import Batch
from acquisition.schedule import Sampling, Schedule, channel_of
from acquisition.ticks import EpochGrid
from basestation.execution.engine import Engine
from basestation.execution.ingest.partial_batch import PartialBatch
from basestation.execution.plan_checks import StartBeforeRecordError
from basestation.execution.snapshot import restore_engine, save_engine
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.planner.partial_source import PartialSource
from basestation.planner.pushdown import plan_pushdown
from basestation.planner.rewriter import rewrite
from basestation.results.view import current_windows
from basestation.updates.update import WindowUpdate, split_singly
from gateway.frame import Frame, FrameKind, MoteId
from innet.operators.acquire import find_acquires
from innet.payload import decode_partial_frames, encode_partials
from innet.placement.placement import PlacedOperator, extents_of, select_sites
from innet.program.compiler import compile_programs
from innet.program.interpreter import TickSample, run
from innet.program.table_memory import TableMemory

SITES, WAIT, HORIZON = (4, 3, 9), 7, 20
SCHEMA = f"""
field: sensed (site:integer, temp:float {{scale 1}}, hum:integer) every 5 sec at sites 4, 3, 9
    wait {WAIT} sec late revise by {HORIZON} sec
near: sensed (site:integer, temp:float {{scale 1}}, hum:integer) every 5 sec at sites 4, 3, 9
    wait {WAIT} sec late revise by {HORIZON} sec
brief: sensed (site:integer, temp:float {{scale 1}}, hum:integer) every 5 sec at sites 4, 3, 9 wait {WAIT} sec late drop
"""
CATALOG = read_schema(SCHEMA)
QUERIES = [
    "SELECT COUNT(*) AS n, AVG(temp) AS a FROM field [FROM NOW-10 TO NOW SLIDE 5 SEC]",
    "SELECT COUNT(*) AS n, SUM(hum) AS s, MIN(temp) AS a, MAX(hum) AS b FROM field [FROM NOW-7 TO NOW-2 SLIDE 3 SEC] WHERE temp > 0",
    "SELECT site, STDEV(temp) AS s, FIRST(hum) AS f FROM field [FROM NOW-19 TO NOW SLIDE 10 SEC] GROUP BY site",
    "SELECT hum, COUNT(temp) AS n, LAST(temp) AS l FROM field [FROM NOW-14 TO NOW SLIDE 15 SEC] WHERE site < 9 GROUP BY hum",
    "SELECT COUNT(*) AS n, SUM(temp) AS s FROM field [UNBOUNDED SLIDE 10 SEC]",
    "SELECT VARIANCE(hum) AS v FROM field [FROM NOW-20 TO NOW SLIDE 20 SEC] ACQUIRE EVERY 10 SEC",
    "SELECT AVG(m) AS m FROM (RSTREAM(SELECT MAX(temp) AS m FROM field [FROM NOW-9 TO NOW SLIDE 10 SEC]))"
    " [FROM NOW-20 TO NOW SLIDE 20 SEC]",
    "SELECT COUNT(*) AS n, MAX(temp) AS a FROM brief [NOW]",
    "SELECT COUNT(*) AS n, SUM(hum) AS s FROM field [FROM NOW-5 TO NOW SLIDE 20 SEC]",
    "SELECT b.hum, COUNT(*) AS n, SUM(a.temp) AS s, MAX(b.hum) AS m FROM"
    " (SELECT tick AS t, site AS w, temp FROM field) a [FROM NOW-10 TO NOW SLIDE 15 SEC],"
    " (SELECT tick AS t, site AS w, temp, hum FROM near) b [FROM NOW-10 TO NOW SLIDE 15 SEC]"
    " WHERE a.t = b.t AND a.w = b.w AND b.temp > -3 AND a.temp >= b.temp GROUP BY b.hum",
]
LAST = 40
KEYS = [(tick, site) for tick in range(0, LAST, 5) for site in SITES]
VALUE = st.none() | st.integers(-4, 4)
COMING = st.dictionaries(st.sampled_from(KEYS), st.tuples(st.integers(0, 4), VALUE, VALUE))
LATER = 6
"""Of each reading that does not get lost: with which others of its slice it is merged, and its values. Each partial comes so
much later than the one before."""


@dataclass
class FedQuery:
    """A query, the fold that may feed it, and the partials that motes make of readings."""

    text: str
    number: int = 1
    now: int = 0
    plan: object = field(init=False)
    fed: PartialSource = field(init=False)

    def __post_init__(self):
        self.plan = bind_text(self.text, CATALOG)[0]
        [feed] = plan_pushdown(self.plan, rewrite(self.plan)[0].root).fold_candidates
        self.fed = PartialSource(feed.node, feed.fold, self.number, feed.sources)
        self.placed = PlacedOperator(feed.fold, select_sites(feed.fold, SITES), self.number, room=255)

    @property
    def slices(self):
        return self.fed.fold.slices

    @property
    def extents(self):
        """That whose sampling the fold belongs to first."""
        return extents_of(self.fed.fold)

    def begin(self, slice):
        """The first tick of a slice at which something is due."""
        interval = self.fed.fold.interval
        return max(-(-self.slices.begin(slice) // interval) * interval, 0)

    def partials(self, rows, clock):
        """The partials that motes make of readings (tick, site, temp, hum)."""
        names = [find_acquires(self.fed.fold)[extent].sampled for extent in self.extents]
        samplings = tuple(
            Sampling(number, name, EpochGrid(0, 5), tuple(channel_of(CATALOG.find(name).schema.find(n)) for n in of))
            for number, (name, of) in enumerate(zip(self.extents, names, strict=True))
        )
        schedules = [Schedule(s, 1, samplings) for s in SITES]
        programs = {p.site: p for p in compile_programs([self.placed], schedules) if not p.sampling}
        memory = TableMemory()
        memory.install(programs.values())
        for tick, site, *values in rows:
            if site in programs:
                known = dict(zip(("temp", "hum"), values, strict=True))
                taken = {number: [known[name] for name in of] for number, of in enumerate(names)}
                run(programs[site], TickSample(tick, taken[0], taken), memory)
        found = [partial for _, partial in memory.take(10**6)]
        frames = [Frame(FrameKind.PARTIAL, MoteId(3), 1, seq, payload)
                  for seq, payload in enumerate(encode_partials(self.placed.shape, found))]  # fmt: skip
        decoded, errors = decode_partial_frames(frames, {self.number: self.placed.shape})
        assert not errors
        return [PartialBatch.from_frames(each, clock) for each in decoded]

    def merged(self, coming):
        """{clock: readings} of what is merged: together, at the earliest when the slice is over."""
        found = {}
        for (tick, site), (part, *values) in sorted(coming.items()):
            folded = tick % self.fed.fold.interval == 0 and self.slices.is_in_windows(self.slices.number(tick))
            if folded and site in self.placed.sites:
                slice = self.slices.number(tick)
                over = self.begin(slice + 1) - self.fed.fold.interval + 1
                found.setdefault((over + LATER * part, slice, part), []).append((tick, site, *values))
        return found


def batch(rows, clock):
    columns = list(zip(*rows, strict=True))
    tick, site = (np.array(column, np.int64) for column in columns[:2])
    values = {
        name: np.array([v or 0 for v in of], np.int64) for name, of in zip(("temp", "hum"), columns[2:], strict=True)
    }
    valid = {name: np.array([v is not None for v in of]) for name, of in zip(("temp", "hum"), columns[2:], strict=True)}
    none = np.zeros(len(rows), np.int64)
    return Batch(tick, site, none + clock, none + 1, values, valid)


def collect_updates(fed_query, coming, by_partials, steps=1, anew=False, until=LAST + 45):
    """(clock, update) of all updates; readings are delivered in the clock ticks of their partials, and are lost with them."""
    engine, found = Engine(CATALOG, live=True, tidy_every=1 if by_partials else 64), []
    fold = fed_query.fed.fold
    engine.add(fed_query.number, fed_query.plan, *(((fed_query.fed,), {fed_query.number: fold}) if by_partials else ()))
    extent, merged = CATALOG.find(fold.extent), fed_query.merged(coming)
    for clock in range(until):
        for (came, slice, _), rows in merged.items():
            if came != clock:
                continue
            beyond = extent.horizon is not None and clock - fed_query.begin(slice) > max(extent.horizon, WAIT)
            if by_partials:
                for each in fed_query.partials(rows, clock):
                    engine.deliver(fed_query.number, each)
            elif not beyond:  # of one partial all readings are, if the first tick of its slice is
                for name in fed_query.extents:
                    engine.deliver(name, batch(rows, clock))
        if clock % steps == 0:
            found += [(clock, update) for update in split_singly(engine.on_clock(clock))]
            engine = restore_engine(save_engine(engine)) if anew else engine
    return found, [engine.ledger()[name] for name in fed_query.extents]


def windows(found):
    """The final rows, in no order, and the coverage of each window."""
    return {(w.tick, w.n): (Counter(map(str, w.rows.to_lists())), dict(w.coverage))
            for w in current_windows(update for _, update in found)}  # fmt: skip


@pytest.mark.promise("placement")
@given(COMING, st.sampled_from(QUERIES), st.sampled_from([(1, False), (4, False), (20, True)]))
def test_partial_states_answer_as_their_readings_do(coming, text, how):
    fed_query, (steps, anew) = FedQuery(text), how
    expected, here = collect_updates(fed_query, coming, False)
    found, there = collect_updates(fed_query, coming, True, steps, anew)
    if steps > 1:  # the last of it was asked earlier
        until = max((clock for clock, _ in found), default=0)
        found, expected = ([(c, u) for c, u in of if u.tick <= until - WAIT - 20] for of in (found, expected))
    assert windows(found) == windows(expected)
    for merged, collected in zip(there, here, strict=True):
        assert merged.get("received", 0) - merged.get("beyond horizon", 0) == collected.get("received", 0)
        assert merged.get("accepted", 0) + merged.get("filtered", 0) == collected.get("accepted", 0)


@pytest.mark.promise("placement")
@given(COMING, st.sampled_from(QUERIES))
def test_window_of_partials_waits_no_longer_than_wait(coming, text):
    """A window is answered when its slices are whole, or their time is over; each once."""
    found, _ = collect_updates(FedQuery(text), coming, True)
    first = {}
    for clock, update in found:
        if isinstance(update, WindowUpdate):
            assert (update.revision == 0) == ((update.tick, update.n) not in first)
            first.setdefault((update.tick, update.n), clock)
    assert first
    assert all(tick <= clock <= tick + WAIT for (tick, _), clock in first.items())


@pytest.mark.promise("placement")
def test_complete_slice_is_answered_at_once():
    fed_query = FedQuery(QUERIES[0])
    coming = {key: (0, 1, 1) for key in KEYS}
    first = {u.tick: clock for clock, u in collect_updates(fed_query, coming, True)[0] if u.revision == 0}
    # Slices of one reading are over a tick after it.
    assert [first[tick] - tick for tick in range(10, LAST - 5, 5)] == [1] * len(range(10, LAST - 5, 5))
    del coming[30, 3]
    first = {u.tick: clock for clock, u in collect_updates(fed_query, coming, True)[0] if u.revision == 0}
    assert (first[25] - 25, first[30] - 30, first[35] - 35) == (1, WAIT, 2)


@pytest.mark.promise("queries-apart")
def test_readings_before_a_fold_count_as_missing():
    """Another query has the extent sampled already when it comes."""
    engine = Engine(CATALOG, live=True)
    engine.add(7, bind_text("SELECT site, temp FROM field", CATALOG)[0])
    engine.on_clock(23)
    fed_query = FedQuery("SELECT COUNT(*) AS n FROM field [FROM NOW-19 TO NOW SLIDE 20 SEC]")
    engine.add(fed_query.number, fed_query.plan, (fed_query.fed,), {fed_query.number: fed_query.fed.fold})
    for tick in (25, 40, 45, 60):
        for each in fed_query.partials([(tick, site, 1, 1) for site in SITES], tick + 2):
            engine.deliver(fed_query.number, each)
    found = [u for u in split_singly(engine.on_clock(90)) if u.query == fed_query.number]
    # Slices begin at 25, 45, …; that of 25 begins after the query was asked, at 24.
    assert [(u.tick, u.added.to_lists(), u.coverage["field"]) for u in found] == [
        (40, [(6,)], (6, 12)), (60, [(6,)], (6, 12)), (80, [(0,)], (0, 12)),
    ]  # fmt: skip
    late = FedQuery("SELECT COUNT(*) AS n FROM field [FROM NOW-19 TO NOW SLIDE 20 SEC]", number=2)
    engine.on_clock(95)
    engine.add(2, late.plan, (late.fed,), {2: late.fed.fold})
    for each in late.partials([(95, site, 1, 1) for site in SITES] + [(105, 3, 1, 1)], 121):
        engine.deliver(2, each)
    found = [u for u in split_singly(engine.on_clock(150)) if u.query == 2]
    assert [(u.tick, u.added.to_lists(), u.coverage["field"]) for u in found] == [
        (100, [(0,)], (0, 12)), (120, [(1,)], (1, 12)), (140, [(0,)], (0, 12)),
    ]  # fmt: skip
    assert engine.ledger()["field"]["rejected: off the schedule"] == 3


def test_later_query_gets_all_partials_of_its_fold():
    engine = Engine(CATALOG, live=True)
    fed_query = FedQuery(QUERIES[0])
    engine.add(1, fed_query.plan, (fed_query.fed,), {1: fed_query.fed.fold})
    for tick in range(0, 30, 5):
        for each in fed_query.partials([(tick, site, 1, 1) for site in SITES], tick + 1):
            engine.deliver(1, each)
        engine.on_clock(tick + 2)
    other = FedQuery("SELECT SUM(temp) AS s FROM field [FROM NOW-10 TO NOW SLIDE 5 SEC]")  # in the same fold
    engine.add(2, other.plan, (other.fed,))
    for each in fed_query.partials([(30, site, 1, 1) for site in SITES], 31):
        engine.deliver(1, each)
    said_now = split_singly(engine.on_clock(31))
    assert [(u.query, u.tick, u.added.to_lists(), u.coverage["field"]) for u in said_now] == [
        (1, 30, [(9, 0.1)], (9, 9)),
        (2, 30, [(0.9,)], (9, 9)),
    ]


def test_query_cannot_begin_before_its_fold():
    engine = Engine(CATALOG, live=True)
    fed_query = FedQuery(QUERIES[0])
    engine.add(1, fed_query.plan, (fed_query.fed,), {1: fed_query.fed.fold})
    for each in fed_query.partials([(10, 4, 1, 1)], 11):
        engine.deliver(1, each)
    engine.on_clock(20)
    with pytest.raises(StartBeforeRecordError) as caught:
        engine.add(2, bind_text("SELECT temp FROM field [NOW] SINCE 5", CATALOG)[0])
    assert caught.value.first == 11


@pytest.mark.promise("queries-apart")
def test_partials_are_dropped_when_no_window_reaches_them():
    fed_query = FedQuery(QUERIES[0])
    engine = Engine(CATALOG, live=True, tidy_every=1)
    engine.add(1, fed_query.plan, (fed_query.fed,), {1: fed_query.fed.fold})
    sizes = []
    for tick in range(0, 2_000, 5):
        for each in fed_query.partials([(tick, site, tick % 7, 1) for site in SITES], tick + 1):
            engine.deliver(1, each)
        engine.on_clock(tick + 2)
        sizes.append(len(save_engine(engine)))
    assert max(sizes[200:]) <= 1.02 * max(sizes[50:200])

"""The rules of semantics 1.1, 1.5 and 12 one by one, with expectations worked out by hand; and the engine live.

tests/agreement compares the engine with an oracle on whole queries; here stands what a deployment leans on.
"""

import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.batch import Batch
from acquisition.extent import Catalog
from basestation.execution.engine import Engine
from basestation.execution.ingest import intake
from basestation.execution.plan_checks import UnsupportedPlanError
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.results.view import current_tuples, current_windows
from basestation.updates.update import EpochMark, TupleUpdates, WindowUpdate, split_singly

SCHEMA = "field: sensed (site:integer, temp:float {scale 1}) every 5 sec at sites 4, 3 wait 7 sec late revise by 20 sec"
CATALOG = read_schema(SCHEMA)
EVERY_TICK = read_schema("field: sensed (site:integer, temp:float {scale 1}) every 1 sec at sites 4, 3 wait 1 sec")
NOON = 1_763_467_200  # 2025-11-18 12:00 UTC, a multiple of every interval and slide here


def plan(text, catalog=CATALOG):
    return bind_text(text, catalog)[0]


def readings(*triples, base=0):
    """A batch of (tick, site, multiple of 0.1 or None)."""
    tick, site, temp = (list(column) for column in zip(*triples, strict=True))
    there = np.array([value is not None for value in temp])
    size = len(tick)
    columns = {"temp": np.array([value or 0 for value in temp], np.int64)}
    valid = {} if there.all() else {"temp": there}
    none = np.zeros(size, np.int64)
    return Batch(np.array(tick, np.int64) + base, np.array(site, np.int64), none, none + 1, columns, valid)


class Run:
    """An engine, and the scales of its queries' columns so that rows can be read."""

    def __init__(self, *texts, catalog=CATALOG, begun=0, live=False):
        self.engine, self.catalog, self.begun = Engine(catalog, begun=begun, live=live), catalog, begun
        self.scales, self.said = {}, []
        for number, text in enumerate(texts, 1):
            self.add(number, text)

    def add(self, number, text):
        bound = plan(text, self.catalog)
        self.engine.add(number, bound)
        self.scales[number] = [column.scale for column in bound.root.columns]

    def deliver(self, *triples):
        self.engine.deliver("field", readings(*triples, base=self.begun))

    def until(self, clock, deliveries=None):
        """End the clock ticks up to one, and return [(clock, update)], ticks counted from `begun`."""
        found = []
        for tick in range(self.engine.clock + 1 - self.begun, clock + 1):
            if deliveries and tick in deliveries:
                self.deliver(*deliveries[tick])
            found += [(tick, update) for update in split_singly(self.engine.on_clock(tick + self.begun))]
        self.said += [update for _, update in found]
        return found

    def rows(self, update):
        return update.added.to_lists(self.scales[update.query])

    def windows(self, number=1):
        return current_windows(u for u in self.said if u.query == number)

    def ledger(self):
        return {what: count for what, count in self.engine.ledger()["field"].items() if count}


def play(text, deliveries, until, **more):
    """(run, updates) for `deliveries` {clock: [(tick, site, temp)]}."""
    run = Run(text, **more)
    return run, run.until(until, deliveries)


# --- watermarks, late readings, the ledger -----------------------------------------------------------------------------


@pytest.mark.promise("clock-and-schedule")
def test_complete_window_is_answered_at_once():
    run, out = play("SELECT temp FROM field [NOW]", {1: [(0, 3, 1), (0, 4, 2)], 6: [(5, 3, 3)], 13: [(10, 4, 4)]}, 20)
    assert [(clock, u.tick, u.revision, u.coverage["field"], run.rows(u)) for clock, u in out] == [
        (1, 0, 0, (2, 2), [(0.2,), (0.1,)]),  # complete; rows in the declared order of sites
        (12, 5, 0, (1, 2), [(0.3,)]),  # site 4 was waited for, 7 ticks
        (17, 10, 0, (1, 2), [(0.4,)]),
    ]


def test_silent_mote_delays_window_by_wait_only():
    deliveries = {tick: [(tick, 3, 1)] for tick in range(0, 101, 5)}
    _, out = play("SELECT temp FROM field [NOW]", deliveries, 107)
    assert [(clock, u.tick, u.coverage["field"]) for clock, u in out] == [(t + 7, t, (1, 2)) for t in range(0, 101, 5)]


@pytest.mark.promise("clock-and-schedule")
def test_mote_clock_ahead_closes_no_window():
    deliveries = {0: [(0, 3, 1), (5, 3, 2)], 1: [(0, 4, 3)]}
    _, out = play("SELECT temp FROM field [NOW]", deliveries, 11)
    assert [(clock, u.tick, u.coverage["field"]) for clock, u in out] == [(1, 0, (2, 2))]


@pytest.mark.promise("late-readings")
def test_late_reading_revises_every_window_with_its_tick():
    deliveries = {0: [(0, 3, 1)], 5: [(5, 3, 2)], 10: [(10, 3, 3)], 20: [(5, 4, 9)]}
    run, out = play("SELECT temp FROM field [FROM NOW-5 TO NOW SLIDE 5 SEC]", deliveries, 21)
    late = [(u.tick, u.revision, u.coverage["field"], run.rows(u), len(u.removed)) for clock, u in out if clock == 20]
    assert late == [(5, 1, (3, 4), [(0.9,)], 0), (10, 1, (3, 4), [(0.9,)], 0)]


def test_revised_average_retracts_old_one():
    deliveries = {0: [(0, 3, 10)], 15: [(0, 4, 20)]}
    run, out = play("SELECT AVG(temp) AS mean, COUNT(*) AS n FROM field [NOW]", deliveries, 15)
    first, revision = (u for _, u in out if u.tick == 0)
    assert (run.rows(first), first.coverage) == ([(1.0, 1)], {"field": (1, 2)})
    assert (revision.removed.to_lists(), run.rows(revision)) == ([(1.0, 1)], [(1.5, 2)])
    assert (revision.revision, revision.coverage) == (1, {"field": (2, 2)})


def test_reading_at_watermark_tick_is_late():
    """Tick 0 has waited its one tick at the end of clock tick 1, and is the watermark itself."""
    run, out = play("SELECT temp FROM field [NOW]", {0: [(0, 3, 1)], 2: [(0, 4, 2)]}, 2, catalog=EVERY_TICK)
    assert [(clock, u.tick, u.revision, u.coverage["field"]) for clock, u in out] == [
        (1, 0, 0, (1, 2)),
        (2, 0, 1, (2, 2)),
        (2, 1, 0, (0, 2)),
    ]
    assert run.ledger()["late"] == 1


@pytest.mark.promise("late-readings")
def test_deliveries_of_one_clock_tick_are_one_revision():
    run = Run("SELECT temp FROM field [NOW]")
    run.until(11)
    run.deliver((0, 3, 1))
    run.deliver((0, 4, 2))
    assert [(u.tick, u.revision, u.coverage["field"]) for _, u in run.until(12)] == [(0, 1, (2, 2)), (5, 0, (0, 2))]


@pytest.mark.promise("ledger")
def test_ledger_counts_fate_of_every_reading():
    deliveries = {
        5: [(5, 3, 1), (5, 3, 1), (5, 4, 2)],  # the second is a copy
        6: [(5, 4, 3), (5, 7, 1), (6, 3, 1), (15, 3, 1)],  # conflict, no such site, no such tick, ahead of one interval
        30: [(10, 3, 1), (5, 3, 1), (0, 3, 1)],  # late by the horizon of 20, a copy, and beyond the horizon
    }
    run, out = play("SELECT temp FROM field [NOW]", deliveries, 30)
    assert run.ledger() == {
        "received": 10, "accepted": 3, "late": 2, "duplicate": 2, "conflict": 1, "rejected: off the schedule": 2,
        "ahead": 1, "beyond horizon": 1}  # fmt: skip
    counts = Counter(run.ledger())
    told = counts.total() - counts["received"] - counts["late"]  # law 3: none is lost; late ones are counted twice
    assert told == counts["received"] == sum(len(found) for found in deliveries.values())
    assert [(u.tick, u.revision) for clock, u in out if clock == 30 and u.revision] == [(10, 1)]


def test_first_of_conflicting_readings_is_kept():
    run, _ = play("SELECT temp FROM field [NOW]", {0: [(0, 3, 1)], 1: [(0, 3, 2), (0, 4, 5)]}, 1)
    assert [w.rows.to_lists([1]) for w in run.windows()] == [[(0.5,), (0.1,)]]


def test_coarser_interval_reads_multiples_only():
    deliveries = {tick: [(tick, 3, tick), (tick, 4, tick)] for tick in range(0, 21, 5)}
    text = "SELECT temp FROM field [FROM NOW-9 TO NOW SLIDE 10 SEC] ACQUIRE EVERY 10 SEC"
    run, out = play(text, deliveries, 20)
    assert [(u.tick, u.coverage["field"], run.rows(u)) for _, u in out] == [
        (0, (2, 2), [(0.0,), (0.0,)]),
        (10, (2, 2), [(1.0,), (1.0,)]),
        (20, (2, 2), [(2.0,), (2.0,)]),
    ]


def test_skipped_clock_ticks_answer_all_windows():
    engine = Engine(CATALOG)
    engine.add(1, plan("SELECT temp FROM field [NOW]"))
    assert [u.tick for u in split_singly(engine.on_clock(23))] == [0, 5, 10, 15]
    with pytest.raises(ValueError, match="after 23, which has ended"):
        engine.on_clock(23)


# --- streams -----------------------------------------------------------------------------------------------------------


def test_stream_gives_entering_tuples_and_epoch_marks():
    deliveries = {0: [(0, 3, 1), (0, 4, 2)], 5: [(5, 3, 3)], 14: [(5, 4, 4)]}
    run, out = play("SELECT site, temp FROM field", deliveries, 17)
    tuples = [(clock, u.tick.tolist(), u.index.tolist(), u.weight.tolist(), u.rows.to_lists([None, 1]))
              for clock, u in out if isinstance(u, TupleUpdates)]  # fmt: skip
    assert tuples == [
        (0, [0, 0], [1, 2], [1, 1], [(4, 0.2), (3, 0.1)]),
        (12, [5], [3], [1], [(3, 0.3)]),
        (17, [5], [4], [1], [(4, 0.4)]),  # late: arrival 14, which the watermark reaches when 10 is over
    ]
    assert [(clock, u.tick, u.coverage["field"]) for clock, u in out if isinstance(u, EpochMark)] == [
        (0, 0, (2, 2)), (12, 5, (1, 2)), (14, 5, (2, 2)), (17, 10, (0, 2))]  # fmt: skip
    now = current_tuples(run.said)
    assert (now.index.tolist(), now.tick.tolist()) == ([1, 2, 3, 4], [0, 0, 5, 5])


def test_deleted_reading_is_retracted_everywhere():
    run = Run("SELECT site, temp FROM field", "SELECT SUM(temp) AS s FROM field [NOW]")
    run.until(1, {0: [(0, 3, 1), (0, 4, 2)]})
    run.engine.correct(bind_text("DELETE FROM field WHERE site = 3", CATALOG)[0])
    stream, mark, window = (u for _, u in run.until(2))
    assert (stream.index.tolist(), stream.weight.tolist(), stream.rows.to_lists([None, 1])) == ([2], [-1], [(3, 0.1)])
    assert (window.removed.to_lists(), window.added.to_lists()) == ([(0.3,)], [(0.2,)])
    assert mark.coverage == window.coverage == {"field": (1, 2)}
    assert current_tuples(u for u in run.said if u.query == 1).index.tolist() == [1]


# --- live --------------------------------------------------------------------------------------------------------------


def test_live_query_starts_on_next_grid_tick():
    run = Run(begun=NOON, live=True)
    run.until(11)
    run.add(1, "SELECT temp FROM field [FROM NOW-20 TO NOW SLIDE 10 SEC]")  # accepted in tick 12: due from 15 on
    assert [(clock, u.tick - NOON, u.coverage["field"]) for clock, u in run.until(47)] == [
        (27, 20, (0, 4)), (37, 30, (0, 8)), (47, 40, (0, 10))]  # fmt: skip
    run.add(2, "SELECT temp FROM field [FROM NOW-60 TO NOW SLIDE 10 SEC]")
    assert [(u.tick - NOON, u.coverage["field"]) for _, u in run.until(57) if u.query == 2] == [(50, (0, 16))]


def test_live_extent_is_not_due_before_first_query():
    run = Run(begun=NOON, live=True)
    run.until(3)
    run.deliver((0, 3, 1), (5, 3, 1))
    run.until(4)
    assert run.ledger() == {"received": 2, "rejected: off the schedule": 2}


def test_later_query_answers_with_held_readings():
    deliveries = {tick: [(tick, 3, tick), (tick, 4, 1)] for tick in range(0, 41, 5)}
    run = Run("SELECT temp FROM field [NOW]", begun=NOON, live=True)
    run.until(22, deliveries)
    run.add(2, "SELECT COUNT(*) AS n, MAX(temp) AS top FROM field [FROM NOW-20 TO NOW SLIDE 10 SEC] WHERE site = 3")
    run.add(3, "SELECT COUNT(*) AS n FROM field [FROM NOW-2 TO NOW SLIDE 3 ROWS]")
    run.add(4, "SELECT site, temp FROM field")
    run.add(5, "SELECT COUNT(*) AS n FROM field [UNBOUNDED SLIDE 10 SEC]")
    said = [u for _, u in run.until(40, deliveries)]

    def of(number, kind=WindowUpdate):
        return [u for u in said if u.query == number and isinstance(u, kind)]

    assert [(u.tick - NOON, u.coverage["field"], run.rows(u)) for u in of(2)] == [
        (30, (10, 10), [(5, 3.0)]), (40, (10, 10), [(5, 4.0)])]  # fmt: skip
    # Row 1 is the first reading of 25; those of 20 are rows -1 and 0, and the window of row 3 has rows 1 to 3.
    assert [(u.tick - NOON, u.n, run.rows(u)) for u in of(3)] == [(30, 1, [(3,)]), (35, 1, [(3,)])]
    # The stream goes on where the extent's indexes are, and tells nothing of before.
    assert [u.index.tolist() for u in of(4, TupleUpdates)] == [[11, 12], [13, 14], [15, 16], [17, 18]]
    assert [u.tick - NOON for u in of(4, EpochMark)] == [25, 30, 35, 40]
    # A landmark window begins with its query.
    assert [(u.tick - NOON, run.rows(u), u.coverage["field"]) for u in of(5)] == [
        (30, [(4,)], (4, 4)), (40, [(8,)], (8, 8))]  # fmt: skip


def test_rows_before_query_have_numbers_below_one():
    run = Run("SELECT temp FROM field [NOW]", begun=NOON, live=True)
    run.until(8, {0: [(0, 4, 1), (0, 3, 2)], 5: [(5, 4, 3), (5, 3, 4)]})
    run.add(2, "SELECT temp FROM field [FROM NOW-2 TO NOW SLIDE 1 ROW]")
    said = [u for _, u in run.until(10, {10: [(10, 4, 5), (10, 3, 6)]}) if u.query == 2]
    assert [run.rows(u) for u in said] == [[(0.3,), (0.4,), (0.5,)], [(0.4,), (0.5,), (0.6,)]]


def test_queries_can_be_added_and_removed_any_time():
    run = Run("SELECT temp FROM field [NOW]")
    run.until(8)
    run.add(2, "SELECT site FROM field [NOW]")
    with pytest.raises(ValueError, match="query 2 runs already"):
        run.add(2, "SELECT site FROM field [NOW]")
    assert [(u.query, u.tick) for _, u in run.until(17)] == [(1, 5), (1, 10), (2, 10)]
    run.engine.remove(1)
    assert [(u.query, u.tick) for _, u in run.until(22)] == [(2, 15)]
    with pytest.raises(KeyError):
        run.engine.remove(1)
    with pytest.raises(KeyError, match="road"):
        run.engine.deliver("road", readings((0, 3, 1)))


@pytest.mark.promise("bounded-memory")
def test_state_is_bounded_by_horizon_and_window_range(monkeypatch):
    """As much is held at the end as halfway."""
    monkeypatch.setattr(intake, "KEPT_MS", 50_000)
    run = Run(
        "SELECT temp FROM field [FROM NOW-10 TO NOW SLIDE 5 SEC]",
        "SELECT SUM(temp) AS s FROM field [FROM NOW-3 TO NOW SLIDE 2 ROWS]",
        "SELECT a.temp, b.temp FROM field [NOW] a, field [FROM NOW-60 TO NOW SLIDE 60 SEC] b",
        begun=NOON,
        live=True,
    )
    sizes = []
    for clock in range(0, 4_000, 5):
        run.deliver((clock, 3, clock % 7), (clock, 4, 1))
        run.engine.on_clock(clock + NOON)
        if clock in (1_995, 3_995):
            run.engine._tidy()
            sizes.append(len(pickle.dumps(run.engine)))
    assert sizes[1] < 1.1 * sizes[0]


@pytest.mark.parametrize("tick_ms", [100, 1_000, 60_000])
def test_copy_is_recognised_for_an_hour_at_any_tick_length(tick_ms):
    hour = 3_600_000 // tick_ms
    catalog = Catalog({"field": next(iter(CATALOG))}, tick_ms)
    for after, duplicates in ((hour - 3, 1), (hour + 30, 0)):
        run = Run("SELECT COUNT(*) AS n FROM field [FROM NOW TO NOW SLIDE 10 MIN]", catalog=catalog, live=True)
        run.deliver((0, 3, 5), (0, 4, 6))
        for clock in (0, after):
            run.engine.on_clock(clock)
        run.engine._tidy()
        run.deliver((0, 3, 5))
        run.engine.on_clock(after + 1)
        assert run.ledger().get("duplicate", 0) == duplicates


def test_new_query_reads_what_pruning_left(monkeypatch):
    monkeypatch.setattr(intake, "KEPT_MS", 50_000)
    deliveries = {tick: [(tick, 3, tick), (tick, 4, 1)] for tick in range(0, 2_001, 5)}
    run = Run("SELECT COUNT(*) AS n FROM field [FROM NOW-10 TO NOW SLIDE 5 SEC]", begun=NOON, live=True)
    run.until(2_000, deliveries)
    run.deliver((5, 3, 9))
    assert run.until(2_001) == []
    counts = run.ledger()
    assert counts == {"received": 803, "accepted": 802, "late": 1, "beyond horizon": 1}
    run.add(2, "SELECT COUNT(*) AS n FROM field [FROM NOW-20 TO NOW SLIDE 5 SEC]")
    said = [u for _, u in run.until(2_010, {2_005: [(2_005, 3, 1), (2_005, 4, 1)]}) if u.query == 2]
    assert [(u.tick - NOON, run.rows(u), u.coverage["field"]) for u in said] == [(2_005, [(10,)], (10, 10))]


def test_unsupported_plan_is_named_and_leaves_no_state():
    engine = Engine(CATALOG)
    with pytest.raises(UnsupportedPlanError) as caught:
        engine.add(1, plan("SELECT temp FROM field LIFETIME 100 DAY"))
    assert caught.value.what == "LIFETIME"
    assert engine.on_clock(0) == []
    engine.add(1, plan("SELECT temp FROM field [NOW]"))


# --- against everything, remembered --------------------------------------------------------------------------------

TICKS = range(0, 31, 5)
KEYS = [(tick, site) for tick in TICKS for site in (4, 3)]
WINDOWS = [(0, 0, 5), (-10, 0, 5), (-7, -2, 3), (-4, -4, 10)]
COMING = st.dictionaries(st.sampled_from(KEYS), st.tuples(st.integers(0, 30), st.none() | st.integers(-9, 9)))


def text_of(window, items="site, temp"):
    begin, end, slide = window
    bounds = [f"NOW-{-at} SEC" if at else "NOW" for at in (begin, end)]
    return f"SELECT {items} FROM field [FROM {bounds[0]} TO {bounds[1]} SLIDE {slide} SEC]"


def deliveries_of(came):
    """Each reading comes at most 20 ticks (the horizon) after its tick."""
    found = {}
    for (tick, site), (delay, temp) in came.items():
        if delay <= 20:
            found.setdefault(tick + delay, []).append((tick, site, temp))
    return found


@pytest.mark.promise("oracle")
@given(COMING, st.sampled_from(WINDOWS))
def test_sum_of_updates_equals_answer_from_scratch(came, window):
    """Law 2, with readings in any order."""
    begin, end, slide = window
    run, _ = play(text_of(window), deliveries_of(came), until=60)
    revisions = {}
    for update in run.said:
        assert update.revision == revisions.get(update.tick, -1) + 1
        revisions[update.tick] = update.revision
    here = {key: temp for (key, (delay, temp)) in came.items() if delay <= 20}
    for answer in run.windows():
        first, last = answer.tick + begin, answer.tick + end
        held = {key: temp for key, temp in here.items() if first <= key[0] <= last}
        expected = Counter((site, None if temp is None else temp / 10) for (_, site), temp in held.items())
        assert Counter(answer.rows.to_lists([None, 1])) == expected
        due = sum(first <= tick <= last for tick in range(0, 61, 5)) * 2
        assert answer.coverage == {"field": (len(held), due)}
    assert [answer.tick for answer in run.windows()] == list(range(0, max(revisions) + 1, slide))


@pytest.mark.promise("live-is-replay")
@given(COMING, st.sampled_from(WINDOWS), st.sampled_from(["site, temp", "COUNT(temp) AS n, SUM(temp) AS s"]),
       st.integers(0, 45))  # fmt: skip
def test_later_query_gives_same_windows_as_earlier_one(came, window, items, clock):
    deliveries = deliveries_of(came)
    run = Run(text_of(window, items), begun=NOON, live=True)
    run.until(clock - 1, deliveries)
    run.add(2, text_of(window, items))
    run.until(60, deliveries)
    scales = run.scales[1]

    def told(window):
        return window.tick, sorted(map(repr, window.rows.to_lists(scales))), window.coverage

    before = [told(w) for w in run.windows(1) if w.tick >= NOON + clock]
    assert [told(w) for w in run.windows(2)] == before


QUERIES = [
    "SELECT site, temp FROM field",
    "SELECT site, temp * 2 AS t FROM field WHERE temp > 0",
    "SELECT AVG(temp) AS a, site FROM field [FROM NOW-10 TO NOW SLIDE 5 SEC] GROUP BY site",
    "SELECT SUM(temp) AS s FROM field [FROM NOW-3 TO NOW SLIDE 2 ROWS]",
    "ISTREAM(SELECT temp FROM field [FROM NOW-10 TO NOW SLIDE 10 SEC])",
    "SELECT a.temp, b.temp FROM field [NOW] a, field [FROM NOW-5 TO NOW-5 SLIDE 5 SEC] b WHERE a.site = b.site",
    "SELECT COUNT(*) AS n FROM (DSTREAM(SELECT temp FROM field [NOW])) [FROM NOW-10 TO NOW SLIDE 5 SEC]",
]


@pytest.mark.promise("live-is-replay")
@given(COMING, st.sampled_from(QUERIES))
def test_live_at_noon_equals_replay_from_tick_zero(came, text):
    """Live, the clock is large: the same readings so much later give the same answers so much later."""
    deliveries = deliveries_of(came)
    replayed, _ = play(text, deliveries, 60)
    live, _ = play(text, deliveries, 60, begun=NOON, live=True)
    assert [told_at(u, 0) for u in replayed.said] == [told_at(u, NOON) for u in live.said]


def told_at(update, begun):
    tick = (update.tick - begun).tolist() if isinstance(update, TupleUpdates) else update.tick - begun
    match update:
        case WindowUpdate():
            rows = update.added.to_lists(), update.removed.to_lists()
            return tick, update.n, update.revision, update.coverage, rows
        case TupleUpdates():
            return tick, update.index.tolist(), update.weight.tolist(), update.rows.to_lists()
    return tick, update.coverage

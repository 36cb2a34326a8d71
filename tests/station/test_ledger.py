"""The ledger against a model mote that knows the fate of each of its readings, in plain sets."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition import uplink
from acquisition.payload import encode_readings
from acquisition.schedule import Sampling, Schedule, SensorChannel
from acquisition.schedule_builder import ScheduleSet
from acquisition.ticks import EpochGrid
from basestation.planner.catalog import read_schema
from basestation.station import reading_account
from basestation.station.ledger import Ledger
from gateway.frame import Frame, FrameKind
from gateway.image import NO_IMAGE, Stamp
from gateway.link import Link
from gateway.payload import Hello, HelloReason, LostFrames, ReadingCounts, encode_event, encode_hello
from innet.operators.acquire import Acquire
from innet.operators.fold import Fold
from innet.operators.slices import SlicePattern
from innet.placement.placement import PlacedOperator
from tests.simulation.reading_accounts import balanced

CATALOG = read_schema("r: sensed (site:integer, v:integer) every 5 sec at sites 5, 6")
SITE, EVERY = 5, 5
SAMPLING = Sampling(0, "r", EpochGrid(10, EVERY), (SensorChannel("v", 1, 16),))
SCHEDULED = ScheduleSet({0: SAMPLING}, {SITE: Schedule(SITE, 1, (SAMPLING,))})
FATES = "comes", "comes", "comes", "comes twice", "is lost", "is under way"
BECOMES = "sent", "sent", "filtered", "folded", "not sampled"


@dataclass
class Mote:
    """Samples epoch by epoch and records the fate of each reading."""

    draw: object
    fates: tuple = FATES
    ledger: Ledger = None
    link: Link = field(default_factory=lambda: Link(SITE, 1, down=True))
    epoch: int = 0
    seq: int = 0
    lost: list = field(default_factory=list)
    waiting: list = field(default_factory=list)  # (epoch, whether it was filtered)
    became: dict = field(default_factory=dict)
    gone: set = field(default_factory=set)
    came: Counter = field(default_factory=Counter)
    told: list = field(default_factory=list)  # the epochs of counts that have come
    since: int = 0
    dropped: int = 0
    copies: int = 0

    def __post_init__(self):
        self.ledger = Ledger(CATALOG, {SITE: self.link})
        self.ledger.set_schedules(SCHEDULED, 8)

    @property
    def now(self):
        return SAMPLING.epochs.tick(self.epoch)

    def sample(self, becomes):
        if becomes == "folded":
            self.fold()
        elif becomes != "not sampled":
            self.waiting.append((self.epoch, becomes == "filtered"))
        self.became[self.epoch] = becomes
        self.epoch += 1

    def fold(self):
        fate = self.draw(st.sampled_from(self.fates))
        if fate.startswith("comes"):
            self.came[self.epoch] += 1
            merged(self.ledger, 1, [(self.now, (SITE,), 1)], self.now)

    def drop(self):
        """Drop the oldest waiting reading for want of memory."""
        if self.waiting:
            self.became[self.waiting.pop(0)[0]] = "dropped"
            self.dropped += 1

    def send(self):
        runs = []
        for epoch, filtered in self.waiting:
            if runs and runs[-1][-1][0] + 1 == epoch:
                runs[-1].append((epoch, filtered))
            else:
                runs.append([(epoch, filtered)])
        self.waiting = []
        for run in runs:
            epochs, fate = [epoch for epoch, _ in run], self.draw(st.sampled_from(self.fates))
            payload = encode_readings(SAMPLING, epochs[0], [None if filtered else (7,) for _, filtered in run])
            frame = Frame(FrameKind.READING, SITE, 1, self.seq, payload)
            self.seq += 1
            if fate.startswith("comes"):
                self.came.update(epochs)
                self.take(frame)
            if fate == "comes twice":
                self.take(frame)
                self.copies += len(epochs)
            if fate == "is lost":
                self.lost.append(frame.seq)
                self.gone.update(epochs)

    def take(self, frame):
        known = self.link.accept(frame)
        frames, copies = ([frame], []) if known else ([], [frame])
        measured = uplink.receive([f for f in frames if f.kind is FrameKind.READING], {0: SAMPLING}, CATALOG, self.now)
        self.ledger.record_frames(frames, copies, measured, max(self.now - EVERY, 0))

    def count(self):
        """Send counters of the epochs since the last report, from the first that was sampled to the last."""
        epochs = [epoch for epoch in range(self.since, self.epoch) if self.became[epoch] != "not sampled"]
        if not epochs:
            return
        span = range(epochs[0], epochs[-1] + 1)
        of = Counter(self.became[epoch] for epoch in span)
        counts = ReadingCounts(0, span.start, len(span), len(epochs), of["filtered"], of["folded"], self.dropped)
        self.since, self.dropped = self.epoch, 0
        frame = Frame(FrameKind.EVENT, SITE, 1, self.seq, encode_event(counts))
        self.seq += 1
        fate = self.draw(st.sampled_from(self.fates))
        if fate.startswith("comes"):
            self.take(frame)
            self.told.append(span)
        elif fate == "is lost":
            self.lost.append(frame.seq)

    def confess(self):
        """Report lost frames."""
        for seq in self.lost:
            self.link.write_off(LostFrames(1, ((seq, seq),)))
        self.lost = []

    def sums(self):
        sums = self.ledger.sums(self.now - EVERY)["r"][SITE]
        balanced(sums)
        return sums


def merged(ledger, number, partials, now, slices=SlicePattern(EVERY, 0, 0)):
    """Record partials, each given as (first tick of its slice, contributors, number of readings)."""
    fold = Fold(Acquire("r", EVERY, ("v",)), "r", slices, (), ())
    slice_, who, readings = zip(*partials, strict=True)
    bits = np.array([[site in each for site in (5, 6)] for each in who])
    ledger.record_partials(
        PlacedOperator(fold, (5, 6), number), slices.number(np.array(slice_)), bits, np.array(readings), now
    )


@pytest.mark.promise("ledger")
@given(st.data())
def test_ledger_states_what_frames_prove_and_no_more(data):
    mote = Mote(data.draw)
    for _ in range(data.draw(st.integers(1, 40))):
        mote.sample(data.draw(st.sampled_from(BECOMES)))
        for act in (mote.drop, mote.count, mote.send, mote.confess):
            if data.draw(st.integers(0, 3)) == 0:
                act()
    check(mote)


def check(mote):
    sums, became, came = mote.sums(), mote.became, set(mote.came)
    told = {epoch for span in mote.told for epoch in span}
    made = {epoch for epoch, what in became.items() if what != "not sampled"}
    assert sums["due"] == mote.epoch
    assert sums["delivered"] == sum(became[epoch] == "sent" for epoch in came)
    assert sums["filtered"] == sum(became[epoch] == "filtered" for epoch in came)
    assert sums["merged"] == sum(became[epoch] == "folded" for epoch in came)
    assert sums["produced"] == len(made & (told | came))
    assert sums["not sampled"] == len(told - made)
    assert sums["not known"] == mote.epoch - len(told | came)
    assert sums["folded"] == sum(became[epoch] == "folded" for epoch in told - came)
    assert sums["received"] == mote.came.total() + mote.copies
    assert (sums["ahead"], sums["not due"], sums["duplicate"]) == (0, 0, mote.copies)
    assert sums["lost"] <= len(mote.gone)
    assert sums["dropped"] <= sum(what == "dropped" for what in became.values())
    return sums


@pytest.mark.promise("ledger")
@given(st.data())
def test_complete_reports_leave_no_reading_under_way(data):
    """Frames arrive or get lost, counters arrive, and the mote goes on: lost and dropped readings are known exactly.

    If some readings that counters cover arrived merged, it is unknown whether they were sent by themselves as well.
    """
    kinds = data.draw(
        st.sampled_from([("sent", "sent", "filtered", "not sampled"), ("sent", "filtered"), ("folded",), BECOMES])
    )
    mote = Mote(data.draw, ("comes", "comes twice", "is lost"))
    come = mote.fates[:2]
    for _ in range(data.draw(st.integers(1, 30))):
        mote.sample(data.draw(st.sampled_from(kinds)))
        if data.draw(st.booleans()):
            mote.drop()
        for act, fates in ((mote.count, come), (mote.send, mote.fates)):
            if data.draw(st.integers(0, 3)) == 0:
                mote.fates, all_fates = fates, mote.fates
                act()
                mote.fates = all_fates
    mote.fates = ("comes", "is lost")
    mote.send()
    mote.fates = ("comes",)
    mote.count()
    for _ in range(2):  # counts after frames behind all of that
        mote.sample("sent")
        mote.send()
        mote.count()
    mote.confess()
    sums = check(mote)
    dropped = sum(what == "dropped" for what in mote.became.values())
    folded = sum(what == "folded" and epoch not in mote.came for epoch, what in mote.became.items())
    assert sums["dropped"] + sums["lost"] + sums["folded"] + sums["under way"] == dropped + len(mote.gone) + folded
    if kinds is not BECOMES:
        assert (sums["dropped"], sums["folded"]) == (dropped, folded)
    if "not sampled" not in kinds:  # where epochs are missing between two counts, one that lay between them may be lost
        assert (sums["lost"], sums["under way"]) == (len(mote.gone), 0)


@pytest.mark.promise("ledger")
@pytest.mark.parametrize("name", ["MAX_PIECES", "MAX_COUNTS", "MAX_FENCES"])
@given(st.data())
def test_dropped_ranges_keep_their_sums(name, data):
    before = getattr(reading_account, name)
    setattr(reading_account, name, 4)
    try:
        mote = Mote(data.draw)
        for _ in range(data.draw(st.integers(20, 35))):
            mote.sample(data.draw(st.sampled_from(BECOMES)))
            for act in (mote.count, mote.send):
                if data.draw(st.booleans()):
                    act()
        sums = mote.sums()
    finally:
        setattr(reading_account, name, before)
    (account,) = mote.ledger._accounts.values()
    held = {"MAX_PIECES": [max(span.own.pieces, span.received.pieces) for span in account._spans],
            "MAX_COUNTS": [len(span.reports) for span in account._spans], "MAX_FENCES": [len(account._fences)]}  # fmt: skip
    assert max(held[name]) <= 4
    came = Counter(mote.became[epoch] for epoch in mote.came)
    assert sums["due"] == mote.epoch and sums["received"] == mote.came.total() + mote.copies
    here = [sums["delivered"], sums["filtered"], sums["merged"]]
    assert sum(here) == len(mote.came) - sums["not due"]  # that came so late that only sums are kept
    assert all(n <= came[what] for n, what in zip(here, ("sent", "filtered", "folded"), strict=True))


def test_complete_slice_attributes_readings_to_sites():
    """Three readings of two motes may be of either; the fourth completes the slice."""
    ledger, slices = Ledger(CATALOG, {}), SlicePattern(10, 0, 0)
    both = {site: Schedule(site, 1, (SAMPLING,)) for site in (5, 6)}
    ledger.set_schedules(ScheduleSet({0: SAMPLING}, both), 0)
    merged(ledger, 1, [(10, (5, 6), 3)], 19, slices)
    assert [sums["merged"] for sums in ledger.sums(19)["r"].values()] == [0, 0] and ledger.unattributed() == {"r": 3}
    merged(ledger, 1, [(10, (6,), 1), (20, (5,), 2)], 29, slices)
    assert [sums["merged"] for sums in ledger.sums(29)["r"].values()] == [4, 2] and ledger.unattributed() == {}


def test_empty_partials_change_no_account():
    ledger, fold = Ledger(CATALOG, {}), Fold(Acquire("r", EVERY, ("v",)), "r", SlicePattern(EVERY, 0, 0), (), ())
    none = np.zeros(0, np.int64)
    ledger.record_partials(PlacedOperator(fold, (5, 6), 1), none, np.zeros((0, 2), bool), none, 20)
    assert ledger.unattributed() == {} and ledger.sums(20) == {}


def test_partials_without_bitmap_stay_unattributed():
    ledger, sites = Ledger(CATALOG, {}), tuple(range(200))
    fold = Fold(Acquire("r", EVERY, ("v",)), "r", SlicePattern(EVERY, 0, 0), (), ())
    ledger.record_partials(
        PlacedOperator(fold, sites, 1), np.array([3, 3]), np.array([[130], [7]]), np.array([130, 7]), 20
    )
    assert ledger.unattributed() == {"r": 137} and ledger.sums(20) == {}


def test_due_readings_follow_schedules():
    """Every 5 ticks from 10 on, every 10 from 30 on, none from 50 on.

    due:      10 15 20 25 30    40
    arrived:  10 15       30 35 40 45
    """
    ledger, slow = Ledger(CATALOG, {}), Sampling(1, "r", EpochGrid(30, 10), SAMPLING.channels)
    ledger.set_schedules(SCHEDULED, 8)
    ledger.set_schedules(ScheduleSet({0: SAMPLING, 1: slow}, {SITE: Schedule(SITE, 2, (slow,))}), 22)
    came = [(tick, (SITE,), 1) for tick in (10, 15, 30, 35, 40, 45)]
    merged(ledger, 1, came, 22)
    assert {name: n for name, n in ledger.sums(22)["r"][SITE].items() if n} == {
        "due": 3, "produced": 2, "not known": 1, "merged": 2, "received": 6, "ahead": 4,
    }  # fmt: skip
    ledger.set_schedules(ScheduleSet({0: SAMPLING, 1: slow}, {SITE: Schedule(SITE, 3, ())}), 49)
    sums = ledger.sums(100)["r"][SITE]
    balanced(sums)
    assert {name: n for name, n in sums.items() if n} == {
        "due": 6, "produced": 4, "not known": 2, "merged": 4, "received": 6, "not due": 2,
    }  # fmt: skip


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), max_size=12), st.lists(st.integers(0, 60)))
def test_account_balances_under_any_schedule_changes(changes, ticks):
    """Also for schedules that never begin because others replace them."""
    ledger, now = Ledger(CATALOG, {}), 0
    for number, (ahead, kind) in enumerate(changes):
        now += 3
        every = (None, 5, 10, 15)[kind]
        start = None if every is None else -(-(now + ahead) // every) * every
        some = () if every is None else (Sampling(number, "r", EpochGrid(start, every), ()),)
        ledger.set_schedules(ScheduleSet({}, {SITE: Schedule(SITE, number, some)}), now)
        if ticks:
            merged(ledger, 1, [(5 * ticks.pop(), (SITE,), 1)], now)
        for sums in ledger.sums(now).get("r", {}).values():
            balanced(sums)
    for sums in ledger.sums(now + 100).get("r", {}).values():
        balanced(sums)


@pytest.mark.promise("ledger")
@given(st.lists(st.tuples(*[st.integers(0, 20)] * 6), max_size=10))
def test_invalid_counters_leave_sums_intact(said):
    mote = Mote(None, ("comes",))
    mote.epoch = 30
    for seq, (first, epochs, *counts) in enumerate(said):
        payload = encode_event(ReadingCounts(0, first, epochs, *counts))
        mote.take(Frame(FrameKind.EVENT, SITE, 1, seq, payload))
    assert mote.sums()["due"] == 30


@pytest.mark.promise("ledger")
def test_reports_ahead_of_the_clock_are_bounded():
    mote = Mote(None, ("comes",))
    mote.epoch = 2
    for seq in range(3 * reading_account.MAX_COUNTS):
        payload = encode_event(ReadingCounts(0, 100 + seq, 1, 1, 0, 0, 0))
        mote.take(Frame(FrameKind.EVENT, SITE, 1, seq, payload))
    (account,) = mote.ledger._accounts.values()
    assert sum(len(span.reports) for span in account._spans) <= reading_account.MAX_COUNTS
    assert (mote.sums()["due"], mote.sums()["not known"]) == (2, 2)


@pytest.mark.promise("ledger")
@pytest.mark.parametrize("schedule, expected", [(NO_IMAGE, (3, 2)), (Stamp(1, 7), (0, 5))])
def test_first_hello_without_schedule_means_not_asked(schedule, expected):
    """Until its first HELLO at tick 22. A schedule of an earlier station leaves the readings unknown."""
    mote = Mote(None, ("comes",))
    mote.epoch = 3  # tick 25, and frames come an epoch before
    mote.take(Frame(FrameKind.HELLO, SITE, 1, 0, encode_hello(Hello(HelloReason.SWITCHED_ON, 0, 0, schedule))))
    mote.epoch = 5
    mote.take(Frame(FrameKind.HELLO, SITE, 1, 1, encode_hello(Hello(HelloReason.ASKED, 0, 0))))
    sums = mote.sums()
    assert (sums["due"], sums["not asked yet"], sums["not known"]) == (5, *expected)

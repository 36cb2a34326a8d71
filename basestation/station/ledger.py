"""Ledger: an account of every due reading, by mote and extent, from our own schedules and from frames alone.

    due      = produced + not asked yet + not sampled + not known
    produced = delivered + filtered + merged + folded + dropped + lost + under way
    received = delivered + filtered + merged + ahead + not due + duplicate

Two entries are open: `not known` are readings that may or may not have been measured; of those `under way` the mote's counters
say that they were measured. The ledger guesses nothing. A reading is identified by its extent, site and tick. Readings that
arrived, and the epochs that counters cover, are kept as ranges, so memory grows with the gaps. Old ranges become sums.
"""

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from acquisition.extent import Catalog
from acquisition.payload import epoch_range_of
from acquisition.schedule import Sampling
from acquisition.schedule_builder import NO_SCHEDULES, ScheduleSet
from acquisition.ticks import grid_at_or_after
from acquisition.uplink import ReceivedReadings
from gateway.errors import FrameError
from gateway.frame import Frame, FrameKind, MoteId
from gateway.image import NO_IMAGE
from gateway.link import Link, SequenceSet
from gateway.payload import ReadingCounts, decode_event, decode_hello
from innet.operators.fold import Fold
from innet.payload import PartialColumns
from innet.placement.placement import PlacedOperator, extents_of

MAX_PIECES, MAX_COUNTS, MAX_SPANS = 1_024, 64, 16
"""Limits per mote and extent: ranges of a span, counter reports of a span, and spans. Beyond them the oldest become sums."""
MAX_EARLY, MAX_FENCES = 1_024, 128
"""Limits per mote and extent: readings ahead of the clock, and frames remembered to settle counter reports."""
MAX_SLICES = 64
"""Limit per fold: slices of which some readings are still missing."""
DUE, PRODUCED = ("produced", "not asked yet", "not sampled", "not known"), (
    "delivered", "filtered", "merged", "folded", "dropped", "lost", "under way",
)  # fmt: skip
"""The entries that add up to `due`, and to `produced`."""
RECEIVED = "delivered", "filtered", "merged", "ahead", "not due", "duplicate"
NAMES = ("due", *DUE, *PRODUCED, "received", *RECEIVED[3:])


class DeliveryKind(Enum):
    """How a reading arrived: as values, as a filter report, or in a partial aggregate."""

    DELIVERED = auto()
    FILTERED = auto()
    MERGED = auto()


@dataclass(frozen=True, slots=True)
class _CounterReport:
    """A mote's counters for the places [first, last) of a span, reported in frame (boot, seq). `behind` is the tick after it."""

    boot: int
    seq: int
    first: int
    last: int
    behind: int
    counts: ReadingCounts


@dataclass(slots=True)
class _IntervalSpan:
    """The ticks [begin, end) in which a site's readings of an extent were due at one interval. Place n is tick n * interval.

    `own` has the places that arrived in frames of readings, `filtered` of them as filter reports; `received` has the places
    that arrived in any way.
    """

    interval: int
    begin: int
    end: int | None = None  # None: still due
    own: SequenceSet = field(default_factory=SequenceSet)
    received: SequenceSet = field(default_factory=SequenceSet)
    filtered: int = 0
    reports: list[_CounterReport] = field(default_factory=list)
    asked: int = 0  # the first place at which the mote may have had its schedule

    def has(self, tick: int) -> bool:
        """Whether a reading is due at a tick."""
        return tick % self.interval == 0 and self.begin <= tick and (self.end is None or tick < self.end)

    def first(self) -> int:
        """The first place that is due."""
        return grid_at_or_after(self.begin, self.interval) // self.interval

    def last(self, now: int) -> int:
        """The place after the last one that is due until now."""
        end = now + 1 if self.end is None else min(now + 1, self.end)
        return grid_at_or_after(max(self.begin, end), self.interval) // self.interval

    def sums(self, last: int, is_settled: Callable[[_CounterReport, Sequence[_CounterReport]], bool]) -> Counter[str]:
        """The account of the places before `last`. `is_settled` says whether none of a report's readings may still arrive."""
        first = self.first()
        own, received = (places.count(first, last - 1) for places in (self.own, self.received))
        found = Counter({"due": last - first, "own": own, "received": received, "not known": last - first - received})
        found["not asked yet"] = self._count_uncovered(first, min(self.asked, last))
        found["not known"] -= found["not asked yet"]
        dropped = settled = missing = 0
        for report in (report for report in self.reports if report.last <= last):
            arrived, alone = (places.count(report.first, report.last - 1) for places in (self.received, self.own))
            absent = report.last - report.first - arrived
            sampled_absent = max(0, min(absent, report.counts.sampled - arrived))
            found += Counter({"not sampled": absent - sampled_absent, "open": sampled_absent})
            found["not known"] -= absent
            # A reading that arrived merged may have been sent by itself as well; the counters do not tell. Assume so of all.
            merged, sent = arrived - alone, report.counts.sampled - report.counts.merged
            unsent = max(0, min(sampled_absent, sent - alone - merged))
            found["folded"] += max(0, min(sampled_absent - unsent, report.counts.merged - merged))
            missing, dropped = missing + unsent, dropped + report.counts.dropped
            settled += unsent if is_settled(report, self.reports) else 0
        found["dropped"] = min(dropped, missing)
        found["lost"] = max(0, settled - found["dropped"])
        found["under way"] = found.pop("open", 0) - found["folded"] - found["dropped"] - found["lost"]
        return found

    def without(self, place: int) -> "_IntervalSpan":
        """The span from a place on. Its range sets are taken over, so the old span must not be used any more."""
        self.own.forget(place)
        self.received.forget(place)
        reports = [report for report in self.reports if report.first >= place]
        return _IntervalSpan(
            self.interval,
            place * self.interval,
            self.end,
            self.own,
            self.received,
            self.filtered,
            reports,
            self.asked,
        )

    def _count_uncovered(self, first: int, last: int) -> int:
        """Count the places in [first, last) that did not arrive and that no counter report covers."""
        begins = [first, *(report.last for report in self.reports)]
        ends = [*(report.first for report in self.reports), last]
        gaps = ((max(begin, first), min(end, last)) for begin, end in zip(begins, ends, strict=True))
        return sum(end - begin - self.received.count(begin, end - 1) for begin, end in gaps if begin < end)


class _ReadingAccount:
    """The account of one site and extent. `link` returns the link to the mote, or None before its first frame."""

    def __init__(self, link: Callable[[], Link | None]) -> None:
        self._link = link
        self._spans: list[_IntervalSpan] = []
        self._early: dict[tuple[int, DeliveryKind], None] = {}  # readings of ticks that are still ahead
        self._fences: deque[tuple[int, int, int]] = deque(
            maxlen=MAX_FENCES
        )  # (boot, seq, first tick) of frames of readings
        self._older: Counter[str] = Counter()  # the sums of dropped spans and ranges
        self._received = self._off_schedule = 0

    # --- due readings ------------------------------------------------------------------------------------------------

    def set_sampling(self, sampling: Sampling | None, now: int) -> None:
        """Make readings due from the first tick of a sampling on, or none from now on; later beginnings are revoked."""
        begin = now + 1 if sampling is None else sampling.epochs.start
        popped = None
        while self._spans and self._spans[-1].begin >= begin and not self._spans[-1].received.pieces:
            popped = self._spans.pop().begin
        if self._spans:
            last = self._spans[-1]
            begin = max(begin, last.received.greatest * last.interval + 1)  # readings that arrived were due
            last.end = None if last.end == popped else last.end
            if sampling is not None and last.interval == sampling.epochs.interval and last.end is None:
                return
            last.end = begin if last.end is None else last.end
        if sampling is not None:
            self._spans.append(_IntervalSpan(sampling.epochs.interval, begin))
        if len(self._spans) > MAX_SPANS:
            self._keep_sums(self._spans[0], self._spans[0].last(now))
            self._older["filtered"] += self._spans.pop(0).filtered

    def _span_of(self, tick: int) -> _IntervalSpan | None:
        """The span in which a reading is due at a tick."""
        at = bisect_right(self._spans, tick, key=lambda span: span.begin)
        return self._spans[at - 1] if at and self._spans[at - 1].has(tick) else None

    # --- arrivals ----------------------------------------------------------------------------------------------------

    def record(self, first: int, count: int, step: int, kind: DeliveryKind, now: int) -> None:
        """Record `count` readings that are `step` ticks apart."""
        self._received += count
        self._record_early(now)
        self._put(first, count, step, kind, now)

    def _put(self, first: int, count: int, step: int, kind: DeliveryKind, now: int) -> None:
        last = first + (count - 1) * step
        span = self._span_of(first)
        if span and span.has(last) and (count == 1 or span.interval == step) and last <= now:
            self._fill(span, first // span.interval, last // span.interval, kind, now)
            return
        for tick in range(first, last + 1, step):
            if tick > now:
                self._keep_early(tick, kind)
            elif span := self._span_of(tick):
                self._fill(span, tick // span.interval, tick // span.interval, kind, now)
            else:
                self._off_schedule += 1

    def _fill(self, span: _IntervalSpan, first: int, last: int, kind: DeliveryKind, now: int) -> None:
        span.received.fill(first, last)
        if kind is not DeliveryKind.MERGED:
            new = span.own.fill(first, last)
            span.filtered += new if kind is DeliveryKind.FILTERED else 0
        if max(span.own.pieces, span.received.pieces) > MAX_PIECES:
            longest = max(span.own, span.received, key=lambda places: places.pieces)
            self._cut(span, longest.ranges()[MAX_PIECES // 2][0], now)

    def _keep_early(self, tick: int, kind: DeliveryKind) -> None:
        if len(self._early) < MAX_EARLY:
            self._early[tick, kind] = None
        elif (tick, kind) not in self._early:
            self._off_schedule += 1

    def _record_early(self, now: int) -> None:
        """Record the readings that were ahead of the clock and are due by now."""
        for tick, kind in [early for early in self._early if early[0] <= now]:
            del self._early[tick, kind]
            self._put(tick, 1, 1, kind, now)

    def note_first_hello(self, now: int) -> None:
        """Note that the mote had no schedule until now, so it has sampled nothing."""
        for span in self._spans:
            span.asked = now // span.interval + 1

    def note_duplicates(self, count: int) -> None:
        """Count the readings of a frame that had arrived before."""
        self._received += count

    # --- counters ----------------------------------------------------------------------------------------------------

    def note_frame(self, boot: int, seq: int, first: int) -> None:
        """Note that a frame of readings arrived whose first tick is `first`."""
        self._fences.append((boot, seq, first))

    def report(self, boot: int, seq: int, sampling: Sampling, counts: ReadingCounts, now: int) -> None:
        """Take a counter report. One that spans a change of the interval is ignored, because it cannot be divided."""
        if not counts.epochs:
            return
        first, last = (sampling.epochs.tick(counts.first_epoch + n) for n in (0, counts.epochs - 1))
        span, interval = self._span_of(first), sampling.epochs.interval
        if span is None or not span.has(last) or span.interval != interval:
            return
        report = _CounterReport(boot, seq, first // interval, last // interval + 1, last + interval, counts)
        if all(report.last <= other.first or other.last <= report.first for other in span.reports):
            span.reports.append(report)
            span.reports.sort(key=lambda other: other.first)
        if len(span.reports) > MAX_COUNTS:
            self._cut(span, span.reports[MAX_COUNTS // 2].first, now)

    def _cut(self, span: _IntervalSpan, place: int, now: int) -> None:
        """Keep only the sums of the places before one."""
        for report in span.reports:
            if report.first < place < report.last:  # a report cannot be divided
                place = report.first if span.first() < report.first else report.last
        if span.first() < place <= span.last(now):
            self._keep_sums(span, place)
            self._spans[self._spans.index(span)] = span.without(place)

    def _keep_sums(self, span: _IntervalSpan, place: int) -> None:
        self._older += span.sums(place, self._is_settled)

    def _is_settled(self, report: _CounterReport, reports: Sequence[_CounterReport]) -> bool:
        """Whether none of a report's readings may still arrive.

        So it is if the mote has sent later readings, has then reported the readings that it dropped, and no frame up to that
        report is missing.
        """
        link, last = self._link(), report
        for other in reports:
            if other.boot == report.boot and other.first == last.last:
                last = other
        if link is None or last is report:
            return False
        gaps = link.missing().get(report.boot)
        until = min(last.seq, gaps[0][0]) if gaps else last.seq
        return any(boot == report.boot and seq < until and first >= report.behind for boot, seq, first in self._fences)

    # --- sums --------------------------------------------------------------------------------------------------------

    def sums(self, now: int) -> dict[str, int]:
        """The entries in NAMES, of readings due until now."""
        self._record_early(now)
        found = Counter(self._older)
        for span in self._spans:
            found += span.sums(span.last(now), self._is_settled)
        own, arrived = found["own"], found["received"]
        filtered = found["filtered"] + sum(span.filtered for span in self._spans)
        found |= {"filtered": filtered, "delivered": own - filtered, "merged": arrived - own}
        found |= {"received": self._received, "ahead": len(self._early), "not due": self._off_schedule}
        found["duplicate"] = self._received - arrived - found["ahead"] - found["not due"]
        found["produced"] = sum(found[name] for name in PRODUCED)
        return {name: found[name] for name in NAMES}


class Ledger:
    """The accounts of all motes and extents. Calls carry the tick `now`, which never decreases."""

    def __init__(self, catalog: Catalog, links: Mapping[MoteId, Link]) -> None:
        self._catalog, self._links = catalog, links
        self._accounts: dict[tuple[str, int], _ReadingAccount] = {}
        self._scheduled = NO_SCHEDULES
        self._steps: dict[str, int] = {}  # by extent, the ticks between two samplings now
        self._slices: dict[int, _OpenSlices] = {}  # by fold number
        self._greeted: set[int] = set()  # motes that have sent a HELLO
        self._unattributed: Counter[str] = Counter()  # by extent, merged readings of unknown sites

    def _link_of(self, mote: MoteId) -> Link | None:
        return self._links.get(mote)

    def _account(self, extent: str, site: int) -> _ReadingAccount:
        key = extent, site
        if key not in self._accounts:
            self._accounts[key] = _ReadingAccount(partial(self._link_of, MoteId(site)))
        return self._accounts[key]

    def set_schedules(self, scheduled: ScheduleSet, now: int) -> None:
        """Make readings due by these schedules from now on."""
        before, self._scheduled = self._scheduled, scheduled
        self._steps = {sampling.extent: sampling.epochs.interval for sampling in scheduled.running.values()}
        for site, schedule in scheduled.schedules.items():
            old_schedule = before.schedules.get(site)
            if schedule is old_schedule:
                continue
            old = {sampling.extent: sampling for sampling in old_schedule.samplings} if old_schedule else {}
            new = {sampling.extent: sampling for sampling in schedule.samplings}
            for extent in sorted(old.keys() | new.keys()):
                if old.get(extent) != new.get(extent):
                    self._account(extent, site).set_sampling(new.get(extent), now)

    def record_frames(
        self, frames: Iterable[Frame], duplicates: Iterable[Frame], readings: ReceivedReadings, now: int
    ) -> None:
        """Record the frames that arrived in a clock tick, with the readings that are in them."""
        for name, batch in readings.batches:
            self.record_readings(name, batch.site, batch.tick, DeliveryKind.DELIVERED, now)
        for sampling, batch in readings.filtered:
            self.record_readings(sampling.extent, batch.site, batch.tick, DeliveryKind.FILTERED, now)
        samplings = self._scheduled.samplings
        for frame in frames:
            if frame.kind is FrameKind.READING and (span := epoch_range_of(frame)) and span[0] in samplings:
                sampling = samplings[span[0]]
                first = sampling.epochs.tick(span[1])
                self._account(sampling.extent, frame.mote).note_frame(frame.boot, frame.seq, first)
            elif frame.kind is FrameKind.EVENT and (counts := _counts_of(frame)) and counts.sampling in samplings:
                sampling = samplings[counts.sampling]
                self._account(sampling.extent, frame.mote).report(frame.boot, frame.seq, sampling, counts, now)
            elif frame.kind is FrameKind.HELLO and frame.mote not in self._greeted:
                self._record_hello(frame, now)
        for frame in duplicates:
            if frame.kind is FrameKind.READING and (span := epoch_range_of(frame)) and span[0] in samplings:
                self._account(samplings[span[0]].extent, frame.mote).note_duplicates(span[2])

    def _record_hello(self, frame: Frame, now: int) -> None:
        """Record the first HELLO of a mote; no mote gets a schedule before it (`gateway.reconciler`)."""
        try:
            hello = decode_hello(frame.payload)
        except FrameError:  # the reconciler counts it
            return
        self._greeted.add(frame.mote)
        if hello.schedule == NO_IMAGE:
            for (_, site), account in self._accounts.items():
                if site == frame.mote:
                    account.note_first_hello(now)

    def record_readings(self, extent: str, site: IntArray, tick: IntArray, kind: DeliveryKind, now: int) -> None:
        """Record readings of an extent, in any order."""
        step = self._steps.get(extent) or self._catalog.extents[extent].interval or 1
        self._record_runs(extent, site, tick, step, kind, now)

    def _record_runs(
        self, extent: str, site: IntArray, tick: IntArray, step: int, kind: DeliveryKind, now: int
    ) -> None:
        """Record readings; those of one site that are `step` ticks apart are one run."""
        if not len(tick):
            return
        order = np.lexsort((tick, site))
        site, tick = site[order], tick[order]
        begins = np.flatnonzero(np.append(True, (site[1:] != site[:-1]) | (tick[1:] - tick[:-1] != step)))
        counts = np.diff(np.append(begins, len(tick)))
        for mote, first, count in zip(site[begins].tolist(), tick[begins].tolist(), counts.tolist(), strict=True):
            self._account(extent, mote).record(first, count, step, kind, now)

    def record_all_partials(
        self, partials: Iterable[PartialColumns], folds: Mapping[int, PlacedOperator], now: int
    ) -> None:
        """Record partials that arrived in a clock tick, of folds given by number."""
        for found in partials:
            self.record_partials(folds[found.shape.aggregation], found.slice, found.contributors, found.readings, now)

    def record_partials(
        self, placed: PlacedOperator, slice_: IntArray, who: BoolArray | IntArray, readings: IntArray, now: int
    ) -> None:
        """Record partials of a fold. Row i is of slice `slice_[i]`, from the contributors `who[i]` (as `PartialColumns.contributors`),
        and has `readings[i]` readings.

        If a slice has several ticks, its readings are attributed to sites once all of its contributors' readings arrived; if
        partials only count their contributors, never.
        """
        fold, extents = placed.operator, extents_of(placed.operator)
        if not isinstance(fold, Fold) or not placed.shape.has_bitmap:
            self._add_unattributed(extents, int(readings.sum()))
            return
        slices = self._slices.get(placed.number)
        if slices is None or slices.fold != fold:
            if slices is not None:
                self._add_unattributed(extents_of(slices.fold), slices.readings())
            slices = self._slices[placed.number] = _OpenSlices(fold, placed.sites)
        order = np.argsort(slice_, kind="stable")
        numbers, begins = np.unique(slice_[order], return_index=True)
        ends = np.append(begins, len(order))[1:]  # both are empty if no partial arrived
        sites, ticks = [], []
        for number, begin, end in zip(numbers.tolist(), begins.tolist(), ends.tolist(), strict=True):
            rows = order[begin:end]
            contributors: BoolArray = np.logical_or.reduce(who[rows], axis=0)
            complete = slices.add(number, contributors, int(readings[rows].sum()))
            at = fold.slices.ticks(number, fold.interval)
            sites.append(np.repeat(complete, len(at)))
            ticks.append(np.tile(np.array(at, np.int64), len(complete)))
        for extent in extents if sites else ():
            site, tick = np.concatenate(sites), np.concatenate(ticks)
            self._record_runs(extent, site, tick, fold.interval, DeliveryKind.MERGED, now)
        self._add_unattributed(extents, slices.forget())

    def _add_unattributed(self, extents: Iterable[str], readings: int) -> None:
        for extent in extents:
            self._unattributed[extent] += readings

    def sums(self, now: int) -> dict[str, dict[int, dict[str, int]]]:
        """By extent and mote, the entries in NAMES of readings due until now."""
        found: dict[str, dict[int, dict[str, int]]] = {}
        for (extent, site), account in sorted(self._accounts.items(), key=lambda item: item[0]):
            found.setdefault(extent, {})[site] = account.sums(now)
        return found

    def unattributed(self) -> dict[str, int]:
        """By extent, the number of merged readings whose sites are unknown."""
        found = Counter(self._unattributed)
        for slices in self._slices.values():
            for extent in extents_of(slices.fold):
                found[extent] += slices.readings()
        return {extent: found[extent] for extent in sorted(found) if found[extent]}


@dataclass(slots=True)
class _OpenSlices:
    """The slices of a fold of which some readings of contributors are still missing."""

    fold: Fold
    sites: tuple[int, ...]
    _open: dict[int, tuple[BoolArray, int]] = field(default_factory=dict)

    def add(self, number: int, who: BoolArray, readings: int) -> IntArray:
        """Add contributors and readings of a slice. Return its contributors if it is complete, else none."""
        before, count = self._open.pop(number, (np.zeros(len(who), bool), 0))
        who, readings = who | before, readings + count
        if readings != who.sum() * len(self.fold.slices.ticks(number, self.fold.interval)):
            self._open[number] = who, readings
            return np.zeros(0, np.int64)
        complete: IntArray = np.array(self.sites)[who]
        return complete

    def forget(self) -> int:
        """Keep only the youngest slices. Return the number of readings in the others."""
        old = sorted(self._open)[:-MAX_SLICES]
        return sum(self._open.pop(number)[1] for number in old)

    def readings(self) -> int:
        """The number of readings in all open slices."""
        return sum(readings for _, readings in self._open.values())


def _counts_of(frame: Frame) -> ReadingCounts | None:
    """The counter report in an EVENT frame, or None if it has something else."""
    try:
        event = decode_event(frame.payload)
    except FrameError:  # the reconciler counts it
        return None
    return event if isinstance(event, ReadingCounts) else None

"""Ledger: what became of each reading that was due, by mote and extent; from our own schedules and from frames alone.

    due      = produced + not asked yet + not sampled + not known
    produced = delivered + filtered + merged + folded + dropped + lost + under way
    received = delivered + filtered + merged + ahead + not due + duplicate

`not known` and `under way` are what is not known yet: of the first nobody knows whether it was measured, of the second a mote's
counters say that it was, and no more. Nothing here is guessed. A reading is one by its extent, site and tick. Readings that came,
and what motes' counters are about, are kept as ranges, so that memory is that of the gaps; of the oldest only the sums are kept.
"""

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial

import numpy as np

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
from innet.payload import PartialColumns
from innet.placement.placement import PlacedOperator, extents_of

MOST_PIECES, MOST_COUNTS, MOST_SPANS = 1_024, 64, 16
"""So many gaps, counts, and spans of one interval are kept of a mote and extent; of older ones the sums are."""
MOST_EARLY, MOST_SLICES, MOST_FENCES = 1_024, 64, 128
DUE, PRODUCED = ("produced", "not asked yet", "not sampled", "not known"), (
    "delivered", "filtered", "merged", "folded", "dropped", "lost", "under way",
)  # fmt: skip
"""What is due, and what is produced, is the sum of these."""
RECEIVED = "delivered", "filtered", "merged", "ahead", "not due", "duplicate"
NAMES = ("due", *DUE, *PRODUCED, "received", *RECEIVED[3:])


class DeliveryKind(Enum):
    """How a reading came."""

    DELIVERED = auto()
    FILTERED = auto()
    MERGED = auto()


@dataclass(frozen=True, slots=True)
class _CounterReport:
    """What a mote's counters say of the readings at some places of a span, the last one left out, in which of its frames; and the
    first tick that this says nothing of."""

    boot: int
    seq: int
    first: int
    last: int
    behind: int
    counts: ReadingCounts


@dataclass(slots=True)
class _IntervalSpan:
    """The ticks from one to another at which a site's readings of an extent were due at one interval; a place is a multiple of it.

    `own` came in frames of readings, of which some were `filtered`, `here` in any way.
    """

    interval: int
    begin: int
    end: int | None = None  # the first tick that is no longer in it
    own: SequenceSet = field(default_factory=SequenceSet)
    here: SequenceSet = field(default_factory=SequenceSet)
    filtered: int = 0
    told: list[_CounterReport] = field(default_factory=list)
    asked: int = 0  # the first place of which the mote may have been told

    def has(self, tick: int) -> bool:
        """Whether a reading is due at a tick."""
        return tick % self.interval == 0 and self.begin <= tick and (self.end is None or tick < self.end)

    def first(self) -> int:
        """The first place that is due."""
        return grid_at_or_after(self.begin, self.interval) // self.interval

    def last(self, now: int) -> int:
        """The first place that is not due any more, or not yet."""
        end = now + 1 if self.end is None else min(now + 1, self.end)
        return grid_at_or_after(max(self.begin, end), self.interval) // self.interval

    def sums(self, last: int, settled: Callable[[_CounterReport, Sequence[_CounterReport]], bool]) -> Counter[str]:
        """Of the places before one."""
        first = self.first()
        own, here = (numbers.count(first, last - 1) for numbers in (self.own, self.here))
        found = Counter({"due": last - first, "own": own, "here": here, "not known": last - first - here})
        found["not asked yet"] = self._without_schedule(first, min(self.asked, last))
        found["not known"] -= found["not asked yet"]
        room = gone = missing = 0
        for each in (each for each in self.told if each.last <= last):
            there, alone = (numbers.count(each.first, each.last - 1) for numbers in (self.here, self.own))
            lacking = each.last - each.first - there
            open_ = max(0, min(lacking, each.counts.sampled - there))
            found += Counter({"not sampled": lacking - open_, "open": open_})
            found["not known"] -= lacking
            # Of a reading that came merged nobody tells whether it was to come by itself, too: it may have been so of all.
            merged, sent = there - alone, each.counts.sampled - each.counts.merged
            lacks = max(0, min(open_, sent - alone - merged))
            found["folded"] += max(0, min(open_ - lacks, each.counts.merged - merged))
            missing, room = missing + lacks, room + each.counts.dropped
            gone += lacks if settled(each, self.told) else 0
        found["dropped"] = min(room, missing)
        found["lost"] = max(0, gone - found["dropped"])
        found["under way"] = found.pop("open", 0) - found["folded"] - found["dropped"] - found["lost"]
        return found

    def without(self, place: int) -> "_IntervalSpan":
        """What is left of it from a place on."""
        self.own.forget(place)
        self.here.forget(place)
        told = [each for each in self.told if each.first >= place]
        return _IntervalSpan(
            self.interval, place * self.interval, self.end, self.own, self.here, self.filtered, told, self.asked
        )

    def _without_schedule(self, first: int, last: int) -> int:
        """How many are not here from one place to another, the last left out, and no counters are about."""
        begins, ends = [first, *(each.last for each in self.told)], [*(each.first for each in self.told), last]
        gaps = ((max(begin, first), min(end, last)) for begin, end in zip(begins, ends, strict=True))
        return sum(end - begin - self.here.count(begin, end - 1) for begin, end in gaps if begin < end)


class _ReadingAccount:
    """Of one site and extent. `link` gives the one to that mote, if it was heard."""

    def __init__(self, link: Callable[[], Link | None]) -> None:
        self._link = link
        self._spans: list[_IntervalSpan] = []
        self._early: dict[tuple[int, DeliveryKind], None] = {}  # ticks that have not come yet
        self._fences: deque[tuple[int, int, int]] = deque(
            maxlen=MOST_FENCES
        )  # (boot, seq, first tick) of frames of readings
        self._older: Counter[str] = Counter()  # the sums of what is not kept
        self._received = self._off = 0

    # --- what is due ---

    def desire(self, sampling: Sampling | None, now: int) -> None:
        """From its first tick on this is due, and nothing that was to begin later; or nothing from now on."""
        begin = now + 1 if sampling is None else sampling.epochs.start
        popped = None
        while self._spans and self._spans[-1].begin >= begin and not self._spans[-1].here.pieces:
            popped = self._spans.pop().begin
        if self._spans:
            last = self._spans[-1]
            begin = max(begin, last.here.greatest * last.interval + 1)  # what is here already was due
            last.end = None if last.end == popped else last.end
            if sampling is not None and last.interval == sampling.epochs.interval and last.end is None:
                return
            last.end = begin if last.end is None else last.end
        if sampling is not None:
            self._spans.append(_IntervalSpan(sampling.epochs.interval, begin))
        if len(self._spans) > MOST_SPANS:
            self._keep_sums(self._spans[0], self._spans[0].last(now))
            self._older["filtered"] += self._spans.pop(0).filtered

    def _span_of(self, tick: int) -> _IntervalSpan | None:
        """The one in which a reading is due at a tick."""
        at = bisect_right(self._spans, tick, key=lambda span: span.begin)
        return self._spans[at - 1] if at and self._spans[at - 1].has(tick) else None

    # --- what came ---

    def come(self, first: int, count: int, step: int, way: DeliveryKind, now: int) -> None:
        """Readings at so many ticks, `step` apart."""
        self._received += count
        self._grow_old(now)
        self._put(first, count, step, way, now)

    def _put(self, first: int, count: int, step: int, way: DeliveryKind, now: int) -> None:
        last = first + (count - 1) * step
        span = self._span_of(first)
        if span and span.has(last) and (count == 1 or span.interval == step) and last <= now:
            self._note(span, first // span.interval, last // span.interval, way, now)
            return
        for tick in range(first, last + 1, step):
            if tick > now:
                self._wait(tick, way)
            elif span := self._span_of(tick):
                self._note(span, tick // span.interval, tick // span.interval, way, now)
            else:
                self._off += 1

    def _note(self, span: _IntervalSpan, first: int, last: int, way: DeliveryKind, now: int) -> None:
        span.here.fill(first, last)
        if way is not DeliveryKind.MERGED:
            fresh = span.own.fill(first, last)
            span.filtered += fresh if way is DeliveryKind.FILTERED else 0
        if max(span.own.pieces, span.here.pieces) > MOST_PIECES:
            most = max(span.own, span.here, key=lambda each: each.pieces)
            self._cut(span, most.ranges()[MOST_PIECES // 2][0], now)

    def _wait(self, tick: int, way: DeliveryKind) -> None:
        if len(self._early) < MOST_EARLY:
            self._early[tick, way] = None
        elif (tick, way) not in self._early:
            self._off += 1

    def _grow_old(self, now: int) -> None:
        """What came ahead of its time may be due by now."""
        for tick, way in [each for each in self._early if each[0] <= now]:
            del self._early[tick, way]
            self._put(tick, 1, 1, way, now)

    def note_first_hello(self, now: int) -> None:
        """The mote has spoken for the first time, and has no schedule: it has sampled nothing so far."""
        for span in self._spans:
            span.asked = now // span.interval + 1

    def note_duplicate(self, count: int) -> None:
        """Readings of a frame that was here before."""
        self._received += count

    # --- what its counters say ---

    def sent(self, boot: int, seq: int, first: int) -> None:
        """A frame of readings came, from a tick on."""
        self._fences.append((boot, seq, first))

    def count(self, boot: int, seq: int, sampling: Sampling, counts: ReadingCounts, now: int) -> None:
        """What counters say. Of readings some of which were due at one interval and some at another it is not told apart."""
        if not counts.epochs:
            return
        first, last = (sampling.epochs.tick(counts.first_epoch + n) for n in (0, counts.epochs - 1))
        span, interval = self._span_of(first), sampling.epochs.interval
        if span is None or not span.has(last) or span.interval != interval:
            return
        told = _CounterReport(boot, seq, first // interval, last // interval + 1, last + interval, counts)
        if all(told.last <= each.first or each.last <= told.first for each in span.told):
            span.told.append(told)
            span.told.sort(key=lambda each: each.first)
        if len(span.told) > MOST_COUNTS:
            self._cut(span, span.told[MOST_COUNTS // 2].first, now)

    def _cut(self, span: _IntervalSpan, place: int, now: int) -> None:
        """Keep of what was before a place only the sums."""
        for each in span.told:
            if each.first < place < each.last:  # what counters say is of all of theirs together
                place = each.first if span.first() < each.first else each.last
        if span.first() < place <= span.last(now):
            self._keep_sums(span, place)
            self._spans[self._spans.index(span)] = span.without(place)

    def _keep_sums(self, span: _IntervalSpan, place: int) -> None:
        self._older += span.sums(place, self._settled)

    def _settled(self, told: _CounterReport, others: Sequence[_CounterReport]) -> bool:
        """Whether none of its readings is in a frame that may still come: the mote has sent later ones, and told after that what
        it had no room for; and of all its frames until then it is known what became of them."""
        link, last = self._link(), told
        for each in others:
            if each.boot == told.boot and each.first == last.last:
                last = each
        if link is None or last is told:
            return False
        gaps = link.missing().get(told.boot)
        until = min(last.seq, gaps[0][0]) if gaps else last.seq
        return any(boot == told.boot and seq < until and first >= told.behind for boot, seq, first in self._fences)

    # --- all together ---

    def sums(self, now: int) -> dict[str, int]:
        self._grow_old(now)
        found = Counter(self._older)
        for span in self._spans:
            found += span.sums(span.last(now), self._settled)
        filtered = found["filtered"] + sum(span.filtered for span in self._spans)
        found |= {"filtered": filtered, "delivered": found["own"] - filtered, "merged": found["here"] - found["own"]}
        found |= {"received": self._received, "ahead": len(self._early), "not due": self._off}
        found["duplicate"] = self._received - found["here"] - found["ahead"] - found["not due"]
        found["produced"] = sum(found[name] for name in PRODUCED)
        return {name: found[name] for name in NAMES}


class Ledger:
    """Of all motes and extents. Asked `now`, it counts what is due until then; what comes is told it tick by tick."""

    def __init__(self, catalog: Catalog, links: Mapping[MoteId, Link]) -> None:
        self._catalog, self._links = catalog, links
        self._accounts: dict[tuple[str, int], _ReadingAccount] = {}
        self._scheduled = NO_SCHEDULES
        self._steps: dict[str, int] = {}  # the ticks between two readings of each extent, as it is sampled now
        self._slices: dict[int, _OpenSlices] = {}
        self._greeted: set[int] = set()
        self._unattributed: Counter[str] = Counter()  # by extent: merged, and nobody tells of whom

    def _link_of(self, mote: MoteId) -> Link | None:
        return self._links.get(mote)

    def _of(self, extent: str, site: int) -> _ReadingAccount:
        key = extent, site
        if key not in self._accounts:
            self._accounts[key] = _ReadingAccount(partial(self._link_of, MoteId(site)))
        return self._accounts[key]

    def set_schedules(self, scheduled: ScheduleSet, now: int) -> None:
        """These are the schedules from now on."""
        before, self._scheduled = self._scheduled, scheduled
        self._steps = {each.extent: each.epochs.interval for each in scheduled.running.values()}
        for site, schedule in scheduled.schedules.items():
            old = before.schedules.get(site)
            if schedule is not old:
                was, is_ = ({each.extent: each for each in of.samplings} if of else {} for of in (old, schedule))
                for extent in was.keys() | is_.keys():
                    if was.get(extent) != is_.get(extent):
                        self._of(extent, site).desire(is_.get(extent), now)

    def record_frames(
        self, frames: Iterable[Frame], copies: Iterable[Frame], measured: ReceivedReadings, now: int
    ) -> None:
        """What frames of readings and events say, those that were here before included; in a clock tick."""
        for name, batch in measured.batches:
            self.record_readings(name, batch.site, batch.tick, DeliveryKind.DELIVERED, now)
        for sampling, batch in measured.filtered:
            self.record_readings(sampling.extent, batch.site, batch.tick, DeliveryKind.FILTERED, now)
        samplings = self._scheduled.samplings
        for frame in frames:
            if frame.kind is FrameKind.READING and (span := epoch_range_of(frame)) and span[0] in samplings:
                sampling = samplings[span[0]]
                self._of(sampling.extent, frame.mote).sent(frame.boot, frame.seq, sampling.epochs.tick(span[1]))
            elif frame.kind is FrameKind.EVENT and (counts := _counts_of(frame)) and counts.sampling in samplings:
                sampling = samplings[counts.sampling]
                self._of(sampling.extent, frame.mote).count(frame.boot, frame.seq, sampling, counts, now)
            elif frame.kind is FrameKind.HELLO and frame.mote not in self._greeted:
                self._greet(frame, now)
        for frame in copies:
            if frame.kind is FrameKind.READING and (span := epoch_range_of(frame)) and span[0] in samplings:
                self._of(samplings[span[0]].extent, frame.mote).note_duplicate(span[2])

    def _greet(self, frame: Frame, now: int) -> None:
        """Nobody is sent a schedule who has not said hello (`gateway.reconciler`)."""
        try:
            hello = decode_hello(frame.payload)
        except FrameError:  # that is told by the mote's keeper
            return
        self._greeted.add(frame.mote)
        if hello.schedule == NO_IMAGE:
            for (_, site), account in self._accounts.items():
                if site == frame.mote:
                    account.note_first_hello(now)

    def record_readings(self, extent: str, site: np.ndarray, tick: np.ndarray, way: DeliveryKind, now: int) -> None:
        """Readings of an extent, in any order."""
        step = self._steps.get(extent) or self._catalog.extents[extent].interval
        self._come(extent, site, tick, step, way, now)

    def _come(self, extent: str, site: np.ndarray, tick: np.ndarray, step: int, way: DeliveryKind, now: int) -> None:
        """Those of a site that are `step` apart are taken together."""
        if not len(tick):
            return
        order = np.lexsort((tick, site))
        site, tick = site[order], tick[order]
        begins = np.flatnonzero(np.append(True, (site[1:] != site[:-1]) | (tick[1:] - tick[:-1] != step)))
        counts = np.diff(np.append(begins, len(tick)))
        for mote, first, count in zip(site[begins].tolist(), tick[begins].tolist(), counts.tolist(), strict=True):
            self._of(extent, mote).come(first, count, step, way, now)

    def record_all_partials(
        self, partials: Iterable[PartialColumns], folds: Mapping[int, PlacedOperator], now: int
    ) -> None:
        """Record partials that arrived in a clock tick, of folds given by number."""
        for found in partials:
            self.record_partials(folds[found.shape.aggregation], found.slice, found.who, found.readings, now)

    def record_partials(
        self, placed: PlacedOperator, slice_: np.ndarray, who: np.ndarray, readings: np.ndarray, now: int
    ) -> None:
        """Partials of a fold: of which slice, who is in each of them (as `Partials.who`), and of how many readings it is.

        Where there are several ticks in a slice, it is known whose readings they are when all have come of all that are in it;
        and never where partials count who is in them.
        """
        fold, extents = placed.operator, extents_of(placed.operator)
        if not placed.shape.has_bitmap:
            self._add_unattributed(extents, int(readings.sum()))
            return
        slices = self._slices.get(placed.number)
        if slices is None or slices.placed.operator != fold:
            if slices is not None:
                self._add_unattributed(extents_of(slices.placed.operator), slices.readings())
            slices = self._slices[placed.number] = _OpenSlices(placed)
        order = np.argsort(slice_, kind="stable")
        numbers, begins = np.unique(slice_[order], return_index=True)
        ends = np.append(begins, len(order))[1:]  # where nothing came there is neither
        sites, ticks = [], []
        for number, begin, end in zip(numbers.tolist(), begins.tolist(), ends.tolist(), strict=True):
            rows = order[begin:end]
            whole = slices.add(number, who[rows].any(axis=0), int(readings[rows].sum()))
            at = fold.slices.ticks(number, fold.interval)
            sites.append(np.repeat(whole, len(at)))
            ticks.append(np.tile(np.array(at, np.int64), len(whole)))
        for extent in extents if sites else ():
            self._come(extent, np.concatenate(sites), np.concatenate(ticks), fold.interval, DeliveryKind.MERGED, now)
        self._add_unattributed(extents, slices.forget())

    def _add_unattributed(self, extents: Iterable[str], readings: int) -> None:
        for extent in extents:
            self._unattributed[extent] += readings

    def sums(self, now: int) -> dict[str, dict[int, dict[str, int]]]:
        """By extent and mote: NAMES."""
        found: dict[str, dict[int, dict[str, int]]] = {}
        for (extent, site), account in sorted(self._accounts.items()):
            found.setdefault(extent, {})[site] = account.sums(now)
        return found

    def unattributed(self) -> dict[str, int]:
        """By extent, how many readings came merged of which it is not told whose they are."""
        found = Counter(self._unattributed)
        for slices in self._slices.values():
            for extent in extents_of(slices.placed.operator):
                found[extent] += slices.readings()
        return {extent: found[extent] for extent in sorted(found) if found[extent]}


@dataclass(slots=True)
class _OpenSlices:
    """Slices of a fold of which some readings came, and not all of all that are in them."""

    placed: PlacedOperator
    _open: dict[int, tuple[np.ndarray, int]] = field(default_factory=dict)

    def add(self, number: int, who: np.ndarray, readings: int) -> np.ndarray:
        """More of a slice. The sites of which all has come."""
        fold = self.placed.operator
        before, count = self._open.pop(number, (np.zeros(len(who), bool), 0))
        who, readings = who | before, readings + count
        if readings != who.sum() * len(fold.slices.ticks(number, fold.interval)):
            self._open[number] = who, readings
            return np.zeros(0, np.int64)
        return np.array(self.placed.sites)[who]

    def forget(self) -> int:
        """Keep the youngest. How many readings the others have."""
        old = sorted(self._open)[:-MOST_SLICES]
        return sum(self._open.pop(number)[1] for number in old)

    def readings(self) -> int:
        return sum(readings for _, readings in self._open.values())


def _counts_of(frame: Frame) -> ReadingCounts | None:
    try:
        said = decode_event(frame.payload)
    except FrameError:  # that is told by the mote's keeper
        return None
    return said if isinstance(said, ReadingCounts) else None

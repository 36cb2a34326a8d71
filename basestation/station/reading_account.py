"""Reading account: the fate of each due reading of one site and extent, from schedules, frames and counters alone.

    due      = produced + not asked yet + not sampled + not known
    produced = delivered + filtered + merged + folded + dropped + lost + under way
    received = delivered + filtered + merged + ahead + not due + duplicate

Two entries are open: `not known` are readings that may or may not have been measured; of those `under way` the mote's counters
say that they were measured. The account guesses nothing. Readings that arrived, and the epochs that counters cover, are kept as
ranges, so memory grows with the gaps. Old ranges become sums.
"""

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from acquisition.schedule import Sampling
from acquisition.ticks import grid_at_or_after
from gateway.link import Link, SequenceSet
from gateway.payload import ReadingCounts

MAX_PIECES, MAX_COUNTS, MAX_SPANS = 1_024, 64, 16
"""Limits per mote and extent: ranges of a span, counter reports of a span, and spans. Beyond them the oldest become sums."""
MAX_EARLY, MAX_FENCES = 1_024, 128
"""Limits per mote and extent: readings ahead of the clock, and frames remembered to settle counter reports."""
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
class IntervalSpan:
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

    def without(self, place: int) -> "IntervalSpan":
        """The span from a place on. Its range sets are taken over, so the old span must not be used any more."""
        self.own.forget(place)
        self.received.forget(place)
        reports = [report for report in self.reports if report.first >= place][-MAX_COUNTS:]
        return IntervalSpan(
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


class ReadingAccount:
    """The account of one site and extent. `link` returns the link to the mote, or None before its first frame."""

    def __init__(self, link: Callable[[], Link | None]) -> None:
        self._link = link
        self._spans: list[IntervalSpan] = []
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
            self._spans.append(IntervalSpan(sampling.epochs.interval, begin))
        if len(self._spans) > MAX_SPANS:
            self._keep_sums(self._spans[0], self._spans[0].last(now))
            self._older["filtered"] += self._spans.pop(0).filtered

    def _span_of(self, tick: int) -> IntervalSpan | None:
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

    def _fill(self, span: IntervalSpan, first: int, last: int, kind: DeliveryKind, now: int) -> None:
        span.received.fill(first, last)
        if kind is not DeliveryKind.MERGED:
            new = span.own.fill(first, last)
            span.filtered += new if kind is DeliveryKind.FILTERED else 0
        while (longest := max(span.own, span.received, key=lambda places: places.pieces)).pieces > MAX_PIECES:
            span = self._cut(span, longest.ranges()[MAX_PIECES // 2][0], now)

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

    def _cut(self, span: IntervalSpan, place: int, now: int) -> IntervalSpan:
        """Keep only the sums of the places before one, none of them later than now; return what is left of the span."""
        place = min(place, span.last(now))
        for report in span.reports:
            if report.first < place < report.last <= span.last(now):  # a report cannot be divided
                place = report.last
        self._keep_sums(span, place)
        self._spans[self._spans.index(span)] = left = span.without(place)
        return left

    def _keep_sums(self, span: IntervalSpan, place: int) -> None:
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

    def recent(self, until: int, count: int) -> tuple[int, int]:
        """(due, missed): of the last `count` readings due up to tick `until`, how many were due and how many never arrived."""
        due = missed = 0
        for span in reversed(self._spans):
            last = span.last(until)
            first = max(span.first(), span.asked, last - (count - due))
            if first < last:
                due += last - first
                missed += last - first - span.received.count(first, last - 1)
        return due, missed

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

"""Ledger: the accounts of all due readings, by mote and extent, from our own schedules and from frames alone.

A reading is identified by its extent, site and tick. `reading_account.py` has the entries of an account.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from acquisition.extent import Catalog
from acquisition.payload import epoch_range_of
from acquisition.schedule_builder import NO_SCHEDULES, ScheduleSet
from acquisition.uplink import ReceivedReadings
from basestation.station.reading_account import DeliveryKind, ReadingAccount
from gateway.errors import FrameError
from gateway.frame import Frame, FrameKind, MoteId
from gateway.image import NO_IMAGE
from gateway.link import Link
from gateway.payload import ReadingCounts, decode_event, decode_hello
from innet.operators.fold import Fold
from innet.payload import PartialColumns
from innet.placement.placement import PlacedOperator, extents_of

MAX_SLICES = 64
"""Limit per fold: slices of which some readings are still missing."""


class Ledger:
    """The accounts of all motes and extents. Calls carry the tick `now`, which never decreases."""

    def __init__(self, catalog: Catalog, links: Mapping[MoteId, Link]) -> None:
        self.catalog, self._links = catalog, links
        self._accounts: dict[tuple[str, int], ReadingAccount] = {}
        self._scheduled = NO_SCHEDULES
        self._steps: dict[str, int] = {}  # by extent, the ticks between two samplings now
        self._slices: dict[int, _OpenSlices] = {}  # by fold number
        self._greeted: set[int] = set()  # motes that have sent a HELLO
        self._unattributed: Counter[str] = Counter()  # by extent, merged readings of unknown sites

    def _link_of(self, mote: MoteId) -> Link | None:
        return self._links.get(mote)

    def _account(self, extent: str, site: int) -> ReadingAccount:
        key = extent, site
        if key not in self._accounts:
            self._accounts[key] = ReadingAccount(partial(self._link_of, MoteId(site)))
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
        step = self._steps.get(extent) or self.catalog.extents[extent].interval or 1
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

    def recent(self, mote: int, until: int, count: int) -> tuple[int, int]:
        """(due, missed) of the last `count` readings of a mote in each extent that were due up to tick `until`."""
        found = [account.recent(until, count) for (_, site), account in self._accounts.items() if site == mote]
        return sum(due for due, _ in found), sum(missed for _, missed in found)

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

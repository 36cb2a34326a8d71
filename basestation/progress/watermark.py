"""Watermark: which readings of a sensed extent are due, which have been reported, and up to which tick time is complete.

An epoch is one due tick. For each epoch this module knows which tuple holds each site's key (semantics 1.5) and which sites
have reported. The watermark depends on the clock and the schedule, never on timestamps: a silent site cannot hold a window
longer than `wait`, and a clock that runs ahead cannot close one.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, IntArray
from acquisition.extent import Extent
from acquisition.ticks import grid_at_or_after
from basestation.progress.epoch_keys import NOWHERE, EpochKeys, SiteIndex, make_epoch_keys

FREE = -1
NEVER = 2**62


class EpochProgress:
    """A matrix with a row for each epoch of which something was reported and a column for each site in declared order.

    `_holder` has the index of the tuple that holds the key, `_seen` that of a tuple that windows see, `_filtered` the arrival
    tick of a report that motes filtered the reading. A site has reported where one of the latter two is set. `_holder` and
    `_seen` differ where a tuple was deleted and its extent does not correct windows: the key is free, the tuple still counts.
    `_seen` is None until the first key is released, `_filtered` until the first report.

    Arguments `ticks` and `sites` are parallel arrays, one entry per reading; results are parallel to them.
    """

    def __init__(self, extent: Extent, begun: int | None = 0) -> None:
        """With `begun` None, nothing is due before `schedule` is called."""
        assert extent.interval is not None, "a sensed extent has an interval"
        self.interval, self.wait = extent.interval, extent.wait
        self.begun = NEVER  # the first tick that was ever scheduled
        self.sites: IntArray = np.array(extent.sites, np.int64)
        self._index = SiteIndex(self.sites)
        self._ticks: IntArray = np.empty(0, np.int64)  # the epochs that have a row, ascending
        self._row: IntArray = self._ticks  # … and their rows
        self._used = 0  # the number of rows in use or free for reuse
        self._free: IntArray = np.empty(0, np.int64)  # rows of forgotten epochs, blank again
        self._holder: IntArray = np.empty((0, len(self.sites)), np.int64)
        self._seen: IntArray | None = None
        self._filtered: IntArray | None = None
        self._reported: IntArray = np.empty(0, np.int64)  # how many sites have reported, per row
        self._last_keys: tuple[IntArray, IntArray, EpochKeys] | None = (
            None  # callers look up the same arrays repeatedly
        )
        if begun is not None:
            self.schedule(begun)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_last_keys": None}

    def schedule(self, tick: int) -> None:
        """Sample the extent from a tick on, unless it is sampled already."""
        if self.begun == NEVER:
            self.begun = grid_at_or_after(tick, self.interval)

    def postpone(self, tick: int) -> None:
        """Let nothing be due before a tick: the extent was not sampled then."""
        self.begun = max(self.begun, tick)

    def _keys(self, ticks: IntArray, sites: IntArray) -> EpochKeys:
        last = self._last_keys
        if last is None or last[0] is not ticks or last[1] is not sites:
            last = self._last_keys = ticks, sites, make_epoch_keys(ticks, sites, self._index)
        return last[2]

    def positions(self, ticks: IntArray, sites: IntArray) -> IntArray:
        """The position of each site in the declared order; NOWHERE for a site that is not declared."""
        return self._keys(ticks, sites).places

    def due(self, ticks: IntArray, sites: IntArray) -> BoolArray:
        """A mask of the readings that are on the schedule."""
        keys = self._keys(ticks, sites)
        due = (keys.ticks % self.interval == 0) & (keys.ticks >= self.begun)
        declared: BoolArray = keys.places != NOWHERE
        return declared if due.all() else declared & keys.each(due)

    # --- rows --------------------------------------------------------------------------------------------------------

    def _rows_of(self, ticks: IntArray) -> tuple[IntArray, BoolArray]:
        """The row of each tick, and a mask of the ticks that have one."""
        if not len(self._ticks) or int(ticks.min(initial=NEVER)) > self._ticks[-1]:  # usual case: all are new
            return np.zeros(len(ticks), np.int64), np.zeros(len(ticks), bool)
        last = slice(max(0, len(self._ticks) - len(ticks)), None)
        if np.array_equal(self._ticks[last], ticks):  # usual case: the rows were just added
            return self._row[last], np.ones(len(ticks), bool)
        at = np.minimum(np.searchsorted(self._ticks, ticks), len(self._ticks) - 1)
        return self._row[at], self._ticks[at] == ticks

    def _add_rows(self, ticks: IntArray) -> None:
        """Give rows to ticks that have none."""
        new = ticks if (ticks[1:] > ticks[:-1]).all() else np.unique(ticks)
        again, self._free = self._free[: len(new)], self._free[len(new) :]
        rows = np.append(again, self._used + np.arange(len(new) - len(again)))
        self._used += len(new) - len(again)
        if self._used > len(self._reported):
            capacity = self._used + max(len(new), self._used // 2) + 8
            self._change(lambda array, blank: _longer(array, capacity, blank))
        if not len(self._ticks) or new[0] > self._ticks[-1]:
            self._ticks, self._row = np.append(self._ticks, new), np.append(self._row, rows)
            return
        at = np.searchsorted(self._ticks, new)
        self._ticks, self._row = np.insert(self._ticks, at, new), np.insert(self._row, at, rows)

    def _change(self, change: Callable[[AnyArray, int], AnyArray]) -> None:
        """Replace all arrays that have a row per epoch by change(array, value of a blank cell)."""
        self._holder, self._reported = change(self._holder, FREE), change(self._reported, 0)
        self._seen = None if self._seen is None else change(self._seen, FREE)
        self._filtered = None if self._filtered is None else change(self._filtered, NEVER)

    def _rows_for(self, ticks: IntArray) -> IntArray:
        """The row of each tick; rows are added for ticks that have none."""
        rows, known = self._rows_of(ticks)
        if not known.all():
            self._add_rows(ticks[~known])
            rows, _ = self._rows_of(ticks)
        return rows

    def _at(self, keys: EpochKeys, rows: IntArray) -> IntArray:
        """Positions of keys in a flattened matrix. `rows` has one row number per run."""
        found: IntArray = keys.each(rows * len(self.sites)) + keys.places
        return found

    # --- queries -----------------------------------------------------------------------------------------------------

    def holders(self, ticks: IntArray, sites: IntArray) -> IntArray:
        """The index of the tuple that holds each key, or FREE."""
        keys = self._keys(ticks, sites)
        rows, known = self._rows_of(keys.ticks)
        if not known.any():
            return np.full(len(ticks), FREE)
        found = self._holder.take(self._at(keys, rows))
        return found if known.all() else np.where(keys.each(known), found, FREE)

    def is_released(self, ticks: IntArray, sites: IntArray) -> BoolArray:
        """A mask of the keys whose sites have reported, and that no tuple holds now."""
        reported = self._has_reported(ticks, sites)
        return reported & (self.holders(ticks, sites) == FREE) if reported.any() else reported

    def not_yet_reported(self, ticks: IntArray, sites: IntArray) -> BoolArray:
        """A mask of the keys whose sites have not reported; of equal keys only the first."""
        return self.first_of_each(ticks, sites) & ~self._has_reported(ticks, sites)

    def _has_reported(self, ticks: IntArray, sites: IntArray) -> BoolArray:
        keys = self._keys(ticks, sites)
        rows, known = self._rows_of(keys.ticks)
        if not known.any():
            return np.zeros(len(ticks), bool)
        mask: BoolArray = keys.each(known) & self._reported_at(self._at(keys, rows))
        return mask

    def _reported_at(self, at: IntArray) -> BoolArray:
        reported: BoolArray = self._visible.take(at) != FREE
        return reported if self._filtered is None else reported | (self._filtered.take(at) != NEVER)

    @property
    def _visible(self) -> IntArray:
        return self._holder if self._seen is None else self._seen

    def first_of_each(self, ticks: IntArray, sites: IntArray) -> BoolArray:
        """A mask of the first entry with each key."""
        keys = self._keys(ticks, sites)
        number: IntArray = keys.each(keys.ticks * len(self.sites)) + keys.places
        mask = np.ones(len(ticks), bool)
        if (number[1:] <= number[:-1]).any():
            mask[:] = False
            mask[np.unique(number, return_index=True)[1]] = True
        return mask

    # --- changes -----------------------------------------------------------------------------------------------------

    def take(self, ticks: IntArray, sites: IntArray, numbers: IntArray, sees: Callable[[IntArray], BoolArray]) -> None:
        """Let tuples hold their keys, each key once. `numbers` are the indexes of the tuples.

        `sees` maps indexes of tuples to a mask of those that windows see.
        """
        keys = self._keys(ticks, sites)
        rows = self._rows_for(keys.ticks)
        at = self._at(keys, rows)
        self._count_reports(keys, rows, ~self._reported_at(at))
        self._holder.reshape(-1)[at] = numbers
        if self._seen is not None:
            before = self._seen.take(at)
            self._seen.reshape(-1)[at] = np.where(sees(before), before, numbers)

    def report(self, ticks: IntArray, sites: IntArray, arrivals: IntArray) -> None:
        """Record that motes filtered these readings. Repeated reports keep the earliest arrival tick."""
        keys = self._keys(ticks, sites)
        rows = self._rows_for(keys.ticks)
        at = self._at(keys, rows)
        self._count_reports(keys, rows, self.first_of_each(ticks, sites) & ~self._reported_at(at))
        if self._filtered is None:
            self._filtered = np.full(self._holder.shape, NEVER)
        np.minimum.at(self._filtered.reshape(-1), at, arrivals)

    def _count_reports(self, keys: EpochKeys, rows: IntArray, new: BoolArray) -> None:
        """Count the entries under a mask as sites that report for the first time."""
        if len(new):
            np.add.at(self._reported, rows, keys.of_runs(new))

    def release(self, ticks: IntArray, sites: IntArray) -> None:
        """Free keys. Their sites still count as reported."""
        keys = self._keys(ticks, sites)
        if self._seen is None:
            self._seen = self._holder.copy()
        self._holder.reshape(-1)[self._at(keys, self._rows_of(keys.ticks)[0])] = FREE

    def watermark(self, clock: int) -> int:
        """The last tick up to which every epoch has all its reports or is older than `wait`, at the end of tick `clock`."""
        due = grid_at_or_after(max(clock - self.wait + 1, self.begun), self.interval)
        at = int(np.searchsorted(self._ticks, due)) if due <= clock else 0
        while due <= clock:
            if at >= len(self._ticks) or self._ticks[at] != due or self._reported[self._row[at]] < len(self.sites):
                return clock if not len(self.sites) else due - 1
            due, at = due + self.interval, at + 1
        return clock

    def seen_at(self, ticks: IntArray) -> IntArray:
        """The indexes of the visible tuples of epochs, shape (epochs, sites); FREE where there is none."""
        rows, known = self._rows_of(ticks)
        if not known.any():
            return np.full((len(ticks), len(self.sites)), FREE)
        found = self._visible.take(rows, axis=0)
        return found if known.all() else np.where(known[:, None], found, FREE)

    def filtered_at(self, ticks: IntArray) -> IntArray:
        """The arrival ticks of filter reports, shape (epochs, sites); NEVER where there is none."""
        rows, known = self._rows_of(ticks)
        if self._filtered is None or not known.any():
            return np.full((len(ticks), len(self.sites)), NEVER)
        return np.where(known[:, None], self._filtered[rows], NEVER)

    def forget(self, before: int) -> None:
        """Drop the epochs before a tick that the watermark has passed."""
        dropped = int(np.searchsorted(self._ticks, before))
        free = self._row[:dropped]
        self._ticks, self._row = self._ticks[dropped:], self._row[dropped:]
        if self._used > 2 * len(self._row):
            self._change(lambda array, blank: array[self._row])
            self._used, self._row, self._free = len(self._row), np.arange(len(self._row)), free[:0]
        elif dropped:
            self._change(lambda array, blank: _blank_rows(array, free, blank))
            self._free = np.append(self._free, free)


def _blank_rows(array: AnyArray, rows: IntArray, blank: int) -> AnyArray:
    array[rows] = blank
    return array


def _longer(array: AnyArray, length: int, blank: int) -> AnyArray:
    """The array with blank rows appended, up to `length` rows."""
    more = np.full((length - len(array), *array.shape[1:]), blank, array.dtype)
    return np.concatenate([array, more])

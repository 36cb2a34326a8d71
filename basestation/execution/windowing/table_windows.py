"""Scanning: windows over a table: what it holds at each multiple of an interval, or once; asked as those of `windowing.py` are."""

import numpy as np

from acquisition.ticks import grid_at_or_after
from basestation.execution.columns.next_due import DUE_NOW, NEVER_DUE, NextDue
from basestation.execution.columns.window_batch import NEVER, NO_WINDOWS, make_windows
from basestation.execution.columns.window_contents import WindowContents


class ScanWindows:
    """Scan: at each multiple of the interval what a table holds then (1.6). `table` is a Table, or Archived."""

    level = 0

    def __init__(self, table, interval, columns, start):
        self.table, self.interval, self._columns = table, interval, columns
        self._next = self.needed = grid_at_or_after(start, interval)  # no tick before it is asked for again

    @property
    def watermark(self):
        return self.table.watermark

    certain = watermark

    def due(self, upto):
        ticks = np.arange(self._next, upto + 1, self.interval)
        if not len(ticks):
            return NO_WINDOWS
        self._next = int(ticks[-1]) + self.interval
        return make_windows(ticks, np.ones_like(ticks), ticks, ticks)

    @property
    def next_due(self):
        return DUE_NOW if self.may_be_dirty else NextDue(self._next)

    @property
    def may_be_dirty(self):
        return self.table.changed_from < NEVER

    def dirty(self, given):
        return given.tick >= self.table.changed_from

    def apply(self):
        self.table.apply()

    def content(self, given):
        return self.table.frame(self._columns, given.tick)

    def covers(self, given):
        return []

    def empty_covers(self):
        return []

    def empty(self, count):
        none = self.table.frame(self._columns, np.array([-NEVER]))
        return WindowContents(count, none.window, none.columns)

    def final(self, before, given):
        return given.tick < before

    def forget(self, before, kept):
        self.needed = min(self._next, int(kept.tick.min(initial=NEVER)))


class OnceWindow(ScanWindows):
    """Once: one window at the query's start (2.6)."""

    def __init__(self, table, columns, start):
        self.table, self._columns = table, columns
        self._start = self._next = self.needed = start
        self._given = False

    @property
    def next_due(self):
        return NEVER_DUE if self._given else NextDue(self._start)

    def due(self, upto):
        if self._given or upto < self._start:
            return NO_WINDOWS
        self._given = True
        at = np.array([self._start])
        return make_windows(at, np.ones_like(at), at, at)

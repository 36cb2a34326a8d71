"""History: all versions of the tuples of a sensed or pushed extent, read as a stored extent (semantics 10.7).

`History` holds them in memory, from when a query reads them. `HistoryTable` is how one input of a query reads a history.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from acquisition.arrays import IntArray
from acquisition.extent import Extent
from basestation.algebra.expression import Column
from basestation.algebra.vector import Vector
from basestation.execution.columns.dense_id_map import DenseIdMap
from basestation.execution.columns.tuples import TupleBuffer, Tuples, empty_like
from basestation.execution.columns.window_batch import expand_ranges
from basestation.execution.columns.window_contents import WindowContents
from basestation.progress.watermark import NEVER

_VERSION, _SINCE = "_version", "_since"  # columns beside the attributes: a version's number, and its first tick


@dataclass(frozen=True, slots=True)
class HistoryPosition:
    """How far a reader has read: tuple numbers below `tuples`, and indexes up to `indexes`."""

    tuples: int
    indexes: int


class History:
    """Versions of tuples. Scans see a version from its first tick to the one before its end.

    The first version of a tuple begins at its arrival, whenever it was delivered. A correction in clock tick d ends a version at
    d, and begins another there.
    """

    def __init__(self, none: Tuples) -> None:
        """`none` has no tuples, and all columns."""
        self._none = self._versioned(none, none.ident, none.arrival)
        self._held = TupleBuffer()
        self._sorted: Tuples | None = None
        self._end = DenseIdMap(np.int64)  # by version
        self._current = DenseIdMap(np.int64)  # the version that a tuple has now, by tuple number
        self._index = DenseIdMap(np.int64)  # by tuple number
        self._versions = 0
        self.mark = HistoryPosition(0, 0)
        self.changed_from = NEVER  # scans at earlier ticks see nothing of this step

    # --- changes -----------------------------------------------------------------------------------------------------

    def begin_step(self) -> None:
        """Start to track the changes of a step."""
        self.changed_from = NEVER

    def add(self, tuples: Tuples) -> None:
        """Add new tuples, in the order of their numbers."""
        if len(tuples):
            self._put(tuples, tuples.arrival)
            self.mark = HistoryPosition(int(tuples.ident[-1]) + 1, self.mark.indexes)
            self.changed_from = min(self.changed_from, int(tuples.arrival.min()))

    def end(self, numbers: IntArray, clock: int) -> None:
        """End the current versions of tuples: scans from a clock tick on do not see them."""
        self._end[self._current[numbers]] = clock

    def correct(self, tuples: Tuples, clock: int) -> None:
        """Give tuples these values from a clock tick on."""
        self.end(tuples.ident, clock)
        self._put(tuples, np.maximum(tuples.arrival, clock))

    def enter(self, numbers: IntArray, indexes: IntArray, arrivals: IntArray) -> None:
        """Record the indexes of tuples that entered their stream."""
        if len(numbers):
            self._index[numbers] = indexes
            self.mark = HistoryPosition(self.mark.tuples, int(indexes[-1]))
            self.changed_from = min(self.changed_from, int(arrivals.min()))

    def forget(self, before: int) -> None:
        """Drop versions that no scan at or after a tick sees."""
        held = self._held.all()
        if held is not None:
            self._held.keep(self._end[held.columns[_VERSION].values] > before)
            self._sorted = None

    def _put(self, tuples: Tuples, since: IntArray) -> None:
        versions = self._versions + np.arange(len(tuples))
        self._versions += len(tuples)
        self._end[versions] = NEVER
        self._current[tuples.ident] = versions
        self._held.add(self._versioned(tuples, versions, since))
        self._sorted = None

    def _versioned(self, tuples: Tuples, versions: IntArray, since: IntArray) -> Tuples:
        return tuples.with_columns({**tuples.columns, _VERSION: Vector(versions), _SINCE: Vector(since)})

    # --- scans -------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of versions held."""
        return len(self._held)

    def versions(self) -> Tuples:
        """Return all versions, in the order of the arrivals of their tuples."""
        held = self._held.all()
        if self._sorted is None and held is not None:
            self._sorted = held.in_order()
        return empty_like(self._none) if self._sorted is None else self._sorted

    def find_seen(self, ticks: IntArray, mark: HistoryPosition) -> tuple[IntArray, IntArray]:
        """Return (the positions among all versions of those that a scan at each tick sees, no further than `mark`; how many it sees)."""
        held = self.versions()
        since, end = held.columns[_SINCE].values, self._end[held.columns[_VERSION].values]
        if bool(((since == held.arrival) & (end == NEVER) & (held.ident < mark.tuples)).all()):  # nothing was corrected
            counts = np.searchsorted(held.arrival, ticks, "right")
            return expand_ranges(np.zeros_like(counts), counts), counts
        found = [np.empty(0, np.int64)]
        for tick in ticks.tolist():
            count = int(np.searchsorted(held.arrival, tick, "right"))
            there = (since[:count] <= tick) & (tick < end[:count]) & (held.ident[:count] < mark.tuples)
            found.append(np.flatnonzero(there))
        return np.concatenate(found), np.array(list(map(len, found[1:])), np.int64)

    def indexes_of(self, numbers: IntArray, mark: HistoryPosition) -> Vector:
        """Return the indexes of tuples, null where they have none up to `mark`."""
        index = self._index[numbers]
        return Vector(index, (index > 0) & (index <= mark.indexes))


class ArchivedIntake(Protocol):
    """An intake that can keep a history of its tuples."""

    @property
    def extent(self) -> Extent:
        """The extent of the tuples."""

    @property
    def sensed(self) -> bool:
        """Whether the tuples have sites."""

    @property
    def watermark(self) -> int:
        """The last complete tick."""

    def keep_history(self) -> History:
        """Keep the history from now on, and return it."""


class HistoryTable:
    """A ScannedTable over a history, for one input of one query.

    It sees the history as it was when the query took its last step, so that an answer can be reproduced before it is revised.
    """

    def __init__(self, intake: "ArchivedIntake") -> None:
        self._intake, self._history = intake, intake.keep_history()
        self._mark = self._history.mark

    @property
    def extent(self) -> Extent:
        return self._intake.extent

    def __len__(self) -> int:
        return len(self._history)

    @property
    def watermark(self) -> int:
        return self._intake.watermark

    @property
    def lag(self) -> int:
        return 0 if self._intake.sensed else self.extent.wait

    @property
    def changed_from(self) -> int:
        return self._history.changed_from

    def apply(self) -> None:
        """Read on to the end of the history."""
        self._mark = self._history.mark

    def frame(self, columns: Sequence[Column], ticks: IntArray) -> WindowContents:
        """Return the tuples that scans at these ticks see, each scan as one window."""
        at, counts = self._history.find_seen(ticks, self._mark)
        window = np.repeat(np.arange(len(ticks)), counts)
        return WindowContents(len(ticks), window, {c.id: self._column(c.name, at) for c in columns})

    def _column(self, name: str | None, at: IntArray) -> Vector:
        """Return a column of the versions at some positions."""
        held = self._history.versions()
        match name:
            case "tick":
                return Vector(held.tick[at])
            case "index":
                return self._history.indexes_of(held.ident[at], self._mark)
            case "_site":
                return Vector(held.site[at], None if self._intake.sensed else np.zeros(len(at), bool))
            case "_arrival":
                return Vector(held.arrival[at])
        return held.columns[name].take(at)

"""History: the archived tuples of a sensed or pushed extent, every version of them, as a stored extent (SEMANTICS 10.7).

`History` is what is in memory, kept for one extent from when a query reads it. `HistoryTable` is how one input of a query
reads it, and all that it asks are `at`, `empty`, `mark` and `changed_from`: what lies in files may stand behind these too.
"""

from dataclasses import dataclass

import numpy as np

from basestation.algebra.vector import Vector
from basestation.execution.columns.dense_id_map import DenseIdMap
from basestation.execution.columns.tuples import TupleBuffer, concatenate_tuples, empty_like
from basestation.execution.columns.window_contents import WindowContents
from basestation.progress.watermark import NEVER

_VERSION, _SINCE = "_version", "_since"  # columns beside the attributes: a version's number, and its first tick


@dataclass(frozen=True, slots=True)
class HistoryPosition:
    """How much of a history somebody has seen: tuples up to a number, and indexes up to one."""

    tuples: int
    indexes: int


class History:
    """A version of a tuple is seen by scans from its first tick to the one before its `_end`.

    The first version is seen from the tuple's arrival on, whenever it was delivered; a correction at clock tick d ends a
    version at d, and another begins there.
    """

    def __init__(self, none):
        """`none` are no tuples, with all columns."""
        self._none = self._versioned(none, 0, none.arrival)
        self._held, self._sorted = TupleBuffer(), None
        self._end = DenseIdMap(np.int64)  # by version
        self._current = DenseIdMap(np.int64)  # the version that a tuple has now, by tuple
        self._index = DenseIdMap(np.int64)
        self._versions = 0
        self.mark = HistoryPosition(0, 0)
        self.changed_from = NEVER  # scans at earlier ticks see nothing of this step

    # --- what happens ------------------------------------------------------------------------------------------------

    def begin_step(self):
        self.changed_from = NEVER

    def add(self, tuples):
        """Tuples that were taken, in the order of their numbers."""
        if len(tuples):
            self._put(tuples, tuples.arrival)
            self.mark = HistoryPosition(int(tuples.ident[-1]) + 1, self.mark.indexes)
            self.changed_from = min(self.changed_from, int(tuples.arrival.min()))

    def end(self, numbers, clock):
        """Tuples are taken back, or get other values: these are not seen from a clock tick on."""
        self._end[self._current[numbers]] = clock

    def correct(self, tuples, clock):
        """Tuples have these values from a clock tick on."""
        self.end(tuples.ident, clock)
        self._put(tuples, np.maximum(tuples.arrival, clock))

    def enter(self, numbers, indexes, arrivals):
        """Tuples that entered their stream have these indexes."""
        if len(numbers):
            self._index[numbers] = indexes
            self.mark = HistoryPosition(self.mark.tuples, int(indexes[-1]))
            self.changed_from = min(self.changed_from, int(arrivals.min()))

    def forget(self, before):
        """Let go of versions that no scan at or after a tick sees."""
        held = self._held.all()
        if held is not None:
            self._held.keep(self._end[held.columns[_VERSION].values] > before)
            self._sorted = None

    def _put(self, tuples, since):
        versions = self._versions + np.arange(len(tuples))
        self._versions += len(tuples)
        self._end[versions] = NEVER
        self._current[tuples.ident] = versions
        self._held.add(self._versioned(tuples, versions, since))
        self._sorted = None

    def _versioned(self, tuples, versions, since):
        numbers = np.zeros(len(tuples), np.int64) + versions
        return tuples.with_columns({**tuples.columns, _VERSION: Vector(numbers), _SINCE: Vector(since)})

    # --- what is seen ------------------------------------------------------------------------------------------------

    def at(self, tick, mark):
        """The tuples that a scan at a tick sees, in the order of arrival, and their indexes; no more than `mark` says."""
        held = self._in_order()
        if held is None:
            return self._none, Vector(self._none.ident)
        held = held.take(slice(0, int(np.searchsorted(held.arrival, tick, "right"))))
        seen = (held.columns[_SINCE].values <= tick) & (tick < self._end[held.columns[_VERSION].values])
        found = held.take(seen & (held.ident < mark.tuples))
        index = self._index[found.ident]
        return found, Vector(index, (index > 0) & (index <= mark.indexes))

    def _in_order(self):
        held = self._held.all()
        if self._sorted is None and held is not None:
            self._sorted = held.in_order()
        return self._sorted

    @property
    def none(self):
        return empty_like(self._none)


class HistoryTable:
    """A history as a table, for one input of one query.

    It sees what was there when the query took its last step, so that an answer can be looked at as it was.
    """

    def __init__(self, intake):
        self._intake, self._history = intake, intake.keep_history()
        self._mark = self._history.mark

    @property
    def extent(self):
        return self._intake.extent

    @property
    def watermark(self):
        return self._intake.watermark

    @property
    def changed_from(self):
        return self._history.changed_from

    def apply(self):
        self._mark = self._history.mark

    def frame(self, columns, ticks):
        """What scans at these ticks see, each as a window."""
        found = [self._history.at(tick, self._mark) for tick in ticks]
        tuples = concatenate_tuples([self._history.none, *(seen for seen, _ in found)])
        index = Vector(np.concatenate([[], *(v.values for _, v in found)]).astype(np.int64),
                       np.concatenate([[], *(v.validity for _, v in found)]).astype(bool))  # fmt: skip
        system = {
            "tick": Vector(tuples.tick),
            "index": index,
            "_site": Vector(tuples.site, None if self._intake.sensed else np.zeros(len(tuples), bool)),
            "_arrival": Vector(tuples.arrival),
        }
        window = np.repeat(np.arange(len(ticks)), [len(seen) for seen, _ in found])
        values = {**tuples.columns, **system}
        return WindowContents(len(ticks), window, {c.id: values[c.name] for c in columns})

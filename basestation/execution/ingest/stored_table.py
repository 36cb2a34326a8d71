"""Tables: the versions of a stored extent (SEMANTICS 1.6)."""

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from acquisition.batch import dtype_of
from basestation.algebra.vector import Vector, constant
from basestation.execution.columns.integer_arrays import rank_distinct
from basestation.execution.columns.tuples import concatenate_vectors
from basestation.execution.columns.window_contents import WindowContents
from basestation.progress.watermark import NEVER


@dataclass(frozen=True, slots=True)
class TableVersion:
    tick: int
    length: int
    columns: dict[str, Vector]


class StoredTable:
    """The newest version with tick at or before t is what a scan at t sees; before the first, nothing."""

    watermark = changed_from = NEVER  # what was seen once stays

    def __init__(self, extent):
        self.extent = extent
        nothing = {a.name: Vector(np.empty(0, dtype_of(a))) for a in extent.schema}
        self._versions = [TableVersion(-(2**63), 0, nothing)]

    @property
    def begun(self):
        """The tick of the first version."""
        return self._versions[1].tick if len(self._versions) > 1 else NEVER

    def load(self, tick, columns):
        """Add a version; one at the same tick replaces it."""
        length = len(next(iter(columns.values()))) if columns else 0
        version = TableVersion(tick, length, dict(columns))
        at = bisect_right(self._versions, tick, key=lambda v: v.tick)
        if self._versions[at - 1].tick == tick:
            self._versions[at - 1] = version
        else:
            self._versions.insert(at, version)

    def at(self, tick):
        return self._versions[bisect_right(self._versions, tick, key=lambda v: v.tick) - 1]

    def seen(self, ticks):
        """(the versions that scans at some ticks see, each once and in order; for each tick the place of its version)."""
        begun = np.array([version.tick for version in self._versions])
        places = np.searchsorted(begun, ticks, "right") - 1
        if len(places) and int(places.min()) == int(places.max()):
            return [self._versions[int(places[0])]], constant(0, len(places))
        places, which = rank_distinct(places)
        return [self._versions[place] for place in places.tolist()], which

    def apply(self):
        pass

    def frame(self, columns, ticks):
        """The versions at some ticks, each as a window."""
        versions = [self.at(tick) for tick in ticks]
        window = np.repeat(np.arange(len(ticks)), [v.length for v in versions])
        return WindowContents(
            len(ticks), window, {c.id: concatenate_vectors([v.columns[c.name] for v in versions]) for c in columns}
        )

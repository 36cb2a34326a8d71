"""StoredTable: the versions of a stored extent (semantics 1.6)."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from acquisition.arrays import IntArray
from acquisition.batch import dtype_of
from acquisition.extent import Extent
from basestation.algebra.expression import Column
from basestation.algebra.vector import Vector, constant
from basestation.execution.columns.integer_arrays import rank_distinct
from basestation.execution.columns.tuples import concatenate_vectors
from basestation.execution.columns.window_contents import WindowContents
from basestation.progress.watermark import NEVER


@dataclass(frozen=True, slots=True)
class TableVersion:
    """The rows that scans see from `tick` on, until the next version."""

    tick: int
    length: int
    columns: Mapping[str, Vector]


class StoredTable:
    """A ScannedTable. A scan at tick t sees the newest version with a tick at or before t; before the first, no rows."""

    watermark = changed_from = NEVER  # a version is loaded before scans can see it
    lag = 0

    def __init__(self, extent: Extent) -> None:
        self.extent = extent
        nothing = {a.name: Vector(np.empty(0, dtype_of(a))) for a in extent.schema}
        self._versions = [TableVersion(-(2**63), 0, nothing)]

    def __len__(self) -> int:
        return max(version.length for version in self._versions)

    @property
    def loaded(self) -> list[TableVersion]:
        """The loaded versions, in the order of ticks."""
        return self._versions[1:]

    @property
    def begun(self) -> int:
        """The tick of the first version."""
        return self._versions[1].tick if len(self._versions) > 1 else NEVER

    @property
    def versions(self) -> list[tuple[int, int]]:
        """(first tick, number of rows) of each version."""
        return [(version.tick, version.length) for version in self._versions[1:]]

    def load(self, tick: int, columns: Mapping[str, Vector]) -> None:
        """Add a version; it replaces one with the same tick."""
        length = len(next(iter(columns.values()))) if columns else 0
        version = TableVersion(tick, length, dict(columns))
        at = bisect_right(self._versions, tick, key=lambda v: v.tick)
        if self._versions[at - 1].tick == tick:
            self._versions[at - 1] = version
        else:
            self._versions.insert(at, version)

    def at(self, tick: int) -> TableVersion:
        """Return the version that a scan at a tick sees."""
        return self._versions[bisect_right(self._versions, tick, key=lambda v: v.tick) - 1]

    def seen(self, ticks: IntArray) -> tuple[list[TableVersion], IntArray]:
        """Return (the versions that scans at these ticks see, each once and in order; for each tick the position of its version)."""
        begun = np.array([version.tick for version in self._versions])
        places = np.searchsorted(begun, ticks, "right") - 1
        if len(places) and int(places.min()) == int(places.max()):
            return [self._versions[int(places[0])]], constant(0, len(places))
        places, which = rank_distinct(places)
        return [self._versions[place] for place in places.tolist()], which

    def apply(self) -> None:
        """Do nothing: versions do not change."""

    def frame(self, columns: Sequence[Column], ticks: IntArray) -> WindowContents:
        """Return the rows that scans at these ticks see, each scan as one window."""
        versions = [self.at(tick) for tick in ticks.tolist()]
        window = np.repeat(np.arange(len(ticks)), [v.length for v in versions])
        return WindowContents(
            len(ticks),
            window,
            {c.id: concatenate_vectors([v.columns[c.name or ""] for v in versions]) for c in columns},
        )

"""TupleOutput: the base of the outputs that emit tuples as they enter a stream, with epoch marks between them."""

from collections.abc import Sequence

import numpy as np

from acquisition.arrays import IntArray
from basestation.algebra.expression import Column
from basestation.execution.columns.tuples import Tuples
from basestation.execution.graph import OUTPUT, Operator
from basestation.execution.output.epoch_marks import UNASSIGNED
from basestation.updates.update import Rows, TupleUpdates


class TupleOutput(Operator):
    """An Output that shows `_columns` of the tuples of a stream."""

    kind = OUTPUT
    title = "emit tuples"
    tracks_versions = False
    _columns: Sequence[Column]
    _needed: int

    def need(self, before: int) -> None:
        """Promise that nothing changes before a tick of the extents below."""
        self._needed = min(self._needed, before)

    def _make_updates(self, tuples: Tuples, index: IntArray, weight: int) -> TupleUpdates:
        """Tuples to give (weight 1) or take back (-1), under these indexes."""
        rows = Rows(tuple(tuples.columns[column.id] for column in self._columns), len(tuples))
        return TupleUpdates(UNASSIGNED, tuples.tick, index, np.full(len(tuples), weight, np.int64), rows)

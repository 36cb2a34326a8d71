"""Change: what happened to a stream in one step, as a difference: tuples that came, tuples that are gone.

A tuple whose values were corrected is in both, under one ident. `touched` are the ticks whose coverage may have changed,
whether or not a tuple passed; `watermark` is how far the stream's time is complete now.
"""

import numpy as np

from basestation.algebra.record import record
from basestation.execution.columns.integer_arrays import distinct
from basestation.execution.columns.tuple_versions import TupleVersions
from basestation.execution.columns.tuples import Tuples
from basestation.execution.columns.window_batch import NEVER

NO_TICKS = np.empty(0, np.int64)
NO_KEYS = np.empty((0, 2), np.int64)
"""Keys of windows or epochs: tick, and which one of those of that tick."""


@record
class Change:
    """`fresh` marks those of `come` that the stream did not have before; `gone` have the values that they had.

    Where many clock ticks are one step, and tuples were amended in it, their `versions` say in which of them. These tuples
    are not in `come`.
    """

    inserted: Tuples
    is_new: np.ndarray
    removed: Tuples
    dirty_ticks: np.ndarray
    watermark: int
    marks: tuple = ()
    versions: TupleVersions | None = None

    @property
    def arrived(self):
        """How many tuples came."""
        return len(self.inserted) + (0 if self.versions is None else self.versions.stand)

    def ticks(self, upto):
        """The ticks up to one at which anything may look different now."""
        return distinct(np.concatenate([ticks[ticks <= upto] for ticks in self._ticks]))

    @property
    def first(self):
        """The first of them; NEVER where there are none."""
        return min((int(ticks.min()) for ticks in self._ticks if len(ticks)), default=NEVER)

    @property
    def _ticks(self):
        versions = () if self.versions is None else (self.versions.tuples.tick,)
        return self.inserted.tick, self.removed.tick, self.dirty_ticks, *versions

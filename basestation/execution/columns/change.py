"""Change: the difference that one step makes to a stream, as inserted and removed tuples."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.record import record
from basestation.execution.columns.integer_arrays import distinct
from basestation.execution.columns.tuple_versions import TupleVersions
from basestation.execution.columns.tuples import Tuples, concatenate_tuples
from basestation.execution.columns.window_batch import NEVER

if TYPE_CHECKING:
    from basestation.execution.columns.punctuation import Punctuation

NO_TICKS: IntArray = np.empty(0, np.int64)
NO_KEYS: IntArray = np.empty((0, 2), np.int64)
"""Keys of windows or epochs: the tick, and the number among those of the same tick."""


@record
class Change:
    """A corrected tuple is in both `inserted` and `removed`, under one ident; `removed` has the former values.

    `is_new` masks the inserted tuples that the stream did not have before. `dirty_ticks` are ascending ticks whose coverage may
    have changed, even if no tuple passed. `watermark` is the last complete tick.

    If one step ends several clock ticks and tuples were corrected in them, `versions` says which in what tick. Those tuples are
    not in `inserted`.
    """

    inserted: Tuples
    is_new: BoolArray
    removed: Tuples
    dirty_ticks: IntArray
    watermark: int
    marks: "Sequence[Punctuation]" = ()
    versions: TupleVersions | None = None

    def undo(self, tuples: Tuples, low: int, high: int) -> Tuples:
        """Return what the stream had from tick low to tick high before the change; `tuples` are what it has now."""
        later = [self.inserted.ident] if self.versions is None else [self.inserted.ident, self.versions.tuples.ident]
        removed = self.removed.take((self.removed.tick >= low) & (self.removed.tick <= high))
        return concatenate_tuples([tuples.take(~np.isin(tuples.ident, np.concatenate(later))), removed])

    @property
    def inserted_count(self) -> int:
        """How many tuples the step inserted, versions included."""
        return len(self.inserted) + (0 if self.versions is None else self.versions.live_count)

    def ticks(self, upto: int) -> IntArray:
        """Return the distinct ticks up to `upto` at which anything may differ now."""
        return distinct(np.concatenate([ticks[ticks <= upto] for ticks in self._ticks]))

    @property
    def first(self) -> int:
        """The first tick at which anything may differ now; NEVER if there is none."""
        return min((int(ticks.min()) for ticks in self._ticks if len(ticks)), default=NEVER)

    @property
    def _ticks(self) -> tuple[IntArray, ...]:
        versions = () if self.versions is None else (self.versions.tuples.tick,)
        return self.inserted.tick, self.removed.tick, self.dirty_ticks, *versions

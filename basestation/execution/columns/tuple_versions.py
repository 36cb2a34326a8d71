"""TupleVersions: how late and corrected tuples stood in each of the clock ticks that one step ends.

All other tuples stand the whole time as they do at the end of the step.
"""

from dataclasses import dataclass, replace

import numpy as np

from acquisition.arrays import IntArray
from basestation.algebra.vector import Selection
from basestation.execution.columns.tuples import Tuples, concatenate_tuples
from basestation.execution.columns.window_batch import NEVER


@dataclass(frozen=True, slots=True)
class TupleVersions:
    """Version i is tuples[i], as seen from clock tick valid_from[i] to before valid_to[i]. A tuple may have several versions.

    The step ends the clock ticks `first` to `last`. Each window is answered `wait` ticks after its own.
    """

    tuples: Tuples
    valid_from: IntArray  # -NEVER: since before the step
    valid_to: IntArray  # NEVER: still at the end of the step
    first: int
    last: int
    wait: int

    def __len__(self) -> int:
        return len(self.valid_from)

    def select(self, tuples: Tuples, which: Selection) -> "TupleVersions":
        """Return the selected versions with `tuples`, what a stream makes of them."""
        return replace(self, tuples=tuples, valid_from=self.valid_from[which], valid_to=self.valid_to[which])

    def with_constant(self, tuples: Tuples) -> "TupleVersions":
        """Return these versions and tuples that stand the whole time."""
        valid_from, valid_to = (
            np.append(known, np.full(len(tuples), at))
            for known, at in ((self.valid_from, -NEVER), (self.valid_to, NEVER))
        )
        return replace(self, tuples=concatenate_tuples([self.tuples, tuples]), valid_from=valid_from, valid_to=valid_to)

    @property
    def live_count(self) -> int:
        """How many tuples stand at the end of the step."""
        return int(np.count_nonzero(self.valid_to == NEVER))

    @property
    def live(self) -> Tuples:
        """The tuples that stand at the end of the step."""
        return self.tuples.take(self.valid_to == NEVER)

    def first_answered(self, ticks: IntArray | int) -> IntArray:
        """Return the clock tick in which the window of each tick was first answered, within the step."""
        return np.clip(ticks + self.wait, self.first, self.last)

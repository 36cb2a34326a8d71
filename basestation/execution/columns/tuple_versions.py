"""Versions: how tuples stood in the clock ticks of a step: those that came late in it, and those that it corrected.

All others stand all the time as they do at its end, as soon as somebody may ask for them.
"""

from dataclasses import dataclass, replace

import numpy as np

from basestation.execution.columns.tuples import Tuples, concatenate_tuples
from basestation.execution.columns.window_batch import NEVER


@dataclass(frozen=True, slots=True)
class TupleVersions:
    """`tuples` stood like this from clock tick `born` on to before `died`; of one of them there may be several versions.

    The step ends the clock ticks `first` to `last`, and each window `wait` after its tick.
    """

    tuples: Tuples
    valid_from: np.ndarray  # -NEVER: before anybody asked for it
    valid_to: np.ndarray  # NEVER: it stands at the end of the step
    first: int
    last: int
    wait: int

    def __len__(self):
        return len(self.valid_from)

    def seen(self, tuples, mask):
        """The same as a stream gives them that lets those under a mask pass: as `tuples`."""
        return replace(self, tuples=tuples, valid_from=self.valid_from[mask], valid_to=self.valid_to[mask])

    def beside(self, tuples):
        """The same, and tuples that stood all the time."""
        valid_from, valid_to = (
            np.append(of, np.full(len(tuples), at)) for of, at in ((self.valid_from, -NEVER), (self.valid_to, NEVER))
        )
        return replace(self, tuples=concatenate_tuples([self.tuples, tuples]), valid_from=valid_from, valid_to=valid_to)

    @property
    def stand(self):
        """How many tuples stand at the end of the step."""
        return int(np.count_nonzero(self.valid_to == NEVER))

    @property
    def standing(self):
        """These tuples."""
        return self.tuples.take(self.valid_to == NEVER)

    def answered(self, ticks):
        """In which clock tick windows were first answered that were not before the step."""
        return np.clip(ticks + self.wait, self.first, self.last)

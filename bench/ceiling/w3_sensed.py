"""W3s by hand: W3 in which readings wait until their epoch is complete, and vehicles until the epoch before them is.

A closed window of ten minutes has the readings of eleven epochs: one at the minute itself counts, too.
"""

import numpy as np

from bench.ceiling import w3_last_eleven
from bench.ceiling.complete_epochs import CompleteEpochs
from bench.data import MINUTE

_NONE = np.empty(0, np.int64)


class HeldBack:
    """Passes on complete epochs, and the vehicles up to the first epoch that is not complete."""

    def __init__(self, case, streams):
        super().__init__(case, streams)
        self._epochs, self._later = CompleteEpochs(case.sites), (_NONE, _NONE, _NONE)

    def step(self, batch):
        reading, vehicle, last = batch
        _, complete = self._epochs.take((_NONE,) * 5 if reading is None else reading, last)
        until = min(last, self._epochs.first * MINUTE - 1)
        vehicle = [np.concatenate(parts) for parts in zip(self._later, vehicle, strict=True)]
        behind = int(np.searchsorted(vehicle[0], until, "right"))
        self._later = [column[behind:] for column in vehicle]
        return super().step((complete if len(complete[0]) else None, [column[:behind] for column in vehicle], until))


class Ceiling(HeldBack, w3_last_eleven.Ceiling):
    FIRST = 0

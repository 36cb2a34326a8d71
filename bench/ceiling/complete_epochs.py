"""Readings of a sensed extent wait until their epoch is complete: all declared sites are here, or the wait is over."""

import numpy as np

from bench.data import MINUTE

WAIT = 10_000  # ms


class CompleteEpochs:
    """Epochs are full minutes; `first` is the first one that was not given."""

    def __init__(self, sites):
        self._sites, self.first = sites, 0
        self._waiting = []

    def take(self, columns, last):
        """Return (how many epochs are complete now, the columns of their readings). The first column has ticks."""
        self._waiting.append(columns)
        columns = [np.concatenate(parts) for parts in zip(*self._waiting, strict=True)]
        minute = columns[0] // MINUTE - self.first
        counts = np.bincount(minute)
        full = int(np.argmin(np.append(counts == self._sites, False)))  # up to the first that is not
        epochs = max(full, (last - WAIT) // MINUTE + 1 - self.first, 0)
        over = int(np.searchsorted(minute, epochs))
        self._waiting = [[column[over:] for column in columns]]
        self.first += epochs
        return epochs, [column[:over] for column in columns]

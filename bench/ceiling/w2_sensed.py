"""W2s by hand: all sites report on the minute; a closed window of ten minutes has the readings of eleven epochs.

Complete epochs become rows of matrices, as in W2. Of each site and epoch there is at most one reading.
"""

import numpy as np

from bench.answers import Windows
from bench.ceiling.codes import Codes
from bench.ceiling.complete_epochs import CompleteEpochs
from bench.ceiling.exact import means, split
from bench.ceiling.rows import Rows
from bench.data import MINUTE

REACH = 11  # epochs


class Ceiling:
    def __init__(self, case, streams):
        self._epochs, self._codes = CompleteEpochs(case.sites), Codes()
        blanks = ((np.minimum, np.inf), (np.maximum, -np.inf), (np.add, 0), (np.add, 0), (np.add, 0))
        self._rows = [Rows(fold, blank, REACH) for fold, blank in blanks]

    def prepare(self, parts, last):
        road = parts["road"]
        return road.tick, road.columns["site"], road.columns["vibration"], last

    def step(self, batch):
        *columns, last = batch
        first = self._epochs.first
        epochs, (tick, site, value) = self._epochs.take(columns, last)
        return [self._answer(first, epochs, tick // MINUTE - first, self._codes.of(site), value)] if epochs else []

    def _answer(self, first, epochs, minute, code, value):
        sites, at = len(self._codes), np.arange(epochs)
        cell = minute * sites + code
        counts = np.bincount(cell, minlength=epochs * sites)
        if counts.max(initial=0) > 1:
            raise ValueError("only one reading of each site and epoch")
        parts = (value, value, counts, *split(value))
        low, high, counts, *sums = (
            rows.fold(
                (part if part is counts else _placed(part, cell, epochs * sites, rows)).reshape(epochs, sites), at
            ).reshape(-1)
            for rows, part in zip(self._rows, parts, strict=True)
        )
        ticks = (first + at) * MINUTE
        group, bounds = np.tile(self._codes.values, epochs), np.arange(epochs + 1) * sites
        if len(counts) and not counts.min():
            some = np.flatnonzero(counts)
            bounds = np.searchsorted(some, bounds)
            group, low, high, counts, *sums = (column[some] for column in (group, low, high, counts, *sums))
        columns = [group, low, high, means(*sums, counts), counts]
        return Windows(ticks, bounds, [(column, None) for column in columns])


def _placed(part, cell, cells, rows):
    column = np.full(cells, rows.blank, part.dtype)
    column[cell] = part
    return column

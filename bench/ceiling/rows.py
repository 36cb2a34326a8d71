"""Folds of the last rows of a matrix, for windows that reach back over so many epochs."""

import numpy as np


class Rows:
    """The last rows of one matrix, and folds of the `reach` rows up to each of some rows."""

    def __init__(self, fold, blank, reach):
        self._fold, self.blank, self._reach = fold, blank, reach
        self._kept = np.empty((0, 0), np.int64)

    def fold(self, new, at):
        wider = np.full((self._reach - 1, new.shape[1]), self.blank, new.dtype)
        if len(self._kept):
            wider[:, : self._kept.shape[1]] = self._kept
        rows = np.concatenate([wider, new])
        self._kept = rows[len(rows) - (self._reach - 1) :]
        return fold_last(self._fold, rows, self._reach)[at]


def fold_last(fold, rows, reach):
    """Fold each run of `reach` rows, made of runs of 1, 2, 4, … rows; minima and maxima may take a row twice."""
    runs, size = {1: rows}, 1
    while 2 * size <= reach:
        runs[2 * size] = fold(runs[size][size:], runs[size][:-size])
        size *= 2
    rest = reach - size
    if fold is not np.add or not rest:
        return fold(runs[size][rest:], runs[size][: len(runs[size]) - rest]) if rest else runs[size]
    count, begin, total = len(rows) - reach + 1, 0, 0
    for size in sorted(runs, reverse=True):
        if reach & size:
            total = total + runs[size][begin : begin + count]
            begin += size
    return total

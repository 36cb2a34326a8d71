"""W2 by hand: a matrix of minutes and sites; ten minutes are made of one, two, four and eight."""

import numpy as np

from bench.answers import Windows
from bench.ceiling.codes import Codes
from bench.ceiling.exact import means, split
from bench.data import MINUTE

REACH = 10  # minutes
PORTION = 1 << 16  # readings at a time: what fits into the caches
_FOLDS = ((np.minimum, np.inf), (np.maximum, -np.inf), (np.add, 0), (np.add, 0), (np.add, 0))


class Ceiling:
    """Readings wait until their minute is over. Then minutes become rows of five matrices, of which nine are kept."""

    def __init__(self, case, streams):
        self.codes = Codes()
        self._waiting = []
        self._answered = -1  # the minute of the last window that was answered
        self._kept = [np.full((REACH - 1, 0), blank) for _, blank in _FOLDS]

    def prepare(self, parts, last):
        road = parts["road"]
        return road.tick, road.columns["site"], road.columns["vibration"], last

    def step(self, batch):
        *columns, last = batch
        said = []
        for begin in range(0, len(columns[0]), PORTION):
            part = [column[begin : begin + PORTION] for column in columns]
            whole = begin + PORTION >= len(columns[0])
            said += self.answered(part, last if whole else int(part[0][-1]))
        return said

    def answered(self, columns, last, patch=None):
        """The windows that are due; `patch` tells (window, code, rows) of groups that are otherwise (W8)."""
        self._waiting.append(columns)
        minute = last // MINUTE
        if minute == self._answered:
            return []
        tick, site, value = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        over = int(np.searchsorted(tick, minute * MINUTE))
        self._waiting = [(tick[over:], site[over:], value[over:])]
        return [self._answer(minute, tick[:over], self.codes.of(site[:over]), value[:over], patch)]

    def _answer(self, minute, tick, code, value, patch):
        first, self._answered = self._answered, minute
        windows, sites = minute - first, len(self.codes)
        cell = (tick // MINUTE - first) * sites + code
        rows = [matrix.reshape(windows, sites) for matrix in self._minutes(cell, value, windows * sites)]
        folded = []
        for place, (fold, blank) in enumerate(_FOLDS):
            matrix = np.concatenate([_widened(self._kept[place], sites, blank), rows[place]])
            self._kept[place] = matrix[windows:]
            two = fold(matrix[1:], matrix[:-1])
            four = fold(two[2:], two[:-2])
            eight = fold(four[4:], four[:-4])
            folded.append(fold(eight[: -(REACH - 8)], two[8:]).reshape(-1))
        if patch is not None:
            window, codes, parts = patch()
            for column, part in zip(folded, parts, strict=True):
                column[(window - first - 1) * sites + codes] = part
        low, high, counts, *sums = folded
        ticks = (np.arange(windows) + first + 1) * MINUTE
        group = np.tile(self.codes.values, windows)
        bounds = np.arange(windows + 1) * sites
        if len(counts) and not counts.min():
            some = np.flatnonzero(counts)
            bounds = np.searchsorted(some, bounds)
            group, low, high, counts, *sums = (column[some] for column in (group, low, high, counts, *sums))
        columns = [group, low, high, means(*sums, counts), counts]
        return Windows(ticks, bounds, [(column, None) for column in columns])

    def correct(self, minute, code, parts):
        """Minutes of sites have other readings now (W8)."""
        row = minute - (self._answered - (REACH - 1))
        kept = np.flatnonzero((row >= 0) & (row < REACH - 1))
        for place, (_, blank) in enumerate(_FOLDS):
            self._kept[place] = _widened(self._kept[place], len(self.codes), blank)
            self._kept[place][row[kept], code[kept]] = parts[place][kept]

    def _minutes(self, cell, value, cells):
        """Lowest, highest, number, and both words of the sum, of each minute and site."""
        counts = np.bincount(cell, minlength=cells)
        words = split(value)
        if len(counts) and counts.max() > 1:
            order = np.argsort(cell, kind="stable")
            cell, value, *words = (column[order] for column in (cell, value, *words))
            starts = np.flatnonzero(np.diff(cell, prepend=-1))
            parts = [np.minimum.reduceat(value, starts), np.maximum.reduceat(value, starts)]
            parts += [np.add.reduceat(word, starts) for word in words]
            cell = cell[starts]
        else:
            parts = [value, value, *words]
        low, high, *sums = (
            _scattered(cell, part, cells, blank) for part, blank in zip(parts, (np.inf, -np.inf, 0, 0), strict=True)
        )
        return low, high, counts, *sums


def _scattered(cell, part, cells, blank):
    column = np.full(cells, blank, part.dtype)
    column[cell] = part
    return column


def _widened(matrix, columns, blank):
    if matrix.shape[1] == columns:
        return matrix
    wider = np.full((len(matrix), columns), blank, matrix.dtype)
    wider[:, : matrix.shape[1]] = matrix
    return wider

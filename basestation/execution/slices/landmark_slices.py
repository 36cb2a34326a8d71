"""Landmark slices: windows that all begin at one tick, merged from one running aggregate and a few open slices.

Every window to come contains the slices that ended long before, so these are merged into one: the prefix. A window that is
revised may end within the prefix. So the slices that no revision can reach any more are kept merged as well. When a revision
reaches into the prefix, it is replaced by those, and the slices behind them are folded again from the log:

    ticks       start ------------- horizon ---------------------- last answered window
    kept        [ final             ]
                [ prefix                              ][    ][    ][    ][ open slice
    unfolded    [ final             ][    ][    ][    ][    ][    ][    ][ open slice

The prefix is the running aggregate that a landmark window needs by section 4.1.2 of the TelegraphCQ paper.
"""

from dataclasses import replace

import numpy as np

from acquisition.arrays import IntArray
from basestation.execution import thresholds
from basestation.execution.columns.cells import Cells
from basestation.execution.columns.change import Change
from basestation.execution.columns.tick_spans import TickSpans
from basestation.execution.columns.tuples import Tuples
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.slices.slice_windows import SharedSlices


class LandmarkSlices(SharedSlices):
    """SharedSlices of landmark windows over a stream that has its tuples back to the horizon."""

    def clear(self) -> None:
        super().clear()
        self._unfolded_from: int | None = None  # the first tick of the prefix that is not final; None without a prefix
        self._final: list[Cells] = []  # what is final of the prefix, merged; at most one part

    def __len__(self) -> int:
        return super().__len__() + sum(map(len, self._final))

    def _all_parts(self) -> list[Cells]:
        return [*self._final, *super()._all_parts()]

    def _replace_parts(self, parts: list[Cells]) -> None:
        count = len(self._final)
        self._final = parts[:count]
        super()._replace_parts(parts[count:])

    def _renew_aggregates(self) -> None:
        if not self._folder.registry.current:
            self._unfold()
        super()._renew_aggregates()

    # --- the prefix --------------------------------------------------------------------------------------------------

    def take(self, change: Change) -> None:
        if change.first < self._kept_from:
            self._unfold()
        super().take(change)

    def reach_back(self, before: int) -> None:
        if before < self._kept_from:
            self._unfold()
        super().reach_back(before)

    def recall(self, left: IntArray, right: IntArray) -> None:
        """Make sure that there are slices up to the end of each window."""
        if self._unfolded_from is not None and (right[left <= right] < self._kept_from - 1).any():
            self._unfold()

    def tidy(self) -> None:
        """Drop what no reader needs, and add to the prefix. After a revision reached into it, slices are kept once more."""
        is_quiet, needed = not self._recalled, self._needed
        super().tidy()
        if needed == NEVER:
            return
        if self._unfolded_from is not None:
            self._finalize(needed)
        if is_quiet:
            self._fold_prefix(self.stream.watermark)

    def _finalize(self, before: int) -> None:
        """Merge the slices that end before a tick, the first of one, into what is final."""
        if self._unfolded_from is None or before <= self._unfolded_from:
            return
        if before >= self._kept_from:  # all of the prefix is final
            self._final, self._unfolded_from = [], None
            return
        for tuples in self.read_parts(self._unfolded_from, before - 1):
            self._final = self._merge([*self._final, *self._cells_of(tuples)], self._grid.slice_at(before) - 1)
        self._unfolded_from = before

    def _cells_of(self, tuples: Tuples) -> list[Cells]:
        """The cells of tuples of the prefix."""
        tuples = self.stream.placed(tuples)
        tuples = tuples.take(tuples.tick >= self._start)
        if not len(tuples):  # of a stream of partials they would have no columns
            return []
        return [self._folder.cells(self._grid.slices_of(tuples.tick), self._folder.needed(tuples), self.stream)]

    def _merge(self, parts: list[Cells], number: int) -> list[Cells]:
        """All parts merged into one slice with a number; nothing if there are none."""
        if not parts:
            return []
        cells = self._folder.concatenate(parts)
        return [self._folder.unite(replace(cells, slice=np.full(len(cells), number), width=0))]

    def _fold_prefix(self, upto: int) -> None:
        """Merge the slices that end up to a tick into the prefix, but for the last few."""
        first = self._from
        before = self._grid.slice_at(upto + 1) - thresholds.OPEN_SLICES
        if before <= first:
            return
        if self._unfolded_from is None:
            slices = self._held.between(first, before - 1)
            if sum(map(len, slices)) <= thresholds.PREFIX_FACTOR * len(self._folder.groups):
                return
            self._final, self._unfolded_from = self._held.between(-NEVER, first - 1), self._kept_from
        self._drop_before(self._grid.first_tick(before))

    def _unfold(self) -> None:
        """Replace the prefix by what is final, and the slices behind it, folded again."""
        if self._unfolded_from is None:
            return
        low, high = self._unfolded_from, self._kept_from - 1
        final = self._final
        self._held.cut_off_before(self._from)
        self._kept_from, self._unfolded_from, self._final = low, None, []
        self._settled = -NEVER
        for cells in final:
            self._held.add_before(cells)
            self._settled = self._from - 1
        first, end = self._grid.slice_at(low), self._grid.slice_at(high) + 1
        for number in range(first, end, thresholds.UNFOLDED_SLICES):
            last = min(number + thresholds.UNFOLDED_SLICES, end) - 1
            for tuples in self.read_parts(self._grid.first_tick(number), self._grid.first_tick(last + 1) - 1):
                self.load(tuples)
            self._fold_waiting(last)
        self._recalled = TickSpans([(low, high)])

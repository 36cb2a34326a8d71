"""Split slices: slices that are kept apart, so that a correction replaces only those that it changes.

Structures that merge slices ahead (`dense_stacks.py`, `suffix_blocks.py`) know a slice by its Cells. They keep what they have merged
of slices that were not replaced.
"""

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from acquisition.arrays import IntArray
from basestation.execution.columns.cells import Cells
from basestation.execution.columns.tuples import Tuples
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.slices.slice_windows import SharedSlices
from basestation.execution.slices.window_merger import WindowAggregates


class SplitSlices(SharedSlices):
    """SharedSlices whose corrections leave the cells of other slices as they are."""

    def _put(self, cells: Cells) -> None:
        number = int(cells.slice[0])
        if number != int(cells.slice[-1]):
            super()._put(cells)
            return
        [*known] = self._held.split_between(number, number)
        for part in known:
            cells = self._folder.insert(part, cells)
        later = self._held.cut_off(number)
        self._held.add(cells)
        for part in later[len(known) :]:
            self._held.add(part)

    def _take_back(self, removed: Tuples) -> tuple[IntArray, IntArray]:
        slices, removed, _ = self._held_of(removed)
        if not len(removed):
            return slices, slices
        low, high = int(slices.min()), int(slices.max())
        self._held.split_between(low, high)
        touched, later = set(np.unique(slices).tolist()), self._held.cut_off(low)
        mine = [part for part in later if int(part.slice[0]) in touched]
        cells, lost = self._folder.undo(self._folder.separate(mine), slices, removed)
        replaced = {int(part.slice[0]): part for part in split_by_slice(cells)}
        for part in later:
            number = int(part.slice[0])
            if number not in touched:
                self._held.add(part)
            elif number in replaced:
                self._held.add(replaced[number])
        return lost

    def changed_windows(self, left: IntArray, right: IntArray, by_group: bool) -> WindowAggregates:
        """The windows over the ticks left[i] to right[i].

        With `by_group`, groups that the change of the stream leaves alone have no tuples.
        """
        self.recall(left, right)
        self._settle()
        first, last = self._grid.slices_at(left), self._grid.slices_at(right)
        high = int(last.max(initial=-NEVER))
        self._fold_waiting(high)
        parts = self._held.between(int(first.min(initial=NEVER)), high)
        if by_group:
            change, upto = self.stream.change, int(right.max(initial=-NEVER))
            changed = [each.take(each.tick <= upto) for each in (change.inserted, change.removed)]
            groups = np.concatenate([self._folder.groups_of(self._folder.needed(each)) for each in changed])
            mask = np.zeros(len(self._folder.groups), bool)
            mask[groups] = True
            parts = [part.take(mask[part.group]) for part in parts]
        return self._merger.windows(parts, first, last)


def split_by_slice(cells: Cells) -> Iterable[Cells]:
    """Yield the cells of each slice."""
    bounds = [0, *(np.flatnonzero(np.diff(cells.slice)) + 1).tolist(), len(cells)]
    for begin, end in pairwise(bounds):
        if begin < end:
            yield cells.between(begin, end)

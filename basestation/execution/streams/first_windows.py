"""First windows: all rows of the windows with which queries begin that share one ISTREAM (semantics 6.2).

ISTREAM compares the first window of a query with the empty bag. The shared stream compares the same window with the one before it.
"""

from dataclasses import replace

import numpy as np

from basestation.algebra.expression import Column
from basestation.algebra.vector import constant
from basestation.execution.columns.tuples import Tuples
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.columns.window_combinations import WindowCombinations
from basestation.execution.columns.window_contents import WindowContents
from basestation.execution.description import StateDescription
from basestation.execution.interfaces import BlockOutcome
from basestation.execution.streams.converters import ConverterStream


class FirstWindows(ConverterStream):
    """The RSTREAM of some windows of a block, each until it is final. It steps after the shared stream, where a row may change.

    A tuple stands before those that the shared stream makes in the same step: its place is the number of the first of these.
    """

    def __init__(self, shared: ConverterStream, tags: tuple[Column, Column]) -> None:
        """`tags` are those of the shared stream."""
        super().__init__("RStream", shared.block, tags, names_index=False)
        self._shared = shared
        self._numbers: set[int] = set()

    def add(self, number: int) -> None:
        """Follow a window that is among the new ones of this step."""
        self._numbers.add(number)

    def remove(self, number: int) -> None:
        """Drop a window with which no query began that still runs."""
        self._numbers.discard(number)
        held = self._emitted.of(np.array([number]))
        if held is not None:
            self._emitted.drop(held[0].ident)

    def describe_state(self) -> StateDescription | None:
        """The rows that are kept; None where there are none."""
        held = self._emitted.all()
        return self._emitted.describe(None) if held is not None and len(held) else None

    def may_change(self) -> bool:
        """Whether the step of the block may change a window that is followed, or rows wait to enter."""
        newest = max(self._numbers, default=-1)
        outcome = self.block.outcome
        found = (int(windows.number.min(initial=NEVER)) <= newest for windows in (outcome.dirty, outcome.new))
        return self.first_waiting is not None or any(found)

    def _find_windows(self, outcome: BlockOutcome) -> tuple[WindowCombinations, WindowCombinations]:
        numbers = np.array(list(self._numbers), np.int64)
        dirty, new = (windows.take(np.isin(windows.number, numbers)) for windows in (outcome.dirty, outcome.new))
        return dirty, new

    def _tuples(self, frame: WindowContents, windows: WindowCombinations, first_new: int, clock: int) -> Tuples:
        tuples = super()._tuples(frame, windows, first_new, clock)
        return replace(tuples, place=constant(self._shared.step_begin, len(tuples)))

    def tidy(self) -> None:
        """Drop the windows that no longer change."""
        super().tidy()
        self._numbers = {number for number in self._numbers if number >= self.block.oldest}

"""Step size: how much time one step may take in, so that its rows fit into memory whatever queries make of a tuple.

A product, a key that all tuples have, or windows that overlap make many rows of one tuple, and windows come due without any. So the
rows of a step are counted, and the next one is as long as should make STEP_ROWS. Where a step is cut changes no answer.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from basestation.execution import thresholds
from basestation.execution.ingest.step_plan import select_deliveries


class StepSize:
    """`tuples` of one extent and `ticks` of the clock are the most that the next step takes."""

    def __init__(self) -> None:
        self.tuples = self.ticks = 0
        self.restart()

    def restart(self) -> None:
        """Begin small: what queries make of a tuple is not known."""
        self.tuples, self.ticks = thresholds.FIRST_STEP

    def adapt(self, tuples: int, ticks: int, rows: int) -> None:
        """Take into account that a step over so many tuples and ticks made so many rows."""
        growth = min(thresholds.STEP_GROWTH, thresholds.STEP_ROWS / max(rows, 1))
        if growth < 1:
            self.tuples, self.ticks = max(1, int(tuples * growth)), max(1, int(ticks * growth))
            return
        # A step that was shorter than allowed says nothing of a longer one.
        self.tuples, self.ticks = max(self.tuples, int(tuples * growth)), max(self.ticks, int(ticks * growth))

    def find_end(self, delivered: Mapping[Any, Sequence[Any]], begin: int, last: int) -> int:
        """Return the last clock tick of a step that begins after `begin` and ends at `last` or before. Batches are in order."""
        end = min(last, begin + self.ticks)
        for batches in delivered.values():
            left = self.tuples
            for batch in batches:
                if len(batch) > left:
                    end = min(end, max(int(batch.arrival[left]) - 1, begin + 1, int(batches[0].arrival[0])))
                    break
                left -= len(batch)
        return end


def cut_deliveries(
    delivered: Mapping[Any, Sequence[Any]], end: int
) -> tuple[dict[Any, list[Any]], dict[Any, list[Any]]]:
    """Return the deliveries up to a clock tick, and those after it."""
    far = np.iinfo(np.int64).max
    return (
        {key: select_deliveries(batches, -far, end) for key, batches in delivered.items()},
        {key: select_deliveries(batches, end, far) for key, batches in delivered.items()},
    )

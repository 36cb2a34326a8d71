"""Combinations of the windows of several loops, made one after another as they are taken (semantics 4 and 10.8).

At each tick in which a loop has a window, the most recent windows of all loops are combined, the first loop slowest. A loop is
asked for its next window only when the combinations have come to it. So a loop without end at one tick holds no other window back
that comes before its own, and a step makes as many combinations as it is asked for.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from acquisition.arrays import IntArray
from basestation.execution.query_failure import QueryHalt
from basestation.execution.windowing.loop_iteration import LoopIteration


class IterationSource(Protocol):
    """A loop, of which iterations are taken one by one."""

    @property
    def halt(self) -> QueryHalt | None:
        """Why it cannot go on."""

    def next_tick(self, upto: int) -> int | None:
        """The tick of the next iteration; None if there is none up to a tick."""

    def take(self) -> LoopIteration:
        """Take the next iteration."""


class LoopCombinations:
    """Numbers the iterations of each loop 0, 1, 2, … as it takes them. It stands somewhere among the combinations of one tick."""

    def __init__(self, loops: Sequence[IterationSource]) -> None:
        self._loops = loops
        self._recent: list[list[int]] = [[] for _ in loops]  # by loop, the iterations of its most recent tick
        self._counts = [0] * len(loops)
        self._tick: int | None = None  # the tick whose windows are being combined
        self._position: list[int] | None = (
            None  # of the next combination, among those of each loop; None behind the last
        )
        self._n = 0

    @property
    def between_ticks(self) -> bool:
        """Whether all combinations of the ticks so far are made."""
        return self._tick is None

    def take(self, upto: int, steps: int) -> tuple[list[tuple[int, int, list[int]]], list[list[LoopIteration]]]:
        """Return ((tick, n, number of the iteration of each loop) of the next combinations, the iterations taken by loop).

        Goes on for so many steps, each of which makes at most one combination, or to the end of tick `upto`, or of the tick
        at which a loop halts.
        """
        found: list[tuple[int, int, list[int]]] = []
        taken: list[list[LoopIteration]] = [[] for _ in self._loops]
        for _ in range(steps):
            if self._tick is None and not self._begin(upto):
                break
            assert self._tick is not None
            if self._position is not None:
                if all([self._has(place, at, taken) for place, at in enumerate(self._position)]):
                    self._n += 1
                    numbers = [of[at] for of, at in zip(self._recent, self._position, strict=True)]
                    found.append((self._tick, self._n, numbers))
                    self._move(taken)
                else:  # a loop has no window yet
                    self._position = None
            elif not any([self._has(place, len(of), taken) for place, of in enumerate(self._recent)]):
                self._tick = None
        return found, taken

    def _begin(self, upto: int) -> bool:
        """Go on to the next tick with a window, if there is one up to a tick."""
        upto = min([upto, *(loop.halt.tick for loop in self._loops if loop.halt is not None)])
        ticks = [loop.next_tick(upto) for loop in self._loops]
        self._tick = min((tick for tick in ticks if tick is not None), default=None)
        if self._tick is None:
            return False
        for place, tick in enumerate(ticks):
            if tick == self._tick:
                self._recent[place] = []
        self._position, self._n = [0] * len(self._loops), 0
        return True

    def _has(self, place: int, at: int, taken: list[list[LoopIteration]]) -> bool:
        """Return whether a loop has so many iterations at this tick; take the last one of them if it is new."""
        recent, loop = self._recent[place], self._loops[place]
        if at < len(recent):
            return True
        assert self._tick is not None
        if loop.next_tick(self._tick) is None:
            return False
        recent.append(self._counts[place])
        self._counts[place] += 1
        taken[place].append(loop.take())
        return True

    def _move(self, taken: list[list[LoopIteration]]) -> None:
        """Go to the next combination, the last loop fastest."""
        assert self._position is not None
        for place in reversed(range(len(self._loops))):
            self._position[place] += 1
            if self._has(place, self._position[place], taken):
                return
            self._position[place] = 0
        self._position = None

    def open_numbers(self, place: int) -> IntArray:
        """The iterations of one loop that later combinations may have."""
        return np.array(self._recent[place], np.int64)

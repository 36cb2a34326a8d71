"""Shortened clock: the ticks that the engine of a replay is given, and the way back."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.replay.quiet_stretches import QuietStretch


@dataclass(frozen=True, slots=True)
class SkippedAnswers:
    """The answers of a query in a quiet stretch, from tick `first` to `last`: `count` windows, or epochs of a stream, or `tuples` of it.

    The windows have the same rows; their coverage may differ from that of the window before.
    """

    query: int
    first: int
    last: int
    count: int
    tuples: bool = False


class ShortenedClock:
    """The ticks that the engine is given: those of the recording without the removed parts of quiet stretches."""

    def __init__(self, stretches: Sequence[QuietStretch]) -> None:
        self.stretches = stretches
        self._last_shown = np.array([each.last_shown for each in stretches], np.int64)
        self._removed = np.cumsum([0, *(each.removed for each in stretches)], dtype=np.int64)
        # In the engine's ticks, a stretch is those after `_first`, up to `_last`.
        self._first = self._last_shown - self._removed[:-1]
        self._last = np.array([each.next_shown for each in stretches], np.int64) - self._removed[1:] - 1

    def shorten(self, tick: IntArray) -> IntArray:
        """Return the engine's ticks for ticks of the recording, none of which is in a stretch."""
        return tick - self._removed[np.searchsorted(self._last_shown, tick, "left")]

    def shorten_one(self, tick: int) -> int:
        """The same for one tick."""
        return int(self.shorten(np.array([tick], np.int64))[0])

    def restore(self, tick: IntArray) -> IntArray:
        """Return the ticks of the recording for the engine's."""
        return tick + self._removed[np.searchsorted(self._first, tick, "left")]

    def restore_one(self, tick: int) -> int:
        """The same for one tick."""
        return int(self.restore(np.array([tick], np.int64))[0])

    def removed_behind(self) -> list[tuple[int, int]]:
        """Return for each stretch the engine's tick after which it lies, and how many ticks are removed up to its end."""
        return list(zip(self._first.tolist(), self._removed[1:].tolist(), strict=True))

    def is_in_stretch(self, tick: IntArray) -> BoolArray:
        """Return which of the engine's ticks are in a stretch."""
        at = np.searchsorted(self._first, tick, "left") - 1
        return (at >= 0) & (tick <= self._last[at]) if len(self._last) else np.zeros(len(tick), bool)

    def stretches_before(self, tick: IntArray) -> IntArray:
        """Return how many stretches begin before each of the engine's ticks."""
        return np.searchsorted(self._first, tick, "left")

    def begins(self) -> list[int]:
        """Return for each stretch the engine's clock tick at whose end all answers before it are there."""
        return [first + each.lag for first, each in zip(self._first.tolist(), self.stretches, strict=True)]

    def ends(self) -> dict[int, QuietStretch]:
        """Return each stretch by the engine's clock tick at whose end all its answers are there."""
        return {last + each.lag: each for last, each in zip(self._last.tolist(), self.stretches, strict=True)}

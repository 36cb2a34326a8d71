"""Shortened clock: the ticks that the engine of a replay is given, and the way back for its updates."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.replay.quiet_stretches import QuietStretch
from basestation.updates.update import (
    EpochMarks,
    Interleaved,
    QueryFailure,
    TupleUpdates,
    Update,
    WindowUpdates,
    coverage_of,
)


@dataclass(frozen=True, slots=True)
class SkippedAnswers:
    """The answers of a query in a quiet stretch, from tick `first` to `last`: `count` windows, or epochs of a stream.

    The windows have the same rows; their coverage may differ from that of the window before.
    """

    query: int
    first: int
    last: int
    count: int


class ShortenedClock:
    """The ticks that the engine is given: those of the recording without the removed parts of quiet stretches."""

    def __init__(self, stretches: Sequence[QuietStretch]) -> None:
        self._stretches = stretches
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

    def is_in_stretch(self, tick: IntArray) -> BoolArray:
        """Return which of the engine's ticks are in a stretch."""
        at = np.searchsorted(self._first, tick, "left") - 1
        return (at >= 0) & (tick <= self._last[at]) if len(self._last) else np.zeros(len(tick), bool)

    def begins(self) -> list[int]:
        """Return for each stretch the engine's clock tick at whose end all answers before it are there."""
        return [first + each.lag for first, each in zip(self._first.tolist(), self._stretches, strict=True)]

    def ends(self) -> dict[int, QuietStretch]:
        """Return each stretch by the engine's clock tick at whose end all its answers are there."""
        return {last + each.lag: each for last, each in zip(self._last.tolist(), self._stretches, strict=True)}


class ShownUpdates:
    """Gives updates the ticks of the recording; leaves the answers in quiet stretches out, and counts them."""

    def __init__(self, clock: ShortenedClock) -> None:
        self._clock = clock
        self._ticks: dict[int, list[IntArray]] = {}  # those left out of the current stretch, by query

    def restore(self, update: Update) -> Update | None:
        """Return an update of the engine with the ticks of the recording, without answers in quiet stretches."""
        match update:
            case QueryFailure():
                return replace(update, clock=self._clock.restore_one(update.clock))
            case WindowUpdates():
                shown = self._note(update.query, update.tick)
                found = update if shown.all() else update.select(shown)
                return replace(found, tick=self._clock.restore(found.tick)) if len(found) else None
            case TupleUpdates():
                return replace(update, tick=self._clock.restore(update.tick))
            case EpochMarks():
                return self._marks(update)
            case Interleaved():
                shown = ~self._clock.is_in_stretch(update.marks.tick)
                marks = self._marks(update.marks, update.query)
                tuples = replace(update.tuples, tick=self._clock.restore(update.tuples.tick))
                return Interleaved(update.query, tuples, marks, update.at[shown])
        return replace(update, tick=self._clock.restore_one(update.tick))

    def skipped(self, stretch: QuietStretch) -> list[SkippedAnswers]:
        """Return what was left out of a quiet stretch, after the engine has ended it; and begin the next one."""
        found = []
        for query, parts in sorted(self._ticks.items()):
            tick = np.concatenate(parts)
            first = self._clock.shorten_one(stretch.last_shown)
            recurring = np.count_nonzero(tick <= first + stretch.period)
            count = len(tick) + stretch.removed // stretch.period * recurring
            last = int(tick.max()) + stretch.removed
            before = stretch.last_shown - first
            found.append(SkippedAnswers(query, int(tick.min()) + before, last + before, int(count)))
        self._ticks = {}
        return found

    def _marks(self, update: EpochMarks, query: int | None = None) -> EpochMarks:
        shown = self._note(update.query if query is None else query, update.tick)
        coverage = coverage_of(update.coverage, shown)
        return EpochMarks(update.query, self._clock.restore(update.tick[shown]), coverage)

    def _note(self, query: int, tick: IntArray) -> BoolArray:
        """Note which of the engine's ticks are left out; return a mask of the others."""
        skipped = self._clock.is_in_stretch(tick)
        if skipped.any():
            self._ticks.setdefault(query, []).append(tick[skipped])
        return ~skipped

"""Shown updates: the updates of an engine with a shortened clock, as the recording has them."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.replay.quiet_stretches import QuietStretch
from basestation.replay.shortened_clock import ShortenedClock, SkippedAnswers
from basestation.replay.skipped_tuples import SkippedTuples
from basestation.updates.update import (
    CoverageColumns,
    EpochMarks,
    Interleaved,
    QueryFailure,
    TupleUpdates,
    Update,
    WindowUpdates,
    coverage_of,
)


class ShownUpdates:
    """Gives updates the ticks of the recording; leaves the answers in quiet stretches out, and counts them.

    Windows since the start of a query count the readings that were due in the removed part of a stretch. These are as many in
    each period, so two windows of the stretch tell how many to add to the coverage of those behind it.
    """

    def __init__(self, clock: ShortenedClock) -> None:
        self._clock, self._tuples = clock, SkippedTuples(clock)
        self._ticks: dict[int, list[IntArray]] = {}  # those left out of the current stretch, by query
        self._coverage: dict[int, list[CoverageColumns]] = {}  # of the windows among them, in the same order
        self._ended = 0  # stretches whose answers are all there
        self._lacking: dict[tuple[int, int], Mapping[str, tuple[int, int]]] = {}  # by query and stretch

    def restore(self, update: Update) -> Update | None:
        """Return an update of the engine with the ticks of the recording, without answers in quiet stretches."""
        match update:
            case QueryFailure():
                return replace(update, clock=self._clock.restore_one(update.clock))
            case WindowUpdates():
                shown = self._note(update.query, update.tick)
                if not shown.all():
                    self._coverage.setdefault(update.query, []).append(coverage_of(update.coverage, ~shown))
                found = update if shown.all() else update.select(shown)
                if not len(found):
                    return None
                return replace(found, tick=self._clock.restore(found.tick), coverage=self._complete(found))
            case TupleUpdates():
                given, _ = self._tuples.restore(update.query, update)
                return given if len(given) else None
            case EpochMarks():
                return self._marks(update)
            case Interleaved():
                shown = ~self._clock.is_in_stretch(update.marks.tick)
                marks = self._marks(update.marks, update.query)
                tuples, is_shown = self._tuples.restore(update.query, update.tuples)
                before = np.concatenate([[0], np.cumsum(is_shown)])[update.at]
                return Interleaved(update.query, tuples, marks, before[shown])
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
            self._find_lacking(query, self._ended)
            found.append(SkippedAnswers(query, int(tick.min()) + before, last + before, int(count)))
        self._ticks, self._coverage = {}, {}
        self._ended += 1
        return found + self._tuples.end(stretch)

    def _complete(self, update: WindowUpdates) -> CoverageColumns:
        """The coverage of windows, with what the stretches before them lack."""
        behind = self._clock.stretches_before(update.tick)
        found = update.coverage
        for number in range(int(behind.max())):
            later = (behind > number).astype(np.int64)
            lacking = self._find_lacking(update.query, number)
            found = {
                name: of and (of[0] + later * lacking[name][0], of[1] + later * lacking[name][1])
                if name in lacking
                else of
                for name, of in found.items()
            }
        return found

    def _find_lacking(self, query: int, number: int) -> Mapping[str, tuple[int, int]]:
        """By extent, the (used, due) readings of the removed part of a stretch in windows that reach back before it.

        All windows of the stretch precede those behind it, so they are noted by then. A query without one began behind it.
        """
        key = query, number
        if key not in self._lacking and number == self._ended and query in self._coverage:
            tick, parts = np.concatenate(self._ticks[query]), self._coverage[query]
            stretch = self._clock.stretches[number]
            earlier, periods = int(np.searchsorted(tick, tick[-1] - stretch.period)), stretch.removed // stretch.period
            lacking = {}
            for name in parts[0]:
                columns = [of for part in parts if (of := part[name]) is not None]
                if columns:
                    used, due = (np.concatenate([of[at] for of in columns]) for at in (0, 1))
                    lacking[name] = periods * int(used[-1] - used[earlier]), periods * int(due[-1] - due[earlier])
            self._lacking[key] = lacking
        return self._lacking.get(key, {})

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

"""Window list: which windows a block has: those that are answered, those that are new, those that may be revised.

A window of a block combines one window of each input, at each tick where an input has one (4); or a for-loop makes it.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from acquisition.arrays import IntArray
from basestation.algebra.vector import constant
from basestation.execution.columns.integer_arrays import distinct, is_consecutive, rank_distinct
from basestation.execution.columns.window_batch import (
    NO_WINDOW,
    IssuedWindows,
    RepeatedWindows,
    WindowBatch,
)
from basestation.execution.columns.window_combinations import (
    AnsweredWindows,
    WindowCombinations,
    concatenate_combinations,
)
from basestation.execution.interfaces import WindowSource
from basestation.execution.windowing.for_loops import ForLoops
from basestation.execution.windowing.window_product import WindowProduct, WindowSequence


class WindowList:
    """The windows of a block with these inputs.

    With `may_shift`, windows are answered before all of their inputs are complete (11): a late row may then change which
    windows are combined, and a window may be withdrawn and come back.
    """

    def __init__(self, inputs: Sequence[WindowSource], loops: ForLoops | None, may_shift: bool, certain: int) -> None:
        self._inputs, self._loops, self.may_shift = inputs, loops, may_shift
        self.answered = AnsweredWindows(len(inputs))
        self.issued = [IssuedWindows() for _ in inputs]
        self._has_all = True  # none of the answered windows was dropped yet
        self._product = WindowProduct(len(inputs))
        self._withdrawn = self.none  # windows that may come back
        self._certain = certain  # the certain tick of the last step
        self.count = 0
        """The number of windows so far."""

    @property
    def none(self) -> WindowCombinations:
        """No windows, with all columns."""
        return self.answered.none

    @property
    def oldest(self) -> int:
        """The least number of a window that may still change; that of the next window if there is none."""
        return min(int(of.number.min(initial=self.count)) for of in (self.answered.all(), self._withdrawn))

    # --- inputs ------------------------------------------------------------------------------------------------------

    def batches(self, windows: WindowCombinations) -> list[WindowBatch]:
        """For each input the windows that are combined; nothing where a window is withdrawn or NO_WINDOW."""
        parts = self._parts(windows)
        return [issued.of(parts[:, i]) for i, issued in enumerate(self.issued)]

    def repeated(self, windows: WindowCombinations) -> list[RepeatedWindows]:
        """The same, each window once where combinations that follow each other share it."""
        parts = self._parts(windows)
        return [issued.repeated(parts[:, i]) for i, issued in enumerate(self.issued)]

    @staticmethod
    def _parts(windows: WindowCombinations) -> IntArray:
        absent = windows.withdrawn | (windows.number == NO_WINDOW)
        return np.where(absent[:, None], NO_WINDOW, windows.parts) if absent.any() else windows.parts

    # --- one step ----------------------------------------------------------------------------------------------------

    def find_dirty(self) -> WindowCombinations:
        """The answered windows that may look different after the change below, in order."""
        if not self.may_shift and not any(source.may_be_dirty for source in self._inputs):
            return self.none
        # Where windows were dropped, the first one is there for comparison only.
        answered = self.answered.all()
        candidates = answered if self._has_all else answered.take(slice(1, None))
        mask = np.zeros(len(candidates), bool)
        for place, source in enumerate(self._inputs):
            if len(candidates) and source.may_be_dirty:
                numbers, which = rank_distinct(candidates.parts[:, place])
                mask |= source.dirty(self.issued[place].of(numbers))[which]
        dirty = candidates.take(mask)
        if not self.may_shift:
            return dirty
        shifting = self._find_uncertain()
        more = dirty.take(~np.isin(dirty.number, shifting.number))
        return concatenate_combinations([shifting, more]).in_order()

    def find_new(self, upto: int, certain: int) -> WindowCombinations | None:
        """The windows up to a tick: at each tick with a window of an input, all combinations of the most recent ones (4).

        With `may_shift` those behind the tick that was `certain` before are found again. None where a block with one
        input has none.
        """
        certain = certain if self.may_shift else upto
        if self._loops is not None:
            ticks, n, parts, t = self._loops.due(upto, certain, self.issued)
            return self._number(ticks, n, parts, t)
        due = [source.due(upto) for source in self._inputs]
        if len(due) == 1 and not len(due[0]) and not self.may_shift:
            return None
        numbers = [issued.add(found) for issued, found in zip(self.issued, due, strict=True)]
        if len(due) == 1:
            return self._number(due[0].tick, due[0].n, numbers[0][:, None])
        new = [WindowSequence(found.tick, of) for found, of in zip(due, numbers, strict=True)]
        return self._number(*self._product.combine(new, certain))

    def _number(
        self, ticks: IntArray, n: IntArray, parts: IntArray, t: list[int] | list[tuple[int, ...]] | None = None
    ) -> WindowCombinations:
        """New windows with their numbers; `t` is that of loops."""
        values = constant(None, len(ticks)) if t is None else np.fromiter(t, object, len(t))
        number = np.arange(self.count, self.count + len(ticks))
        return WindowCombinations(number, ticks, n, parts, values, constant(False, len(ticks)))

    def add(self, found: WindowCombinations) -> WindowCombinations:
        """Take new windows in as answered."""
        self.count += len(found)
        return self.answered.add(found)

    def shift(
        self, dirty: WindowCombinations, found: WindowCombinations, certain: int
    ) -> tuple[WindowCombinations, WindowCombinations]:
        """(dirty windows as they are combined now, windows that are new) of what was found behind the certain tick.

        A window that is found again keeps its number; one that is not found again is withdrawn.
        """
        uncertain = self._find_uncertain()
        known = {key: at for at, key in enumerate(uncertain.keys())}
        new_places, known_places, found_places = [], [], []
        for at, key in enumerate(found.keys()):
            if key in known:
                known_places.append(known.pop(key))
                found_places.append(at)
            else:
                new_places.append(at)
        again = uncertain.take(np.array(known_places, np.int64))
        again = replace(again, parts=found.parts[found_places], withdrawn=np.zeros(len(again), bool))
        lost = uncertain.take(np.array(sorted(known.values()), np.int64))
        changed = concatenate_combinations([again, replace(lost, withdrawn=np.ones(len(lost), bool))])
        new = found.take(np.array(new_places, np.int64))
        new = replace(new, number=self.count + np.arange(len(new)))
        self._certain = certain
        both = (self.answered.all(), self._withdrawn)
        unchanged = concatenate_combinations([of.take(~np.isin(of.number, changed.number)) for of in both])
        kept = concatenate_combinations([unchanged, changed]).in_order()
        self.answered.set(kept.take(~kept.withdrawn))
        self._withdrawn = kept.take(kept.withdrawn & (kept.tick > self._certain))
        now = concatenate_combinations([changed, dirty.take(~np.isin(dirty.number, changed.number))])
        return now.take(np.argsort(now.number)[np.argsort(np.argsort(dirty.number))]), new

    def _find_uncertain(self) -> WindowCombinations:
        """The windows behind the certain tick, withdrawn ones too, in order."""
        both = concatenate_combinations([self.answered.all(), self._withdrawn])
        return both.take(both.tick > self._certain).in_order()

    # --- neighbours --------------------------------------------------------------------------------------------------

    def before(self, windows: WindowCombinations) -> WindowCombinations:
        """The window before each one (6.2); NO_WINDOW before the first."""
        at = self.answered.places(windows) - 1
        found = self.answered.take(np.maximum(at, 0))
        return replace(found, number=np.where(at < 0, NO_WINDOW, found.number))

    def with_successors(self, windows: WindowCombinations) -> WindowCombinations:
        """The windows and those that follow them, in order."""
        answered = self.answered
        at = answered.places_behind(windows)
        if is_consecutive(at) and at[-1] == len(answered):  # they are the last ones
            return windows
        following = answered.take(distinct(at[at < len(answered)]))
        more = following.take(~np.isin(following.number, windows.number))
        return concatenate_combinations([windows, more]).in_order() if len(more) else windows

    def between(self, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray]:
        """(first, end): the positions among answered windows of those with ticks low[i] to high[i]."""
        return self.answered.between(low, high)

    # --- what may be dropped -----------------------------------------------------------------------------------------

    def count_final(self, before: int) -> int:
        """How many of the answered windows, from the first on, no longer change if no tick before `before` changes."""
        answered = self.answered.all()
        count = int(np.searchsorted(answered.tick, before))
        for place, (source, issued) in enumerate(zip(self._inputs, self.issued, strict=True)):
            parts = answered.parts[:count, place]
            if not count:
                break
            first = int(parts.min())
            final = source.final(before, issued.since(first))
            if not final.all():
                final = final.take(parts - first)
                count = count if final.all() else int(np.argmin(final))
        return count

    def open_from(self, before: int) -> int:
        """The tick of the first window that may still change."""
        count, answered = self.count_final(before), self.answered.all()
        return min(int(answered.tick[count]), before) if count < len(answered) else before

    def tidy(self, before: int) -> None:
        """Drop windows that no longer change, and the tuples of inputs that only they could read."""
        final = self.count_final(before)
        self._has_all = self._has_all and final <= 1
        self.answered.drop(max(0, final - 1))  # the first one kept is compared with the one before it
        for place, (source, issued) in enumerate(zip(self._inputs, self.issued, strict=True)):
            parts = (self.answered.all().parts[:, place], self._withdrawn.parts[:, place], self._open_numbers(place))
            first = min(int(numbers.min(initial=issued.next)) for numbers in parts)
            source.forget(before, issued.since(first))
            issued.forget(first)

    def _open_numbers(self, place: int) -> IntArray:
        """The numbers of the windows of one input that later combinations may have."""
        return self._product.open_numbers(place) if self._loops is None else self._loops.open_numbers(place)

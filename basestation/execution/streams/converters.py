"""Converter streams: RSTREAM, ISTREAM and DSTREAM turn the windows of a block back into a stream (semantics 6, 12.1)."""

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.dictionary_vector import decode
from basestation.algebra.expression import Column
from basestation.algebra.vector import Vector, constant
from basestation.execution.columns.change import NO_KEYS, NO_TICKS, Change
from basestation.execution.columns.coverage_ranges import CoverageRanges
from basestation.execution.columns.integer_arrays import distinct, rank_distinct
from basestation.execution.columns.next_due import NextDue
from basestation.execution.columns.tuples import Tuples, concatenate_tuples, empty_like
from basestation.execution.columns.watermark_buffer import IndexAssigner
from basestation.execution.columns.window_batch import NEVER, expand_ranges
from basestation.execution.columns.window_combinations import WindowCombinations, concatenate_combinations
from basestation.execution.columns.window_contents import WindowContents, diff_both_ways
from basestation.execution.description import OperatorDescription
from basestation.execution.interfaces import BlockOutcome, WindowBlock
from basestation.execution.streams.emitted_tuples import EmittedTuples
from basestation.execution.streams.stream import REVISION_RANK, Stream


class ConverterStream(Stream):
    """RSTREAM, ISTREAM or DSTREAM over a block.

    The tuples emitted for each window are kept for as long as the window may change: a revision then emits the difference
    only. In kept tuples `site` is the number of the window.
    """

    def __init__(self, how: str, block: WindowBlock, tags: tuple[Column, Column], names_index: bool) -> None:
        """`how` is the name of the algebra operator: RStream, IStream or DStream."""
        super().__init__(block.level + 1)
        self._how, self.block = how, block
        self._tick, self._index = (tag.id for tag in tags)
        self.names_index = names_index
        self._emitted = EmittedTuples()
        self._indexing = IndexAssigner()
        self._next = 0  # the number of the next tuple
        self.step_begin = 0  # the number of the first tuple that the last step could make
        self._changed = NO_KEYS  # keys (tick, n) of the windows that were made or revised in this step
        self._empty: Tuples | None = None  # no tuples, with the columns of this stream

    @property
    def title(self) -> str:
        return self._how.upper()

    def describe(self) -> OperatorDescription:
        how = {"RStream": "each window as it is", "IStream": "window except all of the window before it"}
        rows, slide = self.block.max_rows, self.block.slide
        limit = None if rows is None or slide is None else rows * (self.block.horizon // slide + 1)
        state = self._emitted.describe(limit)
        return OperatorDescription(
            self.title, how.get(self._how, "the window before it except all of the window"), state
        )

    @property
    def watermark(self) -> int:
        return self.block.watermark

    @property
    def certain(self) -> int:
        return self.block.certain

    @property
    def next_due(self) -> NextDue:
        return self.block.next_due

    @property
    def differs(self) -> bool:
        """Whether it gives differences of windows."""
        return self._how != "RStream"

    @property
    def keeps_first_windows(self) -> bool:
        """Whether it gives all of a first window (6.2), and only what is new in the same window of a longer list."""
        return self._how == "IStream"

    @property
    def entered(self) -> IntArray:
        return self._indexing.entered

    @property
    def entering(self) -> Tuples:
        """The tuples that entered in the last step, in order."""
        return self._none if self._indexing.entering is None else self._indexing.entering

    @property
    def first_waiting(self) -> int | None:
        return self._indexing.first_waiting

    def index_of(self, idents: IntArray) -> IntArray:
        return self._indexing.of(idents)

    def step(self, clock: int) -> None:
        self.step_begin = self._next
        dirty, new = self._find_windows(self.block.outcome)
        quiet = not len(dirty) and not len(new)  # as in most small batches
        inserted, removed, ticks = self._no_change() if quiet else self._difference(dirty, new, clock)
        is_new = constant(True, len(inserted))
        self._indexing.take(inserted, is_new, removed, self.watermark)
        if self.names_index:
            inserted, is_new, removed = self._with_entries(inserted, is_new, removed)
        marks = tuple(mark.after_windows() for mark in self.block.marks)
        self.change = Change(inserted, is_new, removed, ticks, self.watermark, marks)
        self.counts.rows_out += len(inserted) + len(removed)

    def _find_windows(self, outcome: BlockOutcome) -> tuple[WindowCombinations, WindowCombinations]:
        """(answered windows that may look different now, new windows)."""
        return outcome.dirty, outcome.new

    def _no_change(self) -> tuple[Tuples, Tuples, IntArray]:
        self._changed = NO_KEYS
        return self._none, self._none, NO_TICKS

    @property
    def _none(self) -> Tuples:
        """No tuples, with the columns of this stream."""
        if self._empty is None:
            self._empty = self.all().inserted
        return self._empty

    def _difference(
        self, dirty: WindowCombinations, new: WindowCombinations, clock: int
    ) -> tuple[Tuples, Tuples, IntArray]:
        """(inserted tuples, removed tuples, ticks of the windows that were made or revised)."""
        changed = concatenate_combinations([dirty, new])
        self._changed = np.stack([changed.tick, changed.n], axis=1)
        first_new = int(new.number[0]) if len(new) else self.block.count
        # ISTREAM and DSTREAM compare each window with the one before it.
        affected = self.block.with_successors(changed) if self.differs else changed
        now = self._evaluate(affected)
        self.counts.rows_in += len(now)
        emitted, removed = self._emitted.of(affected.number), self._none
        if emitted is not None:
            before, window = emitted
            added, dropped = diff_both_ways(now, WindowContents(len(affected), window, self._plain(before)))
            now, removed = now.take(added), before.take(dropped)
        inserted = self._tuples(now, affected, first_new, clock)
        self._emitted.drop(removed.ident)
        self._emitted.add(inserted)
        return inserted, removed, distinct(changed.tick)

    def _evaluate(self, windows: WindowCombinations) -> WindowContents:
        """The rows to emit for each window, numbered by position."""
        if not self.differs:
            return self.block.frame_of(windows)
        before = self.block.before(windows)
        return (
            self.block.except_all(windows, before) if self._how == "IStream" else self.block.except_all(before, windows)
        )

    def _plain(self, tuples: Tuples) -> dict[int, Vector]:
        """The columns without the tags."""
        return {id: v for id, v in tuples.columns.items() if id not in (self._tick, self._index)}

    def _tuples(self, frame: WindowContents, windows: WindowCombinations, first_new: int, clock: int) -> Tuples:
        """New tuples of the stream. Those of a new window arrive at its tick, those of a revised one in this clock
        tick (12.1).
        """
        count = len(frame)
        ident = self._next + np.arange(count)
        self._next += count
        number, tick = windows.number[frame.window], windows.tick[frame.window]
        columns = {id: decode(vector) for id, vector in frame.columns.items()}
        columns[self._tick] = Vector(tick)
        if self.names_index:
            columns[self._index] = Vector(np.zeros(count, np.int64), np.zeros(count, bool))
        arrival, rank, part, append = tick, constant(0, count), constant(0, count), constant(False, count)
        if int(number.min(initial=first_new)) < first_new:
            new = number >= first_new
            arrival, rank = np.where(new, tick, clock), np.where(new, 0, REVISION_RANK)
        return Tuples(ident, tick, arrival, part, rank, ident, number, append, columns)

    def _with_entries(self, inserted: Tuples, is_new: BoolArray, removed: Tuples) -> tuple[Tuples, BoolArray, Tuples]:
        """The same change, with a correction of each kept tuple that got its index in this step (14)."""
        emitted = self._emitted.all()
        if emitted is None or not len(self.entered):
            return inserted, is_new, removed
        entered = emitted.take(np.isin(emitted.ident, self.entered))
        index = Vector(self.index_of(entered.ident))
        numbered = entered.with_columns({**entered.columns, self._index: index})
        self._emitted.drop(entered.ident)
        self._emitted.add(numbered)
        entered_now = np.isin(inserted.ident, self.entered)
        earlier = ~np.isin(entered.ident, inserted.ident)
        is_new = np.concatenate([is_new[~entered_now], ~earlier])
        return (
            concatenate_tuples([inserted.take(~entered_now), numbered]),
            is_new,
            concatenate_tuples([removed, entered.take(earlier)]),
        )

    def all(self) -> Change:
        """No tuples: a converter begins with its query."""
        windows = self.block.none
        none = empty_like(self._tuples(self.block.frame_of(windows), windows, 0, 0))
        return Change(none, np.empty(0, bool), none, NO_TICKS, self.watermark)

    def between(self, low: int, high: int) -> Tuples:
        emitted = self._emitted.all()
        return self._none if emitted is None else emitted.take((emitted.tick >= low) & (emitted.tick <= high))

    def covers(self, low: IntArray, high: IntArray, at: IntArray) -> list[CoverageRanges]:
        """The coverage of the windows of the block whose ticks lie in the ranges (14)."""
        first, end = self.block.windows_between(low, high)
        counts = np.maximum(end - first, 0)
        return self._covered(np.repeat(np.arange(len(low)), counts), expand_ranges(first, counts))

    def _covered(self, owner: IntArray, positions: IntArray) -> list[CoverageRanges]:
        """The coverage of answered windows at positions, each for its owner."""
        distinct_positions, which = rank_distinct(positions)
        covers = self.block.covers(self.block.answered.take(distinct_positions))
        return [*(each.owned(owner, which) if each.intake else each for each in covers), *self.block.empty_covers()]

    def epochs(self) -> IntArray:
        """Each window is an epoch (12.3)."""
        return self._changed

    def epochs_from(self, tick: int) -> IntArray:
        """A converter begins with the queries that read it."""
        return self._changed

    def anchor(self, low: int) -> bool:
        """False: coverage is that of the windows of the block, one by one."""
        return False

    def epoch_covers(self, keys: IntArray) -> list[tuple[BoolArray, list[CoverageRanges]]]:
        at = self.block.answered.find(keys[:, 0], keys[:, 1])
        empty, found = self.empty_covers(), np.flatnonzero(at >= 0)
        has_due = any(cover.intake for cover in empty)  # of pushed extents nothing is due
        return [(at >= 0, self._covered(found, at[found]) if has_due else empty)]

    def empty_covers(self) -> list[CoverageRanges]:
        return self.block.empty_covers()

    @property
    def first(self) -> int:
        return self._emitted.first(self._next)

    def open_from(self, before: int) -> int:
        return self.block.open_from(before)

    def tidy(self) -> None:
        """Keep emitted tuples as long as the block, which is tidied after this, keeps their windows."""
        self.block.need(self.needed)
        self.needed = NEVER
        if len(self.block.answered):
            self._emitted.forget(self.block.oldest)
        self._indexing.forget(self.first)

    def max_tuples(self, ticks: int) -> int | None:
        rows, slide = self.block.max_rows, self.block.slide
        return None if rows is None or slide is None else rows * (0 if ticks <= 0 else (ticks - 1) // slide + 1)

    @property
    def horizon(self) -> int:
        return self.block.horizon

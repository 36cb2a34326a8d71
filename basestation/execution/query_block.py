"""Query block: one SELECT over windows: which windows there are, and what they contain.

A step of a block has two phases. In `look`, before the stores take their changes in, it reads the answered windows that
will look different. In `answer`, after that, it finds the new windows. Nothing below a block knows that answers have a
history.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from acquisition.ticks import grid_at_or_after
from basestation.algebra.expression import Expression
from basestation.algebra.expressions import conjunction
from basestation.algebra.node import PlanNode
from basestation.execution.columns.coverage_ranges import CoverageRanges
from basestation.execution.columns.integer_arrays import rank_distinct
from basestation.execution.columns.next_due import DUE_NOW, NextDue, find_earliest
from basestation.execution.columns.punctuation import Punctuation, merge_punctuation
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.columns.window_combinations import (
    AnsweredWindows,
    WindowCombinations,
    concatenate_combinations,
)
from basestation.execution.columns.window_contents import WindowContents
from basestation.execution.content_evaluator import ContentEvaluator
from basestation.execution.description import OperatorDescription
from basestation.execution.graph import BLOCK, Operator
from basestation.execution.interfaces import Claims, View, WindowSource
from basestation.execution.joins.join_operator import JoinOperator
from basestation.execution.query_failure import QueryFailedError, QueryHalt
from basestation.execution.relational.subqueries import Subqueries
from basestation.execution.relational.window_ranges import WindowRanges
from basestation.execution.slices.per_tick_revisions import PerTickRevisions, make_per_tick_reviser
from basestation.execution.slices.ranged_slices import RangedSliceWindows
from basestation.execution.slices.tagged_windows import TaggedSliceWindows
from basestation.execution.streams.coverage import count_coverage
from basestation.execution.window_list import WindowList
from basestation.execution.windowing.for_loops import ForLoops
from basestation.execution.windowing.row_windows import RowWindows
from basestation.execution.windowing.stream_windows import StreamWindows
from basestation.updates.update import CoverageColumns

OldContents = dict[bool, WindowContents | WindowRanges]
"""Contents before a step, by whether they are WindowRanges."""


@dataclass(frozen=True, slots=True)
class BlockChange:
    """The change of a step: answered windows that may look different now, and new windows, both in order.

    `old` has the contents of the dirty windows before the step, in the forms that outputs read. `followed` has the revisions
    of each clock tick, where corrections came in a step of many clock ticks: one for each range that windows have.
    """

    dirty: WindowCombinations
    new: WindowCombinations
    old: OldContents
    followed: list[PerTickRevisions] | None = None


class QueryBlock(Operator):
    """One SELECT; a WindowBlock (`interfaces.py`)."""

    kind = BLOCK
    title = "query block"
    outcome: BlockChange
    """The change of the last step; absent before the first step and after `tidy`."""

    def __init__(
        self,
        node: PlanNode,
        inputs: Sequence[WindowSource],
        leaves: tuple[PlanNode, ...],
        join: JoinOperator | None,
        clock: int = -1,
        limit: int | None = None,
        loops: ForLoops | None = None,
        subqueries: Subqueries | None = None,
        within: int | None = None,
    ) -> None:
        """A block for the tree `node`, of which each of `leaves` stands for the input at its position.

        `join` computes the join in the tree. `loops` make the windows where inputs do not. `subqueries` stand in the
        expressions of the tree. No window after tick `limit` is answered. A window is answered at most `within` ticks
        after its own (11).
        """
        super().__init__(max(source.level for source in inputs))
        self.inputs, self.loops, self.join = inputs, loops, join
        self._node, self._leaves, self._limit, self._within = node, leaves, limit, within
        self._subqueries = subqueries
        self.clock = clock
        self.marks: tuple[Punctuation, ...] = ()
        """The punctuation of the last step, each mark once."""
        self.snapshot_modes: set[bool] = set()
        """In which forms outputs read dirty windows as they were: True for WindowRanges."""
        self.shows_groups = False
        """Whether no two groups of a window look equal in an output: then it needs only the groups that a step changes."""
        self.halt: QueryHalt | None = None
        """Why the query cannot go on."""
        self._needed = NEVER
        early = within is not None and len(inputs if loops is None else loops) > 1
        may_shift = early and any(isinstance(source, RowWindows) for source in inputs)
        self._windows = WindowList(inputs, loops, may_shift, clock)
        tree = node if subqueries is None else subqueries.substitute_into(node)
        self._contents = ContentEvaluator(tree, inputs, leaves, join, self._windows, self.counts)
        stands_alone = loops is None and subqueries is None and within is None
        self._stands_alone = stands_alone
        self._reviser = make_per_tick_reviser(node, inputs, leaves) if stands_alone else None

    def describe(self) -> OperatorDescription:
        how = f"answered at most {self._within} ticks late" if self._within is not None else ""
        parts = [self._contents.describe(self._node)]
        if self._subqueries is not None:
            parts += [block.describe() for block in self._subqueries.blocks]
        return OperatorDescription(self.title, how, None, tuple(parts))

    # --- readers -----------------------------------------------------------------------------------------------------

    def show(self, view: View) -> Claims:
        """Provide what a view of the windows reads, until it is released."""
        if self.join is not None and self.is_plain_join:
            return self.join.show(view)
        source = self.inputs[0]
        if self._contents.node is self._leaves[0] and isinstance(source, StreamWindows):
            return source.show(view)
        return []

    def predicate_of(self, view: View) -> Expression | None:
        """The predicate of a view's rows among those of all views; None for all rows."""
        source = self.inputs[0]
        if not isinstance(source, TaggedSliceWindows):
            return view.predicate
        match = source.match(view)
        return match if view.predicate is None else conjunction([match, view.predicate])

    def range_number(self, view: View) -> int | None:
        """The number of the range of a view; None where windows have one range."""
        return None if self.ranged is None else self.ranged.number_of(view)

    def close(self) -> None:
        for source in self.inputs:
            if isinstance(source, StreamWindows):
                source.close()

    @property
    def is_plain_join(self) -> bool:
        """Whether nothing is done with joined rows."""
        return self._contents.is_plain_join

    @property
    def all(self) -> list["QueryBlock"]:
        """The blocks of subqueries, and this one."""
        below = [] if self._subqueries is None else self._subqueries.blocks
        return [*(each for block in below for each in block.all), self]

    def find_starts(self, start: int) -> tuple[int, ...]:
        """For each input, the first tick that a window of it may have in the answer of a query that starts at a tick.

        A row counts from the query on if it has not entered its stream yet (1.1).
        """
        slides = [(source.tick_slide, source.watermark) for source in self.inputs]
        return tuple(mark + 1 if slide is None else grid_at_or_after(start, slide) for slide, mark in slides)

    def find_first(self, windows: WindowCombinations, starts: Sequence[int]) -> int | None:
        """The tick of the first of some new windows whose windows of all inputs have ticks from `starts` on; None without one."""
        belongs = np.ones(len(windows), bool)
        for place, (issued, start) in enumerate(zip(self._windows.issued, starts, strict=True)):
            belongs &= issued.of(windows.parts[:, place]).tick >= start
        return int(windows.tick[np.argmax(belongs)]) if belongs.any() else None

    def extend_limit(self, limit: int | None) -> None:
        """Answer the windows up to a tick too; all windows if it is None."""
        self._limit = None if limit is None or self._limit is None else max(self._limit, limit)

    # --- time --------------------------------------------------------------------------------------------------------

    @property
    def watermark(self) -> int:
        """The last tick up to which the block answers."""
        return self._complete if self._within is None else max(self._complete, self.clock - self._within)

    @property
    def certain(self) -> int:
        """The last tick up to which no other window can come, even if windows are answered early."""
        return min(self.clock, *(source.certain for source in self.inputs))

    @property
    def _complete(self) -> int:
        """The last tick up to which all inputs are complete."""
        subqueries = () if self._subqueries is None else (self._subqueries.watermark,)
        return min(self.clock, *subqueries, *(source.watermark for source in self.inputs))

    @property
    def next_due(self) -> NextDue:
        """When the next window may be due."""
        return find_earliest(source.next_due for source in self.inputs) if self._stands_alone else DUE_NOW

    @property
    def tracks_versions(self) -> bool:
        """Whether it tells what each clock tick of a step changed in its windows."""
        return self._reviser is not None

    # --- one step ----------------------------------------------------------------------------------------------------

    def step(self, clock: int) -> None:
        """One step, of a block outside of the graph."""
        self.look(clock)
        self.answer(clock)

    def look(self, clock: int) -> None:
        """Read the answered windows that will look different, before the stores take the changes in."""
        self._dirty = self._windows.find_dirty()
        modes = self.snapshot_modes if len(self._dirty) and not self._revises_per_tick else ()
        self._old: OldContents = {as_ranges: self.dirty_content(self._dirty, as_ranges) for as_ranges in modes}

    def answer(self, clock: int) -> None:
        """Find the new windows; `outcome` is what has happened."""
        dirty, windows = self._dirty, self._windows
        self.clock = clock
        for source in self.inputs:
            source.apply()
        if self._subqueries is not None:
            self._evaluate_subqueries(self._subqueries)
        upto = self.watermark if self._limit is None else min(self.watermark, self._limit)
        found = None if self.halt is not None else windows.find_new(upto, self.certain)
        if self.loops is not None:
            self.halt = self.loops.halt
        if found is not None and windows.may_shift:
            dirty, found = windows.shift(dirty, found, self.certain)
        new = windows.none if found is None else windows.add(found) if len(found) else found
        followed = self._revise_per_tick(dirty, new) if self._revises_per_tick else None
        self.outcome = BlockChange(dirty, new, self._old, followed)
        del self._dirty, self._old
        self.marks = merge_punctuation(
            source.stream.change.marks for source in self.inputs if isinstance(source, StreamWindows)
        )
        self.counts.probed = 0 if self.join is None else self.join.probes

    @property
    def _revises_per_tick(self) -> bool:
        return self._reviser is not None and self._reviser.now

    def _revise_per_tick(self, dirty: WindowCombinations, new: WindowCombinations) -> list[PerTickRevisions] | None:
        if self._reviser is None:
            return None
        windows = concatenate_combinations([dirty, new])
        revised = self._reviser.revise(windows, self._windows.issued[0].of(windows.parts[:, 0]), len(new))
        self.counts.rows_out += sum(len(each.added) + len(each.removed) for each in revised)
        return revised

    def _evaluate_subqueries(self, subqueries: Subqueries) -> None:
        """Evaluate the subqueries, once, and put their results into the tree."""
        if not subqueries.answered:
            subqueries.step(self.clock)
            try:
                self._contents.node = subqueries.substitute_into(self._node)
            except QueryFailedError as failure:
                self.halt = QueryHalt(self.clock, failure.code, failure.message)

    # --- windows -----------------------------------------------------------------------------------------------------

    @property
    def none(self) -> WindowCombinations:
        """No windows, with all columns."""
        return self._windows.none

    @property
    def count(self) -> int:
        """The number of windows so far."""
        return self._windows.count

    @property
    def answered(self) -> AnsweredWindows:
        """The answered windows that may still change."""
        return self._windows.answered

    @property
    def oldest(self) -> int:
        """The least number of a window that may still change."""
        return self._windows.oldest

    def before(self, windows: WindowCombinations) -> WindowCombinations:
        """The window before each one (6.2); NO_WINDOW before the first."""
        return self._windows.before(windows)

    def with_successors(self, windows: WindowCombinations) -> WindowCombinations:
        """The windows and those that follow them, in order."""
        return self._windows.with_successors(windows)

    def windows_between(self, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray]:
        """(first, end): the positions among `answered` of the windows with ticks low[i] to high[i]."""
        return self._windows.between(low, high)

    # --- contents ----------------------------------------------------------------------------------------------------

    def frame_of(self, windows: WindowCombinations) -> WindowContents:
        """The rows of windows, numbered by position."""
        return self._contents.evaluate(windows)

    def content(self, windows: WindowCombinations, as_ranges: bool) -> WindowContents | WindowRanges:
        """The rows of windows; of a plain join, as ranges of windows where that is wanted."""
        return self._contents.evaluate_ranges(windows) if as_ranges else self._contents.evaluate(windows)

    def dirty_content(self, windows: WindowCombinations, as_ranges: bool) -> WindowContents | WindowRanges:
        """The same of windows that the step changes, without rows that stay as they are where outputs do not need these."""
        source = self.inputs[0]
        if isinstance(source, TaggedSliceWindows):
            return self._contents.evaluate_changed(windows, source, self.shows_groups)
        return self.content(windows, as_ranges)

    @property
    def group_ids(self) -> set[int] | None:
        """The ids of the columns that tell apart the rows of one query; None where windows do not have those of many."""
        source = self.inputs[0]
        return source.key_ids if isinstance(source, TaggedSliceWindows) else None

    def except_all(self, windows: WindowCombinations, others: WindowCombinations) -> WindowContents:
        """The bag difference of each window and its counterpart in `others` (6.1, 6.4)."""
        return self._contents.except_all(windows, others)

    # --- coverage ----------------------------------------------------------------------------------------------------

    def covers(self, windows: WindowCombinations) -> list[CoverageRanges]:
        """The coverage of windows, numbered by position."""
        found: list[CoverageRanges] = []
        for place, (source, issued) in enumerate(zip(self.inputs, self._windows.issued, strict=True)):
            empty = source.empty_covers()
            if not any(cover.intake for cover in empty):
                found += empty
                continue
            numbers, which = rank_distinct(windows.parts[:, place])
            owner = np.flatnonzero(~windows.withdrawn)
            for cover in source.covers(issued.of(numbers)):
                found.append(cover.owned(owner, which[owner]) if cover.intake else cover)
        return found

    @property
    def ranged(self) -> RangedSliceWindows | None:
        """The input whose windows have several ranges; None where they have one."""
        source = self.inputs[0]
        return source if isinstance(source, RangedSliceWindows) else None

    def coverage(self, windows: WindowCombinations) -> CoverageColumns:
        """{extent: (used, due)} with an entry for each window, and for each number of a range; None for a pushed extent."""
        if self.ranged is not None:
            return self.ranged.coverage(self._windows.batches(windows)[0])
        return count_coverage([*self.covers(windows), *self.empty_covers()], len(windows))

    def touched(self, windows: WindowCombinations) -> BoolArray | None:
        """A mask (windows, numbers of ranges) of what the step may change; None where windows have one range."""
        return None if self.ranged is None else self.ranged.touched(self._windows.batches(windows)[0])

    def empty_covers(self) -> list[CoverageRanges]:
        """The extents below, each with no ranges: they are named even where no window covers a tick of them."""
        return [cover for source in self.inputs for cover in source.empty_covers()]

    # --- what may be dropped -----------------------------------------------------------------------------------------

    def need(self, before: int) -> None:
        """Promise that a reader sees no change before a tick of the extents below."""
        self._needed = min(self._needed, before)

    def open_from(self, before: int) -> int:
        """The tick of the first window that may still change."""
        return self._windows.open_from(before)

    def tidy(self) -> None:
        """Drop windows that no longer change, and the tuples that only they could read."""
        before, self._needed = self._needed, NEVER
        if hasattr(self, "outcome"):
            del self.outcome
        self._windows.tidy(before)
        if self.join is not None:
            self.join.tidy()

    # --- limits, for EXPLAIN -----------------------------------------------------------------------------------------

    @property
    def max_rows(self) -> int | None:
        """The most rows of one window at the declared rates; None where none is declared."""
        return self._contents.max_rows()

    @property
    def slide(self) -> int | None:
        """The ticks from one window to the next; None where rows or a loop decide."""
        slides = [source.tick_slide for source in self.inputs]
        known = [slide for slide in slides if slide is not None]
        return min(known) if known and len(known) == len(slides) else None

    @property
    def horizon(self) -> int:
        """The number of ticks behind the watermark in which windows may still be revised."""
        return max(source.horizon for source in self.inputs)

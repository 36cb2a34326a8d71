"""Slice windows: aggregates over windows of time, merged from slices that all open windows share.

The stream is cut into slices at the edges of the windows; each tuple is folded into its slice once. A slice keeps partial
states of the aggregates for each group; a window is the merge of its slices. Removed tuples are undone where all aggregates
can undo; otherwise their slices are made again from the readings. Both give the same. Slices that no open window reaches are
dropped; those of a window that is revised are folded again (`window_store.py`).
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.expression import Column
from basestation.algebra.expressions import Aggregate
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.vector import all_true
from basestation.execution import thresholds
from basestation.execution.columns.cells import Cells
from basestation.execution.columns.change import Change
from basestation.execution.columns.tick_spans import TickSpans
from basestation.execution.columns.tuple_versions import TupleVersions
from basestation.execution.columns.tuples import TupleBuffer, Tuples, partition
from basestation.execution.columns.window_batch import NEVER, WindowBatch
from basestation.execution.columns.window_contents import WindowContents
from basestation.execution.description import OperatorDescription, StateDescription, array_bytes, describe_aggregate
from basestation.execution.interfaces import Claims, View
from basestation.execution.slices.slice_folder import SliceFolder
from basestation.execution.slices.slice_grid import SliceGrid
from basestation.execution.slices.slice_revisions import SliceRevisions, revise_windows
from basestation.execution.slices.slice_store import SliceStore
from basestation.execution.slices.two_stacks import TwoStacks
from basestation.execution.slices.window_merger import WindowAggregates, WindowMerger
from basestation.execution.streams.stream import Stream
from basestation.execution.windowing.time_windows import TimeWindows
from basestation.execution.windowing.window_store import WindowStore


class SliceWindows(TimeWindows):
    """SliceAggregation: the same windows as TimeWindows would give, each with one row for each group."""

    store: "SharedSlices"

    def __init__(self, stream: Stream, node: SliceAggregation, start: int, store: "SharedSlices") -> None:
        super().__init__(stream, node.child.columns, node.begin, node.end, node.slide, start, store)
        self._groups = [column for column, _ in node.groups]
        self._used = Counter(
            store.register(node.aggregates)
        )  # (column, number) of an aggregate, by how many views read it

    def describe(self) -> OperatorDescription:
        return replace(super().describe(), name="windows of slices")

    @property
    def max_rows(self) -> int | None:
        return 1 if not self._groups else None

    def show(self, view: View) -> Claims:
        taken = self.store.register(view.aggregates)
        self._used.update(taken)
        return [(self, each) for each in taken]

    def release(self, what: Any) -> None:
        """End one use of an aggregate: (column, number)."""
        self._used -= Counter([what])
        self.store.release(what[1])

    def close(self) -> None:
        super().close()
        for each in list(self._used.elements()):
            self.release(each)

    def content(self, given: WindowBatch) -> WindowContents:
        return self.store.windows(given.left, given.right).frame(self._groups, self._used)

    @property
    def versions(self) -> TupleVersions | None:
        """The versions of tuples that were corrected in a step of many clock ticks; None where none were."""
        versions = self.stream.change.versions
        return versions if versions is not None and len(versions) else None

    def by_range(self, given: WindowBatch) -> Iterator[tuple[int | None, IntArray, WindowBatch]]:
        """Yield (number of a range, positions of windows that have it, these windows with the range); None as the only number."""
        yield None, np.arange(len(given)), given

    def revise(
        self, given: WindowBatch, new: int, number: int | None
    ) -> tuple[SliceRevisions, WindowContents, WindowContents]:
        """(revisions, added rows, removed rows) of windows, of which the last `new` are answered for the first time.

        The windows are those of the range with this number.
        """
        found = self.store.revise(given.left, given.right, given.tick, new)
        added, removed = (self._of_range(rows, number) for rows in found.frames(self._groups, self._used))
        return found, added, removed

    def whole(
        self, given: WindowBatch, new: int, number: int | None, items: IntArray
    ) -> tuple[WindowContents, WindowContents]:
        """(all rows after, all rows before) some items of the same revisions."""
        found = self.store.revise(given.left, given.right, given.tick, new, whole=True)
        after, before = found.whole(items, self._groups, self._used)
        return self._of_range(after, number), self._of_range(before, number)

    def _of_range(self, rows: WindowContents, number: int | None) -> WindowContents:
        """The rows of windows of one range, as rows of windows of the block."""
        return rows

    def empty(self, count: int) -> WindowContents:
        none = np.zeros(count, np.int64)
        return self.store.windows(none, none - 1).frame(self._groups, self._used)

    def forget(self, before: int, kept: WindowBatch) -> None:
        earliest = self._earliest(kept)
        if self.begin is None:  # final slices of a landmark window are merged into one
            earliest = min(before, int(kept.right.min(initial=NEVER)), self._next)
        self.store.need(self.open_from if self.store.recalls else earliest)
        self.stream.need(min(before, self.store.needs(earliest)))


class SharedSlices(WindowStore):
    """The slices of one stream, for windows that are cut alike."""

    def __init__(
        self,
        stream: Stream,
        level: int,
        node: SliceAggregation,
        start: int,
        own: Iterable[tuple[Column, Aggregate]] = (),
    ) -> None:
        """`start` is that of a landmark window; `own` are aggregates that are always kept."""
        super().__init__(stream, level)
        self.recalls = node.begin is not None  # a landmark window begins with all slices that were dropped, merged
        self._begin, self._start, self._groups = node.begin, start, node.groups
        self._grid = SliceGrid.of_window(node.begin, node.end, node.slide)
        self._folder = self._make_folder(node, own)
        self._merger = WindowMerger(self._folder)
        self._anchored = node.begin is None and stream.anchor(start)
        self.clear()

    def _make_folder(self, node: SliceAggregation, own: Iterable[tuple[Column, Aggregate]]) -> SliceFolder:
        return SliceFolder(node, own)

    def __getstate__(self) -> dict[str, Any]:
        """Without what can be computed again."""
        return vars(self) | {"_windows_found": {}, "_revisions_found": {}, "_two_stacks": TwoStacks()}

    @property
    def title(self) -> str:
        return f"slices of {describe_aggregate(self._groups, self._folder.registry.in_use)}"

    def describe(self) -> OperatorDescription:
        kept = self.reach if self.recalls or self.reach is None else self.reach + self.stream.horizon
        slices = None if kept is None else self._grid.count(kept)
        limit = None if self._folder.is_grouped or slices is None else slices * len(self._folder.groups)
        how = "each tuple folded once"
        parts = self._all_parts()
        arrays = [array for part in parts for array in (part.slice, part.group, part.arrival, part.place)]
        arrays += [array for part in parts for state in part.states for array in state.cells.values()]
        state = StateDescription(
            "partial states", limit, self._entry_bytes(), sum(map(len, parts)), array_bytes(*arrays)
        )
        return OperatorDescription(self.title, how if slices is None else f"{how}; {slices} slices", state)

    def _entry_bytes(self) -> int:
        """The bytes of one partial state: slice, group, arrival and place, and each aggregate's own numbers."""
        numbers = sum(len(function.init(0).cells) for function in self._folder.registry.functions)
        return 8 * (4 + numbers)

    def clear(self) -> None:
        self._held = SliceStore()
        self._two_stacks = TwoStacks()
        # Windows and revisions are computed once for all readers, until something changes.
        self._windows_found: dict[tuple[bytes, bytes], WindowAggregates] = {}
        self._revisions_found: dict[tuple[bytes, bytes, int, bool], SliceRevisions] = {}
        self._settled = -NEVER  # of a landmark window: the slice into which all final ones were merged
        self._waiting = TupleBuffer()  # tuples that are folded as soon as a window is read
        self._versions: TupleVersions | None = None  # tuples that are folded with the next step

    def _changed(self) -> None:
        self._windows_found, self._revisions_found = {}, {}

    # --- aggregates --------------------------------------------------------------------------------------------------

    def register(self, aggregates: Iterable[tuple[Column, Aggregate]]) -> list[tuple[Column, int]]:
        """(column, number) of each (column, aggregate), kept until it is released."""
        taken = self._folder.registry.take(aggregates)
        self._renew_aggregates()
        return taken

    def release(self, number: int) -> None:
        """End one use of an aggregate."""
        self._folder.registry.release(number)
        self._renew_aggregates()

    def _renew_aggregates(self) -> None:
        """Keep the states of the aggregates in use. New ones are computed from the tuples that the stream still has."""
        if self._folder.registry.current:
            return
        self._settle()
        if self.recalls:
            self._drop_before_kept()
        self._fold_waiting()  # waiting tuples have the columns of the aggregates before
        self._changed()
        cells = self._folder.concatenate(self._held.all())
        self._held.set([self._folder.renew(cells, self._read_all, self.stream)])

    def _read_all(self) -> tuple[IntArray, Tuples]:
        slices, tuples, _ = self._held_of(self.stream.between(self._kept_from, NEVER))
        return slices, tuples

    # --- recalling slices --------------------------------------------------------------------------------------------

    def reach_back(self, before: int) -> None:
        super().reach_back(self._begin_of_slice(before))

    def recall(self, left: IntArray, right: IntArray) -> None:
        if self.recalls:
            super().recall(left, right)

    def load(self, tuples: Tuples) -> None:
        if len(tuples):  # a stream of partials has none, and no columns
            self._waiting.add(self._folder.needed(tuples))

    def read_parts(self, low: int, high: int) -> Iterable[Tuples]:
        if self.is_behind:
            self._settle()
        for part in super().read_parts(low, high):
            yield part if self._versions is None else part.take(~np.isin(part.ident, self._versions.tuples.ident))

    # --- taking changes in -------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of cells, and of tuples that wait to be folded."""
        live = 0 if self._versions is None else self._versions.live_count
        return len(self._held) + len(self._waiting) + live

    def take(self, change: Change) -> None:
        """Take in a change. Tuples with versions are left out until the next step."""
        self._changed()
        self._settle()
        self._versions = change.versions
        inserted = change.inserted
        if (
            self._versions is not None and len(inserted) > thresholds.WAITING_VERSIONS
        ):  # new tuples are in order if none are before them
            self._fold_waiting()
        if len(change.removed):
            lost = self._take_back(self._stop_waiting(change.removed))
            if len(lost[0]):
                self._wait(self._tuples_of(lost))
                inserted = inserted.take(~self._among(inserted, lost))
        self._wait(inserted)

    def _wait(self, tuples: Tuples) -> None:
        self.load(self.held(tuples))

    def _settle(self) -> None:
        """The versions of the last step are over: what is left of them waits to be folded."""
        if self._versions is not None:
            self._wait(self._versions.live)
            self._versions = None

    def _stop_waiting(self, removed: Tuples) -> Tuples:
        """Remove tuples from those that wait; the other removed tuples."""
        waiting = self._waiting.all()
        if waiting is None:
            return removed
        waited = np.isin(removed.ident, waiting.ident)
        if waited.any():
            self._waiting.keep(~np.isin(waiting.ident, removed.ident))
        return removed.take(~waited)

    def _fold_waiting(self, upto: int = NEVER) -> None:
        """Fold the waiting tuples of slices up to one."""
        tuples, self._waiting = self._waiting.all(), TupleBuffer()
        if tuples is None:
            return
        if upto < NEVER:
            over = tuples.tick < self._grid.first_tick(upto + 1)
            if not all_true(over):
                tuples, later = partition(tuples, over)
                self._waiting.add(later)  # an open slice is folded once it is over
        self._fold(tuples)

    def _fold(self, tuples: Tuples) -> None:
        slices, tuples, _ = self._held_of(tuples)
        if len(tuples):
            self._put(self._folder.cells(slices, tuples, self.stream))

    def _held_of(self, tuples: Tuples) -> tuple[IntArray, Tuples, BoolArray]:
        """(slices, tuples, mask) of those that windows may still contain."""
        tuples, slices = self.stream.placed(tuples), self._grid.slices_of(tuples.tick)
        held = slices >= self._from
        if not all_true(held):
            held |= self._recalled.contains(tuples.tick)
        if self._begin is None:
            held &= tuples.tick >= self._start
        return (slices, tuples, held) if all_true(held) else (slices[held], tuples.take(held), held)

    def _put(self, cells: Cells) -> None:
        """Take cells in; those of slices that exist are merged with them."""
        later = self._held.cut_off(int(cells.slice[0]))
        if later:
            both = int(np.searchsorted(cells.slice, later[-1].slice[-1], "right"))
            self._held.add(self._folder.insert(self._folder.concatenate(later), cells.between(0, both)))
            cells = cells.between(both, len(cells))
        self._held.add(cells)

    def _take_back(self, removed: Tuples) -> tuple[IntArray, IntArray]:
        """Undo tuples where that is exact; the (slices, groups) that have to be made again."""
        slices, removed, _ = self._held_of(removed)
        if not len(removed):
            return slices, slices
        later = self._folder.separate(self._held.cut_off(int(slices.min())))
        later, lost = self._folder.undo(later, slices, removed)
        self._held.add(later)
        return lost

    def _tuples_of(self, lost: tuple[IntArray, IntArray]) -> Tuples:
        """The tuples in (slices, groups), which ascend, without those that wait or have versions."""
        found = self.stream.between(
            self._grid.first_tick(int(lost[0][0])), self._grid.first_tick(int(lost[0][-1]) + 1) - 1
        )
        which = self._among(found, lost)
        for others in (self._waiting.all(), None if self._versions is None else self._versions.tuples):
            if others is not None:
                which &= ~np.isin(found.ident, others.ident)
        return found.take(which)

    def _among(self, tuples: Tuples, lost: tuple[IntArray, IntArray]) -> BoolArray:
        """A mask of the tuples in some of (slices, groups)."""
        which = tuples.tick < self._grid.first_tick(int(lost[0][-1]) + 1)
        early = tuples.take(which)
        which[which] = self._folder.among(self._grid.slices_at(early.tick), early, lost)
        return which

    # --- reading windows ---------------------------------------------------------------------------------------------

    def windows(self, left: IntArray, right: IntArray) -> WindowAggregates:
        """The windows over the ticks left[i] to right[i], which are edges of slices."""
        self.recall(left, right)
        key = left.tobytes(), right.tobytes()
        if key not in self._windows_found:
            self._windows_found[key] = self._make_windows(left, right)
        return self._windows_found[key]

    def _make_windows(self, left: IntArray, right: IntArray) -> WindowAggregates:
        self._settle()
        first, last = self._grid.slices_at(left), self._grid.slices_at(right)
        high = int(last.max(initial=-NEVER))
        self._fold_waiting(high)
        parts = self._held.between(int(first.min(initial=NEVER)), high)
        if len(first) == 1 and parts and (whole := self._two_stacks.over(parts, self._merger.bundle)) is not None:
            return self._merger.finish_bundle(whole)
        return self._merger.windows(parts, np.maximum(first, self._settled), last)

    def revise(self, left: IntArray, right: IntArray, ticks: IntArray, new: int, whole: bool = False) -> SliceRevisions:
        """The revisions in this step of windows at `ticks`, in order, of which the last `new` are new.

        With `whole`, they have all rows of these windows, also those of groups that are not revised.
        """
        self.recall(left, right)
        key = left.tobytes(), right.tobytes(), new, whole
        if key not in self._revisions_found:
            if self._versions is None:
                raise RuntimeError("expected corrections in this step, found none")
            clocks = self._versions.first_answered(ticks[len(ticks) - new :])
            self._revisions_found[key] = self._make_revisions(self._versions, left, right, clocks, whole)
        return self._revisions_found[key]

    def _make_revisions(
        self, versions: TupleVersions, left: IntArray, right: IntArray, clocks: IntArray, whole: bool
    ) -> SliceRevisions:
        first, last = self._grid.slices_at(left), self._grid.slices_at(right)
        slices, tuples, held = self._held_of(self._folder.needed(versions.tuples))
        versions = versions.select(tuples, held)
        waiting = None if len(clocks) else self._waiting_upto(int(last.max(initial=-NEVER)))
        if len(clocks) or (waiting is not None and len(waiting) * len(first) > thresholds.WAITING_VERSIONS):
            self._fold_waiting()
        elif waiting is not None and len(waiting):  # to treat them as versions costs less than to fold them
            of, waiting, _ = self._held_of(waiting)
            among = whole | np.isin(self._folder.groups_of(waiting), self._folder.groups_of(tuples))
            slices = np.concatenate([slices, of[among]])
            versions = versions.with_constant(waiting.take(among))
        parts = self._held.between(int(first.min(initial=NEVER)), int(last.max(initial=-NEVER)))
        cells, first = self._folder.concatenate(parts), np.maximum(first, self._settled)
        new = len(clocks)
        return revise_windows(
            self._folder, self._merger, self.stream, cells, slices, versions, first, last, clocks, new, whole
        )

    def _waiting_upto(self, last: int) -> Tuples | None:
        """The waiting tuples of slices up to one."""
        waiting = self._waiting.all()
        return None if waiting is None else waiting.take(waiting.tick < self._grid.first_tick(last + 1))

    # --- what may be dropped -----------------------------------------------------------------------------------------

    @property
    def _from(self) -> int:
        """The first slice that is kept."""
        return self._grid.slice_at(self._kept_from)

    def _begin_of_slice(self, tick: int) -> int:
        """The first tick of the slice of a tick."""
        return self._grid.first_tick(self._grid.slice_at(tick))

    def need(self, before: int) -> None:
        super().need(self._begin_of_slice(before))

    def needs(self, tick: int) -> int:
        """The first tick whose readings, or their coverage, are needed where windows need those from `tick` on."""
        if self._begin is not None:
            return tick
        return self._begin_of_slice(tick) if self._anchored else self._start

    def tidy(self) -> None:
        """Drop what no reader needs. A landmark window that is still to come contains all that waits."""
        if self._begin is None:
            self._changed()
            self._settle()
            self._fold_waiting()
        super().tidy()

    def forget(self, before: int) -> None:
        """Drop the slices before a tick; of a landmark window, merge those that are final."""
        self._changed()
        self._settle()
        if len(self._waiting) > thresholds.WAITING_TUPLES:
            self._fold_waiting()
        removed = self._drop_before_kept()
        if removed and self._begin is None:
            self._settled = self._from - 1
            merged = self._folder.concatenate(removed)
            merged = replace(merged, slice=np.full(len(merged), self._settled), width=0)
            self._held.add_before(self._folder.with_width(self._folder.unite(merged)))
        self._replace_parts(self._folder.drop_unused_groups(self._all_parts()))

    def _all_parts(self) -> list[Cells]:
        """All cells, in parts."""
        return self._held.all()

    def _replace_parts(self, parts: list[Cells]) -> None:
        """Replace all parts by as many."""
        self._held.set(parts)

    def _drop_before_kept(self) -> list[Cells]:
        """Drop what is before the slices that are kept; return its cells."""
        self._recalled = TickSpans()
        self._waiting.forget("tick", self._kept_from)
        return self._held.cut_off_before(self._from)

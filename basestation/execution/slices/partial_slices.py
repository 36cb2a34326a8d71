"""Partial slices: a stream of partial states from the network instead of tuples, and the slices that they fill.

Such a stream has no tuples. It says how far its time is complete, and at which ticks answers may look different, like any
other; its slices take the partial states directly.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_merged import StreamMerged
from basestation.execution.columns.cells import Cells
from basestation.execution.columns.change import NO_KEYS, NO_TICKS, Change
from basestation.execution.columns.coverage_ranges import CoverageRanges
from basestation.execution.columns.tuples import Tuples
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.description import OperatorDescription
from basestation.execution.ingest.partial_batch import PartialBatch
from basestation.execution.ingest.partial_intake import PartialIntake
from basestation.execution.slices.slice_folder import SliceFolder
from basestation.execution.slices.slice_windows import SharedSlices
from basestation.execution.streams.stream import Stream
from innet.aggregates import create_mote_aggregate
from innet.aggregates.state import AggregateState
from innet.aggregates.state_fields import make_state


class MergedStream(Stream):
    """StreamMerged: the partial states of one fold, for all aggregations that it feeds."""

    def __init__(self, intake: PartialIntake, acquired: Sequence[tuple[StreamAcquire, tuple[BoolArray, ...]]]) -> None:
        """`acquired` are the StreamAcquires below, each with masks of the sites that conditions leave out."""
        super().__init__(0)
        self.intake, self.extent = intake, intake.extent
        self.came: PartialBatch | None = None
        """The partial states of the last step."""
        self._acquired = acquired
        self._none = intake.no_rows

    @property
    def title(self) -> str:
        names = ", ".join(dict.fromkeys(acquire.extent.name for acquire, _ in self._acquired))
        return f"receive partial states of {names}"

    def describe(self) -> OperatorDescription:
        return OperatorDescription(self.title, "folded on motes")

    @property
    def by_site(self) -> bool:
        return True

    @property
    def watermark(self) -> int:
        return self.intake.watermark

    @property
    def certain(self) -> int:
        return self.intake.watermark

    @property
    def entered(self) -> IntArray:
        return NO_TICKS

    @property
    def first(self) -> int:
        return 0

    def index_of(self, idents: IntArray) -> IntArray:
        return np.zeros(len(idents), np.int64)

    def step(self, clock: int) -> None:
        self.came = self.intake.new_partials
        self.change = replace(self.all(), dirty_ticks=self.intake.dirty_ticks)

    def all(self) -> Change:
        return Change(self._none, np.empty(0, bool), self._none, NO_TICKS, self.intake.watermark)

    def between(self, low: int, high: int) -> Tuples:
        return self._none

    def open_from(self, before: int) -> int:
        return before

    def empty_covers(self) -> list[CoverageRanges]:
        return [CoverageRanges(acquire.extent.name, self.intake.site_coverage[acquire.extent.name], acquire.interval, excludes)
                for acquire, excludes in self._acquired]  # fmt: skip

    def covers(self, low: IntArray, high: IntArray, at: IntArray) -> list[CoverageRanges]:
        return [replace(each, owner=np.arange(len(low)), low=low, high=high, at=at) for each in self.empty_covers()]

    def epochs(self) -> IntArray:
        return NO_KEYS

    def epochs_from(self, tick: int) -> IntArray:
        return NO_KEYS

    def epoch_covers(self, keys: IntArray) -> list[tuple[BoolArray, list[CoverageRanges]]]:
        return []

    def anchor(self, low: int) -> bool:
        """True: no other part of the query reads the extents below."""
        for cover in self.empty_covers():
            if cover.tally is not None:
                cover.tally.anchor(low)
        return True

    def tidy(self) -> None:
        self.intake.need(self.needed)
        self.needed = NEVER


class PartialSlices(SharedSlices):
    """The slices of one SliceAggregation over a MergedStream. A landmark window takes slices that begin after its start."""

    stream: MergedStream

    def __init__(self, stream: MergedStream, level: int, node: SliceAggregation, start: int) -> None:
        if not isinstance(node.child, StreamMerged):
            raise TypeError(f"expected an aggregation over StreamMerged, found {type(node.child).__name__}")
        self._node, self._sources = node, node.child.sources
        super().__init__(stream, level, node, start, node.aggregates)
        self.recalls = False  # the intake has no readings

    def reach_back(self, before: int) -> None:
        if before < self._kept_from:
            self.clear()
            self._kept_from = before
            self._take_in(self.stream.intake.all())

    def apply(self, clock: int) -> None:
        came, held = self.stream.came, len(self)
        count = 0 if came is None else len(came)
        if count:
            self._changed()
            self._take_in(came)
        self.counts.rows_in += count
        self.counts.inserted += count
        self.counts.purged += max(0, held + count - len(self))

    def _take_in(self, partials: PartialBatch | None) -> None:
        """Partial states as cells of the slices that windows may still contain."""
        if partials is None:
            return
        begins = self.stream.intake.begins(partials.slice)
        numbers = self._grid.slices_at(begins)
        held = ~partials.bare & (numbers >= self._from)
        if self._begin is None:
            held &= begins >= self._start
        if held.any():
            taken = partials.take(held)
            self._put(make_cells(taken, begins[held], numbers[held], self._node, self._sources, self._folder))


def make_cells(
    partials: PartialBatch,
    begins: IntArray,
    numbers: IntArray,
    node: SliceAggregation,
    sources: Sequence[int | None],
    folder: SliceFolder,
) -> Cells:
    """Return the cells of partials, none of them bare, for one SliceAggregation.

    `begins` are the first ticks of their slices, `numbers` the numbers that the engine gives those. `sources` says at which
    position the fold has the state of each aggregate; None for the row count. The folder serves this aggregation alone.
    """
    group = folder.groups.of(list(partials.keys), len(partials))
    rows = make_state("COUNT", [(count,) for count in partials.readings.tolist()])
    states = {0: rows}
    for (_, aggregate), (_, at), source in zip(node.aggregates, folder.own, sources, strict=True):
        states[at] = _part_of(aggregate.name, rows if source is None else partials.states[source])
    return folder.unite(Cells(numbers, group, begins, partials.first, [states[at] for at in sorted(states)]))


def _part_of(name: str, state: AggregateState) -> AggregateState:
    """Return the state of an aggregate out of one that contains it: sums contain counts, and variances contain sums."""
    wanted = create_mote_aggregate(name)
    cells = {cell: state.cells[cell].copy() for cell in wanted.cells}
    sums = {total: state.sums[total].take(np.arange(state.n_groups)) for total in wanted.sums}
    return AggregateState(state.n_groups, cells, sums)

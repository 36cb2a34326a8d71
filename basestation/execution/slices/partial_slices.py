"""Fed: a stream of which partials come instead of tuples, and the slices that they fill.

Such a stream has no tuples. It says how far its time is complete, and at which ticks answers may look different, like any
other; its slices take the partials themselves.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from acquisition.arrays import IntArray
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.execution.columns.cells import Cells
from basestation.execution.columns.change import NO_TICKS, Change
from basestation.execution.columns.coverage_ranges import CoverageRanges
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.ingest.partial_batch import PartialBatch
from basestation.execution.slices.slice_folder import SliceFolder
from basestation.execution.slices.slice_windows import SharedSlices
from basestation.execution.streams.stream import Stream
from innet.aggregates import create_mote_aggregate
from innet.aggregates.state import AggregateState
from innet.aggregates.state_fields import make_state


class MergedStream(Stream):
    """StreamMerged: what comes of one fold, for all aggregations that it feeds."""

    by_site = True

    def __init__(self, merged, acquired):
        """`acquired` are the StreamAcquires below, each with the masks of the sites that it leaves out."""
        super().__init__(0)
        self.intake, self.extent, self.came = merged, merged.extent, None
        self._acquired = acquired
        self._none = merged.no_rows
        self.change = None

    @property
    def watermark(self):
        return self.intake.watermark

    certain = watermark

    def step(self, clock):
        self.came = self.intake.new_partials
        self.change = replace(self.all(), dirty_ticks=self.intake.dirty_ticks)

    def all(self):
        """No tuple is here."""
        return Change(self._none, np.empty(0, bool), self._none, NO_TICKS, self.intake.watermark)

    def open_from(self, before):
        """The first tick of which anything may still come."""
        return before

    def empty_covers(self):
        """The extents below, covered nowhere."""
        return [CoverageRanges(acquire.extent.name, self.intake.site_coverage[acquire.extent.name], acquire.interval, excludes)
                for acquire, excludes in self._acquired]  # fmt: skip

    def covers(self, low, high, at):
        """What the readings from ticks low to high cover."""
        return [replace(each, owner=np.arange(len(low)), low=low, high=high, at=at) for each in self.empty_covers()]

    def anchor(self, low):
        """Coverage from a tick on can be told for ever: no other part of the query reads its extents."""
        for cover in self.empty_covers():
            cover.tally.anchor(low)
        return True

    def tidy(self):
        self.intake.need(self.needed)
        self.needed = NEVER


class PartialSlices(SharedSlices):
    """The slices of one SliceAggregation over a MergedStream. A landmark window takes those that begin after it does."""

    def __init__(self, stream, level, node, start):
        self._node, self._sources = node, node.child.sources
        super().__init__(stream, level, node, start, node.aggregates)

    def fill(self):
        """Begin with all partials that are here."""
        super().fill()
        self._take_in(self.stream.intake.all())

    def apply(self, clock):
        came, held = self.stream.came, len(self)
        count = 0 if came is None else len(came)
        if count:
            self._found = {}
            self._take_in(came)
        self.counts.rows_in += count
        self.counts.inserted += count
        self.counts.purged += max(0, held + count - len(self))

    def _take_in(self, arrived):
        """Partials as cells of the slices that windows may still hold."""
        if arrived is None:
            return
        begins = self.stream.intake.begins(arrived.slice)
        numbers = self._numbers(begins)
        held = ~arrived.bare & (numbers >= self._from)
        if self._begin is None:
            held &= begins >= self._start
        if held.any():
            taken = arrived.take(held)
            self._put(make_cells(taken, begins[held], numbers[held], self._node, self._sources, self._folding))


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
    return folder.united(Cells(numbers, group, begins, partials.first, [states[at] for at in sorted(states)]))


def _part_of(name: str, state: AggregateState) -> AggregateState:
    """Return the state of an aggregate out of one that contains it: sums contain counts, and variances contain sums."""
    wanted = create_mote_aggregate(name)
    cells = {cell: state.cells[cell].copy() for cell in wanted.cells}
    sums = {total: state.sums[total].take(np.arange(state.n_groups)) for total in wanted.sums}
    return AggregateState(state.n_groups, cells, sums)

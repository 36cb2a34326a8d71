"""Recorded streams: the deliveries of an extent, read block by block, with what a replay must know before it begins."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from acquisition.arrays import IntArray
from acquisition.batch import Batch, concatenate, empty_batch
from acquisition.errors import InputError
from acquisition.extent import Extent, ExtentKind
from acquisition.sources.bad_rows import BadRows
from acquisition.sources.batch_conversion import batches_of
from acquisition.sources.blocks import BlockSource
from acquisition.sources.snapping import snap
from basestation.replay.recorded_ticks import RecordedTicks
from basestation.replay.schedule_fit import ScheduleFit

HELD_BYTES = 1 << 26
"""An input up to this size is read once and kept in memory. A larger one is read twice: its keys first, to know its end."""


@dataclass(frozen=True, slots=True)
class RecordedStream:
    """The recorded deliveries of an extent.

    `read` yields them in recorded order; `ordered` says that this is the order of delivery. `first` and `last` are the first
    and last tick of a delivery or tuple, None without any; a tuple stamped too far ahead is not the last one (semantics 1.5).
    `ticks` are intervals of ticks that hold all deliveries and tuples. `sites` are those that occur. `fit` tells how the readings of a sensed extent fit its schedule,
    `bad` which rows were left out.
    """

    extent: Extent
    read: Callable[[], Iterator[Batch]]
    ordered: bool = True
    first: int | None = None
    last: int | None = None
    sites: tuple[int, ...] = ()
    fit: ScheduleFit | None = None
    bad: BadRows | None = None
    ticks: tuple[tuple[int, int], ...] = ()

    def deliveries(self) -> Iterator[Batch]:
        """Yield the tuples in the order of delivery. Raises InputError where a value of a large file is wrong."""
        if self.ordered:
            yield from self.read()
        else:
            whole = self.whole()
            yield whole.take(np.argsort(whole.arrival, kind="stable"))

    def whole(self) -> Batch:
        """Return all tuples in recorded order. Raises InputError."""
        return concatenate(list(self.read()) or [empty_batch(self.extent.schema)])


def read_stream(
    source: BlockSource, extent: Extent, tick_ms: int, held_bytes: int = HELD_BYTES, within: int | None = 0
) -> RecordedStream:
    """Return the stream of an input, after one pass over its keys. Raises InputError.

    Readings are snapped to the schedule from a distance of up to `within` ticks, None: of less than half an interval.
    """
    held: list[Batch] | None = [] if source.size <= held_bytes else None
    ordered, arrived, count = True, -1, 0
    first, last = 2**63, -1
    ticks = RecordedTicks()
    sites: set[int] = set()
    fit = ScheduleFit(extent, tick_ms) if extent.kind is ExtentKind.SENSED else None
    within = within if fit is not None else 0

    def snapped(keys_only: bool = False) -> Iterator[tuple[Batch, int, IntArray]]:
        for batch in batches_of(source, extent, tick_ms, keys_only):
            yield (*((batch, 0) if within == 0 else snap(batch, extent, within)), batch.tick)

    for batch, moved, recorded in snapped(keys_only=held is None):
        if held is not None:
            held.append(batch)
        if not len(batch):
            continue
        if fit is not None:
            fit.add(batch, moved, recorded)
        arrival = batch.arrival
        if arrival.min() < 0:
            row = int(np.argmax(arrival < 0))
            message = f"delivered at tick {arrival[row]}, but the clock of a replay starts at 0"
            raise InputError("SN508", message, source.name, count + row + 1)
        ordered = ordered and arrived <= arrival[0] and not (arrival[1:] < arrival[:-1]).any()
        arrived = int(arrival[-1])
        stamped = batch.tick if extent.ahead is None else batch.tick[batch.tick - arrival <= extent.ahead]
        first = min(first, int(arrival.min()), int(batch.tick.min()))
        last = max(last, int(arrival.max()), int(stamped.max()) if len(stamped) else -1)
        ticks.add(arrival)
        ticks.add(batch.tick)
        sites |= _find_sites(batch.site)
        count += len(batch)
    read = (lambda: (batch for batch, *_ in snapped())) if held is None else (lambda: iter(held))
    if not count:
        return RecordedStream(extent, read)
    return RecordedStream(
        extent, read, ordered, max(0, first), last, tuple(sorted(sites)), fit, ticks=tuple(ticks.intervals())
    )


def _find_sites(site: IntArray) -> set[int]:
    """Return the sites that occur."""
    least, most = int(site.min()), int(site.max())
    if most - least > len(site):
        return set(np.unique(site).tolist())
    return set((np.flatnonzero(np.bincount(site - least)) + least).tolist())

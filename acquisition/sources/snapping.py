"""Snap readings to the schedule: a reading taken a little early or late counts for the nearest tick at which one was due."""

from dataclasses import replace

import numpy as np

from acquisition.batch import Batch
from acquisition.extent import Extent


def snap(batch: Batch, extent: Extent, within: int | None) -> tuple[Batch, int]:
    """Return the readings at ticks of the schedule, and how many were moved.

    A reading moves by at most `within` ticks, None: by less than half an interval. It stays where it is, off the schedule, if it
    is farther away or just between two ticks. It keeps its arrival, which is never before its tick.
    """
    interval = extent.interval or 1
    early, late = -batch.tick % interval, batch.tick % interval  # ticks to the next and from the last due tick
    distance = np.minimum(early, late)
    moves = (distance > 0) & (early != late)
    if within is not None:
        moves &= distance <= within
    if batch.replaces is not None:
        moves &= batch.replaces <= 0
    if not moves.any():
        return batch, 0
    tick = batch.tick + np.where(moves, np.where(early < late, early, -late), 0)
    columns = dict(batch.columns)
    if extent.time_attribute is not None and extent.time_attribute.name in columns:
        columns[extent.time_attribute.name] = tick
    return replace(batch, tick=tick, arrival=np.maximum(batch.arrival, tick), columns=columns), int(moves.sum())

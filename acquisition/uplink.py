"""DOOR UP: READING frames -> batches of tuples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from acquisition.batch import Batch, all_there, dtype_of
from acquisition.errors import PayloadError
from acquisition.extent import Catalog, Extent
from acquisition.payload import Readings, decode_readings
from acquisition.schedule import Sampling
from gateway.frame import Frame


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured, as (extent, tuples), one per sampling; what was filtered on motes, as (sampling, tuples) with
    weight 0 and without columns; and the frames that said nothing sensible."""

    batches: tuple[tuple[str, Batch], ...]
    filtered: tuple[tuple[Sampling, Batch], ...]
    errors: tuple[PayloadError, ...]


def rise(frames: Sequence[Frame], samplings: Mapping[int, Sampling], catalog: Catalog, delivery: int) -> Measured:
    """Decode many frames at once; what is known without a sensor (site, time) is filled in. `delivery` is the tick."""
    decoded, errors = decode_readings(frames, samplings)
    batches, filtered = [], []
    for readings in decoded:
        name = readings.sampling.extent
        if len(readings.tick):
            batches.append((name, batch_of(readings, catalog.find(name), delivery)))
        if len(readings.filtered_tick):
            filtered.append((readings.sampling, filtered_of(readings, delivery)))
    return Measured(tuple(batches), tuple(filtered), tuple(errors))


def batch_of(readings: Readings, extent: Extent, delivery: int) -> Batch:
    """Decoded readings as tuples of their extent. Columns that were not sampled are absent."""
    columns, valid = {}, {}
    for c, channel in enumerate(readings.sampling.channels):
        attribute = extent.schema.find(channel.attribute)
        columns[attribute.name] = readings.value[:, c].astype(dtype_of(attribute))
        if readings.null[:, c].any():
            valid[attribute.name] = ~readings.null[:, c]
    if extent.site_attribute:
        columns[extent.site_attribute.name] = readings.site
    if extent.time_attribute:
        columns[extent.time_attribute.name] = readings.tick
    size = len(readings.tick)
    return Batch(readings.tick, readings.site, np.full(size, delivery, np.int64), all_there(size), columns, valid)


def filtered_of(readings: Readings, delivery: int) -> Batch:
    """What the same frames say was filtered."""
    size = len(readings.filtered_tick)
    arrival, weight = np.full(size, delivery, np.int64), np.zeros(size, np.int64)
    return Batch(readings.filtered_tick, readings.filtered_site, arrival, weight, {})

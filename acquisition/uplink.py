"""DOOR UP: READING frames -> batches of tuples."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from acquisition.batch import Batch, dtype_of, unit_weights
from acquisition.errors import PayloadError
from acquisition.extent import Catalog, Extent
from acquisition.payload import Readings, decode_readings
from acquisition.schedule import Sampling
from gateway.frame import Frame


@dataclass(frozen=True, slots=True)
class ReceivedReadings:
    """What was measured, as (extent, tuples), by what was sent; what was filtered on motes, as (sampling, tuples) with
    weight 0 and without columns; and the frames that said nothing sensible."""

    batches: tuple[tuple[str, Batch], ...]
    filtered: tuple[tuple[Sampling, Batch], ...]
    errors: tuple[PayloadError, ...]


def receive(
    frames: Sequence[Frame], samplings: Mapping[int, Sampling], catalog: Catalog, delivery: int
) -> ReceivedReadings:
    """Decode many frames at once; what is known without a sensor (site, time) is filled in. `delivery` is the tick."""
    decoded, errors = decode_readings(frames, samplings)
    batches, filtered = [], []
    for readings in decoded:
        name = readings.sampling.extent
        batches += [(name, batch) for batch in batches_of(readings, catalog.find(name), delivery)]
        if len(readings.filtered_tick):
            filtered.append((readings.sampling, filtered_batch_of(readings, delivery)))
    return ReceivedReadings(tuple(batches), tuple(filtered), tuple(errors))


def batches_of(readings: Readings, extent: Extent, delivery: int | np.ndarray) -> Iterator[Batch]:
    """Decoded readings as tuples of their extent, those together that came with the same columns.

    Columns that were not sampled, or were not sent by a site, are absent: a null is of a sensor that has failed.
    """
    size, channels = len(readings.tick), readings.sampling.channels
    arrival = np.broadcast_to(np.asarray(delivery, np.int64), size)
    lacks = np.zeros(size, np.int64)  # a bit for each channel
    for c, channel in enumerate(channels):
        if channel.senders is not None:
            lacks |= (~np.isin(readings.site, list(channel.senders))).astype(np.int64) << c
    alike = [slice(None)] if not lacks.any() else [np.flatnonzero(lacks == bits) for bits in np.unique(lacks)]
    for rows in alike if size else ():
        sent = [c for c in range(len(channels)) if not lacks[rows][0] >> c & 1]
        yield _batch_of(readings, extent, arrival, sent, rows)


def _batch_of(readings: Readings, extent: Extent, arrival: np.ndarray, sent: Sequence[int],
              rows: np.ndarray | slice) -> Batch:  # fmt: skip
    """Some rows, with the channels that were sent."""
    columns, valid = {}, {}
    for c in sent:
        attribute = extent.schema.find(readings.sampling.channels[c].attribute)
        columns[attribute.name] = readings.value[rows, c].astype(dtype_of(attribute))
        if (null := readings.null[rows, c]).any():
            valid[attribute.name] = ~null
    tick, site = readings.tick[rows], readings.site[rows]
    if extent.site_attribute:
        columns[extent.site_attribute.name] = site
    if extent.time_attribute:
        columns[extent.time_attribute.name] = tick
    return Batch(tick, site, arrival[rows], unit_weights(len(tick)), columns, valid)


def filtered_batch_of(readings: Readings, delivery: int) -> Batch:
    """What the same frames say was filtered."""
    size = len(readings.filtered_tick)
    arrival, weight = np.full(size, delivery, np.int64), np.zeros(size, np.int64)
    return Batch(readings.filtered_tick, readings.filtered_site, arrival, weight, {})

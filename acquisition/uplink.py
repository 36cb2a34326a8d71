"""DOOR UP: READING frames become batches of tuples."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, IntArray
from acquisition.batch import Batch, dtype_of, unit_weights
from acquisition.errors import PayloadError
from acquisition.extent import Catalog, Extent
from acquisition.payload import Readings, decode_readings
from acquisition.schedule import Sampling
from gateway.frame import Frame


@dataclass(frozen=True, slots=True)
class ReceivedReadings:
    """The readings of some frames, by what was sent.

    `batches` are (extent, tuples). `filtered` are (sampling, tuples) that motes filtered: weight 0, no columns.
    `errors` has one error for each invalid frame.
    """

    batches: tuple[tuple[str, Batch], ...]
    filtered: tuple[tuple[Sampling, Batch], ...]
    errors: tuple[PayloadError, ...]


def receive(
    frames: Sequence[Frame], samplings: Mapping[int, Sampling], catalog: Catalog, delivery: int
) -> ReceivedReadings:
    """Decode many frames at once and fill in site and time. `delivery` is the tick of their delivery."""
    decoded, errors = decode_readings(frames, samplings)
    batches, filtered = [], []
    for readings in decoded:
        name = readings.sampling.extent
        batches += [(name, batch) for batch in batches_of(readings, catalog.extents[name], delivery)]
        if len(readings.filtered_tick):
            filtered.append((readings.sampling, filtered_batch_of(readings, delivery)))
    return ReceivedReadings(tuple(batches), tuple(filtered), tuple(errors))


def batches_of(readings: Readings, extent: Extent, delivery: int | IntArray) -> Iterator[Batch]:
    """Yield decoded readings as tuples of their extent, one batch for each set of columns that sites send.

    A column that was not sampled, or that a site does not send, is absent. A null means a failed sensor.
    """
    size, channels = len(readings.tick), readings.sampling.channels
    arrival = np.broadcast_to(np.asarray(delivery, np.int64), size)
    absent: IntArray = np.zeros(size, np.int64)  # one bit for each channel
    for c, channel in enumerate(channels):
        if channel.senders is not None:
            absent |= (~np.isin(readings.site, list(channel.senders))).astype(np.int64) << c
    groups: list[IntArray | slice] = [slice(None)]
    if absent.any():
        groups = [np.flatnonzero(absent == bits) for bits in np.unique(absent)]
    for rows in groups if size else ():
        sent = [c for c in range(len(channels)) if not absent[rows][0] >> c & 1]
        yield _batch_of(readings, extent, arrival, sent, rows)


def _batch_of(
    readings: Readings, extent: Extent, arrival: IntArray, sent: Sequence[int], rows: IntArray | slice
) -> Batch:
    """Return some rows as a batch with the channels that were sent."""
    columns: dict[str, AnyArray] = {}
    valid: dict[str, BoolArray] = {}
    attributes = {attribute.name: attribute for attribute in extent.schema}
    for c in sent:
        attribute = attributes[readings.sampling.channels[c].attribute]
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
    """Return the readings that the same frames report as filtered, with weight 0."""
    size = len(readings.filtered_tick)
    arrival, weight = np.full(size, delivery, np.int64), np.zeros(size, np.int64)
    return Batch(readings.filtered_tick, readings.filtered_site, arrival, weight, {})

"""READING frames of many motes: the epochs in each frame, and its size."""

from dataclasses import dataclass

import numpy as np

from acquisition.arrays import IntArray
from acquisition.payload import READING_HEADER, epochs_per_frame, filter_report_interval
from acquisition.schedule import REGISTER_BITS
from gateway.frame import HEADER_SIZE, payload_room
from simulator.vector_engine.layout import NotVectorisableError
from simulator.vector_engine.sampling import SampledRows


@dataclass(frozen=True, slots=True)
class ReadingFrames:
    """The frames by mote (position), round and first epoch. Row i of the samples goes into `frame[i]`; -1: into none yet."""

    mote: IntArray
    round: IntArray
    first: IntArray  # epoch
    count: IntArray  # epochs
    size: IntArray  # bytes
    frame: IntArray


def pack_readings(sampled: SampledRows, rounds: range, waiting: IntArray, mtu: int) -> ReadingFrames:
    """Pack the readings of some rounds into frames of at most `mtu` bytes.

    `waiting` is (2, motes): how many filtered epochs a mote has not reported yet, and the last of them. It is updated.
    """
    sampling = sampled.batch.sampling
    epoch = (sampled.tick - sampling.epochs.start) // sampling.epochs.interval
    mote, round_, begin, length = _emit(sampled, epoch, rounds, waiting)
    # Rows and emissions are both ordered by (mote, epoch). A row belongs to the first emission that ends at it or later, if
    # that one has begun by then.
    last = begin + length - 1
    span = int(max(epoch.max(initial=0), last.max(initial=0))) + 1
    at = np.searchsorted(mote * span + last, sampled.mote * span + epoch)
    emitted = at < len(mote)
    at = at[emitted]
    inside = (mote[at] == sampled.mote[emitted]) & (begin[at] <= epoch[emitted])
    emitted[emitted], at = inside, at[inside]
    room = epochs_per_frame(sampling, payload_room(mtu))
    parts = -(-length // room)
    before = np.cumsum(parts) - parts
    whole = np.repeat(np.arange(len(mote)), parts)
    part = np.arange(len(whole)) - before[whole]
    first = begin[whole] + part * room
    count = np.minimum(length[whole] - part * room, room)
    frame = np.full(len(epoch), -1)
    frame[emitted] = before[at] + (epoch[emitted] - begin[at]) // room
    return ReadingFrames(mote[whole], round_[whole], first, count, _sizes(sampled, frame, count), frame)


def _emit(
    sampled: SampledRows, epoch: IntArray, rounds: range, waiting: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """(mote, round, first epoch, number of epochs) of each run of consecutive epochs that a mote sends, up to two in a round."""
    sampling, motes = sampled.batch.sampling, sampled.batch.mote
    place = np.full(waiting.shape[1], -1)
    place[motes] = np.arange(len(motes))
    wanted = sampled.computed.due
    cell = (place[sampled.mote] * len(rounds) + sampled.round - rounds.start)[wanted]
    epoch = epoch[wanted]
    shape = len(motes), len(rounds)
    cells = shape[0] * shape[1]
    due = np.bincount(cell, minlength=cells).reshape(shape)
    sent = np.bincount(cell, sampled.computed.sent[wanted], minlength=cells).reshape(shape)
    last = np.zeros(cells, np.int64)
    last[cell] = epoch  # the last row of a cell stays
    last = last.reshape(shape)
    first = last - due + 1
    if (epoch < first.reshape(-1)[cell]).any():
        raise NotVectorisableError(f"sampling {sampling.number} leaves out ticks between others of a round")
    (held, until), longest = waiting[:, motes], filter_report_interval(sampling)
    here = due > 0
    latest = np.maximum.accumulate(np.column_stack([until, np.where(here, last, -1)]), axis=1)
    before, after = latest[:, :-1], latest[:, 1:]
    # A gap between epochs ends a run: send the epochs that waited before it.
    parted = here & (first != before + 1)
    parting = parted.any(axis=0)
    counts = np.zeros((*shape, 2), np.int64)
    for at in range(len(rounds)):
        if parting[at]:
            counts[:, at, 0] = np.where(parted[:, at], held, 0)
            held = np.where(parted[:, at], 0, held)
        held = held + due[:, at]
        emits = here[:, at] & ((sent[:, at] > 0) | (held >= longest))
        counts[:, at, 1] = np.where(emits, held, 0)
        held = np.where(emits, 0, held)
    waiting[:, motes] = held, latest[:, -1]
    ends, flat = np.stack([before, after], axis=-1).ravel(), counts.ravel()
    which = np.flatnonzero(flat)
    row, column = np.divmod(which // 2, len(rounds))
    return motes[row], column + rounds.start, ends[which] - flat[which] + 1, flat[which]


def _sizes(sampled: SampledRows, frame: IntArray, count: IntArray) -> IntArray:
    """The bytes of each frame with `count` epochs, by the encoding of acquisition.payload."""
    sent = sampled.computed.sent & (frame >= 0)
    frame, channels = frame[sent], sampled.batch.sampling.channels
    null, wide = np.zeros(len(frame), bool), np.zeros(len(frame), bool)
    for channel, lane in zip(channels, sampled.computed.reading, strict=True):
        values, there = lane.values[sent], lane.valid[sent]
        null |= ~there
        wide |= there & ((values < -(1 << channel.bits - 1)) | (values >= 1 << channel.bits - 1))
    here = np.bincount(frame, minlength=len(count))
    nulls = np.bincount(frame, null, minlength=len(count)) > 0
    wides = np.bincount(frame, wide, minlength=len(count)) > 0
    narrow, widest = sum(channel.bits for channel in channels), REGISTER_BITS * len(channels)
    bits = here * (np.where(wides, widest, narrow) + nulls * len(channels)) + np.where(here < count, count, 0)
    size: IntArray = HEADER_SIZE + READING_HEADER.size + -(-bits // 8)
    return size

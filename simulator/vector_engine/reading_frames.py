"""READING frames of many motes: which epochs go into which frame, and how long it gets."""

from dataclasses import dataclass

import numpy as np

from acquisition.payload import READING_HEADER, epochs_per_frame, filter_report_interval
from acquisition.schedule import REGISTER_BITS
from gateway.frame import HEADER_SIZE, payload_room
from simulator.vector_engine.layout import NotVectorisableError
from simulator.vector_engine.sampling import SampledRows


@dataclass(frozen=True, slots=True)
class ReadingFrames:
    """Frames by mote, round and first epoch. Row i of the sampled goes into `frame[i]`, or, at -1, into none yet."""

    mote: np.ndarray
    round: np.ndarray
    first: np.ndarray
    count: np.ndarray
    size: np.ndarray
    frame: np.ndarray


def pack_readings(sampled: SampledRows, rounds: range, waiting: np.ndarray, mtu: int) -> ReadingFrames:
    """`waiting` says of each mote how many epochs it has filtered and not told yet, and the last of them; it is brought
    up to date."""
    sampling = sampled.batch.sampling
    epoch = (sampled.tick - sampling.epochs.start) // sampling.epochs.interval
    mote, round_, begin, length = _emitted(sampled, epoch, rounds, waiting)
    # Rows and emissions are both in the order of (mote, epoch): a row goes with the first emission from it on, if it is in it.
    last = begin + length - 1
    span = int(max(epoch.max(initial=0), last.max(initial=0))) + 1
    at = np.searchsorted(mote * span + last, sampled.mote * span + epoch)
    told = at < len(mote)
    at = at[told]
    inside = (mote[at] == sampled.mote[told]) & (begin[at] <= epoch[told])
    told[told], at = inside, at[inside]
    room = epochs_per_frame(sampling, payload_room(mtu))
    parts = -(-length // room)
    before = np.cumsum(parts) - parts
    whole = np.repeat(np.arange(len(mote)), parts)
    part = np.arange(len(whole)) - before[whole]
    first = begin[whole] + part * room
    count = np.minimum(length[whole] - part * room, room)
    frame = np.full(len(epoch), -1)
    frame[told] = before[at] + (epoch[told] - begin[at]) // room
    return ReadingFrames(mote[whole], round_[whole], first, count, _sizes(sampled, frame, count), frame)


def _emitted(sampled: SampledRows, epoch: np.ndarray, rounds: range, waiting: np.ndarray) -> tuple[np.ndarray, ...]:
    """Mote, round, first epoch and their number, of what each mote tells in one go: consecutive epochs, up to twice in a round."""
    sampling, motes = sampled.batch.sampling, sampled.batch.mote
    place = np.full(waiting.shape[1], -1)
    place[motes] = np.arange(len(motes))
    wanted = sampled.outcomes.wanted
    cell = (place[sampled.mote] * len(rounds) + sampled.round - rounds.start)[wanted]
    epoch = epoch[wanted]
    shape = len(motes), len(rounds)
    cells = shape[0] * shape[1]
    due = np.bincount(cell, minlength=cells).reshape(shape)
    sent = np.bincount(cell, sampled.outcomes.sent[wanted], minlength=cells).reshape(shape)
    last = np.zeros(cells, np.int64)
    last[cell] = epoch  # the last row of a cell stays
    last = last.reshape(shape)
    first = last - due + 1
    if (epoch < first.reshape(-1)[cell]).any():
        raise NotVectorisableError(f"of sampling {sampling.number} ticks between others of a round are not wanted")
    (held, until), longest = waiting[:, motes], filter_report_interval(sampling)
    here = due > 0
    latest = np.maximum.accumulate(np.column_stack([until, np.where(here, last, -1)]), axis=1)
    before, after = latest[:, :-1], latest[:, 1:]
    # What waited goes where the next epoch that is wanted is not the next one.
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
    ends, counts = np.stack([before, after], axis=-1).ravel(), counts.ravel()
    which = np.flatnonzero(counts)
    row, at = np.divmod(which // 2, len(rounds))
    return motes[row], at + rounds.start, ends[which] - counts[which] + 1, counts[which]


def _sizes(sampled: SampledRows, frame: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The bytes of each frame, by what is in it; see acquisition.payload."""
    sent = sampled.outcomes.sent & (frame >= 0)
    frame, channels = frame[sent], sampled.batch.sampling.channels
    null, wide = np.zeros(len(frame), bool), np.zeros(len(frame), bool)
    for channel, lane in zip(channels, sampled.outcomes.reading, strict=True):
        values, there = lane.values[sent], lane.valid[sent]
        null |= ~there
        wide |= there & ((values < -(1 << channel.bits - 1)) | (values >= 1 << channel.bits - 1))
    here = np.bincount(frame, minlength=len(count))
    nulls = np.bincount(frame, null, minlength=len(count)) > 0
    wides = np.bincount(frame, wide, minlength=len(count)) > 0
    narrow, widest = sum(channel.bits for channel in channels), REGISTER_BITS * len(channels)
    bits = here * (np.where(wides, widest, narrow) + nulls * len(channels)) + np.where(here < count, count, 0)
    return HEADER_SIZE + READING_HEADER.size + -(-bits // 8)

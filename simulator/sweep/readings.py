"""READING frames of many motes: which epochs go into which frame, and how long it gets."""

from dataclasses import dataclass

import numpy as np

from acquisition.payload import READING_HEADER, capacity, reported_after
from acquisition.schedule import REGISTER_BITS
from gateway.frame import HEADER_SIZE
from simulator.sweep.layout import CannotSweep
from simulator.sweep.sampled import Sampled


@dataclass(frozen=True, slots=True)
class Posted:
    """Frames by mote, round and first epoch. Row i of the sampled goes into `frame[i]`, or, at -1, into none yet."""

    mote: np.ndarray
    round: np.ndarray
    first: np.ndarray
    count: np.ndarray
    size: np.ndarray
    frame: np.ndarray


def post(sampled: Sampled, rounds: range, waiting: np.ndarray) -> Posted:
    """`waiting` says of each mote how many epochs it has filtered and not told yet; it is brought up to date."""
    sampling, outcomes = sampled.batch.sampling, sampled.outcomes
    if not outcomes.wanted.all():
        raise CannotSweep(f"of sampling {sampling.number} some ticks are wanted and others are not")
    mote, round_, begun = _emitted(sampled, rounds, waiting)
    epoch = (sampled.tick - sampling.epochs.start) // sampling.epochs.interval
    # Rows and emissions are both in the order of (mote, epoch): a row goes with the first emission from it on.
    last = begun[:, 0] + begun[:, 1] - 1
    span = int(max(epoch.max(initial=0), last.max(initial=0))) + 1
    at = np.searchsorted(mote * span + last, sampled.mote * span + epoch)
    told = at < len(mote)
    told[told] = mote[at[told]] == sampled.mote[told]
    room = capacity(sampling)
    parts = -(-begun[:, 1] // room)
    before = np.cumsum(parts) - parts
    whole = np.repeat(np.arange(len(mote)), parts)
    part = np.arange(len(whole)) - before[whole]
    first = begun[whole, 0] + part * room
    count = np.minimum(begun[whole, 1] - part * room, room)
    frame = np.full(len(epoch), -1)
    frame[told] = before[at[told]] + (epoch[told] - begun[at[told], 0]) // room
    return Posted(mote[whole], round_[whole], first, count, _sizes(sampled, frame, count), frame)


def _emitted(sampled: Sampled, rounds: range, waiting: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mote, round, and (first epoch, count) of what each mote tells in one go."""
    sampling = sampled.batch.sampling
    motes = sampled.batch.mote
    place = np.full(len(waiting), -1)
    place[motes] = np.arange(len(motes))
    cell = place[sampled.mote] * len(rounds) + sampled.round - rounds.start
    shape = len(motes), len(rounds)
    cells = shape[0] * shape[1]
    due = np.bincount(cell, minlength=cells).reshape(shape)
    sent = np.bincount(cell, sampled.outcomes.sent, minlength=cells).reshape(shape)
    last = np.zeros(cells, np.int64)
    last[cell] = (sampled.tick - sampling.epochs.start) // sampling.epochs.interval  # the last row of a cell stays
    held, longest = waiting[motes], reported_after(sampling)
    counts = np.zeros(shape, np.int64)
    for at in range(len(rounds)):
        held = held + due[:, at]
        emits = (due[:, at] > 0) & ((sent[:, at] > 0) | (held >= longest))
        counts[:, at] = np.where(emits, held, 0)
        held = np.where(emits, 0, held)
    waiting[motes] = held
    row, at = np.nonzero(counts)
    count = counts[row, at]
    first = last.reshape(shape)[row, at] - count + 1
    return motes[row], at + rounds.start, np.stack([first, count], axis=1)


def _sizes(sampled: Sampled, frame: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The bytes of each frame, by what is in it; see acquisition.payload."""
    sent = sampled.outcomes.sent & (frame >= 0)
    frame, channels = frame[sent], sampled.batch.sampling.channels
    null, wide = np.zeros(len(frame), bool), np.zeros(len(frame), bool)
    for channel, lane in zip(channels, sampled.outcomes.reading, strict=True):
        values, there = lane.values[sent], lane.there[sent]
        null |= ~there
        wide |= there & ((values < -(1 << channel.bits - 1)) | (values >= 1 << channel.bits - 1))
    here = np.bincount(frame, minlength=len(count))
    nulls = np.bincount(frame, null, minlength=len(count)) > 0
    wides = np.bincount(frame, wide, minlength=len(count)) > 0
    narrow, widest = sum(channel.bits for channel in channels), REGISTER_BITS * len(channels)
    bits = here * (np.where(wides, widest, narrow) + nulls * len(channels)) + np.where(here < count, count, 0)
    return HEADER_SIZE + READING_HEADER.size + -(-bits // 8)

"""One hop of many frames at once: what `simulator.mac` and `simulator.radio_medium` do with them, attempt by attempt."""

from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, FloatArray, IntArray
from innet.costs.hardware import MAX_ATTEMPTS
from simulator.counter_rng import Purpose, draw, uniform
from simulator.radio_medium import ATTEMPT_LIMIT, Bursts, LossyChannel, is_bad, link_of
from simulator.vector_engine.layout import NetworkLayout

NEVER = np.int64(MAX_ATTEMPTS)
"""The attempt at which a frame arrives, if it never does."""
ONES = np.array([bits.bit_count() for bits in range(1 << MAX_ATTEMPTS)])


@dataclass(frozen=True, slots=True)
class Frames:
    """Frames on their way: `holder` is the position of the mote that has one, `since` when it came there (microseconds).

    `tag` is a number that a frame keeps on its whole way.
    """

    holder: IntArray
    round: IntArray
    since: IntArray
    size: IntArray  # bytes
    origin: IntArray  # position of the mote that made it
    seq: IntArray
    tag: IntArray

    def __len__(self) -> int:
        return len(self.holder)

    def moved(self, holder: IntArray, since: IntArray) -> "Frames":
        """The frames at other motes."""
        return replace(self, holder=holder, since=since)

    def take(self, which: IntArray | BoolArray) -> "Frames":
        return Frames(*(getattr(self, field.name)[which] for field in fields(Frames)))

    @staticmethod
    def concatenate(parts: list["Frames"]) -> "Frames":
        return Frames(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Frames)))

    @staticmethod
    def none() -> "Frames":
        return Frames(*(np.zeros(0, np.int64) for _ in fields(Frames)))


@dataclass(frozen=True, slots=True)
class Hop:
    """The outcome of a hop for `frames`, in the order in which they were sent. Times are microseconds.

    `came` is whether a frame was received, `known` whether its sender knows. `arrived` is valid where `came`. `copies` counts
    how often a frame was received. `last_of_slot` marks the last frame of its sender in the round.
    """

    frames: Frames
    attempts: IntArray
    came: BoolArray
    known: BoolArray
    arrived: IntArray
    ended: IntArray
    copies: IntArray
    last_of_slot: BoolArray

    def awake_us(self, layout: NetworkLayout) -> IntArray:
        """The time that the sender's radio was on, from its start to the end of the last attempt at a frame or of the slot."""
        holder = self.frames.holder
        found: IntArray = (
            self.ended - self.frames.round * layout.round_us - layout.send_begin[holder] + layout.startup[holder]
        )
        return found


@dataclass(frozen=True, slots=True)
class LinkConditions:
    """The links of each mote to and from its parent over some rounds."""

    channel: LossyChannel
    first_round: int
    up: FloatArray  # (motes,): the share of frames that a link delivers in good times
    down: FloatArray
    up_bad: BoolArray | None  # (motes, rounds): whether the link is bad
    down_bad: BoolArray | None

    @classmethod
    def over(cls, channel: LossyChannel, layout: NetworkLayout, rounds: range) -> "LinkConditions":
        pairs = list(zip(layout.number.tolist(), layout.parent_number.tolist(), strict=True))
        up = np.array([channel.ratio(mote, parent) for mote, parent in pairs])
        down = np.array([channel.ratio(parent, mote) for mote, parent in pairs])
        up_bad = down_bad = None
        if channel.bursts:
            links = link_of(layout.number, layout.parent_number), link_of(layout.parent_number, layout.number)
            up_bad, down_bad = (find_bad_times(channel.bursts, channel.seed, each, rounds) for each in links)
        return cls(channel, rounds.start, up, down, up_bad, down_bad)

    def up_ratio(self, mote: IntArray, round_: IntArray) -> FloatArray:
        """The share of frames delivered to the parents of motes (by position) in rounds."""
        return self._ratio(self.up, self.up_bad, mote, round_)

    def down_ratio(self, mote: IntArray, round_: IntArray) -> FloatArray:
        """The share of acknowledgements delivered from the parents of motes (by position) in rounds."""
        return self._ratio(self.down, self.down_bad, mote, round_)

    def _ratio(self, good: FloatArray, bad: BoolArray | None, mote: IntArray, round_: IntArray) -> FloatArray:
        if bad is None or self.channel.bursts is None:
            return good[mote]
        return np.where(bad[mote, round_ - self.first_round], good[mote] * self.channel.bursts.left, good[mote])


def find_bad_times(bursts: Bursts, seed: int, links: IntArray, rounds: range) -> BoolArray:
    """(links, rounds): `is_bad` of each."""
    epochs = np.arange(rounds.start, rounds.stop, dtype=np.uint64)
    luck = uniform(draw(seed, Purpose.BURST, links.astype(np.uint64)[:, None], epochs[None, :]))
    decided = (luck < bursts.begin) | (luck >= 1 - bursts.end)
    latest = np.maximum.accumulate(np.where(decided, np.arange(len(epochs)), -1), axis=1)
    before = np.array([is_bad(bursts, seed, link, rounds.start - 1) for link in links.tolist()])
    turned_bad = np.take_along_axis(luck < bursts.begin, np.maximum(latest, 0), axis=1)
    return np.where(latest >= 0, turned_bad, before[:, None])


def send_frames(frames: Frames, layout: NetworkLayout, conditions: LinkConditions, parent_there: BoolArray) -> Hop:
    """Send frames to the parents of their holders. `parent_there` is by frame: whether its receiver lives and listens."""
    order = np.lexsort((frames.tag, frames.since, frames.round, frames.holder))
    frames, parent_there = frames.take(order), parent_there[order]
    first = _first_of_slot(frames)
    place = np.arange(len(frames)) - np.flatnonzero(first)[np.cumsum(first) - 1]
    return _fit_into_slots(frames, layout, first, _draw_attempts(frames, layout, conditions, parent_there, place))


def _first_of_slot(frames: Frames) -> BoolArray:
    """Where the frames of another mote or round begin."""
    first = np.ones(len(frames), bool)
    first[1:] = (np.diff(frames.holder) != 0) | (np.diff(frames.round) != 0)
    return first


class _Attempts(NamedTuple):
    """By frame, with attempts counted from 0; NEVER if the event does not happen."""

    came_at: IntArray  # the first attempt that is received
    known_at: IntArray  # the first attempt that is received and acknowledged
    received: IntArray  # a bit for each attempt that is received


def _draw_attempts(frames: Frames, layout: NetworkLayout, conditions: LinkConditions, parent_there: BoolArray,
                   place: IntArray) -> _Attempts:  # fmt: skip
    """Draw the attempts at frames until each is acknowledged; `place` is the position of a frame in its slot."""
    came_at, known_at = np.full(len(frames), NEVER), np.full(len(frames), NEVER)
    received = np.zeros(len(frames), np.int64)
    trying = np.flatnonzero(parent_there)
    seed = conditions.channel.seed
    for attempt in range(MAX_ATTEMPTS):
        if not len(trying):
            break
        mote, round_ = frames.holder[trying], frames.round[trying]
        number, parent = layout.number[mote].astype(np.uint64), layout.parent_number[mote].astype(np.uint64)
        name = round_.astype(np.uint64), (place[trying] * ATTEMPT_LIMIT + attempt).astype(np.uint64)
        ratio = conditions.up_ratio(mote, round_)
        came = _is_received(seed, Purpose.FRAME, link_of(number, parent), name, ratio)
        received[trying] |= came.astype(np.int64) << attempt
        came_at[trying] = np.where(came, np.minimum(came_at[trying], attempt), came_at[trying])
        ratio = conditions.down_ratio(mote, round_)
        known = came & _is_received(seed, Purpose.ACK, link_of(parent, number), name, ratio)
        known_at[trying[known]] = attempt
        trying = trying[~known]
    return _Attempts(came_at, known_at, received)


def _is_received(seed: int, purpose: Purpose, link: AnyArray, name: tuple[AnyArray, AnyArray],
                 ratio: FloatArray) -> BoolArray:  # fmt: skip
    if (ratio >= 1).all():
        return np.ones(len(ratio), bool)
    found: BoolArray = uniform(draw(seed, purpose, link, *name)) < ratio
    return found


def _fit_into_slots(frames: Frames, layout: NetworkLayout, first: BoolArray, drawn: _Attempts) -> Hop:
    """The times at which frames are sent. A slot ends with the first frame that does not fit: it and the rest are given up."""
    mote = frames.holder
    duration = layout.attempt(mote, frames.size)
    needed = np.minimum(drawn.known_at + 1, NEVER)
    through = np.cumsum(needed * duration)
    slot = np.cumsum(first) - 1
    before = through - needed * duration
    begin = before - before[first][slot]  # after the slot begins
    room = layout.send_end[mote] - layout.send_begin[mote]
    over = begin + needed * duration > room
    overs = np.cumsum(over)
    earlier = overs - over - (overs - over)[first][slot]
    attempts = np.where(earlier > 0, 0, np.where(over, np.maximum(room - begin, 0) // duration, needed))
    opened = frames.round * layout.round_us + layout.send_begin[mote]
    came, known = drawn.came_at < attempts, drawn.known_at < attempts
    airtime = layout.airtime(mote, frames.size)
    arrived = opened + begin + drawn.came_at * duration + layout.turnaround[mote] + airtime
    ended = opened + np.where(over | (earlier > 0), room, begin + needed * duration)
    copies = ONES[drawn.received & ((1 << attempts) - 1)]
    last = np.append(first[1:], True) if len(first) else first
    return Hop(frames, attempts, came, known, arrived, ended, copies, last)

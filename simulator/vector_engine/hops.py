"""One hop of many frames at once: what `simulator.mac` and `simulator.radio_medium` do with them, attempt by attempt."""

from dataclasses import dataclass, replace

import numpy as np

from innet.costs.hardware import MAX_ATTEMPTS
from simulator.counter_rng import Purpose, draw, uniform
from simulator.radio_medium import ATTEMPT_LIMIT, Bursts, LossyChannel, is_bad, link_of
from simulator.vector_engine.layout import NetworkLayout

NEVER = np.int64(MAX_ATTEMPTS)
ONES = np.array([bits.bit_count() for bits in range(1 << MAX_ATTEMPTS)])


@dataclass(frozen=True, slots=True)
class Frames:
    """Frames where they are: `holder` is a place in the layout. `since` is when they came there, in microseconds; `tag`
    is a number that they keep."""

    holder: np.ndarray
    round: np.ndarray
    since: np.ndarray
    size: np.ndarray  # bytes
    origin: np.ndarray  # a place in the layout
    seq: np.ndarray
    tag: np.ndarray

    def __len__(self) -> int:
        return len(self.holder)

    def moved(self, holder: np.ndarray, since: np.ndarray) -> "Frames":
        """Somewhere else."""
        return replace(self, holder=holder, since=since)

    def take(self, which: np.ndarray) -> "Frames":
        return Frames(*(getattr(self, name)[which] for name in Frames.__slots__))

    @staticmethod
    def concatenate(parts: list["Frames"]) -> "Frames":
        return Frames(*(np.concatenate([getattr(part, name) for part in parts]) for name in Frames.__slots__))


@dataclass(frozen=True, slots=True)
class Hop:
    """What became of `frames`, which are in the order in which they were sent. `arrived` means something where `came`.

    `copies` is how often each came, `last_of_slot` whether it was the last that its sender sent in the round.
    """

    frames: Frames
    attempts: np.ndarray
    came: np.ndarray
    known: np.ndarray
    arrived: np.ndarray
    ended: np.ndarray
    copies: np.ndarray
    last_of_slot: np.ndarray

    def awake_us(self, layout: NetworkLayout) -> np.ndarray:
        """How long the radio was on for what was sent up to a frame, from the beginning of the slot to the end of the last attempt,
        or of the slot."""
        holder = self.frames.holder
        return self.ended - self.frames.round * layout.round_us - layout.send_begin[holder] + layout.startup[holder]


@dataclass(frozen=True, slots=True)
class LinkConditions:
    """The links of a layout over some rounds: those of each mote to its parent, and back."""

    channel: LossyChannel
    first_round: int
    there: np.ndarray  # (motes,): the share that comes through
    back: np.ndarray
    there_bad: np.ndarray | None  # (motes, rounds): whether it is a bad time
    back_bad: np.ndarray | None

    @classmethod
    def over(cls, channel: LossyChannel, layout: NetworkLayout, rounds: range) -> "LinkConditions":
        pairs = list(zip(layout.number.tolist(), layout.heard_by.tolist(), strict=True))
        there, back = ([channel.ratio(*ends) for ends in ways] for ways in (pairs, [pair[::-1] for pair in pairs]))
        bad = [None, None]
        if channel.bursts:
            bad = [find_bad_times(channel.bursts, channel.seed, links, rounds)
                   for links in (link_of(layout.number, layout.heard_by), link_of(layout.heard_by, layout.number))]  # fmt: skip
        return cls(channel, rounds.start, np.array(there), np.array(back), *bad)

    def ratio(self, base: np.ndarray, bad: np.ndarray | None, mote: np.ndarray, round_: np.ndarray) -> np.ndarray:
        if bad is None:
            return base[mote]
        return np.where(bad[mote, round_ - self.first_round], base[mote] * self.channel.bursts.left, base[mote])


def find_bad_times(bursts: Bursts, seed: int, links: np.ndarray, rounds: range) -> np.ndarray:
    """(links, rounds): `is_bad` of each."""
    epochs = np.arange(rounds.start, rounds.stop, dtype=np.uint64)
    luck = uniform(draw(seed, Purpose.BURST, links.astype(np.uint64)[:, None], epochs[None, :]))
    decided = (luck < bursts.begin) | (luck >= 1 - bursts.end)
    latest = np.maximum.accumulate(np.where(decided, np.arange(len(epochs)), -1), axis=1)
    before = np.array([is_bad(bursts, seed, link, rounds.start - 1) for link in links.tolist()])
    turned_bad = np.take_along_axis(luck < bursts.begin, np.maximum(latest, 0), axis=1)
    return np.where(latest >= 0, turned_bad, before[:, None])


def send_frames(frames: Frames, layout: NetworkLayout, weather: LinkConditions, heard: np.ndarray) -> Hop:
    """Send frames to the parents of their holders. `heard[i]` says whether the parent of frame i is there at all."""
    order = np.lexsort((frames.tag, frames.since, frames.round, frames.holder))
    frames, heard = frames.take(order), heard[order]
    first = _first_of_slot(frames)
    place = np.arange(len(frames)) - np.flatnonzero(first)[np.cumsum(first) - 1]
    luck = _luck(frames, layout, weather, heard, place)
    return _in_time(frames, layout, first, *luck)


def _first_of_slot(frames: Frames) -> np.ndarray:
    """Where another mote or round begins."""
    first = np.ones(len(frames), bool)
    first[1:] = (np.diff(frames.holder) != 0) | (np.diff(frames.round) != 0)
    return first


def _luck(frames: Frames, layout: NetworkLayout, weather: LinkConditions, heard: np.ndarray, place: np.ndarray):
    """The attempts, counted from 0, at which a frame comes first, and at which that is first known (TRIES for never);
    and for each attempt a bit that says whether the frame came with it."""
    came_at, known_at = np.full(len(frames), NEVER), np.full(len(frames), NEVER)
    coming = np.zeros(len(frames), np.int64)
    trying = np.flatnonzero(heard)
    seed = weather.channel.seed
    for attempt in range(MAX_ATTEMPTS):
        if not len(trying):
            break
        mote, round_ = frames.holder[trying], frames.round[trying]
        number, parent = layout.number[mote].astype(np.uint64), layout.heard_by[mote].astype(np.uint64)
        name = round_.astype(np.uint64), (place[trying] * ATTEMPT_LIMIT + attempt).astype(np.uint64)
        there = weather.ratio(weather.there, weather.there_bad, mote, round_)
        came = _comes(seed, Purpose.FRAME, link_of(number, parent), name, there)
        coming[trying] |= came.astype(np.int64) << attempt
        came_at[trying] = np.where(came, np.minimum(came_at[trying], attempt), came_at[trying])
        back = weather.ratio(weather.back, weather.back_bad, mote, round_)
        known = came & _comes(seed, Purpose.ACK, link_of(parent, number), name, back)
        known_at[trying[known]] = attempt
        trying = trying[~known]
    return came_at, known_at, coming


def _comes(seed: int, purpose: Purpose, link: np.ndarray, name: tuple[np.ndarray, np.ndarray], ratio: np.ndarray):
    if (ratio >= 1).all():
        return np.ones(len(ratio), bool)
    return uniform(draw(seed, purpose, link, *name)) < ratio


def _in_time(frames: Frames, layout: NetworkLayout, first: np.ndarray, came_at: np.ndarray, known_at: np.ndarray,
             coming: np.ndarray) -> Hop:  # fmt: skip
    """When each frame is sent; from the first one that does not fit into its slot on, the rest is given up."""
    mote = frames.holder
    each = layout.attempt(mote, frames.size)
    wanted = np.minimum(known_at + 1, NEVER)
    through = np.cumsum(wanted * each)
    slot = np.cumsum(first) - 1
    before = through - wanted * each
    begin = before - before[first][slot]  # after the slot begins
    room = layout.send_end[mote] - layout.send_begin[mote]
    over = begin + wanted * each > room
    overs = np.cumsum(over)
    earlier = overs - over - (overs - over)[first][slot]
    attempts = np.where(earlier > 0, 0, np.where(over, np.maximum(room - begin, 0) // each, wanted))
    opened = frames.round * layout.round_us + layout.send_begin[mote]
    came, known = came_at < attempts, known_at < attempts
    airtime = layout.airtime(mote, frames.size)
    arrived = opened + begin + came_at * each + layout.turnaround[mote] + airtime
    ended = opened + np.where(over | (earlier > 0), room, begin + wanted * each)
    copies = ONES[coming & ((1 << attempts) - 1)]
    last = np.append(first[1:], True) if len(first) else first
    return Hop(frames, attempts, came, known, arrived, ended, copies, last)

"""The rounds of a network, many at a time: sampled, computed, carried up the tree level by level, and paid for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from innet.costs.hardware import Hardware
from simulator.energy import joules
from simulator.radio import Channel
from simulator.sensor import Sensor
from simulator.standing import Standing
from simulator.sweep.hops import Frames, Hop, Weather, hand_over
from simulator.sweep.layout import GATEWAY, CannotSweep, lay_out
from simulator.sweep.readings import Posted, post
from simulator.sweep.sampled import Sampled, batches, sample


@dataclass(frozen=True, slots=True)
class Arrived:
    """Rows of a sampling that reached a gateway, and when (microseconds). Filtered ones are told, and not `sent`."""

    sampled: Sampled
    rows: np.ndarray
    time: np.ndarray


@dataclass(frozen=True, slots=True)
class Swept:
    """What happened in some rounds. `posted` are the frames of `told`, numbered in `seqs`."""

    rounds: range
    sampled: tuple[Sampled, ...]
    told: tuple[Sampled, ...]
    posted: tuple[Posted, ...]
    seqs: tuple[np.ndarray, ...]
    hops: tuple[Hop, ...]
    arrived: tuple[Arrived, ...]


@dataclass(slots=True)
class Accounts:
    """The accounts of all motes (`simulator.energy`), and since when they live."""

    born: np.ndarray
    awake_us: np.ndarray
    send_us: np.ndarray
    compute_us: np.ndarray
    sampled_nc: np.ndarray


class Sweep:
    """A network that keeps to its orders. It begins with the first round from `begin_us` on."""

    def __init__(self, standing: Mapping[int, Standing], sensors: Mapping[int, Sequence[Sensor]],
                 kinds: Mapping[int, Hardware], channel: Channel, begin_us: int) -> None:  # fmt: skip
        [self._tick_ms] = {each.tick_ms for each in standing.values()}
        if any(each.slots is None for each in standing.values()):
            raise CannotSweep("there is a mote without an agenda")
        self.layout = lay_out({n: each.slots for n, each in standing.items()}, kinds, channel.ratios)
        self._channel = channel
        self._batches = batches(standing, sensors, self.layout, kinds)
        self._kinds = [kinds[number] for number in self.layout.number.tolist()]
        motes = len(self.layout)
        self.next_round = -(-begin_us // self.layout.round_us)
        self.alive = np.ones(motes, bool)
        self.accounts = Accounts(np.full(motes, begin_us, np.int64), *(np.zeros(motes, np.int64) for _ in range(4)))
        self._next_seq = np.zeros(motes, np.int64)
        self._waiting = {id(batch): np.zeros(motes, np.int64) for batch in self._batches}

    def advance(self, count: int) -> Swept:
        """Let so many rounds go by."""
        rounds = range(self.next_round, self.next_round + count)
        there = np.repeat(self.alive[:, None], count, axis=1)
        sampled = [sample(batch, self.layout, rounds, self._tick_ms, there) for batch in self._batches]
        for each in sampled:
            self._pay_for_sampling(each)
        told = [each for each in sampled if each.batch.program and each.batch.program.sends]
        posted = [post(each, rounds, self._waiting[id(each.batch)]) for each in told]
        frames = self._numbered(posted)
        weather = Weather.over(self._channel, self.layout, rounds)
        hops, arrived_at = self._rise(frames, weather, there, rounds)
        self._pay_for_listening(there)
        self.next_round = rounds.stop
        arrived = _arrived(told, posted, arrived_at)
        seqs = np.split(frames.seq, np.cumsum([len(each.mote) for each in posted])[:-1])
        return Swept(rounds, tuple(sampled), tuple(told), tuple(posted), tuple(seqs), tuple(hops), arrived)

    def spent(self, now_us: int) -> np.ndarray:
        """Joules of each mote so far."""
        accounts = self.accounts
        return np.array([
            joules(kind, now_us - int(accounts.born[at]), int(accounts.awake_us[at]), int(accounts.send_us[at]),
                   int(accounts.compute_us[at]), int(accounts.sampled_nc[at]))
            for at, kind in enumerate(self._kinds)
        ])  # fmt: skip

    def _pay_for_sampling(self, sampled: Sampled) -> None:
        times = np.bincount(sampled.mote, minlength=len(self.layout))
        self.accounts.sampled_nc += times * sampled.batch.sampled_nc
        self.accounts.compute_us[sampled.batch.mote] += times[sampled.batch.mote] * sampled.batch.computing_us

    def _pay_for_listening(self, there: np.ndarray) -> None:
        self.accounts.awake_us += there.sum(axis=1) * self.layout.listen_us

    def _numbered(self, posted: Sequence[Posted]) -> Frames:
        """All own frames, in the order in which their motes number them."""
        mote = np.concatenate([each.mote for each in posted])
        round_ = np.concatenate([each.round for each in posted])
        kind = np.concatenate([np.full(len(each.mote), at) for at, each in enumerate(posted)])
        first = np.concatenate([each.first for each in posted])
        order = np.lexsort((first, kind, round_, mote))
        mote_in_order = mote[order]
        seq = np.empty(len(mote), np.int64)
        begins = np.searchsorted(mote_in_order, mote_in_order)
        seq[order] = np.arange(len(mote)) - begins + self._next_seq[mote_in_order]
        self._next_seq += np.bincount(mote, minlength=len(self.layout))
        since = round_ * self.layout.round_us + self.layout.send_begin[mote]
        size = np.concatenate([each.size for each in posted])
        return Frames(mote, round_, since, size, mote, seq, np.arange(len(mote)))

    def _rise(self, frames: Frames, weather: Weather, there: np.ndarray, rounds: range) -> tuple[list[Hop], np.ndarray]:
        """Level by level; when each frame arrived at a gateway, -1 for one that did not."""
        layout = self.layout
        arrived_at = np.full(len(frames), -1, np.int64)
        on_the_way, hops = [frames], []
        for depth in range(int(layout.depth.max(initial=0)), 0, -1):
            together = Frames.together(on_the_way)
            here = layout.depth[together.holder] == depth
            on_the_way = [together.take(~here)]
            going = together.take(here)
            parent = layout.parent[going.holder]
            heard = (parent == GATEWAY) | there[parent, going.round - rounds.start]
            hop = hand_over(going, layout, weather, heard)
            hops.append(hop)
            self._pay_for_hop(hop)
            came = hop.frames.take(hop.came)
            time = hop.arrived[hop.came]
            parent = layout.parent[came.holder]
            home = parent == GATEWAY
            arrived_at[came.tag[home]] = time[home]
            on_the_way.append(came.moved(parent, time).take(~home))
        return hops, arrived_at

    def _pay_for_hop(self, hop: Hop) -> None:
        layout, accounts, frames = self.layout, self.accounts, hop.frames
        size = len(layout)
        airtime = hop.attempts * layout.airtime(frames.holder, frames.size)
        np.add.at(accounts.send_us, frames.holder, airtime)
        parent = layout.parent[frames.holder]
        inner = parent != GATEWAY
        np.add.at(accounts.send_us, parent[inner], (hop.copies * layout.ack[parent])[inner])
        # The radio is on from the beginning of the slot to the end of the last attempt, or of the slot.
        last = hop.last_of_slot
        begun = frames.round * layout.round_us + layout.send_begin[frames.holder]
        on = np.where(last, hop.ended - begun + layout.startup[frames.holder], 0)
        accounts.awake_us += np.bincount(frames.holder, on, minlength=size).astype(np.int64)


def _arrived(told: Sequence[Sampled], posted: Sequence[Posted], arrived_at: np.ndarray) -> tuple[Arrived, ...]:
    """Which rows of what was sampled came, and when."""
    found, offset = [], 0
    for sampled, each in zip(told, posted, strict=True):
        time = np.append(arrived_at[offset : offset + len(each.mote)], -1)[each.frame]
        rows = np.flatnonzero(time >= 0)
        found.append(Arrived(sampled, rows, time[rows]))
        offset += len(each.mote)
    return tuple(found)

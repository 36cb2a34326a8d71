"""The vector engine: simulates many rounds at a time. It samples, computes, sends frames up the tree, and counts energy."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from acquisition.arrays import BoolArray, FloatArray, IntArray
from innet.costs.hardware import Hardware
from simulator.energy import compute_joules
from simulator.kernel import MS
from simulator.mote_config import MoteConfig
from simulator.radio_medium import LossyChannel
from simulator.sensor import Sensor
from simulator.vector_engine.convergecast import Convergecast, MergedReadings, TableOwners
from simulator.vector_engine.hops import Frames, Hop, LinkConditions
from simulator.vector_engine.layout import GATEWAY, NotVectorisableError, make_layout
from simulator.vector_engine.partial_rows import PartialRows, make_rows
from simulator.vector_engine.reading_frames import ReadingFrames, pack_readings
from simulator.vector_engine.sampling import SampledRows, group_motes, sample

NEVER_US = 2**62


@dataclass(frozen=True, slots=True)
class ArrivedReadings:
    """The rows of a sampling that reached a gateway, and when (microseconds). Rows that are not `sent` were filtered.

    `before` are the filtered readings of earlier calls that were reported now: (mote position, tick, arrival).
    """

    sampled: SampledRows
    rows: IntArray
    time: IntArray
    before: tuple[IntArray, IntArray, IntArray]


@dataclass(frozen=True, slots=True)
class RoundsOutcome:
    """The events of some rounds. `posted` are the READING frames of `sending`, numbered in `seqs`; their tags count from 0."""

    rounds: range
    is_first: bool  # whether these are the first rounds of the simulation
    sampled: tuple[SampledRows, ...]
    sending: tuple[SampledRows, ...]  # those of `sampled` whose programs send readings
    posted: tuple[ReadingFrames, ...]
    seqs: tuple[IntArray, ...]
    hops: tuple[Hop, ...]
    polls: tuple[Hop, ...]
    listening: BoolArray  # (motes, rounds): whether the mote listened to its children
    arrived: tuple[ArrivedReadings, ...]
    merged: tuple[MergedReadings, ...]

    @property
    def readings(self) -> int:
        """The number of READING frames. A frame with a higher tag has partials."""
        return sum(len(each.mote) for each in self.posted)


@dataclass(slots=True)
class EnergyColumns:
    """The `EnergyAccount` of each mote, and since when it lives (microseconds)."""

    born: IntArray
    awake_us: IntArray
    send_us: IntArray
    compute_us: IntArray
    sampled_nc: IntArray


class VectorEngine:
    """A network whose configuration does not change, from the first round on that begins at `begin_us` or later.

    Raises NotVectorisableError if its trace could differ from that of an event-by-event simulation.
    """

    def __init__(self, configs: Mapping[int, MoteConfig], sensors: Mapping[int, Sequence[Sensor]],
                 kinds: Mapping[int, Hardware], channel: LossyChannel, begin_us: int) -> None:  # fmt: skip
        if not configs:
            raise NotVectorisableError("no mote has anything to do")
        [self._tick_ms] = {each.tick_ms for each in configs.values()}
        slots = {number: each.slots for number, each in configs.items()}
        scheduled = {number: each for number, each in slots.items() if each is not None}
        if len(scheduled) < len(slots):
            raise NotVectorisableError("there is a mote without an agenda")
        self.layout = make_layout(scheduled, kinds, channel.ratios)
        self._channel = channel
        self._batches = group_motes(configs, sensors, self.layout, kinds)
        self._kinds = [kinds[number] for number in self.layout.number.tolist()]
        self._tables = self._find_tables(configs)
        motes = len(self.layout)
        self.next_round = self._first_round = -(-begin_us // self.layout.round_us)
        self.alive = np.ones(motes, bool)
        self.died_us = np.full(motes, NEVER_US, np.int64)
        self.accounts = EnergyColumns(
            np.full(motes, begin_us, np.int64), *(np.zeros(motes, np.int64) for _ in range(4))
        )
        self._numbered = np.zeros((2, motes), np.int64)
        self._waiting = {id(batch): np.zeros((2, motes), np.int64) for batch in self._batches}
        self._held: dict[int, PartialRows] = {}

    def advance(self, count: int) -> RoundsOutcome:
        """Simulate so many rounds."""
        rounds = range(self.next_round, self.next_round + count)
        alive = np.repeat(self.alive[:, None], count, axis=1)
        sampled = sample(self._batches, self.layout, rounds, self._tick_ms, alive)
        for each in sampled:
            self._pay_for_sampling(each)
        sending = [each for each in sampled if each.batch.program and each.batch.program.sends]
        if sending and self.layout.rounds.every > 1:
            raise NotVectorisableError("readings are due in every round, but motes have slots in some rounds only")
        posted = [pack_readings(each, rounds, self._waiting[id(each.batch)], self._channel.mtu) for each in sending]
        conditions = LinkConditions.over(self._channel, self.layout, rounds)
        upward = Convergecast(self.layout, conditions, alive, rounds, self._numbered, self._frames(posted), self._tables,
                              self._fold(sampled), self._pay_for_hop)  # fmt: skip
        self._held = upward.left()
        listening = alive & self.layout.listens(np.array(rounds))
        self._pay_for_listening(listening)
        self.next_round = rounds.stop
        edges = np.cumsum([0, *(len(each.mote) for each in posted)])
        parts = [slice(*edge) for edge in pairwise(edges.tolist())]
        seqs = [upward.seq[part] for part in parts]
        arrived = [_arrived(a, b, upward.arrived_at[part]) for a, b, part in zip(sending, posted, parts, strict=True)]
        return RoundsOutcome(
            rounds,
            rounds.start == self._first_round,
            tuple(sampled),
            tuple(sending),
            tuple(posted),
            tuple(seqs),
            tuple(upward.hops),
            tuple(upward.polls),
            listening,
            tuple(arrived),
            tuple(upward.merged()),
        )

    def advance_on_batteries(self, count: int, batteries: FloatArray) -> list[RoundsOutcome]:
        """As `advance`, but a mote whose battery (joules, by mote) is empty when it wakes is dead from then on."""
        found, end = [], self.next_round + count
        while self.next_round < end:
            self._end_empty(batteries)
            found.append(self._advance_while_all_live(end - self.next_round, batteries))
        return found

    def end(self, mote: IntArray | int) -> None:
        """Switch motes (positions) off from the next round on."""
        self.alive[mote] = False
        self.died_us[mote] = self.next_round * self.layout.round_us

    def _end_empty(self, batteries: FloatArray) -> None:
        now = self.next_round * self.layout.round_us
        empty = np.flatnonzero(self.alive & (self.spent(now) >= batteries))
        for batch in self._batches if len(empty) else ():
            epochs, tick_us = batch.sampling.epochs, self._tick_ms * MS
            if epochs.interval * tick_us % self.layout.round_us or epochs.start * tick_us % self.layout.round_us:
                raise NotVectorisableError("a battery is empty, and some motes wake within rounds")
            if epochs.epoch(now // tick_us) is not None:
                self.end(np.intersect1d(empty, batch.mote))

    def _advance_while_all_live(self, count: int, batteries: FloatArray) -> RoundsOutcome:
        """Simulate up to `count` rounds: so few that no battery is empty before the last of them."""
        before = copy.deepcopy((self.accounts, self._numbered, self._waiting)), self._held, self.next_round
        swept = self.advance(count)
        while count > 1 and (self.alive & (self.spent(self.next_round * self.layout.round_us) >= batteries)).any():
            count //= 2
            (self.accounts, self._numbered, self._waiting), self._held, self.next_round = (
                copy.deepcopy(before[0]),
                *before[1:],
            )
            swept = self.advance(count)
        return swept

    def spent(self, now_us: int) -> FloatArray:
        """Joules of each mote so far."""
        accounts = self.accounts
        life_us = np.minimum(self.died_us, now_us) - accounts.born
        return np.array([
            compute_joules(kind, int(life_us[at]), int(accounts.awake_us[at]), int(accounts.send_us[at]),
                   int(accounts.compute_us[at]), int(accounts.sampled_nc[at]))
            for at, kind in enumerate(self._kinds)
        ])  # fmt: skip

    @property
    def held(self) -> int:
        """The number of readings that motes have filtered or folded and not reported yet."""
        return sum(int(count.sum()) for count, _ in self._waiting.values()) + sum(map(len, self._held.values()))

    def _find_tables(self, configs: Mapping[int, MoteConfig]) -> list[TableOwners]:
        found: dict[int, TableOwners] = {}
        for at, number in enumerate(self.layout.number.tolist()):
            for table in (table for program in configs[number].orders.programs for table in program.tables):
                kept = np.zeros(len(self.layout) + 1, bool)  # the last entry is the gateway's, which keeps none
                known = found.setdefault(table.number, TableOwners(table.number, table.shape, table.room, kept))
                if (known.shape, known.room) != (table.shape, table.room):
                    raise NotVectorisableError(f"table {table.number} differs between motes")
                known.kept[at] = True
        return [found[number] for number in sorted(found)]

    def _fold(self, sampled: Sequence[SampledRows]) -> dict[int, PartialRows]:
        """By table, the rows that motes kept before and those that they add now."""
        parts: dict[int, list[PartialRows]] = {number: [rows] for number, rows in self._held.items()}
        shapes = {table.number: table.shape for table in self._tables}
        for each in sampled:
            for number in each.outcomes.tables if each.outcomes else ():
                rows = make_rows(each, number, shapes[number], self.layout, self._tick_ms)
                parts.setdefault(number, []).append(rows)
        return {number: PartialRows.concatenate(found) for number, found in parts.items()}

    def _frames(self, posted: Sequence[ReadingFrames]) -> Frames:
        """All READING frames at the motes that made them, in the order of samplings, rounds and epochs."""
        if not posted:
            return Frames.none()
        mote = np.concatenate([each.mote for each in posted])
        round_ = np.concatenate([each.round for each in posted])
        size = np.concatenate([each.size for each in posted])
        since = round_ * self.layout.round_us + self.layout.send_begin[mote]
        return Frames(mote, round_, since, size, mote, np.zeros_like(mote), np.arange(len(mote)))

    # --- accounts ---

    def _pay_for_sampling(self, sampled: SampledRows) -> None:
        times = np.bincount(sampled.mote, minlength=len(self.layout))
        self.accounts.sampled_nc += times * sampled.batch.sampled_nc
        self.accounts.compute_us[sampled.batch.mote] += times[sampled.batch.mote] * sampled.batch.computing_us

    def _pay_for_listening(self, listening: BoolArray) -> None:
        slots = self.layout.receive_slots
        np.add.at(self.accounts.awake_us, slots.mote, listening[slots.mote].sum(axis=1) * slots.us(self.layout.startup))

    def _pay_for_hop(self, hop: Hop) -> None:
        layout, accounts, frames = self.layout, self.accounts, hop.frames
        airtime = hop.attempts * layout.airtime(frames.holder, frames.size)
        np.add.at(accounts.send_us, frames.holder, airtime)
        parent = layout.parent[frames.holder]
        inner = parent != GATEWAY
        np.add.at(accounts.send_us, parent[inner], (hop.copies * layout.ack[parent])[inner])
        np.add.at(accounts.awake_us, frames.holder, np.where(hop.last_of_slot, hop.awake_us(layout), 0))


def _arrived(sampled: SampledRows, posted: ReadingFrames, arrived_at: IntArray) -> ArrivedReadings:
    """The rows of a sampling that arrived, and when; `arrived_at` is by frame, -1 for a frame that was lost."""
    time = np.append(arrived_at, -1)[posted.frame]
    rows = np.flatnonzero(time >= 0)
    return ArrivedReadings(sampled, rows, time[rows], _before(sampled, posted, arrived_at))


def _before(sampled: SampledRows, posted: ReadingFrames, arrived_at: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """The filtered readings of earlier calls in frames that arrived."""
    epochs = sampled.batch.sampling.epochs
    begin = (sampled.tick.min(initial=np.iinfo(np.int64).max) - epochs.start) // epochs.interval
    waited = np.where(arrived_at >= 0, np.clip(begin - posted.first, 0, posted.count), 0)
    frame = np.repeat(np.arange(len(waited)), waited)
    epoch = posted.first[frame] + np.arange(len(frame)) - np.repeat(np.cumsum(waited) - waited, waited)
    return posted.mote[frame], epochs.start + epoch * epochs.interval, arrived_at[frame]

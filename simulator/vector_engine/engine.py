"""The rounds of a network, many at a time: sampled, computed, carried up the tree, and paid for."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

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
    """Rows of a sampling that reached a gateway, and when (microseconds). Filtered ones are told, and not `sent`.

    `before` are filtered ones that were sampled in earlier rounds than those of the rows: who, at which tick, and when.
    """

    sampled: SampledRows
    rows: np.ndarray
    time: np.ndarray
    before: tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True, slots=True)
class RoundsOutcome:
    """What happened in some rounds. `posted` are the frames of `told`, numbered in `seqs`; their tags count from 0."""

    rounds: range
    is_first: bool  # whether these are the first
    sampled: tuple[SampledRows, ...]
    told: tuple[SampledRows, ...]
    posted: tuple[ReadingFrames, ...]
    seqs: tuple[np.ndarray, ...]
    hops: tuple[Hop, ...]
    asked: tuple[Hop, ...]  # of questions
    listening: np.ndarray  # by mote and round, whether it listened to its children
    arrived: tuple[ArrivedReadings, ...]
    merged: tuple[MergedReadings, ...]

    @property
    def readings(self) -> int:
        """How many frames of readings there were; a frame with a higher tag has partials."""
        return sum(len(each.mote) for each in self.posted)


@dataclass(slots=True)
class EnergyColumns:
    """The accounts of all motes (`simulator.energy`), and since when they live."""

    born: np.ndarray
    awake_us: np.ndarray
    send_us: np.ndarray
    compute_us: np.ndarray
    sampled_nc: np.ndarray


class VectorEngine:
    """A network that keeps to its orders. It begins with the first round from `begin_us` on."""

    def __init__(self, configs: Mapping[int, MoteConfig], sensors: Mapping[int, Sequence[Sensor]],
                 kinds: Mapping[int, Hardware], channel: LossyChannel, begin_us: int) -> None:  # fmt: skip
        if not configs:
            raise NotVectorisableError("no mote has anything to do")
        [self._tick_ms] = {each.tick_ms for each in configs.values()}
        if any(each.slots is None for each in configs.values()):
            raise NotVectorisableError("there is a mote without an agenda")
        self.layout = make_layout({n: each.slots for n, each in configs.items()}, kinds, channel.ratios)
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
        """Let so many rounds go by."""
        rounds = range(self.next_round, self.next_round + count)
        there = np.repeat(self.alive[:, None], count, axis=1)
        sampled = sample(self._batches, self.layout, rounds, self._tick_ms, there)
        for each in sampled:
            self._pay_for_sampling(each)
        told = [each for each in sampled if each.batch.program and each.batch.program.sends]
        if told and self.layout.rounds.every > 1:
            raise NotVectorisableError("readings are due in each round, and slots are not there in each")
        posted = [pack_readings(each, rounds, self._waiting[id(each.batch)], self._channel.mtu) for each in told]
        weather = LinkConditions.over(self._channel, self.layout, rounds)
        rising = Convergecast(self.layout, weather, there, rounds, self._numbered, self._frames(posted), self._tables,
                        self._folded(sampled), self._pay_for_hop)  # fmt: skip
        self._held = rising.left()
        listening = there & self.layout.listens(np.array(rounds))
        self._pay_for_listening(listening)
        self.next_round = rounds.stop
        edges = np.cumsum([0, *(len(each.mote) for each in posted)])
        parts = [slice(*edge) for edge in pairwise(edges.tolist())]
        seqs = [rising.seq[part] for part in parts]
        arrived = [_arrived(a, b, rising.arrived_at[part]) for a, b, part in zip(told, posted, parts, strict=True)]
        return RoundsOutcome(rounds, rounds.start == self._first_round, tuple(sampled), tuple(told), tuple(posted), tuple(seqs),
                     tuple(rising.hops), tuple(rising.asked), listening, tuple(arrived), tuple(rising.merged()))  # fmt: skip

    def advance_on_batteries(self, count: int, batteries: np.ndarray) -> list[RoundsOutcome]:
        """As `advance`, but a mote whose battery (joules) is empty when it wakes is gone from then on."""
        found, end = [], self.next_round + count
        while self.next_round < end:
            self._bury(batteries)
            found.append(self._advance_while_all_live(end - self.next_round, batteries))
        return found

    def end(self, mote: np.ndarray | int) -> None:
        """These are gone from the next round on."""
        self.alive[mote] = False
        self.died_us[mote] = self.next_round * self.layout.round_us

    def _bury(self, batteries: np.ndarray) -> None:
        now = self.next_round * self.layout.round_us
        empty = np.flatnonzero(self.alive & (self.spent(now) >= batteries))
        for batch in self._batches if len(empty) else ():
            epochs, tick_us = batch.sampling.epochs, self._tick_ms * MS
            if epochs.interval * tick_us % self.layout.round_us or epochs.start * tick_us % self.layout.round_us:
                raise NotVectorisableError("a battery is empty, and motes wake in the midst of rounds, too")
            if epochs.epoch(now // tick_us) is not None:
                self.end(np.intersect1d(empty, batch.mote))

    def _advance_while_all_live(self, count: int, batteries: np.ndarray) -> RoundsOutcome:
        """Up to so many rounds, so few that no battery is empty before the last of them."""
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

    def spent(self, now_us: int) -> np.ndarray:
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
        """Readings that motes have filtered or folded and not told yet."""
        return sum(int(count.sum()) for count, _ in self._waiting.values()) + sum(map(len, self._held.values()))

    def _find_tables(self, configs: Mapping[int, MoteConfig]) -> list[TableOwners]:
        found: dict[int, TableOwners] = {}
        for at, number in enumerate(self.layout.number.tolist()):
            for table in (table for program in configs[number].orders.programs for table in program.tables):
                nobody = np.zeros(len(self.layout) + 1, bool)  # the last place is the gateway's, which keeps none
                known = found.setdefault(table.number, TableOwners(table.number, table.shape, table.room, nobody))
                if (known.shape, known.room) != (table.shape, table.room):
                    raise NotVectorisableError(f"table {table.number} is not the same everywhere")
                known.kept[at] = True
        return [found[number] for number in sorted(found)]

    def _folded(self, sampled: Sequence[SampledRows]) -> dict[int, PartialRows]:
        """By table, what was held before and what was put into it now."""
        parts: dict[int, list[PartialRows]] = {number: [rows] for number, rows in self._held.items()}
        shapes = {table.number: table.shape for table in self._tables}
        for each in sampled:
            for number in each.outcomes.tables if each.outcomes else ():
                rows = make_rows(each, number, shapes[number], self.layout, self._tick_ms)
                parts.setdefault(number, []).append(rows)
        return {number: PartialRows.concatenate(found) for number, found in parts.items()}

    def _frames(self, posted: Sequence[ReadingFrames]) -> Frames:
        """All frames of readings, where they begin; in the order of samplings, rounds and epochs."""
        if not posted:
            return Frames(*(np.zeros(0, np.int64) for _ in Frames.__slots__))
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

    def _pay_for_listening(self, listening: np.ndarray) -> None:
        ears = self.layout.ears
        np.add.at(self.accounts.awake_us, ears.mote, listening[ears.mote].sum(axis=1) * ears.us(self.layout.startup))

    def _pay_for_hop(self, hop: Hop) -> None:
        layout, accounts, frames = self.layout, self.accounts, hop.frames
        airtime = hop.attempts * layout.airtime(frames.holder, frames.size)
        np.add.at(accounts.send_us, frames.holder, airtime)
        parent = layout.parent[frames.holder]
        inner = parent != GATEWAY
        np.add.at(accounts.send_us, parent[inner], (hop.copies * layout.ack[parent])[inner])
        np.add.at(accounts.awake_us, frames.holder, np.where(hop.last_of_slot, hop.awake_us(layout), 0))


def _arrived(sampled: SampledRows, posted: ReadingFrames, arrived_at: np.ndarray) -> ArrivedReadings:
    """Which rows of what was sampled came, and when."""
    time = np.append(arrived_at, -1)[posted.frame]
    rows = np.flatnonzero(time >= 0)
    return ArrivedReadings(sampled, rows, time[rows], _before(sampled, posted, arrived_at))


def _before(
    sampled: SampledRows, posted: ReadingFrames, arrived_at: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of frames that came, the epochs that had waited for these rounds."""
    epochs = sampled.batch.sampling.epochs
    begin = (sampled.tick.min(initial=np.iinfo(np.int64).max) - epochs.start) // epochs.interval
    waited = np.where(arrived_at >= 0, np.clip(begin - posted.first, 0, posted.count), 0)
    frame = np.repeat(np.arange(len(waited)), waited)
    epoch = posted.first[frame] + np.arange(len(frame)) - np.repeat(np.cumsum(waited) - waited, waited)
    return posted.mote[frame], epochs.start + epoch * epochs.interval, arrived_at[frame]

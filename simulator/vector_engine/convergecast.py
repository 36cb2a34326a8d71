"""Frames on their way up the tree, level by level, the farthest first: each mote sends its own and what came to it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gateway.frame import HEADER_SIZE, LAST_SEQ
from innet.partials import PartialShape
from innet.program.batch_interpreter import SampleColumns, TableColumns
from innet.program.columnar_fold import FoldedColumns, fold_columns
from simulator.vector_engine.hops import Frames, Hop, LinkConditions, send_frames
from simulator.vector_engine.layout import GATEWAY, NetworkLayout
from simulator.vector_engine.partial_rows import PackedPartials, PartialRows, pack_partials

HELD, LOST, HOME = -1, -2, -3
"""Where readings of tables are that are in no frame."""


@dataclass(frozen=True, slots=True)
class TableOwners:
    """One table, and which motes keep it."""

    number: int
    shape: PartialShape
    room: int
    kept: np.ndarray


@dataclass(frozen=True, slots=True)
class MergedReadings:
    """Readings that reached a gateway in partials: in which frame, whose that was, its number, and when (microseconds)."""

    table: TableOwners
    rows: PartialRows
    frame: np.ndarray
    origin: np.ndarray
    seq: np.ndarray
    time: np.ndarray

    def gathered(self, layout: NetworkLayout, shape: PartialShape) -> tuple[FoldedColumns, np.ndarray]:
        """What their partials say, and when each came; `shape` has the sites of the slots, which motes do not know."""
        rows = self.rows
        _, at, which = np.unique(self.frame, return_index=True, return_inverse=True)
        columns = SampleColumns(layout.number[rows.mote], rows.tick, ())
        folds = [(place, lane.valid, lane) for place, lane in enumerate(rows.folds)]
        folded = TableColumns(np.ones(len(rows), bool), ~rows.bare, rows.keys, folds)
        found = fold_columns(shape, columns, folded, which)
        return found, self.time[at][found.place]


class Convergecast:
    """`readings` are frames of their own motes, not yet numbered; their tags count from 0. `there` is by mote and round.
    `numbered` is how many frames of readings, and of partials, each mote has numbered, and is counted on."""

    def __init__(self, layout: NetworkLayout, weather: LinkConditions, there: np.ndarray, rounds: range, numbered: np.ndarray,
                 readings: Frames, tables: Sequence[TableOwners], rows: Mapping[int, PartialRows],
                 pay: Callable[[Hop], None]) -> None:  # fmt: skip
        self._layout, self._weather, self._there, self._rounds = layout, weather, there, rounds
        self._numbered, self._pay = numbered, pay
        self._readings = readings
        self._tables = [table for table in tables if table.number in rows]
        self._rows = {table.number: rows[table.number] for table in self._tables}
        self._frame = {number: np.full(len(found), HELD) for number, found in self._rows.items()}
        self._time = {number: np.zeros(len(found), np.int64) for number, found in self._rows.items()}
        self._frame_home = {number: np.zeros(len(found), np.int64) for number, found in self._rows.items()}
        self.tags = len(readings)
        self._sent: list[Frames] = []  # what motes sent of their own
        self.arrived_at = np.full(len(readings), -1, np.int64)
        self.hops: list[Hop] = []
        self.asked: list[Hop] = []  # questions of those who had nothing to send
        on_the_way: list[Frames] = []
        for depth in range(int(layout.depth.max(initial=0)), 0, -1):
            on_the_way = self._level(depth, on_the_way)

    def merged(self) -> list[MergedReadings]:
        found, (origin, seq) = [], self._identities
        for table in self._tables:
            home = np.flatnonzero(self._frame[table.number] == HOME)
            rows, frame = self._rows[table.number].take(home), self._frame_home[table.number][home]
            found.append(MergedReadings(table, rows, frame, origin[frame], seq[frame], self._time[table.number][home]))
        return found

    @property
    def seq(self) -> np.ndarray:
        """The numbers of the frames of readings."""
        return self._identities[1][: len(self._readings)]

    @property
    def _identities(self) -> tuple[np.ndarray, np.ndarray]:
        """By tag, the mote that has sent each frame as its own, and the number that it gave it."""
        sent = Frames.concatenate(self._sent)
        order = np.argsort(sent.tag)
        return sent.holder[order], sent.seq[order]

    def _level(self, depth: int, on_the_way: list[Frames]) -> list[Frames]:
        layout = self._layout
        together = Frames.concatenate([self._own(depth), *on_the_way])
        here = layout.depth[together.holder] == depth
        going = together.take(here)
        parent = layout.parent[going.holder]
        heard = (parent == GATEWAY) | self._there[parent, going.round - self._rounds.start]
        hop = send_frames(going, layout, self._weather, heard)
        self.hops.append(hop)
        self._pay(hop)
        self._ask(depth, going)
        return [together.take(~here), self._arrive(hop)]

    def _ask(self, depth: int, going: Frames) -> None:
        """The motes of a level whose turn it is, and that have nothing to send in a round, ask whether something waits for them."""
        layout, first = self._layout, self._rounds.start
        asks = layout.asks(np.arange(first, self._rounds.stop)) & self._there & (layout.depth == depth)[:, None]
        asks[going.holder, going.round - first] = False
        mote, at = np.nonzero(asks)
        round_, nothing = at + first, np.zeros_like(mote)
        since = round_ * layout.round_us + layout.send_begin[mote]
        questions = Frames(mote, round_, since, np.full(len(mote), HEADER_SIZE), mote, nothing, nothing)
        parent = layout.parent[mote]
        hop = send_frames(questions, layout, self._weather, (parent == GATEWAY) | self._there[parent, at])
        self.asked.append(hop)
        self._pay(hop)

    def _own(self, depth: int) -> Frames:
        """What the motes of a level send of their own, numbered in the order in which they send it; partials from the last
        number down (SPEC.md)."""
        layout, readings = self._layout, self._readings
        at = np.flatnonzero(layout.depth[readings.holder] == depth)
        parts = [readings.take(at)]
        for table in self._tables:
            packed = self._pack(table, depth)
            tags = np.arange(self.tags, self.tags + len(packed.mote))
            self.tags += len(tags)
            since = packed.round * layout.round_us + layout.send_begin[packed.mote]
            parts.append(Frames(packed.mote, packed.round, since, packed.size, packed.mote, np.zeros_like(tags), tags))
        own = Frames.concatenate(parts)
        partial = own.tag >= len(readings)
        for which, numbered in zip((~partial, partial), self._numbered, strict=True):
            at = np.flatnonzero(which)
            order = at[np.lexsort((own.tag[at], own.round[at], own.holder[at]))]
            mote = own.holder[order]
            own.seq[order] = np.arange(len(order)) - np.searchsorted(mote, mote) + numbered[mote]
            numbered += np.bincount(mote, minlength=len(layout))
        own.seq[partial] = LAST_SEQ - own.seq[partial]
        self._sent.append(own)
        return own

    def _pack(self, table: TableOwners, depth: int) -> PackedPartials:
        rows, frame = self._rows[table.number], self._frame[table.number]
        which = (frame == HELD) & (self._layout.depth[rows.holder] == depth) & (rows.emitted < self._rounds.stop)
        which[which] = self._there[rows.holder[which], rows.emitted[which] - self._rounds.start]
        which = np.flatnonzero(which)
        packed = pack_partials(rows.take(which), table.shape, table.room, self._weather.channel.mtu)
        frame[which] = packed.frame + self.tags
        rows.place[which] = packed.place
        return packed

    def _arrive(self, hop: Hop) -> Frames:
        """What came is held, goes on, or is at home; what goes on is returned."""
        layout = self._layout
        parent, tag = layout.parent[hop.frames.holder], hop.frames.tag
        partial = tag >= len(self._readings)
        home = hop.came & (parent == GATEWAY)
        self.arrived_at[tag[home & ~partial]] = hop.arrived[home & ~partial]
        merged = np.zeros(len(tag), bool)
        size = self.tags + 1  # so that there is a place to look at where there are no frames
        became = np.full(size, HELD)  # of each frame with partials, if it is not under way any more
        state = np.where(~hop.came, LOST, np.where(home, HOME, HELD))
        to, when = np.zeros(size, np.int64), np.zeros(size, np.int64)
        to[tag], when[tag], became[tag] = parent, hop.arrived, state
        sent = np.zeros(size, bool)
        sent[tag] = True
        for table in self._tables:
            frame, rows = self._frame[table.number], self._rows[table.number]
            which = np.flatnonzero((frame >= 0) & sent[np.maximum(frame, 0)])
            of = frame[which]
            ends = (became[of] != HELD) | table.kept[to[of]]
            which, of = which[ends], of[ends]
            self._frame_home[table.number][which] = of
            self._time[table.number][which] = when[of]
            frame[which] = became[of]
            held = became[of] == HELD
            rows.holder[which[held]], rows.since[which[held]] = to[of[held]], when[of[held]]
            ended = np.zeros(size, bool)
            ended[of] = True
            merged |= ended[tag]
        goes_on = hop.came & ~home & ~merged
        return hop.frames.take(goes_on).moved(parent[goes_on], hop.arrived[goes_on])

    def left(self) -> dict[int, PartialRows]:
        """What is held on for later rounds."""
        found = {}
        for number, rows in self._rows.items():
            waits = (self._frame[number] == HELD) & (rows.emitted >= self._rounds.stop)
            found[number] = rows.take(waits)
        return found

"""Convergecast: frames go up the tree, level by level, the farthest first. Each mote sends its own and those it received."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from gateway.frame import HEADER_SIZE, LAST_SEQ
from innet.partials import PartialShape
from innet.program.batch_interpreter import SampleColumns, TableColumns
from innet.program.columnar_fold import FoldedColumns, fold_columns
from simulator.vector_engine.hops import Frames, Hop, LinkConditions, send_frames
from simulator.vector_engine.layout import GATEWAY, NetworkLayout
from simulator.vector_engine.partial_rows import PackedPartials, PartialRows, pack_partials

HELD, LOST, HOME = -1, -2, -3
"""States of readings that are in no frame: in a mote, lost, or at a gateway."""


@dataclass(frozen=True, slots=True)
class TableOwners:
    """One table, and the motes that keep it: `kept` is (motes + 1,), with False last, for the gateway."""

    number: int
    shape: PartialShape
    room: int
    kept: BoolArray


@dataclass(frozen=True, slots=True)
class MergedReadings:
    """The readings that reached a gateway in partials, one row each.

    `frame` is the tag of the frame, `origin` the mote (position) that made it, `seq` its number, `time` when it arrived
    (microseconds).
    """

    table: TableOwners
    rows: PartialRows
    frame: IntArray
    origin: IntArray
    seq: IntArray
    time: IntArray

    def fold(self, layout: NetworkLayout, shape: PartialShape) -> tuple[FoldedColumns, IntArray]:
        """The content of their partials, and when each arrived. `shape` has the sites of the slots, which motes do not know."""
        rows = self.rows
        _, at, which = np.unique(self.frame, return_index=True, return_inverse=True)
        columns = SampleColumns(layout.number[rows.mote], rows.tick, ())
        folds = [(place, lane.valid, lane) for place, lane in enumerate(rows.folds)]
        folded = TableColumns(np.ones(len(rows), bool), ~rows.bare, rows.keys, folds)
        found = fold_columns(shape, columns, folded, which)
        return found, self.time[at][found.place]


class Convergecast:
    """The frames of some rounds on their way up.

    `readings` are the READING frames, not yet numbered; their tags count from 0. `alive` is (motes, rounds). `numbered` is
    (2, motes): how many frames of readings, and of partials, each mote has numbered; it is updated. `pay` is called with each
    hop.
    """

    def __init__(self, layout: NetworkLayout, conditions: LinkConditions, alive: BoolArray, rounds: range, numbered: IntArray,
                 readings: Frames, tables: Sequence[TableOwners], rows: Mapping[int, PartialRows],
                 pay: Callable[[Hop], None]) -> None:  # fmt: skip
        self._layout, self._conditions, self._alive, self._rounds = layout, conditions, alive, rounds
        self._numbered, self._pay = numbered, pay
        self._readings = readings
        self._tables = [table for table in tables if table.number in rows]
        self._rows = {table.number: rows[table.number] for table in self._tables}
        self._frame = {number: np.full(len(found), HELD) for number, found in self._rows.items()}
        self._time = {number: np.zeros(len(found), np.int64) for number, found in self._rows.items()}
        self._frame_home = {number: np.zeros(len(found), np.int64) for number, found in self._rows.items()}
        self.tags = len(readings)
        self._sent: list[Frames] = []  # the frames that motes made
        self.arrived_at = np.full(len(readings), -1, np.int64)
        self.hops: list[Hop] = []
        self.polls: list[Hop] = []  # of motes that had nothing to send
        on_the_way: list[Frames] = []
        for depth in range(int(layout.depth.max(initial=0)), 0, -1):
            on_the_way = self._send_level(depth, on_the_way)

    def merged(self) -> list[MergedReadings]:
        """The readings that reached a gateway, table by table."""
        found, (origin, seq) = [], self._identities
        for table in self._tables:
            home = np.flatnonzero(self._frame[table.number] == HOME)
            rows, frame = self._rows[table.number].take(home), self._frame_home[table.number][home]
            found.append(MergedReadings(table, rows, frame, origin[frame], seq[frame], self._time[table.number][home]))
        return found

    @property
    def seq(self) -> IntArray:
        """The numbers of the frames of readings."""
        return self._identities[1][: len(self._readings)]

    @property
    def _identities(self) -> tuple[IntArray, IntArray]:
        """By tag, the mote that made each frame, and the number that it gave it."""
        sent = Frames.concatenate(self._sent)
        order = np.argsort(sent.tag)
        return sent.holder[order], sent.seq[order]

    def _send_level(self, depth: int, on_the_way: list[Frames]) -> list[Frames]:
        """Send the frames of one level up a hop; returns the frames that are on their way then."""
        layout = self._layout
        waiting = Frames.concatenate([self._make_frames(depth), *on_the_way])
        here = layout.depth[waiting.holder] == depth
        going = waiting.take(here)
        parent = layout.parent[going.holder]
        parent_there = (parent == GATEWAY) | self._alive[parent, going.round - self._rounds.start]
        hop = send_frames(going, layout, self._conditions, parent_there)
        self.hops.append(hop)
        self._pay(hop)
        self._poll(depth, going)
        return [waiting.take(~here), self._arrive(hop)]

    def _poll(self, depth: int, going: Frames) -> None:
        """The motes of a level poll in their turn if they have nothing to send in that round."""
        layout, first = self._layout, self._rounds.start
        polls = layout.polls(np.arange(first, self._rounds.stop)) & self._alive & (layout.depth == depth)[:, None]
        polls[going.holder, going.round - first] = False
        mote, at = np.nonzero(polls)
        round_, nothing = at + first, np.zeros_like(mote)
        since = round_ * layout.round_us + layout.send_begin[mote]
        frames = Frames(mote, round_, since, np.full(len(mote), HEADER_SIZE), mote, nothing, nothing)
        parent = layout.parent[mote]
        hop = send_frames(frames, layout, self._conditions, (parent == GATEWAY) | self._alive[parent, at])
        self.polls.append(hop)
        self._pay(hop)

    def _make_frames(self, depth: int) -> Frames:
        """The frames that the motes of a level make, numbered in the order of sending; partials from the last number down
        (SPEC.md)."""
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
        which[which] = self._alive[rows.holder[which], rows.emitted[which] - self._rounds.start]
        at = np.flatnonzero(which)
        packed = pack_partials(rows.take(at), table.shape, table.room, self._conditions.channel.mtu)
        frame[at] = packed.frame + self.tags
        rows.place[at] = packed.place
        return packed

    def _arrive(self, hop: Hop) -> Frames:
        """Frames that arrive are merged, forwarded, or at a gateway. Returns those that are forwarded."""
        layout = self._layout
        parent, tag = layout.parent[hop.frames.holder], hop.frames.tag
        partial = tag >= len(self._readings)
        home = hop.came & (parent == GATEWAY)
        self.arrived_at[tag[home & ~partial]] = hop.arrived[home & ~partial]
        merged = np.zeros(len(tag), bool)
        size = self.tags + 1  # one more, so that tag 0 exists without frames
        became = np.full(size, HELD)  # by tag: the state of the readings in a frame that is not under way any more
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
        """By table, the rows that motes keep for later rounds."""
        found = {}
        for number, rows in self._rows.items():
            waits = (self._frame[number] == HELD) & (rows.emitted >= self._rounds.stop)
            found[number] = rows.take(waits)
        return found

"""Partial aggregates of many motes as rows of readings: where readings are merged, and into which frames partials go."""

from dataclasses import dataclass

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from gateway.frame import HEADER_SIZE, payload_room
from innet.operators.column_evaluation import ValueColumn
from innet.partials import PartialShape
from innet.payload.partial import HEADER, MAX_SPAN, bare_bits, whole_bits
from simulator.kernel import MS
from simulator.vector_engine.layout import NetworkLayout, NotVectorisableError
from simulator.vector_engine.sampling import SampledRows


@dataclass(frozen=True, slots=True)
class PartialRows:
    """The readings in one table, one row each. Motes are positions in the layout.

    `emitted` is the round in which their partials are sent up. `holder` is the mote that has them now, `since` when
    (microseconds), and `place` is their position in the frame that brought them. `folds[place]` are the values that are folded
    at a place of the state, and a mask of their rows. Rows in no group are bare.
    """

    mote: IntArray
    tick: IntArray
    slice: IntArray
    bare: BoolArray
    keys: tuple[ValueColumn, ...]
    folds: tuple[ValueColumn, ...]
    emitted: IntArray
    holder: IntArray
    since: IntArray
    place: IntArray

    def __len__(self) -> int:
        return len(self.mote)

    def take(self, which: IntArray | BoolArray) -> "PartialRows":
        taken = {name: getattr(self, name)[which] for name in _PLAIN}
        return PartialRows(keys=_take(self.keys, which), folds=_take(self.folds, which), **taken)

    @staticmethod
    def concatenate(parts: list["PartialRows"]) -> "PartialRows":
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _PLAIN}
        keys = tuple(_concatenate(columns) for columns in zip(*(part.keys for part in parts), strict=True))
        folds = tuple(_concatenate(columns) for columns in zip(*(part.folds for part in parts), strict=True))
        return PartialRows(keys=keys, folds=folds, **joined)


_PLAIN = ("mote", "tick", "slice", "bare", "emitted", "holder", "since", "place")


def _take(columns: tuple[ValueColumn, ...], which: IntArray | BoolArray) -> tuple[ValueColumn, ...]:
    return tuple(ValueColumn(column.values[which], column.valid[which]) for column in columns)


def _concatenate(columns: tuple[ValueColumn, ...]) -> ValueColumn:
    values = np.concatenate([column.values for column in columns])
    return ValueColumn(values, np.concatenate([column.valid for column in columns]))


def make_rows(
    sampled: SampledRows, number: int, shape: PartialShape, layout: NetworkLayout, tick_ms: int
) -> PartialRows:
    """The rows that a sampling adds to a table."""
    folded = sampled.computed.tables[number]
    places = [place for place, _, _ in folded.folds]
    if len(set(places)) < len(places):
        raise NotVectorisableError(f"table {number} folds twice into one place")
    which = np.flatnonzero(folded.marked | folded.entered)
    grouped = folded.entered[which]
    mote, tick = sampled.mote[which], sampled.tick[which]
    slice_: IntArray = shape.slices.number(tick)
    distinct, inverse = np.unique(slice_, return_inverse=True)
    ends = np.array([shape.slices.end(number) for number in distinct.tolist()], np.int64)[inverse]
    over = -(-ends * tick_ms * MS // layout.round_us) - 1  # the round in which a slice ends
    if not layout.due(over).all():
        raise NotVectorisableError(f"slices of table {number} end in rounds in which there are no slots")
    nothing = ValueColumn(np.zeros(len(which), np.int64), np.zeros(len(which), bool))
    folds = [nothing] * len(shape.kinds)
    for place, mask, lane in folded.folds:
        folds[place] = ValueColumn.of(lane.values[which], (mask & folded.entered)[which])
    keys = tuple(ValueColumn.of(key.values[which], key.valid[which] & grouped) for key in folded.keys)
    keys += (nothing,) * (shape.keys - len(keys))
    return PartialRows(
        mote, tick, slice_, ~grouped, keys, tuple(folds), np.maximum(over, sampled.round[which]), mote,
        tick * tick_ms * MS, np.zeros(len(which), np.int64),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class PackedPartials:
    """The frames of one table by mote and round. Row i goes into `frame[i]`, at its `place[i]`."""

    mote: IntArray
    round: IntArray
    size: IntArray  # bytes
    frame: IntArray
    place: IntArray


def pack_partials(rows: PartialRows, shape: PartialShape, room: int, mtu: int) -> PackedPartials:
    """Make partials of the rows that motes hold, one for each slice and group, and pack them into frames.

    `room` is the number of groups that a mote has room for, `mtu` the largest frame in bytes.
    """
    if not len(rows):
        none = np.zeros(0, np.int64)
        return PackedPartials(none, none, none, none, none)
    identity = [rows.holder, rows.emitted, rows.slice, rows.bare.astype(np.int64)]
    for key in rows.keys:
        identity += [key.valid.astype(np.int64), key.values]
    _, entry = np.unique(np.stack(identity), axis=1, return_inverse=True)
    entry = entry.reshape(-1)
    # A partial has the position of its first reading: motes keep partials in the order of arrival.
    order = np.lexsort((rows.place, rows.since, rows.slice, rows.emitted, rows.holder))
    _, earliest = np.unique(entry[order], return_index=True)
    in_order = np.argsort(earliest)  # entries in the order in which motes send them
    head = order[earliest[in_order]]
    rank = np.empty(len(in_order), np.int64)
    rank[in_order] = np.arange(len(in_order))
    holder, round_, bare = rows.holder[head], rows.emitted[head], rows.bare[head]
    group = _runs(holder, round_)
    if np.bincount(group).max() > room:
        raise NotVectorisableError(f"table {shape.aggregation} has more groups than the {room} that it has room for")
    payload = _payloads(group, rows.slice[head], bare, shape, payload_room(mtu))
    frame = _runs(group, payload)
    first = np.flatnonzero(np.append(True, np.diff(frame) > 0))
    whole = np.bincount(frame, ~bare).astype(np.int64)
    bares = np.bincount(frame, bare).astype(np.int64)
    size = HEADER_SIZE + HEADER.size + -(-(whole * whole_bits(shape) + bares * bare_bits(shape)) // 8)
    return PackedPartials(
        holder[first], round_[first], size, frame[rank[entry]], _places(frame, bare, whole)[rank[entry]]
    )


def _runs(*keys: IntArray) -> IntArray:
    """The number of the run of equal keys that each entry is in."""
    changes = np.zeros(len(keys[0]), bool)
    for key in keys:
        changes[1:] |= np.diff(key) != 0
    return np.cumsum(changes)


def _payloads(group: IntArray, slice_: IntArray, bare: BoolArray, shape: PartialShape,
              most: int) -> IntArray:  # fmt: skip
    """The payload of its group that each entry goes into. A payload of `most` bytes is filled before the next one begins."""
    begins = np.flatnonzero(np.append(True, np.diff(group) > 0))
    sizes = np.diff(np.append(begins, len(group)))
    whole = np.zeros(len(begins), np.int64)
    bares, payload = whole.copy(), whole.copy()
    first = slice_[begins]
    found = np.zeros(len(group), np.int64)
    for at in range(int(sizes.max())):
        which = np.flatnonzero(sizes > at)
        entry = begins[which] + at
        whole[which] += ~bare[entry]
        bares[which] += bare[entry]
        bits = whole[which] * whole_bits(shape) + bares[which] * bare_bits(shape)
        many = (whole[which] + bares[which] > 0xFF) | (slice_[entry] - first[which] >= MAX_SPAN)
        over = which[many | (HEADER.size + -(-bits // 8) > most)]
        payload[over] += 1
        first[over] = slice_[begins[over] + at]
        bares[over] = bare[begins[over] + at]
        whole[over] = 1 - bares[over]
        found[entry] = payload[which]
    return found


def _places(frame: IntArray, bare: BoolArray, whole: IntArray) -> IntArray:
    """The position of each entry in its frame: bare partials are last."""
    begins = np.flatnonzero(np.append(True, np.diff(frame) > 0))
    bares: IntArray = np.cumsum(bare) - bare
    wholes: IntArray = np.cumsum(~bare) - ~bare
    found: IntArray = np.where(bare, whole[frame] + bares - bares[begins][frame], wholes - wholes[begins][frame])
    return found

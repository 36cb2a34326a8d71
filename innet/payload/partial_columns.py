"""Columns: the partials of many PARTIAL frames decoded at once, as the base station takes them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from acquisition.bit_reader import BitReader
from acquisition.errors import PayloadError
from gateway.frame import Frame
from innet.aggregates.state import AggregateState
from innet.aggregates.state_fields import make_state
from innet.partials import PartialShape
from innet.payload.partial import (
    HEADER,
    KEY_BITS,
    READINGS_BITS,
    SLICE_BITS,
    UNSIGNED,
    bare_bits,
    contributor_bits,
    whole_bits,
)


@dataclass(frozen=True, slots=True)
class PartialColumns:
    """Partials of one aggregation, first all that have a group, in the order in which they came, then the bare ones.

    `who[:, s]` says whether slot s contributed; where the shape has no bitmap it has one column, their number. `key`,
    `null` and `fields` are of those with a group only; `fields[a][f]` is field f of aggregate a.
    """

    shape: PartialShape
    sender: np.ndarray
    slice: np.ndarray
    who: np.ndarray
    readings: np.ndarray
    key: np.ndarray
    null: np.ndarray
    fields: tuple[tuple[np.ndarray, ...], ...]

    @property
    def whole(self) -> int:
        """How many have a group."""
        return len(self.key)

    @property
    def contributors(self) -> set[tuple[int, int]]:
        """(site, sender): the sites that are in any of them, where that is told."""
        at, site = self.contributions
        return set(zip(site.tolist(), self.sender[at].tolist(), strict=True))

    @property
    def contributions(self) -> tuple[np.ndarray, np.ndarray]:
        """(place of a partial, site): who is in which, where that is told."""
        if not self.shape.has_bitmap:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        at, slot = np.nonzero(self.who)
        return at, np.array(self.shape.slots)[slot]

    def states(self) -> list[AggregateState]:
        """The state of each aggregate, one group for each partial that has one."""
        rows = (list(zip(*(field.tolist() for field in fields), strict=True)) for fields in self.fields)
        return [make_state(kind, found) for kind, found in zip(self.shape.kinds, rows, strict=True)]


def decode_partial_frames(
    frames: Sequence[Frame], shapes: Mapping[int, PartialShape]
) -> tuple[list[PartialColumns], list[PayloadError]]:
    """The partials in PARTIAL frames, all of one aggregation at once, and what is wrong with the frames without any."""
    groups: dict[int, list[Frame]] = {}
    decoded, errors = [], []
    for frame in frames:
        if len(frame.payload) < HEADER.size:
            errors.append(PayloadError("short", frame.mote, f"a PARTIAL of {len(frame.payload)} bytes"))
        elif frame.payload[0] not in shapes:
            errors.append(PayloadError("aggregation", frame.mote, f"there is no aggregation {frame.payload[0]}"))
        else:
            groups.setdefault(frame.payload[0], []).append(frame)
    for number, found in groups.items():
        packed = _PackedPartials(found, shapes[number])
        errors += packed.errors()
        if packed.good.any():
            decoded.append(packed.partials())
    return decoded, errors


class _PackedPartials:
    """The payloads of one aggregation, and where in them each partial begins."""

    def __init__(self, frames: Sequence[Frame], shape: PartialShape) -> None:
        self.frames, self.shape = frames, shape
        self.bits = BitReader([frame.payload for frame in frames])
        start = self.bits.start
        self.first = self.bits.take_wide(start + 8, 48, signed=False)
        self.whole, self.bare = self.bits.take(start + 56, 8), self.bits.take(start + 64, 8)
        self.body = start + 8 * HEADER.size
        used = self.whole * whole_bits(shape) + self.bare * bare_bits(shape)
        self.good = (self.bits.size == HEADER.size + -(-used // 8)) & (self.whole + self.bare > 0)

    def errors(self) -> Iterator[PayloadError]:
        for at in np.flatnonzero(~self.good).tolist():
            frame, held = self.frames[at], f"{self.whole[at]} and {self.bare[at]} partials"
            yield PayloadError("size", frame.mote, f"a PARTIAL of {len(frame.payload)} bytes with {held}")

    def partials(self) -> PartialColumns:
        shape, bits = self.shape, self.bits
        owner, at = self._places(self.whole, self.body, whole_bits(shape))
        bare_owner, bare_at = self._places(self.bare, self.body + self.whole * whole_bits(shape), bare_bits(shape))
        whole, owner, at = len(at), np.concatenate([owner, bare_owner]), np.concatenate([at, bare_at])
        slices = self.first[owner] + bits.take(at, SLICE_BITS)
        at = at + SLICE_BITS
        who = self._who(at)
        at = at + contributor_bits(shape)
        readings = bits.take(at, READINGS_BITS)
        key, null, fields = self._values((at + READINGS_BITS)[:whole])
        mote = np.fromiter((frame.mote for frame in self.frames), np.int64, len(self.frames))
        return PartialColumns(shape, mote[owner], slices, who, readings, key, null, fields)

    def _places(self, count: np.ndarray, begin: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Of each partial of the good frames: its frame, and where it begins."""
        count = np.where(self.good, count, 0)
        owner = np.repeat(np.arange(len(count)), count)
        rank = np.arange(len(owner)) - (np.cumsum(count) - count)[owner]
        return owner, begin[owner] + rank * width

    def _who(self, at: np.ndarray) -> np.ndarray:
        if not self.shape.has_bitmap:
            return self.bits.take(at, contributor_bits(self.shape))[:, None]
        slots = np.arange(contributor_bits(self.shape))
        return self.bits.take(at[:, None] + slots, 1).astype(bool)

    def _values(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, tuple[tuple[np.ndarray, ...], ...]]:
        keys = self.shape.keys
        key, null = np.zeros((len(at), keys), np.int64), np.zeros((len(at), keys), bool)
        for k in range(keys):
            null[:, k] = self.bits.take(at, 1) > 0
            key[:, k] = self.bits.take_signed(at + 1, KEY_BITS)
            at = at + 1 + KEY_BITS
        fields = []
        for layout in self.shape.layouts:
            columns = []
            for field in layout:
                columns.append(self.bits.take_wide(at, field.bits, field.name not in UNSIGNED))
                at = at + field.bits
            fields.append(tuple(columns))
        return key, null, tuple(fields)

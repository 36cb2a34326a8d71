"""PartialColumns: the partials of many PARTIAL frames, decoded at once for the base station."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, IntArray
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
    """Partials of one aggregation: first the whole ones, in the order of arrival, then the bare ones.

    `contributors[i, s]` is whether slot s contributed to partial i; without a bitmap there is one column with their number.
    `sender` is the mote that sent the frame. `key`, `null` and `fields` have rows for whole partials only; `fields[a][f]` is
    field f of aggregate a.
    """

    shape: PartialShape
    sender: IntArray
    slice: IntArray
    contributors: BoolArray | IntArray
    readings: IntArray
    key: IntArray
    null: BoolArray
    fields: tuple[tuple[AnyArray, ...], ...]

    @property
    def whole(self) -> int:
        """The number of whole partials."""
        return len(self.key)

    @property
    def contributor_pairs(self) -> set[tuple[int, int]]:
        """The pairs (site, sender) of all contributions; empty without a bitmap."""
        at, site = self.contributions
        return set(zip(site.tolist(), self.sender[at].tolist(), strict=True))

    @property
    def contributions(self) -> tuple[IntArray, IntArray]:
        """(row, site) of each contribution; empty without a bitmap."""
        if not self.shape.has_bitmap:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        at, slot = np.nonzero(self.contributors)
        return at, np.array(self.shape.slots)[slot]

    def states(self) -> list[AggregateState]:
        """Return the state of each aggregate, with one group per whole partial."""
        rows = (list(zip(*(field.tolist() for field in fields), strict=True)) for fields in self.fields)
        return [make_state(kind, found) for kind, found in zip(self.shape.kinds, rows, strict=True)]


def decode_partial_frames(
    frames: Sequence[Frame], shapes: Mapping[int, PartialShape]
) -> tuple[list[PartialColumns], list[PayloadError]]:
    """Decode PARTIAL frames; return columns per aggregation, and an error for each malformed frame."""
    groups: dict[int, list[Frame]] = {}
    decoded, errors = [], []
    for frame in frames:
        if len(frame.payload) < HEADER.size:
            errors.append(PayloadError("short", frame.mote, f"a PARTIAL of {len(frame.payload)} bytes"))
        elif frame.payload[0] not in shapes:
            errors.append(PayloadError("aggregation", frame.mote, f"unknown aggregation {frame.payload[0]}"))
        else:
            groups.setdefault(frame.payload[0], []).append(frame)
    for number, found in groups.items():
        packed = _PackedPartials(found, shapes[number])
        errors += packed.errors()
        if packed.good.any():
            decoded.append(packed.partials())
    return decoded, errors


class _PackedPartials:
    """The payloads of one aggregation, and the position of each partial in them."""

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
        """Yield an error for each malformed payload."""
        for at in np.flatnonzero(~self.good).tolist():
            frame, held = self.frames[at], f"{self.whole[at]} and {self.bare[at]} partials"
            yield PayloadError("size", frame.mote, f"a PARTIAL of {len(frame.payload)} bytes with {held}")

    def partials(self) -> PartialColumns:
        """Decode the well-formed payloads."""
        shape, bits = self.shape, self.bits
        owner, at = self._places(self.whole, self.body, whole_bits(shape))
        bare_owner, bare_at = self._places(self.bare, self.body + self.whole * whole_bits(shape), bare_bits(shape))
        whole, owner, at = len(at), np.concatenate([owner, bare_owner]), np.concatenate([at, bare_at])
        slices = self.first[owner] + bits.take(at, SLICE_BITS)
        at = at + SLICE_BITS
        contributors = self._contributors(at)
        at = at + contributor_bits(shape)
        readings = bits.take(at, READINGS_BITS)
        key, null, fields = self._values((at + READINGS_BITS)[:whole])
        mote = np.fromiter((frame.mote for frame in self.frames), np.int64, len(self.frames))
        return PartialColumns(shape, mote[owner], slices, contributors, readings, key, null, fields)

    def _places(self, count: IntArray, begin: IntArray, width: int) -> tuple[IntArray, IntArray]:
        """Return (frame, position in bits) of each partial of the well-formed frames."""
        count = np.where(self.good, count, 0)
        owner = np.repeat(np.arange(len(count)), count)
        rank = np.arange(len(owner)) - (np.cumsum(count) - count)[owner]
        return owner, begin[owner] + rank * width

    def _contributors(self, at: IntArray) -> BoolArray | IntArray:
        if not self.shape.has_bitmap:
            return self.bits.take(at, contributor_bits(self.shape))[:, None]
        slots = np.arange(contributor_bits(self.shape))
        return self.bits.take(at[:, None] + slots, 1).astype(bool)

    def _values(self, at: IntArray) -> tuple[IntArray, BoolArray, tuple[tuple[AnyArray, ...], ...]]:
        """Return (keys, nulls, fields) of the whole partials, whose group keys begin at the bits `at`."""
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

"""PARTIAL: partial aggregates of slices and groups on their way to the base station, each with its contributors.

    aggregation u8, first slice u48, whole u8, bare u8, then the partials without gaps from the lowest bit of the first
    byte, the whole ones first:
        slice - first slice 8 bits
        contributors: one bit for each of the aggregation's slots, or, if it has more than 128, their number in 32 bits
        readings 32 bits
        a whole one also: for each key of the group 1 bit (1: null) and 32 bits; then each aggregate's fields, in the
        bits of its layout (innet/aggregates)

Each partial names its own contributors, so a lost one loses its own readings only. A bare partial accounts for filtered
readings, which belong to no group and count for coverage.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace

from acquisition.errors import PayloadError
from gateway.frame import MAX_PAYLOAD
from innet.partials import Partial, PartialShape

HEADER = struct.Struct("<B6sBB")
SLICE_BITS, COUNT_BITS, READINGS_BITS, KEY_BITS = 8, 32, 32, 32
MAX_SPAN = 1 << SLICE_BITS
UNSIGNED = frozenset({"seen", "count", "site", "squares"})
"""The fields that are never negative; the others are in two's complement."""


def contributor_bits(shape: PartialShape) -> int:
    """Return the bits of the contributors of a partial."""
    return len(shape.slots) if shape.has_bitmap else COUNT_BITS


def bare_bits(shape: PartialShape) -> int:
    """Return the bits of a bare partial."""
    return SLICE_BITS + contributor_bits(shape) + READINGS_BITS


def whole_bits(shape: PartialShape) -> int:
    """Return the bits of a whole partial."""
    fields = sum(field.bits for layout in shape.layouts for field in layout)
    return bare_bits(shape) + shape.keys * (1 + KEY_BITS) + fields


def size_of(shape: PartialShape, whole: int, bare: int) -> int:
    """Return the bytes of a payload with that many partials."""
    return HEADER.size + -(-(whole * whole_bits(shape) + bare * bare_bits(shape)) // 8)


def encode_partials(shape: PartialShape, partials: Sequence[Partial], room: int = MAX_PAYLOAD) -> list[bytes]:
    """Encode partials in as few payloads as possible, in the order of their slices; `room` is the bytes of a payload."""
    payloads: list[bytes] = []
    waiting: list[Partial] = []
    for partial in sorted(partials, key=lambda p: p.slice):
        if waiting and not _together(shape, [*waiting, partial], room):
            payloads.append(_encode(shape, waiting))
            waiting = []
        waiting.append(partial)
    return [*payloads, _encode(shape, waiting)] if waiting else payloads


def _together(shape: PartialShape, partials: Sequence[Partial], room: int) -> bool:
    """Whether partials fit into one payload."""
    bare = sum(partial.bare for partial in partials)
    few = len(partials) <= 0xFF and partials[-1].slice - partials[0].slice < MAX_SPAN
    return few and size_of(shape, len(partials) - bare, bare) <= room


def _encode(shape: PartialShape, partials: Sequence[Partial]) -> bytes:
    whole, bare = [p for p in partials if not p.bare], [p for p in partials if p.bare]
    first, bits, at = partials[0].slice, 0, 0
    for partial in (*whole, *bare):
        for _, value, width in _fields(shape, partial, first):
            bits |= (value & ((1 << width) - 1)) << at
            at += width
    head = HEADER.pack(shape.aggregation, first.to_bytes(6, "little"), len(whole), len(bare))
    return head + bits.to_bytes(-(-at // 8), "little")


def _fields(shape: PartialShape, partial: Partial, first: int) -> Iterator[tuple[str, int, int]]:
    """Yield (name, value, bits) of each field of a partial, in the order of the encoding."""
    yield "slice", partial.slice - first, SLICE_BITS
    yield "contributors", partial.contributors, contributor_bits(shape)
    yield "readings", partial.readings, READINGS_BITS
    if partial.states is None:
        return
    for key in partial.group:
        yield "null", key is None, 1
        yield "key", key or 0, KEY_BITS
    for layout, state in zip(shape.layouts, partial.states, strict=True):
        for field, value in zip(layout, state, strict=True):
            yield field.name, value, field.bits


def decode_partials(payload: bytes, shape: PartialShape, mote: int) -> list[Partial]:
    """Decode one payload, as a mote reads it from a child. PayloadError if it does not have this shape."""
    if len(payload) < HEADER.size:
        raise PayloadError("short", mote, f"a PARTIAL of {len(payload)} bytes")
    number, first, whole, bare = HEADER.unpack_from(payload)
    if number != shape.aggregation:
        raise PayloadError("aggregation", mote, f"a PARTIAL of aggregation {number}, not {shape.aggregation}")
    if len(payload) != size_of(shape, whole, bare) or whole + bare == 0:
        raise PayloadError("size", mote, f"a PARTIAL of {len(payload)} bytes with {whole} and {bare} partials")
    bits, begin = _Bits(payload[HEADER.size :]), int.from_bytes(first, "little")
    return [_decode(bits, shape, begin, at < whole) for at in range(whole + bare)]


def first_slice(payload: bytes) -> int:
    """Return the oldest slice in a payload that decodes."""
    return int.from_bytes(HEADER.unpack_from(payload)[1], "little")


class _Bits:
    """Reads numbers from the lowest bits of some bytes."""

    def __init__(self, data: bytes) -> None:
        self._left = int.from_bytes(data, "little")

    def take(self, width: int, signed: bool = False) -> int:
        value = self._left & ((1 << width) - 1)
        self._left >>= width
        return value - (1 << width) if signed and value >> (width - 1) else value


def _decode(bits: _Bits, shape: PartialShape, first: int, whole: bool) -> Partial:
    partial = Partial(first + bits.take(SLICE_BITS), bits.take(contributor_bits(shape)), bits.take(READINGS_BITS))
    if not whole:
        return partial
    group: list[int | None] = []
    for _ in range(shape.keys):
        null, key = bits.take(1), bits.take(KEY_BITS, signed=True)
        group.append(None if null else key)
    states = tuple(
        tuple(bits.take(field.bits, field.name not in UNSIGNED) for field in layout) for layout in shape.layouts
    )
    return replace(partial, group=tuple(group), states=states)


def annotate_partials(shape: PartialShape, partials: Sequence[Partial]) -> Iterator[tuple[int, str]]:
    """Yield (number of bytes, meaning) for a PARTIAL payload, for `gateway.frame_annotation`, down to each packed field."""
    whole, bare = [p for p in partials if not p.bare], [p for p in partials if p.bare]
    first = min(partial.slice for partial in partials)
    yield 1, f"aggregation {shape.aggregation}"
    yield 6, f"first slice {first}"
    yield 1, f"{len(whole)} whole partials"
    yield 1, f"{len(bare)} bare partials"
    yield size_of(shape, len(whole), len(bare)) - HEADER.size, "packed from the lowest bit of the first byte:"
    at = 0
    for number, partial in enumerate((*whole, *bare), 1):
        yield 0, f"{'bare' if partial.bare else 'whole'} partial {number}, of slice {partial.slice}"
        for name, value, width in _fields(shape, partial, first):
            yield 0, f"  bits {at:>4} .. {at + width - 1:<4}  {_meaning(shape, name, value)}"
            at += width


def _meaning(shape: PartialShape, name: str, value: int) -> str:
    """Return a field of a partial in words."""
    match name:
        case "slice":
            return f"slice: first + {value}"
        case "contributors" if shape.has_bitmap:
            sites = [str(site) for bit, site in enumerate(shape.slots) if value >> bit & 1]
            return f"contributors: {', '.join(sites)}"
        case "null":
            return "key is null" if value else "key follows"
    return f"{name}: {value}"

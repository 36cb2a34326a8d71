"""The payloads that the gateway itself reads and writes: HELLO, ACK and EVENT. SPEC.md defines every bit.

They contain numbers only: versions, identities, counts. The layers above know what a sensor or a sampling is.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from gateway.errors import FrameError
from gateway.frame import MAX_PAYLOAD, FrameKind, MoteId
from gateway.image import NO_IMAGE, Stamp

HELLO, COUNTS, STAMP = struct.Struct("<BHHHHHH6sB"), struct.Struct("<BIHHHHH"), struct.Struct("<BHH")
RANGE, IDENTITY = struct.Struct("<HH"), struct.Struct("<HHH")
NO_CLOCK = b"\xff" * 6
MAX_SENSORS = (MAX_PAYLOAD - HELLO.size) // 2


def gap_capacity(room: int) -> int:
    """Return how many gaps fit into a payload of `room` bytes."""
    return (room - 4) // RANGE.size


MAX_GAPS = gap_capacity(MAX_PAYLOAD)
IMAGES = (FrameKind.SCHEDULE, FrameKind.PROGRAM)
"""The kinds of frames that carry images."""

Gaps: TypeAlias = tuple[tuple[int, int], ...]
"""Sequence numbers as inclusive ranges, ascending."""


class HelloReason(IntEnum):
    """Why a mote sends a HELLO."""

    SWITCHED_ON = 0
    RESET = 1
    BROWN_OUT = 2
    WATCHDOG = 3
    ASKED = 4
    INSTALLED = 5
    ORPHANED = 6


@dataclass(frozen=True, slots=True)
class Hello:
    """A mote's report about itself.

    `hardware` and `sensors` are codes (CRC-16 of a name), `battery_mv` is in millivolts. `schedule` and `program` are
    the installed images. `clock_ms` is its clock in milliseconds since tick 0, None if it has no time yet. A downward
    HELLO has no payload and requests this report.
    """

    reason: HelloReason
    hardware: int
    battery_mv: int
    schedule: Stamp = NO_IMAGE
    program: Stamp = NO_IMAGE
    clock_ms: int | None = None
    sensors: tuple[int, ...] = ()


def encode_hello(hello: Hello) -> bytes:
    """Encode the payload of an upward HELLO; sensors that do not fit are left out."""
    clock = NO_CLOCK if hello.clock_ms is None else hello.clock_ms.to_bytes(6, "little")
    sensors = hello.sensors[:MAX_SENSORS]
    return HELLO.pack(
        hello.reason, hello.hardware, hello.battery_mv,
        hello.schedule.version, hello.schedule.digest, hello.program.version, hello.program.digest,
        clock, len(sensors),
    ) + struct.pack(f"<{len(sensors)}H", *sensors)  # fmt: skip


def decode_hello(payload: bytes) -> Hello:
    """Decode the payload of an upward HELLO. Raises FrameError with code `payload`."""
    if len(payload) < HELLO.size or len(payload) != HELLO.size + 2 * payload[HELLO.size - 1]:
        raise FrameError("payload", f"{len(payload)} bytes are not a HELLO", payload)
    reason, hardware, battery, v, d, w, e, clock, count = HELLO.unpack_from(payload)
    if reason not in HelloReason._value2member_map_:
        raise FrameError("payload", f"unknown reason {reason} of a HELLO", payload)
    ms = None if clock == NO_CLOCK else int.from_bytes(clock, "little")
    sensors = struct.unpack_from(f"<{count}H", payload, HELLO.size)
    return Hello(HelloReason(reason), hardware, battery, Stamp(v, d), Stamp(w, e), ms, sensors)


def annotate_hello(hello: Hello) -> Iterator[tuple[int, str]]:
    """Yield (size in bytes, meaning) of each field, for `gateway.frame_annotation`."""
    yield 1, f"reason: {hello.reason.name.lower().replace('_', ' ')}"
    yield 2, f"hardware {hello.hardware:#06x}"
    yield 2, f"battery {hello.battery_mv} mV"
    for what, stamp in (("schedule", hello.schedule), ("program", hello.program)):
        yield 2, f"{what} version {stamp.version}" if stamp.version else f"no {what}"
        yield 2, f"digest {stamp.digest:#06x}"
    yield 6, "no clock" if hello.clock_ms is None else f"clock {hello.clock_ms} ms since tick 0"
    yield 1, f"{len(hello.sensors)} sensors"
    for sensor in hello.sensors:
        yield 2, f"sensor {sensor:#06x}"


# --- ACK -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SelectiveAck:
    """The payload of an ACK from the base station to a mote: gaps below the sequence number in the header.

    All other frames of that boot up to that number have arrived, and the mote forgets them. It sends the frames of the
    gaps again, or reports them with LostFrames.
    """

    gaps: Gaps = ()


def encode_selective_ack(ack: SelectiveAck) -> bytes:
    """Encode the oldest gaps, as many as one frame holds."""
    return _encode_gaps(ack.gaps)


def decode_selective_ack(payload: bytes) -> SelectiveAck:
    """Decode the payload of an ACK. Raises FrameError with code `payload`."""
    return SelectiveAck(_decode_gaps(payload))


def annotate_selective_ack(ack: SelectiveAck) -> Iterator[tuple[int, str]]:
    """Yield (size in bytes, meaning) of each field."""
    yield from _annotate_gaps(ack.gaps, "requested")


def _encode_gaps(gaps: Gaps) -> bytes:
    gaps = gaps[:MAX_GAPS]
    return bytes((len(gaps),)) + b"".join(RANGE.pack(*gap) for gap in gaps)


def _decode_gaps(payload: bytes) -> Gaps:
    if not payload or len(payload) != 1 + RANGE.size * payload[0]:
        raise FrameError("payload", f"{len(payload)} bytes do not match their number of gaps", payload)
    gaps = tuple((first, last) for first, last in RANGE.iter_unpack(payload[1:]))
    ends = [-1, *(end for gap in gaps for end in gap)]
    if any(b < a for a, b in gaps) or any(gap[0] <= before for gap, before in zip(gaps, ends[::2], strict=False)):
        raise FrameError("payload", f"gaps {gaps} are not ascending", payload)
    return gaps


def _annotate_gaps(gaps: Gaps, what: str) -> Iterator[tuple[int, str]]:
    yield 1, f"{len(gaps)} ranges"
    for first, last in gaps:
        yield 2, f"{what} from seq {first}"
        yield 2, f"to seq {last}"


# --- EVENT -----------------------------------------------------------------------------------------------------------


class EventCode(IntEnum):
    """The first byte of an EVENT; each code has a class of the same name."""

    MISSING_BLOCKS = 1
    REFUSED_IMAGE = 2
    LOST_FRAMES = 3
    READING_COUNTS = 4
    CLOCK_MOVED = 5
    DROPPED_PARTIAL = 6
    CLOCKS_DIFFER = 7


@dataclass(frozen=True, slots=True)
class MissingBlocks:
    """An image is incomplete: these blocks have not arrived."""

    kind: FrameKind
    stamp: Stamp
    missing: frozenset[int]


@dataclass(frozen=True, slots=True)
class RefusedImage:
    """An image is complete, but the mote cannot install it: it is too large or invalid."""

    kind: FrameKind
    stamp: Stamp


@dataclass(frozen=True, slots=True)
class LostFrames:
    """Sequence numbers of one boot of the mote that will not arrive: given up, or no longer in its memory."""

    boot: int
    gaps: Gaps


@dataclass(frozen=True, slots=True)
class ReadingCounts:
    """The readings of some epochs of a sampling, by the mote's own counters.

    due = sampled + not sampled; sampled = sent + filtered + merged + dropped (dropped for lack of memory).
    """

    sampling: int
    first_epoch: int
    epochs: int
    sampled: int
    filtered: int
    merged: int
    dropped: int


@dataclass(frozen=True, slots=True)
class ClockMoved:
    """A TIME moved the mote's clock by `by_ms`, more than a tick; earlier time stamps are off by that much."""

    by_ms: int


@dataclass(frozen=True, slots=True)
class DroppedPartial:
    """The mote dropped a repeated PARTIAL: it lost its memory, and may have merged the first copy."""

    mote: MoteId
    boot: int
    seq: int


@dataclass(frozen=True, slots=True)
class ClocksDiffer:
    """`mote` handed over a partial of a slice that has not begun by the reporting mote's clock."""

    mote: MoteId


EventPayload: TypeAlias = (
    MissingBlocks | RefusedImage | LostFrames | ReadingCounts | ClockMoved | DroppedPartial | ClocksDiffer
)


def encode_event(event: EventPayload) -> bytes:
    """Encode the payload of an EVENT."""
    match event:
        case MissingBlocks(kind, stamp, missing):
            bits = sum(1 << block for block in missing)
            head = _encode_stamp(EventCode.MISSING_BLOCKS, kind, stamp)
            return head + bits.to_bytes(max(missing, default=-1) // 8 + 1, "little")
        case RefusedImage(kind, stamp):
            return _encode_stamp(EventCode.REFUSED_IMAGE, kind, stamp)
        case LostFrames(boot, gaps):
            return bytes((EventCode.LOST_FRAMES,)) + boot.to_bytes(2, "little") + _encode_gaps(gaps)
        case ReadingCounts(sampling, first, epochs, sampled, filtered, merged, dropped):
            counts = COUNTS.pack(sampling, first, epochs, sampled, filtered, merged, dropped)
            return bytes((EventCode.READING_COUNTS,)) + counts
        case ClockMoved(by_ms):
            return bytes((EventCode.CLOCK_MOVED,)) + by_ms.to_bytes(6, "little", signed=True)
        case DroppedPartial(mote, boot, seq):
            return bytes((EventCode.DROPPED_PARTIAL,)) + IDENTITY.pack(mote, boot, seq)
        case ClocksDiffer(mote):
            return bytes((EventCode.CLOCKS_DIFFER,)) + mote.to_bytes(2, "little")


def decode_event(payload: bytes) -> EventPayload:
    """Decode the payload of an EVENT. Raises FrameError with code `payload`."""
    code, rest = payload[:1], payload[1:]
    try:
        match EventCode(code[0]):
            case EventCode.MISSING_BLOCKS:
                kind, stamp = _decode_stamp(rest)
                bits = int.from_bytes(rest[STAMP.size :], "little")
                if len(rest) != STAMP.size + (bits.bit_length() + 7) // 8 or bits.bit_length() > 256:
                    raise ValueError("invalid block bits")
                return MissingBlocks(kind, stamp, frozenset(n for n in range(bits.bit_length()) if bits >> n & 1))
            case EventCode.REFUSED_IMAGE if len(rest) == STAMP.size:
                return RefusedImage(*_decode_stamp(rest))
            case EventCode.LOST_FRAMES if len(rest) > 2:
                return LostFrames(int.from_bytes(rest[:2], "little"), _decode_gaps(rest[2:]))
            case EventCode.READING_COUNTS:
                return ReadingCounts(*COUNTS.unpack(rest))
            case EventCode.CLOCK_MOVED if len(rest) == 6:
                return ClockMoved(int.from_bytes(rest, "little", signed=True))
            case EventCode.DROPPED_PARTIAL:
                return DroppedPartial(*IDENTITY.unpack(rest))
            case EventCode.CLOCKS_DIFFER if len(rest) == 2:
                return ClocksDiffer(int.from_bytes(rest, "little"))
    except (IndexError, ValueError, struct.error) as error:
        raise FrameError("payload", f"{payload.hex()} is not an EVENT: {error}", payload) from error
    raise FrameError("payload", f"{payload.hex()} is not an EVENT", payload)


def _encode_stamp(code: EventCode, kind: FrameKind, stamp: Stamp) -> bytes:
    return bytes((code,)) + STAMP.pack(kind, stamp.version, stamp.digest)


def _decode_stamp(rest: bytes) -> tuple[FrameKind, Stamp]:
    kind, version, digest = STAMP.unpack_from(rest)
    if kind not in IMAGES:
        raise ValueError(f"frames of kind {kind} carry no image")
    return FrameKind(kind), Stamp(version, digest)


def annotate_event(event: EventPayload) -> Iterator[tuple[int, str]]:
    """Yield (size in bytes, meaning) of each field."""
    yield 1, type(event).__name__
    match event:
        case MissingBlocks(kind, stamp) | RefusedImage(kind, stamp):
            yield 1, f"of its {kind.name}"
            yield 2, f"version {stamp.version}"
            yield 2, f"digest {stamp.digest:#06x}"
            if isinstance(event, MissingBlocks) and event.missing:
                yield max(event.missing) // 8 + 1, f"blocks {', '.join(map(str, sorted(event.missing)))}"
        case LostFrames(boot, gaps):
            yield 2, f"of boot {boot}"
            yield from _annotate_gaps(gaps, "lost")
        case ReadingCounts():
            yield 1, f"sampling {event.sampling}"
            yield 4, f"from epoch {event.first_epoch} on"
            yield 2, f"{event.epochs} epochs"
            for name in ("sampled", "filtered", "merged", "dropped"):
                yield 2, f"{getattr(event, name)} {name}"
        case ClockMoved(by_ms):
            yield 6, f"by {by_ms} ms"
        case DroppedPartial(mote, boot, seq):
            yield 2, f"of mote {mote}"
            yield 2, f"of its boot {boot}"
            yield 2, f"seq {seq}"
        case ClocksDiffer(mote):
            yield 2, f"from that of mote {mote}"

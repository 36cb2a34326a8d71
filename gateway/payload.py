"""The payloads that the gateway itself understands: HELLO, ACK and EVENT. SPEC.md has the bits.

What is in them are numbers: versions, places, counts. What a sensor or a sampling is stays with the layers above.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from gateway.errors import FrameError
from gateway.frame import MAX_PAYLOAD, FrameKind
from gateway.image import NO_IMAGE, Stamp

HELLO, COUNTS, STAMP = struct.Struct("<BHHHHHH6sB"), struct.Struct("<BIHHHHH"), struct.Struct("<BHH")
RANGE, IDENTITY = struct.Struct("<HH"), struct.Struct("<HHH")
NO_CLOCK = b"\xff" * 6
MAX_SENSORS = (MAX_PAYLOAD - HELLO.size) // 2


def gap_capacity(room: int) -> int:
    """How many gaps a payload of so many bytes can name."""
    return (room - 4) // RANGE.size


MAX_GAPS = gap_capacity(MAX_PAYLOAD)
IMAGES = (FrameKind.SCHEDULE, FrameKind.PROGRAM)

Gaps = tuple[tuple[int, int], ...]
"""Numbers as inclusive ranges, ascending."""


class HelloReason(IntEnum):
    """Why a mote says hello."""

    SWITCHED_ON = 0
    RESET = 1
    BROWN_OUT = 2
    WATCHDOG = 3
    ASKED = 4
    INSTALLED = 5
    FORSAKEN = 6


@dataclass(frozen=True, slots=True)
class Hello:
    """A mote about itself: what it is, what is installed, what time it believes it is (None: it has no clock yet).

    `hardware` and `sensors` are codes made of names. A HELLO downward is empty; it asks for one upward.
    """

    reason: HelloReason
    hardware: int
    battery_mv: int
    schedule: Stamp = NO_IMAGE
    program: Stamp = NO_IMAGE
    clock_ms: int | None = None
    sensors: tuple[int, ...] = ()


def encode_hello(hello: Hello) -> bytes:
    clock = NO_CLOCK if hello.clock_ms is None else hello.clock_ms.to_bytes(6, "little")
    sensors = hello.sensors[:MAX_SENSORS]
    return HELLO.pack(
        hello.reason, hello.hardware, hello.battery_mv,
        hello.schedule.version, hello.schedule.digest, hello.program.version, hello.program.digest,
        clock, len(sensors),
    ) + struct.pack(f"<{len(sensors)}H", *sensors)  # fmt: skip


def decode_hello(payload: bytes) -> Hello:
    """FrameError `payload` if it is none."""
    if len(payload) < HELLO.size or len(payload) != HELLO.size + 2 * payload[HELLO.size - 1]:
        raise FrameError("payload", f"{len(payload)} bytes are no HELLO", payload)
    reason, hardware, battery, v, d, w, e, clock, count = HELLO.unpack_from(payload)
    if reason not in HelloReason._value2member_map_:
        raise FrameError("payload", f"nobody says hello for reason {reason}", payload)
    ms = None if clock == NO_CLOCK else int.from_bytes(clock, "little")
    sensors = struct.unpack_from(f"<{count}H", payload, HELLO.size)
    return Hello(HelloReason(reason), hardware, battery, Stamp(v, d), Stamp(w, e), ms, sensors)


def annotate_hello(hello: Hello) -> Iterator[tuple[int, str]]:
    yield 1, f"because {hello.reason.name.lower().replace('_', ' ')}"
    yield 2, f"hardware {hello.hardware:#06x}"
    yield 2, f"battery at {hello.battery_mv} mV"
    for what, stamp in (("schedule", hello.schedule), ("program", hello.program)):
        yield 2, f"{what} version {stamp.version}" if stamp.version else f"no {what}"
        yield 2, f"digest {stamp.digest:#06x}"
    yield 6, "no clock" if hello.clock_ms is None else f"its clock says {hello.clock_ms} ms since tick 0"
    yield 1, f"{len(hello.sensors)} sensors"
    for sensor in hello.sensors:
        yield 2, f"sensor {sensor:#06x}"


# --- ACK -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SelectiveAck:
    """An ACK with a payload: the base station tells a mote that all its frames of a boot up to the header's seq came,
    but for these. The mote forgets those that came, sends the others again, and says Lost of those it has no more."""

    gaps: Gaps = ()


def encode_selective_ack(account: SelectiveAck) -> bytes:
    """The oldest gaps, as many as one frame holds."""
    return _encode_gaps(account.gaps)


def decode_selective_ack(payload: bytes) -> SelectiveAck:
    return SelectiveAck(_decode_gaps(payload))


def annotate_selective_ack(account: SelectiveAck) -> Iterator[tuple[int, str]]:
    yield from _annotate_gaps(account.gaps, "asked for")


def _encode_gaps(gaps: Gaps) -> bytes:
    gaps = gaps[:MAX_GAPS]
    return bytes((len(gaps),)) + b"".join(RANGE.pack(*gap) for gap in gaps)


def _decode_gaps(payload: bytes) -> Gaps:
    if not payload or len(payload) != 1 + RANGE.size * payload[0]:
        raise FrameError("payload", f"{len(payload)} bytes do not hold their gaps", payload)
    gaps = tuple(RANGE.iter_unpack(payload[1:]))
    ends = [-1, *(end for gap in gaps for end in gap)]
    if any(b < a for a, b in gaps) or any(gap[0] <= before for gap, before in zip(gaps, ends[::2], strict=False)):
        raise FrameError("payload", f"{gaps} are not ascending", payload)
    return gaps


def _annotate_gaps(gaps: Gaps, what: str) -> Iterator[tuple[int, str]]:
    yield 1, f"{len(gaps)} ranges"
    for first, last in gaps:
        yield 2, f"{what} from seq {first}"
        yield 2, f"to seq {last}"


# --- EVENT -----------------------------------------------------------------------------------------------------------


class EventCode(IntEnum):
    """The first byte of an EVENT."""

    WANTS = 1
    REFUSED = 2
    LOST = 3
    COUNTS = 4
    CLOCK_MOVED = 5
    DROPPED_COPY = 6
    CLOCKS_DIFFER = 7


@dataclass(frozen=True, slots=True)
class MissingBlocks:
    """An image is on its way and these of its blocks have not come."""

    kind: FrameKind
    stamp: Stamp
    missing: frozenset[int]


@dataclass(frozen=True, slots=True)
class RefusedImage:
    """An image came whole and the mote cannot take it: it is too large for it, or makes no sense there."""

    kind: FrameKind
    stamp: Stamp


@dataclass(frozen=True, slots=True)
class LostFrames:
    """These numbers of one boot of the mote will not come: given up, or no longer in its memory."""

    boot: int
    gaps: Gaps


@dataclass(frozen=True, slots=True)
class ReadingCounts:
    """What became of the readings of some epochs of a sampling, by the mote's own counters.

    due = sampled + not sampled; sampled = sent + filtered + merged + dropped (what the mote had no room to keep).
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
    """A TIME moved the mote's clock by more than a tick; the readings stamped before it are off by that."""

    by_ms: int


@dataclass(frozen=True, slots=True)
class DroppedCopy:
    """A partial that was offered again was dropped: the mote has lost its memory and may have had it before."""

    mote: int
    boot: int
    seq: int


@dataclass(frozen=True, slots=True)
class ClocksDiffer:
    """This mote has handed over a partial of a slice that has not begun by the clock of the one who says so."""

    mote: int


EventPayload = MissingBlocks | RefusedImage | LostFrames | ReadingCounts | ClockMoved | DroppedCopy | ClocksDiffer


def encode_event(event: EventPayload) -> bytes:
    match event:
        case MissingBlocks(kind, stamp, missing):
            bits = sum(1 << block for block in missing)
            return _stamped(EventCode.WANTS, kind, stamp) + bits.to_bytes(max(missing, default=-1) // 8 + 1, "little")
        case RefusedImage(kind, stamp):
            return _stamped(EventCode.REFUSED, kind, stamp)
        case LostFrames(boot, gaps):
            return bytes((EventCode.LOST,)) + boot.to_bytes(2, "little") + _encode_gaps(gaps)
        case ReadingCounts(sampling, first, epochs, sampled, filtered, merged, dropped):
            return bytes((EventCode.COUNTS,)) + COUNTS.pack(sampling, first, epochs, sampled, filtered, merged, dropped)
        case ClockMoved(by_ms):
            return bytes((EventCode.CLOCK_MOVED,)) + by_ms.to_bytes(6, "little", signed=True)
        case DroppedCopy(mote, boot, seq):
            return bytes((EventCode.DROPPED_COPY,)) + IDENTITY.pack(mote, boot, seq)
        case ClocksDiffer(mote):
            return bytes((EventCode.CLOCKS_DIFFER,)) + mote.to_bytes(2, "little")


def decode_event(payload: bytes) -> EventPayload:
    """FrameError `payload` if it is none."""
    code, rest = payload[:1], payload[1:]
    try:
        match EventCode(code[0]):
            case EventCode.WANTS:
                kind, stamp = _unstamped(rest)
                bits = int.from_bytes(rest[STAMP.size :], "little")
                if len(rest) != STAMP.size + (bits.bit_length() + 7) // 8 or bits.bit_length() > 256:
                    raise ValueError("blocks that are none")
                return MissingBlocks(kind, stamp, frozenset(n for n in range(bits.bit_length()) if bits >> n & 1))
            case EventCode.REFUSED if len(rest) == STAMP.size:
                return RefusedImage(*_unstamped(rest))
            case EventCode.LOST if len(rest) > 2:
                return LostFrames(int.from_bytes(rest[:2], "little"), _decode_gaps(rest[2:]))
            case EventCode.COUNTS:
                return ReadingCounts(*COUNTS.unpack(rest))
            case EventCode.CLOCK_MOVED if len(rest) == 6:
                return ClockMoved(int.from_bytes(rest, "little", signed=True))
            case EventCode.DROPPED_COPY:
                return DroppedCopy(*IDENTITY.unpack(rest))
            case EventCode.CLOCKS_DIFFER if len(rest) == 2:
                return ClocksDiffer(int.from_bytes(rest, "little"))
    except (IndexError, ValueError, struct.error) as error:
        raise FrameError("payload", f"{payload.hex()} is no EVENT: {error}", payload) from error
    raise FrameError("payload", f"{payload.hex()} is no EVENT", payload)


def _stamped(code: EventCode, kind: FrameKind, stamp: Stamp) -> bytes:
    return bytes((code,)) + STAMP.pack(kind, stamp.version, stamp.digest)


def _unstamped(rest: bytes) -> tuple[FrameKind, Stamp]:
    kind, version, digest = STAMP.unpack_from(rest)
    if kind not in IMAGES:
        raise ValueError(f"kind {kind} has no images")
    return FrameKind(kind), Stamp(version, digest)


def annotate_event(event: EventPayload) -> Iterator[tuple[int, str]]:
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
            yield from _annotate_gaps(gaps, "will not come")
        case ReadingCounts():
            yield 1, f"sampling {event.sampling}"
            yield 4, f"from epoch {event.first_epoch} on"
            yield 2, f"{event.epochs} epochs"
            for name in ("sampled", "filtered", "merged", "dropped"):
                yield 2, f"{getattr(event, name)} {name}"
        case ClockMoved(by_ms):
            yield 6, f"by {by_ms} ms"
        case DroppedCopy(mote, boot, seq):
            yield 2, f"a partial of mote {mote}"
            yield 2, f"of its boot {boot}"
            yield 2, f"under its seq {seq}"
        case ClocksDiffer(mote):
            yield 2, f"from that of mote {mote}"

"""The bits of the payloads READING, SCHEDULE and TIME. Integers are little-endian, bits are filled from the lowest.

SCHEDULE  an image (`gateway.image`): samplings u8; each: number u8, channels u8, start tick u48, interval u32;
          each channel: sensor u16, bits u8
TIME      milliseconds since tick 0 u48, milliseconds per tick u32
READING   sampling u8, first epoch u32, count u6, NULLS bit, WIDE bit; then for each reading, packed without gaps:
          with NULLS one bit per channel (1: no value), then each channel's value in two's complement,
          in the channel's bits or, with WIDE, in 32. Zero bits fill the last byte.

Readings have neither names nor types on the air, and one frame holds those of consecutive epochs. Widths are fixed per
sampling so that a million frames are decoded by a few array operations; a value that does not fit makes its frame wide
instead of being cut.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from acquisition.errors import PayloadError, ScheduleError
from acquisition.instants import Epochs
from acquisition.schedule import REGISTER_BITS, Channel, Sampling, Schedule
from gateway.frame import MAX_PAYLOAD, Frame
from gateway.image import Image

READING_HEADER = struct.Struct("<BIB")
MAX_COUNT, NULLS, WIDE = 0x3F, 0x40, 0x80
CHANNEL = struct.Struct("<HB")
MAX_SCHEDULE = 144
"""The bytes that motes keep a schedule in: eleven samplings of one channel, or four of eight but for one."""

Row = tuple[int | None, ...]


# --- READING ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Readings:
    """Decoded readings of one sampling, columnar. `value[:, c]` and `null[:, c]` are channel c's."""

    sampling: Sampling
    site: np.ndarray
    tick: np.ndarray
    value: np.ndarray
    null: np.ndarray


def encode_readings(sampling: Sampling, first_epoch: int, rows: Sequence[Row]) -> bytes:
    """The readings of consecutive epochs, as a mote sends them."""
    nulls = any(value is None for row in rows for value in row)
    wide = any(
        value is not None and not _fits(value, channel.bits)
        for row in rows
        for value, channel in zip(row, sampling.channels, strict=True)
    )
    bits, at = 0, 0
    for row in rows:
        if nulls:
            bits |= sum(1 << c for c, value in enumerate(row) if value is None) << at
            at += len(row)
        for value, width in zip(row, _widths(sampling.channels, wide), strict=True):
            bits |= ((value or 0) & ((1 << width) - 1)) << at
            at += width
    flags = (NULLS if nulls else 0) | (WIDE if wide else 0)
    return READING_HEADER.pack(sampling.number, first_epoch, len(rows) | flags) + bits.to_bytes(-(-at // 8), "little")


def capacity(sampling: Sampling) -> int:
    """How many readings fit into one frame whatever their values are."""
    worst = len(sampling.channels) * (1 + REGISTER_BITS)
    room = 8 * (MAX_PAYLOAD - READING_HEADER.size)
    return min(MAX_COUNT, room // worst) if worst else MAX_COUNT


def decode_readings(
    frames: Sequence[Frame], samplings: Mapping[int, Sampling]
) -> tuple[list[Readings], list[PayloadError]]:
    """The readings in READING frames, and what is wrong with the frames that have none."""
    groups: dict[tuple[int, int], list[Frame]] = {}
    errors = []
    for frame in frames:
        try:
            groups.setdefault(_shape(frame, samplings), []).append(frame)
        except PayloadError as error:
            errors.append(error)
    decoded = [_decode_alike(found, samplings[number], flags) for (number, flags), found in groups.items()]
    return decoded, errors


def annotate_reading(payload: bytes, sampling: Sampling) -> Iterator[tuple[int, str]]:
    """What the bytes of a READING mean, for `gateway.describe`."""
    _, epoch, flags = READING_HEADER.unpack_from(payload)
    words = [f"{flags & MAX_COUNT} readings"]
    words += [word for bit, word in ((NULLS, "with null bits"), (WIDE, "wide")) if flags & bit]
    yield 1, f"sampling {sampling.number} ({sampling.extent})"
    yield 4, f"first epoch {epoch} (tick {sampling.epochs.tick(epoch)})"
    yield 1, ", ".join(words)
    channels = zip(sampling.channels, _widths(sampling.channels, bool(flags & WIDE)), strict=True)
    yield len(payload) - READING_HEADER.size, ", ".join(f"{c.attribute} in {bits} bits" for c, bits in channels)


def _shape(frame: Frame, samplings: Mapping[int, Sampling]) -> tuple[int, int]:
    """(sampling, flags with count): frames that agree in it are decoded together. PayloadError if it is nonsense."""
    if len(frame.payload) < READING_HEADER.size:
        raise PayloadError("short", frame.mote, f"a READING of {len(frame.payload)} bytes")
    number, _, flags = READING_HEADER.unpack_from(frame.payload)
    if (sampling := samplings.get(number)) is None:
        raise PayloadError("sampling", frame.mote, f"there is no sampling {number}")
    count = flags & MAX_COUNT
    if count == 0:
        raise PayloadError("empty", frame.mote, "a READING without readings")
    size = READING_HEADER.size + -(-count * _row_bits(sampling, flags) // 8)
    if len(frame.payload) != size:
        raise PayloadError("size", frame.mote, f"a READING of {len(frame.payload)} bytes that must have {size}")
    return number, flags


def _decode_alike(frames: list[Frame], sampling: Sampling, flags: int) -> Readings:
    count, row_bits, width = flags & MAX_COUNT, _row_bits(sampling, flags), len(sampling.channels)
    body = b"".join(frame.payload[READING_HEADER.size :] for frame in frames)
    bits = np.unpackbits(np.frombuffer(body, np.uint8).reshape(len(frames), -1), axis=1, bitorder="little")
    rows = bits[:, : count * row_bits].reshape(len(frames) * count, row_bits)
    at = width if flags & NULLS else 0
    null = rows[:, :at].astype(bool) if at else np.zeros((len(rows), width), bool)
    value = np.zeros((len(rows), width), np.int64)
    for c, bits_ in enumerate(_widths(sampling.channels, bool(flags & WIDE))):
        unsigned = rows[:, at : at + bits_] @ (np.int64(1) << np.arange(bits_, dtype=np.int64))
        value[:, c] = unsigned - ((unsigned >> (bits_ - 1)) << bits_)
        at += bits_
    first = np.array([READING_HEADER.unpack_from(frame.payload)[1] for frame in frames], np.int64)
    epoch = (first[:, None] + np.arange(count)).ravel()
    return Readings(
        sampling,
        site=np.repeat(np.array([frame.mote for frame in frames], np.int64), count),
        tick=sampling.epochs.start + epoch * sampling.epochs.interval,
        value=value,
        null=null,
    )


def _row_bits(sampling: Sampling, flags: int) -> int:
    nulls = len(sampling.channels) if flags & NULLS else 0
    return nulls + sum(_widths(sampling.channels, bool(flags & WIDE)))


def _widths(channels: Sequence[Channel], wide: bool) -> list[int]:
    return [REGISTER_BITS if wide else channel.bits for channel in channels]


def _fits(value: int, bits: int) -> bool:
    return -(1 << (bits - 1)) <= value < 1 << (bits - 1)


# --- SCHEDULE and TIME -----------------------------------------------------------------------------------------------


def encode_schedule(schedule: Schedule) -> Image:
    """ScheduleError where a mote has no room for it."""
    parts = [bytes((len(schedule.samplings),))]
    for sampling in schedule.samplings:
        parts.append(bytes((sampling.number, len(sampling.channels))))
        parts.append(sampling.epochs.start.to_bytes(6, "little"))
        parts.append(sampling.epochs.interval.to_bytes(4, "little"))
        parts += [CHANNEL.pack(channel.sensor, channel.bits) for channel in sampling.channels]
    content = b"".join(parts)
    if len(content) > MAX_SCHEDULE:
        names = ", ".join(sampling.extent for sampling in schedule.samplings)
        raise ScheduleError(names, f"the schedule of site {schedule.site} has {len(content)} bytes, a mote has room "
                                   f"for {MAX_SCHEDULE}; sample fewer columns", "SN606")  # fmt: skip
    return Image(schedule.version, content)


def decode_schedule(image: Image, site: int) -> Schedule:
    """A schedule as its mote understands it: extents and attributes have no names there."""
    content = image.content
    try:
        at, samplings = 1, []
        for _ in range(content[0]):
            number, width = content[at], content[at + 1]
            start = int.from_bytes(content[at + 2 : at + 8], "little")
            interval = int.from_bytes(content[at + 8 : at + 12], "little")
            at += 12
            channels = []
            for _ in range(width):
                channels.append(Channel("", *CHANNEL.unpack_from(content, at)))
                at += CHANNEL.size
            samplings.append(Sampling(number, "", Epochs(start, interval), tuple(channels)))
    except (struct.error, IndexError) as error:
        raise PayloadError("short", site, f"a SCHEDULE of {len(content)} bytes ends too early") from error
    if at != len(content):
        raise PayloadError("size", site, f"a SCHEDULE with {len(content) - at} bytes after its end")
    if any(s.epochs.interval == 0 or any(not 1 <= c.bits <= REGISTER_BITS for c in s.channels) for s in samplings):
        raise PayloadError("range", site, "a SCHEDULE with an interval of 0 or a width outside 1 to 32")
    return Schedule(site, image.version, tuple(samplings))


def annotate_schedule(schedule: Schedule) -> Iterator[tuple[int, str]]:
    """What the bytes of a SCHEDULE's image mean, for `gateway.describe`."""
    yield 1, f"{len(schedule.samplings)} samplings"
    for sampling in schedule.samplings:
        yield 1, f"sampling {sampling.number} ({sampling.extent})"
        yield 1, f"{len(sampling.channels)} channels"
        yield 6, f"from tick {sampling.epochs.start}"
        yield 4, f"every {sampling.epochs.interval} ticks"
        for channel in sampling.channels:
            yield 2, f"sensor {channel.sensor:#06x} for {channel.attribute}"
            yield 1, f"in {channel.bits} bits"


def encode_time(now_ms: int, tick_ms: int) -> bytes:
    return now_ms.to_bytes(6, "little") + tick_ms.to_bytes(4, "little")


def decode_time(payload: bytes, site: int) -> tuple[int, int]:
    """(milliseconds since tick 0, milliseconds per tick)."""
    if len(payload) != 10 or payload[6:] == bytes(4):
        raise PayloadError("size", site, f"a TIME of {len(payload)} bytes, or of ticks without length")
    return int.from_bytes(payload[:6], "little"), int.from_bytes(payload[6:], "little")


def annotate_time(payload: bytes) -> Iterator[tuple[int, str]]:
    now_ms, tick_ms = decode_time(payload, 0)
    yield 6, f"{now_ms} ms since tick 0"
    yield 4, f"{tick_ms} ms per tick"

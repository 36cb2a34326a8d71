"""The payloads READING, SCHEDULE and TIME, to the bit. Integers are little-endian; bits count from the lowest.

SCHEDULE  an image (`gateway.image`): samplings u8; each: number u8, channels u8, start tick u48, interval u32;
          each channel: sensor u16, bits u8
TIME      milliseconds since tick 0 u48, milliseconds per tick u32
READING   sampling u8, first epoch u32, flags u8 (NULLS, WIDE, FILTERED), count u8; then without gaps:
          with FILTERED one bit per epoch (1: the reading was filtered and is absent); then for each reading present,
          with NULLS one bit per channel (1: no value), then each channel's value in two's complement,
          in the channel's bits or, with WIDE, in 32. Zero bits fill the last byte.

Readings have neither names nor types on the air. One frame holds readings of consecutive epochs. Widths are fixed for
each sampling, so a few array operations decode a million readings of any number of frames. A value that does not fit
makes its frame wide; it is never cut.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from acquisition.bit_reader import BitReader
from acquisition.errors import PayloadError, ScheduleError
from acquisition.schedule import REGISTER_BITS, Sampling, Schedule, SensorChannel
from acquisition.ticks import EpochGrid
from gateway.frame import MAX_PAYLOAD, Frame
from gateway.image import Image

READING_HEADER = struct.Struct("<BIBB")
MAX_COUNT = 255
NULLS, WIDE, FILTERED = 0x01, 0x02, 0x04
MAX_FILTER_REPORT_INTERVAL = 10
"""The most epochs after which a mote reports what it filtered (semantics 12.3)."""
CHANNEL = struct.Struct("<HB")
MAX_SCHEDULE = 144
"""Bytes of the largest schedule of a mote: eleven samplings of one channel each, or three of eight."""

LAST_TICK = 1 << 62
"""Readings with later ticks are invalid; with them, tick arithmetic could overflow int64."""

Row: TypeAlias = tuple[int | None, ...]
"""The values of one reading, one for each channel; None for no value."""


# --- READING ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Readings:
    """Decoded readings of one sampling, as columns.

    `site` and `tick` have one entry for each reading. `value` and `null` are (readings, channels). `filtered_site` and
    `filtered_tick` have one entry for each reading that a mote sampled and filtered.
    """

    sampling: Sampling
    site: IntArray
    tick: IntArray
    value: IntArray
    null: BoolArray
    filtered_site: IntArray
    filtered_tick: IntArray


def encode_readings(sampling: Sampling, first_epoch: int, rows: Sequence[Row | None]) -> bytes:
    """Encode the readings of consecutive epochs as a mote sends them; None stands for a filtered reading."""
    here = [row for row in rows if row is not None]
    filtered = len(here) < len(rows)
    nulls = any(value is None for row in here for value in row)
    wide = any(
        value is not None and not _fits(value, channel.bits)
        for row in here
        for value, channel in zip(row, sampling.channels, strict=True)
    )
    bits, at = 0, 0
    if filtered:
        bits, at = sum(1 << k for k, row in enumerate(rows) if row is None), len(rows)
    for row in here:
        if nulls:
            bits |= sum(1 << c for c, value in enumerate(row) if value is None) << at
            at += len(row)
        for value, width in zip(row, _widths(sampling.channels, wide), strict=True):
            bits |= ((value or 0) & ((1 << width) - 1)) << at
            at += width
    flags = (NULLS if nulls else 0) | (WIDE if wide else 0) | (FILTERED if filtered else 0)
    return READING_HEADER.pack(sampling.number, first_epoch, flags, len(rows)) + bits.to_bytes(-(-at // 8), "little")


def epochs_per_frame(sampling: Sampling, room: int = MAX_PAYLOAD) -> int:
    """Return how many readings fit into a payload of `room` bytes, whatever their values are."""
    worst = 1 + len(sampling.channels) * (1 + REGISTER_BITS)
    return min(MAX_COUNT, 8 * (room - READING_HEADER.size) // worst)


def filter_report_interval(sampling: Sampling) -> int:
    """Return after how many epochs a mote reports what it filtered, if it sends nothing else: before that fills a frame."""
    return min(MAX_FILTER_REPORT_INTERVAL, epochs_per_frame(sampling))


def epoch_range_of(frame: Frame) -> tuple[int, int, int] | None:
    """Return (sampling, first epoch, number of epochs) of a READING frame; None if it is too short."""
    if len(frame.payload) < READING_HEADER.size:
        return None
    number, first, _, count = READING_HEADER.unpack_from(frame.payload)
    return number, first, count


def decode_readings(
    frames: Sequence[Frame], samplings: Mapping[int, Sampling]
) -> tuple[list[Readings], list[PayloadError]]:
    """Decode READING frames; return the readings of each sampling, and the errors of invalid frames.

    `samplings` are the known samplings by number.
    """
    groups: dict[int, list[Frame]] = {}
    decoded, errors = [], []
    for frame in frames:
        if len(frame.payload) < READING_HEADER.size:
            errors.append(PayloadError("short", frame.mote, f"a READING of {len(frame.payload)} bytes"))
        elif frame.payload[0] not in samplings:
            errors.append(PayloadError("sampling", frame.mote, f"unknown sampling {frame.payload[0]}"))
        else:
            groups.setdefault(frame.payload[0], []).append(frame)
    for number, found in groups.items():
        packed = _ReadingPayloads(found, samplings[number])
        errors += packed.errors()
        if packed.good.any():
            decoded.append(packed.readings())
    return decoded, errors


class _ReadingPayloads:
    """The READING payloads of one sampling, and the positions of the bits of each epoch in them.

    Arrays in lower case with one entry for each frame: mote, first, flags, count, body, fits, sane, good; with one
    entry for each epoch of each frame: owner (its frame), epoch (its number in the frame), out (filtered), at (the
    position of its bits).
    """

    def __init__(self, frames: Sequence[Frame], sampling: Sampling) -> None:
        self.frames, self.sampling = frames, sampling
        self.mote = np.fromiter((frame.mote for frame in frames), np.int64, len(frames))
        self.bits = BitReader([frame.payload for frame in frames])
        start = self.bits.start
        self.first, self.flags, self.count = (
            self.bits.take(start + at, width) for at, width in ((8, 32), (40, 8), (48, 8))
        )
        self.body = start + 8 * READING_HEADER.size
        self._place()

    def _place(self) -> None:
        """Compute the arrays for each epoch, and which frames are valid."""
        channels, count = self.sampling.channels, self.count
        wide, nulls, filtered = ((self.flags & flag) > 0 for flag in (WIDE, NULLS, FILTERED))
        narrow = sum(channel.bits for channel in channels)
        row_bits = np.where(wide, REGISTER_BITS * len(channels), narrow) + nulls * len(channels)
        self.owner = np.repeat(np.arange(len(count)), count)
        before = np.cumsum(count) - count
        self.epoch = np.arange(len(self.owner)) - before[self.owner]
        self.out = np.zeros(len(self.owner), bool)
        if filtered.any():
            flagged = np.flatnonzero(filtered[self.owner])
            self.out[flagged] = self.bits.take(self.body[self.owner[flagged]] + self.epoch[flagged], 1)
        here = np.cumsum(~self.out) - ~self.out  # readings before this one, over all frames
        first_here = np.append(here, np.count_nonzero(~self.out))
        kept = first_here[before + count] - first_here[before]
        rank = here - first_here[before][self.owner]
        used = filtered * count + kept * row_bits
        self.at = (self.body + filtered * count)[self.owner] + rank * row_bits[self.owner]
        self.fits = self.bits.size == READING_HEADER.size + -(-used // 8)
        epochs = self.sampling.epochs
        self.sane = (self.flags <= NULLS | WIDE | FILTERED) & (
            self.first <= (LAST_TICK - epochs.start) // epochs.interval
        )
        self.good = self.fits & self.sane & (count > 0)

    def errors(self) -> Iterator[PayloadError]:
        """Yield one error for each invalid frame."""
        for at in np.flatnonzero(~self.good).tolist():
            mote, size = self.frames[at].mote, len(self.frames[at].payload)
            if self.count[at] == 0:
                yield PayloadError("empty", mote, "a READING without readings")
            elif not self.fits[at]:
                yield PayloadError(
                    "size", mote, f"a READING of {size} bytes does not match its {self.count[at]} epochs"
                )
            else:
                fields = f"flags {self.flags[at]:#04x} and first epoch {self.first[at]}"
                yield PayloadError("range", mote, f"a READING with {fields}")

    def readings(self) -> Readings:
        """Return the readings of the valid frames."""
        epochs = self.sampling.epochs
        good = self.good[self.owner]
        here, out = np.flatnonzero(good & ~self.out), np.flatnonzero(good & self.out)
        site, tick = self.mote[self.owner], epochs.start + (self.first[self.owner] + self.epoch) * epochs.interval
        value, null = self._values(self.at[here], self.flags[self.owner[here]])
        return Readings(self.sampling, site[here], tick[here], value, null, site[out], tick[out])

    def _values(self, at: IntArray, flags: IntArray) -> tuple[IntArray, BoolArray]:
        """Return values and nulls, each (readings, channels), of the readings at the positions `at`."""
        channels = self.sampling.channels
        value, null = np.empty((len(at), len(channels)), np.int64), np.zeros((len(at), len(channels)), bool)
        if (nulls := (flags & NULLS) > 0).any():
            for c in range(len(channels)):
                null[:, c] = nulls & (self.bits.take(at + c, 1) > 0)
            at = at + nulls * len(channels)
        wide = (flags & WIDE) > 0
        for c, channel in enumerate(channels):
            bits = np.where(wide, REGISTER_BITS, channel.bits) if wide.any() else channel.bits
            value[:, c] = self.bits.take_signed(at, bits)
            at = at + bits
        return value, null


def annotate_reading(payload: bytes, sampling: Sampling) -> Iterator[tuple[int, str]]:
    """Yield (size in bytes, meaning) of each field of a READING, for `gateway.frame_annotation`."""
    _, epoch, flags, count = READING_HEADER.unpack_from(payload)
    words = [f"a filter bit for each of {count} epochs"] if flags & FILTERED else []
    words += [f"a null bit for each of {len(sampling.channels)} channels"] if flags & NULLS else []
    channels = zip(sampling.channels, _widths(sampling.channels, bool(flags & WIDE)), strict=True)
    words += [f"{c.attribute} in {bits} bits" for c, bits in channels]
    set_ = [word for bit, word in ((NULLS, "nulls"), (WIDE, "wide"), (FILTERED, "filtered")) if flags & bit]
    yield 1, f"sampling {sampling.number} ({sampling.extent})"
    yield 4, f"first epoch {epoch} (tick {sampling.epochs.tick(epoch)})"
    yield 1, ", ".join(set_) or "no flags"
    yield 1, f"{count} epochs"
    yield len(payload) - READING_HEADER.size, ", ".join(words)


def _widths(channels: Sequence[SensorChannel], wide: bool) -> list[int]:
    return [REGISTER_BITS if wide else channel.bits for channel in channels]


def _fits(value: int, bits: int) -> bool:
    return -(1 << (bits - 1)) <= value < 1 << (bits - 1)


# --- SCHEDULE and TIME -----------------------------------------------------------------------------------------------


def encode_schedule(schedule: Schedule) -> Image:
    """Encode a schedule as an image. Raises ScheduleError if it is too large for a mote."""
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
    """Decode a schedule as its mote knows it, with empty names of extents and attributes. Raises PayloadError."""
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
                channels.append(SensorChannel("", *CHANNEL.unpack_from(content, at)))
                at += CHANNEL.size
            samplings.append(Sampling(number, "", EpochGrid(start, interval), tuple(channels)))
    except (struct.error, IndexError) as error:
        raise PayloadError("short", site, f"a SCHEDULE of {len(content)} bytes ends inside a sampling") from error
    if at != len(content):
        raise PayloadError("size", site, f"a SCHEDULE with {len(content) - at} bytes after its end")
    if any(s.epochs.interval == 0 or any(not 1 <= c.bits <= REGISTER_BITS for c in s.channels) for s in samplings):
        raise PayloadError("range", site, "a SCHEDULE with an interval of 0 or a width outside 1 to 32")
    return Schedule(site, image.version, tuple(samplings))


def annotate_schedule(schedule: Schedule) -> Iterator[tuple[int, str]]:
    """Yield (size in bytes, meaning) of each field of a schedule's image."""
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
    """Encode the payload of a TIME: milliseconds since tick 0, milliseconds per tick."""
    return now_ms.to_bytes(6, "little") + tick_ms.to_bytes(4, "little")


def decode_time(payload: bytes, site: int) -> tuple[int, int]:
    """Return (milliseconds since tick 0, milliseconds per tick). Raises PayloadError."""
    if len(payload) != 10 or payload[6:] == bytes(4):
        raise PayloadError(
            "size", site, f"expected a TIME of 10 bytes with a tick longer than 0 ms, found {payload.hex()}"
        )
    return int.from_bytes(payload[:6], "little"), int.from_bytes(payload[6:], "little")


def annotate_time(payload: bytes) -> Iterator[tuple[int, str]]:
    """Yield (size in bytes, meaning) of each field of a TIME."""
    now_ms, tick_ms = decode_time(payload, 0)
    yield 6, f"{now_ms} ms since tick 0"
    yield 4, f"{tick_ms} ms per tick"

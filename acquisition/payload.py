"""The bits of the payloads READING, SCHEDULE and TIME. Integers are little-endian, bits are filled from the lowest.

SCHEDULE  an image (`gateway.image`): samplings u8; each: number u8, channels u8, start tick u48, interval u32;
          each channel: sensor u16, bits u8
TIME      milliseconds since tick 0 u48, milliseconds per tick u32
READING   sampling u8, first epoch u32, flags u8 (NULLS, WIDE, FILTERED), count u8; then without gaps:
          with FILTERED one bit per epoch (1: the reading was filtered and is not here); then for each reading that is
          here, with NULLS one bit per channel (1: no value), then each channel's value in two's complement,
          in the channel's bits or, with WIDE, in 32. Zero bits fill the last byte.

Readings have neither names nor types on the air, and one frame holds those of consecutive epochs. Widths are fixed per
sampling so that a million readings are decoded by a few array operations, however they are spread over frames; a value
that does not fit makes its frame wide instead of being cut.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

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
"""The most epochs after which a mote says what it filtered (SEMANTICS 12.3)."""
CHANNEL = struct.Struct("<HB")
MAX_SCHEDULE = 144
"""The bytes that motes keep a schedule in: eleven samplings of one channel each, or three of eight."""

LAST_TICK = 1 << 62
"""Later ones are nobody's, and would not fit into the columns."""

Row = tuple[int | None, ...]


# --- READING ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Readings:
    """Decoded readings of one sampling, columnar. `value[:, c]` and `null[:, c]` are channel c's.

    `filtered_site` and `filtered_tick` say which readings were measured and not sent, because no query wants them.
    """

    sampling: Sampling
    site: np.ndarray
    tick: np.ndarray
    value: np.ndarray
    null: np.ndarray
    filtered_site: np.ndarray
    filtered_tick: np.ndarray


def encode_readings(sampling: Sampling, first_epoch: int, rows: Sequence[Row | None]) -> bytes:
    """The readings of consecutive epochs, as a mote sends them; None is one that was filtered."""
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
    """The readings of how many epochs fit into one payload whatever their values are."""
    worst = 1 + len(sampling.channels) * (1 + REGISTER_BITS)
    return min(MAX_COUNT, 8 * (room - READING_HEADER.size) // worst)


def filter_report_interval(sampling: Sampling) -> int:
    """After how many epochs a mote says what it filtered, if it has nothing else to say: before that fills a frame."""
    return min(MAX_FILTER_REPORT_INTERVAL, epochs_per_frame(sampling))


def epoch_range_of(frame: Frame) -> tuple[int, int, int] | None:
    """(sampling, first epoch, how many) of the readings in a READING frame; None if it is too short to say."""
    if len(frame.payload) < READING_HEADER.size:
        return None
    number, first, _, count = READING_HEADER.unpack_from(frame.payload)
    return number, first, count


def decode_readings(
    frames: Sequence[Frame], samplings: Mapping[int, Sampling]
) -> tuple[list[Readings], list[PayloadError]]:
    """The readings in READING frames, all of one sampling at once, and what is wrong with the frames that have none."""
    groups: dict[int, list[Frame]] = {}
    decoded, errors = [], []
    for frame in frames:
        if len(frame.payload) < READING_HEADER.size:
            errors.append(PayloadError("short", frame.mote, f"a READING of {len(frame.payload)} bytes"))
        elif frame.payload[0] not in samplings:
            errors.append(PayloadError("sampling", frame.mote, f"there is no sampling {frame.payload[0]}"))
        else:
            groups.setdefault(frame.payload[0], []).append(frame)
    for number, found in groups.items():
        packed = _ReadingPayloads(found, samplings[number])
        errors += packed.errors()
        if packed.good.any():
            decoded.append(packed.readings())
    return decoded, errors


class _ReadingPayloads:
    """The payloads of one sampling one behind the other, and where in them the bits of each epoch are."""

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
        """Of each epoch: its frame, its number there, whether it was filtered, and the place of its reading's bits."""
        channels, count = self.sampling.channels, self.count
        wide, nulls, filtered = ((self.flags & flag) > 0 for flag in (WIDE, NULLS, FILTERED))
        narrow = sum(channel.bits for channel in channels)
        row_bits = np.where(wide, REGISTER_BITS * len(channels), narrow) + nulls * len(channels)
        self.owner = np.repeat(np.arange(len(count)), count)
        before = np.cumsum(count) - count
        self.epoch = np.arange(len(self.owner)) - before[self.owner]
        self.out = np.zeros(len(self.owner), bool)
        if filtered.any():
            asked = np.flatnonzero(filtered[self.owner])
            self.out[asked] = self.bits.take(self.body[self.owner[asked]] + self.epoch[asked], 1)
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
        for at in np.flatnonzero(~self.good).tolist():
            mote, size = self.frames[at].mote, len(self.frames[at].payload)
            if self.count[at] == 0:
                yield PayloadError("empty", mote, "a READING without readings")
            elif not self.fits[at]:
                yield PayloadError("size", mote, f"a READING of {size} bytes, which its {self.count[at]} do not take")
            else:
                said = f"flags {self.flags[at]:#04x} and first epoch {self.first[at]}"
                yield PayloadError("range", mote, f"a READING with {said}")

    def readings(self) -> Readings:
        epochs = self.sampling.epochs
        good = self.good[self.owner]
        here, out = np.flatnonzero(good & ~self.out), np.flatnonzero(good & self.out)
        site, tick = self.mote[self.owner], epochs.start + (self.first[self.owner] + self.epoch) * epochs.interval
        value, null = self._values(self.at[here], self.flags[self.owner[here]])
        return Readings(self.sampling, site[here], tick[here], value, null, site[out], tick[out])

    def _values(self, at: np.ndarray, flags: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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
    """What the bytes of a READING mean, for `gateway.frame_annotation`."""
    _, epoch, flags, count = READING_HEADER.unpack_from(payload)
    words = [f"one bit for each of {count} epochs: was it filtered"] if flags & FILTERED else []
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
                channels.append(SensorChannel("", *CHANNEL.unpack_from(content, at)))
                at += CHANNEL.size
            samplings.append(Sampling(number, "", EpochGrid(start, interval), tuple(channels)))
    except (struct.error, IndexError) as error:
        raise PayloadError("short", site, f"a SCHEDULE of {len(content)} bytes ends too early") from error
    if at != len(content):
        raise PayloadError("size", site, f"a SCHEDULE with {len(content) - at} bytes after its end")
    if any(s.epochs.interval == 0 or any(not 1 <= c.bits <= REGISTER_BITS for c in s.channels) for s in samplings):
        raise PayloadError("range", site, "a SCHEDULE with an interval of 0 or a width outside 1 to 32")
    return Schedule(site, image.version, tuple(samplings))


def annotate_schedule(schedule: Schedule) -> Iterator[tuple[int, str]]:
    """What the bytes of a SCHEDULE's image mean, for `gateway.frame_annotation`."""
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

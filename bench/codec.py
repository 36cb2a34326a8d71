"""How many frames, and how many readings in them, a second of one core takes through the codec, both ways.

`python -m bench.codec` prints one line per figure and appends them to bench/results/codec.csv.
"""

import time

from acquisition.payload import decode_readings, encode_readings
from acquisition.schedule import Sampling, SensorChannel
from acquisition.ticks import EpochGrid
from bench import record
from gateway.codec import FrameDecoder, encode_stream
from gateway.frame import Frame, FrameKind
from innet.operators.slices import SlicePattern
from innet.partials import Partial, PartialShape
from innet.payload import decode_partial_frames, decode_partials, encode_partials

FRAMES, PER_FRAME, ROUNDS = 20_000, 8, 5
SAMPLING = Sampling(0, "field", EpochGrid(0, 10), (SensorChannel("temp", 1, 15), SensorChannel("volt", 2, 16)))
MIXED_ROWS = ([(2000, 2987)], [(2000, None)] * 3, [(100_000, 2987)] * 4, [(2000, 2987), None] * 4)
# The mean and the maximum of 54 motes, by group, as they are sent up to the base station: two fit into a frame.
SHAPE = PartialShape(0, tuple(range(1, 55)), 1, ("SUM", "MAX"), SlicePattern(30, 0, 0))
PARTIALS = [Partial(1000, 2**54 - 1, 54, (group,), ((54, 54 * 2000), (1, 2990))) for group in range(2)]


def one_by_one(frame):
    """The readings of one frame by the obvious loop: what the columns are compared with."""
    bits, found = int.from_bytes(frame.payload[7:], "little"), []
    for at in range(frame.payload[6]):
        row = []
        for channel in SAMPLING.channels:
            value, bits = bits & ((1 << channel.bits) - 1), bits >> channel.bits
            row.append(value - (1 << channel.bits) if value >> (channel.bits - 1) else value)
        epoch = int.from_bytes(frame.payload[1:5], "little") + at
        found.append((frame.mote, SAMPLING.epochs.tick(epoch), tuple(row)))
    return found


def best(work):
    """The shortest of a few rounds: what disturbs a measurement only ever adds time."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def decode_stream(stream):
    decoder = FrameDecoder()
    for at in range(0, len(stream), 4096):
        decoder.receive_bytes(stream[at : at + 4096])
    frames = []
    for event in decoder.events():
        frames.append(event)
    return frames


def main():
    rows = [(2000 + n, 2987) for n in range(PER_FRAME)]
    payload = encode_readings(SAMPLING, 0, rows)
    frames = [Frame(FrameKind.READING, n % 60000, 1, n % 65536, payload) for n in range(FRAMES)]
    stream = b"".join(encode_stream(frame) for frame in frames)
    assert decode_stream(stream) == frames
    # Frames of a lossy network: one to eight readings in a frame, some null, some wide, some filtered.
    payloads = [encode_readings(SAMPLING, 0, found) for found in MIXED_ROWS]
    mixed = [Frame(FrameKind.READING, n % 60000, 1, n % 65536, payloads[n % 4]) for n in range(FRAMES)]
    [partial] = encode_partials(SHAPE, PARTIALS)
    partials = [Frame(FrameKind.PARTIAL, n % 60000, 1, n % 65536, partial) for n in range(FRAMES)]
    assert [one_by_one(frame) for frame in frames[:2]] == [
        [(n, 10 * at, row) for at, row in enumerate(rows)] for n in (0, 1)
    ]
    readings = FRAMES * PER_FRAME
    figures = [
        ("frames encoded", FRAMES, best(lambda: [encode_stream(frame) for frame in frames])),
        ("frames decoded", FRAMES, best(lambda: decode_stream(stream))),
        ("readings encoded", readings, best(lambda: [encode_readings(SAMPLING, 0, rows) for _ in frames])),
        ("readings decoded", readings, best(lambda: decode_readings(frames, {0: SAMPLING}))),
        ("readings one by one", readings, best(lambda: [one_by_one(frame) for frame in frames])),
        (
            "mixed decoded",
            sum(map(len, MIXED_ROWS)) * len(mixed) // 4,
            best(lambda: decode_readings(mixed, {0: SAMPLING})),
        ),
        ("partials decoded", 2 * FRAMES, best(lambda: decode_partial_frames(partials, {0: SHAPE}))),
        ("partials one by one", 2 * FRAMES, best(lambda: [decode_partials(partial, SHAPE, 1) for _ in frames])),
    ]
    rates = [(what, round(count / seconds)) for what, count, seconds in figures]
    for what, rate in rates:
        print(f"{what:<20}{rate:>12,} per second")
    case = f"{FRAMES} frames of {PER_FRAME} readings"
    record.keep_figures("codec", "default", [(case, what, rate, "per second") for what, rate in rates])


if __name__ == "__main__":
    main()

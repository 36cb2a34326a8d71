"""How many frames, and how many readings in them, a second of one core takes through the codec, both ways.

Prints one line per figure and appends them to bench/results/codec.csv.
"""

import csv
import platform
import time
from datetime import UTC, datetime
from pathlib import Path

from acquisition.instants import Epochs
from acquisition.payload import decode_readings, encode_readings
from acquisition.schedule import Channel, Sampling
from gateway.codec import NEED_DATA, FrameDecoder, encode_stream
from gateway.frame import Frame, Kind

FRAMES, PER_FRAME, ROUNDS = 20_000, 8, 5
RESULTS = Path(__file__).parent / "results" / "codec.csv"
SAMPLING = Sampling(0, "field", Epochs(0, 10), (Channel("temp", 1, 15), Channel("volt", 2, 16)))
MIXED_ROWS = ([(2000, 2987)], [(2000, None)] * 3, [(100_000, 2987)] * 4, [(2000, 2987), None] * 4)


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
    while (event := decoder.next_event()) is not NEED_DATA:
        frames.append(event)
    return frames


def main():
    rows = [(2000 + n, 2987) for n in range(PER_FRAME)]
    payload = encode_readings(SAMPLING, 0, rows)
    frames = [Frame(Kind.READING, n % 60000, 1, n % 65536, payload) for n in range(FRAMES)]
    stream = b"".join(encode_stream(frame) for frame in frames)
    assert decode_stream(stream) == frames
    # What a lossy network brings: one to eight readings in a frame, some null, some wide, some filtered.
    payloads = [encode_readings(SAMPLING, 0, found) for found in MIXED_ROWS]
    mixed = [Frame(Kind.READING, n % 60000, 1, n % 65536, payloads[n % 4]) for n in range(FRAMES)]
    readings = FRAMES * PER_FRAME
    figures = [
        ("frames encoded", FRAMES, best(lambda: [encode_stream(frame) for frame in frames])),
        ("frames decoded", FRAMES, best(lambda: decode_stream(stream))),
        ("readings encoded", readings, best(lambda: [encode_readings(SAMPLING, 0, rows) for _ in frames])),
        ("readings decoded", readings, best(lambda: decode_readings(frames, {0: SAMPLING}))),
        ("by single frames", readings, best(lambda: [decode_readings([frame], {0: SAMPLING}) for frame in frames])),
        (
            "mixed decoded",
            sum(map(len, MIXED_ROWS)) * len(mixed) // 4,
            best(lambda: decode_readings(mixed, {0: SAMPLING})),
        ),
    ]
    new = not RESULTS.exists()
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(["when", "machine", "python", "what", "per second"])
        when = datetime.now(UTC).isoformat(timespec="seconds")
        for what, count, seconds in figures:
            rate = round(count / seconds)
            writer.writerow([when, platform.machine(), platform.python_version(), what, rate])
            print(f"{what:<18}{rate:>12,} per second")


if __name__ == "__main__":
    main()

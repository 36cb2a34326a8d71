"""One annotated frame of each kind that exists, byte for byte. MOTELOOM_REWRITE=1 writes the files anew; read the diff.

The other way round the files are what a reader of SPEC.md may check a decoder against, so they are decoded as well.
"""

import os
from pathlib import Path

import pytest

from acquisition.instants import Epochs
from acquisition.payload import (
    annotate_reading,
    annotate_schedule,
    annotate_time,
    decode_readings,
    decode_schedule,
    encode_readings,
    encode_schedule,
    encode_time,
)
from acquisition.schedule import Channel, Sampling, Schedule, sensor_code
from gateway.codec import decode, encode
from gateway.describe import describe
from gateway.frame import Frame, Kind
from gateway.link import acknowledgement
from innet.payload import annotate_links, annotate_program, decode_links, decode_program, encode_links, encode_program
from innet.program.program import MoteProgram
from innet.routing.topology import Heard, LinksReport

FOLDER = Path(__file__).parent
SAMPLING = Sampling(
    2, "field", Epochs(1_763_452_800, 10),
    (Channel("temp", sensor_code("temperature"), 15), Channel("volt", sensor_code("volt"), 16)),
)  # fmt: skip
SCHEDULE = Schedule(3, 7, (SAMPLING,))
PROGRAM = MoteProgram(3, 2, 7, 2, bytes.fromhex("0100 0200 0101 0201 00"))
REPORT = LinksReport(3, (Heard(0, 255), Heard(4, 128)))
ROWS = [(2010, 2987), (None, 2986), (-1, 2986)]


def reading(rows):
    payload = encode_readings(SAMPLING, 6, rows)
    return Frame(Kind.READING, 3, 1, 25, payload), annotate_reading(payload, SAMPLING)


def cases():
    time = encode_time(1_763_452_795_250, 1000)
    plain, nulls, wide = reading(ROWS[:1]), reading(ROWS), reading([(100_000, -70_000)])
    return {
        "schedule": (Frame(Kind.SCHEDULE, 3, 9, 0, encode_schedule(SCHEDULE), down=True), annotate_schedule(SCHEDULE)),
        "program": (Frame(Kind.PROGRAM, 3, 9, 1, encode_program(PROGRAM), down=True), annotate_program(PROGRAM)),
        "time": (Frame(Kind.TIME, 3, 9, 2, time, down=True, want_ack=False), annotate_time(time)),
        "reading": plain,
        "reading_with_nulls": nulls,
        "reading_wide": wide,
        "links": (Frame(Kind.LINKS, 3, 1, 0, encode_links(REPORT)), annotate_links(REPORT)),
        "ack": (acknowledgement(plain[0]), ()),
        "sealed": (Frame(Kind.EVENT, 3, 1, 26, b"\x01\x02", seal=bytes(range(8))), ()),
    }


@pytest.mark.parametrize("name", cases())
def test_frames_are_what_they_were(name):
    frame, payload = cases()[name]
    file = FOLDER / f"{name}.txt"
    text = describe(frame, payload) + "\n"
    if os.environ.get("MOTELOOM_REWRITE"):
        file.write_text(text)
    assert text == file.read_text()


def golden(name):
    lines = (FOLDER / f"{name}.txt").read_text().splitlines()
    return decode(bytes.fromhex("".join(line.split("x ", 1)[1].split("  ")[0] for line in lines)))


def test_what_the_files_say_is_what_was_meant():
    decoded = decode_schedule(golden("schedule").payload, 3)
    assert (decoded.version, decoded.samplings[0].epochs) == (7, SAMPLING.epochs)
    assert [(c.sensor, c.bits) for c in decoded.samplings[0].channels] == [
        (c.sensor, c.bits) for c in SAMPLING.channels
    ]
    assert decode_program(golden("program").payload, 3) == PROGRAM
    assert decode_links(golden("links").payload, 3) == REPORT
    for name, rows in (("reading", ROWS[:1]), ("reading_with_nulls", ROWS), ("reading_wide", [(100_000, -70_000)])):
        [readings], errors = decode_readings([golden(name)], {2: SAMPLING})
        values = [tuple(None if n else v for v, n in zip(*pair, strict=True))
                  for pair in zip(readings.value.tolist(), readings.null.tolist(), strict=True)]  # fmt: skip
        assert (values, errors) == (rows, [])
        assert readings.tick.tolist() == [SAMPLING.epochs.tick(6 + at) for at in range(len(rows))]


def test_every_file_is_a_case():
    assert {file.stem for file in FOLDER.glob("*.txt")} == set(cases())


def test_the_bytes_in_a_file_are_the_whole_frame():
    for name, (frame, _) in cases().items():
        assert encode(golden(name)) == encode(frame)

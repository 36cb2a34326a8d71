"""One annotated frame of each kind, byte for byte. MOTELOOM_REWRITE=1 rewrites the files; read the diff.

Readers of SPEC.md may check a decoder against the files, so the tests decode them as well.
"""

import os
from dataclasses import replace
from pathlib import Path

import pytest

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
from acquisition.schedule import Sampling, Schedule, SensorChannel, sensor_code
from acquisition.ticks import EpochGrid
from gateway.codec import decode, encode
from gateway.frame import MAX_PAYLOAD, Frame, FrameKind
from gateway.frame_annotation import annotate_frame
from gateway.image import BLOCK, Stamp, annotate_chunk, decode_chunk, encode_chunk, split_into_chunks
from gateway.installer import Installer
from gateway.link import make_ack
from gateway.payload import (
    ClockMoved,
    ClocksDiffer,
    DroppedPartial,
    Hello,
    HelloReason,
    LostFrames,
    MissingBlocks,
    ReadingCounts,
    RefusedImage,
    SelectiveAck,
    annotate_event,
    annotate_hello,
    annotate_selective_ack,
    decode_event,
    decode_hello,
    decode_selective_ack,
    encode_event,
    encode_hello,
    encode_selective_ack,
)
from innet.operators.slices import SlicePattern
from innet.partials import Partial, PartialShape
from innet.payload import (
    MoteAssignment,
    RadioSchedule,
    annotate_assignment,
    annotate_links,
    annotate_partials,
    decode_assignment,
    decode_links,
    decode_partials,
    encode_assignment,
    encode_links,
    encode_partials,
)
from innet.placement.agenda import Activity, Slot
from innet.placement.round_pattern import RoundPattern
from innet.program.mote_program import MoteProgram
from innet.routing.topology import LinksReport, NeighbourLink

FOLDER = Path(__file__).parent
SAMPLING = Sampling(
    2, "field", EpochGrid(1_763_452_800, 10),
    (SensorChannel("temp", sensor_code("temperature"), 15), SensorChannel("volt", sensor_code("volt"), 16)),
)  # fmt: skip
SCHEDULE = Schedule(3, 7, (SAMPLING,))
ORDERS = MoteAssignment((MoteProgram(3, 2, 7, 2, bytes.fromhex("0100 0200 0101 0201 00")),), parent=4)
TIMED = MoteAssignment(
    parent=4,
    radio_schedule=RadioSchedule(
        30_000, (Slot(100, 40, Activity.RECEIVE, 9), Slot(150, 20, Activity.SEND, 4)), 60, 90, RoundPattern(10, 9, 5), 2
    ),
)
LONG = MoteAssignment(
    tuple(MoteProgram(3, n, 7, 2, bytes.fromhex("0100 0200 0101 0201 00")) for n in range(6)), parent=4
)
REPORT = LinksReport(3, (NeighbourLink(0, 255), NeighbourLink(4, 128)))
ROWS = [(2010, 2987), (None, 2986), (-1, 2986)]
HELLO = Hello(
    HelloReason.INSTALLED, 0xB05A, 2987, Stamp(7, 0x1234), Stamp(7, 0x5678), 1_763_452_795_250, (0x2B00, 0xA2E2)
)
ACCOUNT = SelectiveAck(((3, 3), (7, 9)))
AVERAGES = PartialShape(5, (3, 4, 6, 9), 1, ("SUM", "MAX"), SlicePattern(60, 0, 0))
PARTIALS = [
    Partial(1200, 0b0101, 2, (7,), ((2, 4021), (1, 2990))),
    Partial(1200, 0b0010, 1, (None,), ((1, -350), (0, 0))),
    Partial(1201, 0b1000, 1),
]
EVENTS = {
    "missing_blocks": MissingBlocks(FrameKind.PROGRAM, Stamp(7, 0x5678), frozenset({1, 2, 9})),
    "refused_image": RefusedImage(FrameKind.SCHEDULE, Stamp(7, 0x1234)),
    "lost_frames": LostFrames(1, ((3, 3), (8, 9))),
    "reading_counts": ReadingCounts(2, 6, 10, sampled=10, filtered=3, merged=0, dropped=1),
    "clock_moved": ClockMoved(-86_400_000),
    "clocks_differ": ClocksDiffer(9),
    "dropped_partial": DroppedPartial(9, 1, 0xFFFC),
}


def reading(rows):
    payload = encode_readings(SAMPLING, 6, rows)
    return Frame(FrameKind.READING, 3, 1, 25, payload), annotate_reading(payload, SAMPLING)


def chunk(kind, image, at, meaning, seq):
    """Return one chunk of an image in a frame, and its annotations."""
    found = split_into_chunks(image, MAX_PAYLOAD)[at]
    frame = Frame(kind, 3, 9, seq, encode_chunk(found), down=True)
    return frame, (*annotate_chunk(found, kind.name.lower()), *meaning)


def cases():
    time = encode_time(1_763_452_795_250, 1000)
    plain, nulls, wide = reading(ROWS[:1]), reading(ROWS), reading([(100_000, -70_000)])
    program, long = encode_assignment(7, ORDERS), encode_assignment(7, LONG)
    [partial] = encode_partials(AVERAGES, PARTIALS)
    answered = replace(plain[0], sender=4)  # mote 4 forwarded it
    events = {
        f"event_{name}": (Frame(FrameKind.EVENT, 3, 1, 26, encode_event(event)), annotate_event(event))
        for name, event in EVENTS.items()
    }
    return {
        "hello": (Frame(FrameKind.HELLO, 3, 1, 0, encode_hello(HELLO), receiver=0xFFFF), annotate_hello(HELLO)),
        "hello_request": (Frame(FrameKind.HELLO, 3, 9, 3, down=True), ()),
        "schedule": chunk(FrameKind.SCHEDULE, encode_schedule(SCHEDULE), 0, annotate_schedule(SCHEDULE), 0),
        "program": chunk(FrameKind.PROGRAM, program, 0, annotate_assignment(ORDERS), 1),
        "program_with_agenda": chunk(FrameKind.PROGRAM, encode_assignment(8, TIMED), 0, annotate_assignment(TIMED), 5),
        "program_second_chunk": chunk(FrameKind.PROGRAM, long, 1, (), 2),
        "routed": (replace(Frame(FrameKind.HELLO, 3, 9, 4, down=True), receiver=8, route=(4, 3)), ()),
        "time": (Frame(FrameKind.TIME, 3, 9, 2, time, down=True, want_ack=False), annotate_time(time)),
        "reading": plain,
        "reading_with_nulls": nulls,
        "reading_wide": wide,
        "reading_filtered": reading([None, (2010, 2987), None]),
        "reading_more_pending": (replace(answered, pending=True), annotate_reading(answered.payload, SAMPLING)),
        "reading_forwarded": (answered, annotate_reading(answered.payload, SAMPLING)),
        "partial": (Frame(FrameKind.PARTIAL, 3, 1, 0xFFFC, partial), annotate_partials(AVERAGES, PARTIALS)),
        "partial_repeated": (Frame(FrameKind.PARTIAL, 3, 1, 0xFFFC, partial, repeated=True), annotate_partials(AVERAGES, PARTIALS)),
        "links": (Frame(FrameKind.LINKS, 3, 1, 0, encode_links(REPORT)), annotate_links(REPORT)),
        "ack": (make_ack(answered), ()),
        "ack_pending": (replace(make_ack(answered), sender=8, pending=True), ()),
        "ack_poll": (Frame(FrameKind.ACK, 3, 0, 0, receiver=4), ()),
        "ack_with_gaps": (
            Frame(FrameKind.ACK, 3, 1, 25, encode_selective_ack(ACCOUNT), down=True, want_ack=False), annotate_selective_ack(ACCOUNT)),
        "sealed": (Frame(FrameKind.EVENT, 3, 1, 26, encode_event(EVENTS["lost_frames"]), seal=bytes(range(8))),
                   annotate_event(EVENTS["lost_frames"])),
        **events,
    }  # fmt: skip


@pytest.mark.promise("frames")
@pytest.mark.parametrize("name", cases())
def test_frame_matches_its_golden_file(name):
    frame, payload = cases()[name]
    file = FOLDER / f"{name}.txt"
    text = annotate_frame(frame, payload) + "\n"
    if os.environ.get("MOTELOOM_REWRITE"):
        file.write_text(text)
    assert text == file.read_text()


def golden(name):
    lines = [line for line in (FOLDER / f"{name}.txt").read_text().splitlines() if not line.startswith(" ")]
    return decode(bytes.fromhex("".join(line.split("x ", 1)[1].split("  ")[0] for line in lines)))


def test_golden_bytes_decode_to_the_original_values():
    decoded = decode_schedule(Installer().take(golden("schedule")), 3)
    assert (decoded.version, decoded.samplings[0].epochs) == (7, SAMPLING.epochs)
    assert [(c.sensor, c.bits) for c in decoded.samplings[0].channels] == [
        (c.sensor, c.bits) for c in SAMPLING.channels
    ]
    assert decode_assignment(Installer().take(golden("program")), 3) == ORDERS
    timed = Installer().take(golden("program_with_agenda"))
    assert decode_assignment(timed, 3) == TIMED
    second = decode_chunk(golden("program_second_chunk").payload)
    assert second.content == encode_assignment(7, LONG).content[second.first * BLOCK :]
    assert decode_links(golden("links").payload, 3) == REPORT
    assert decode_hello(golden("hello").payload) == HELLO
    assert decode_selective_ack(golden("ack_with_gaps").payload) == ACCOUNT
    assert decode_partials(golden("partial").payload, AVERAGES, 3) == PARTIALS
    assert {name: decode_event(golden(f"event_{name}").payload) for name in EVENTS} == EVENTS
    assert golden("routed").route == (4, 3)
    for name, rows in (("reading", ROWS[:1]), ("reading_with_nulls", ROWS), ("reading_wide", [(100_000, -70_000)])):
        [readings], errors = decode_readings([golden(name)], {2: SAMPLING})
        values = [tuple(None if n else v for v, n in zip(*pair, strict=True))
                  for pair in zip(readings.value.tolist(), readings.null.tolist(), strict=True)]  # fmt: skip
        assert (values, errors) == (rows, [])
        assert readings.tick.tolist() == [SAMPLING.epochs.tick(6 + at) for at in range(len(rows))]


def test_every_golden_file_has_a_case():
    assert {file.stem for file in FOLDER.glob("*.txt")} == set(cases())


def test_golden_bytes_are_the_whole_frame():
    for name, (frame, _) in cases().items():
        assert encode(golden(name)) == encode(frame)

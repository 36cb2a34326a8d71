"""Partials, assignments and link reports survive encoding; malformed payloads are refused."""

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.errors import PayloadError
from gateway.frame import MAX_PAYLOAD, Frame, FrameKind
from gateway.image import Image
from innet.aggregates.state_fields import extract_fields
from innet.operators.slices import SlicePattern
from innet.partials import MAX_SLOTS, Partial, PartialShape
from innet.payload import (
    MoteAssignment,
    RadioSchedule,
    decode_assignment,
    decode_partial_frames,
    decode_partials,
    encode_assignment,
    encode_partials,
    first_slice,
)
from innet.payload.partial import MAX_SPAN, UNSIGNED, size_of
from innet.placement.agenda import Activity, Agenda, SiteAgenda, Slot
from innet.placement.round_pattern import RoundPattern
from innet.uplink import receive_partials

KINDS = ("COUNT", "SUM", "VARIANCE", "MIN", "MAX", "FIRST", "LAST")
slots = st.integers(1, 12) | st.sampled_from([MAX_SLOTS, MAX_SLOTS + 1])
shapes = st.builds(
    PartialShape, st.integers(0, 255), slots.map(lambda n: tuple(range(1, n + 1))), st.integers(0, 2),
    st.lists(st.sampled_from(KINDS), max_size=2).map(tuple), st.just(SlicePattern(10, 0, 0)),
)  # fmt: skip
INT32 = st.integers(-(2**31), 2**31 - 1)


def number(field):
    """A value of a field, or nearly one."""
    if field.name in UNSIGNED:
        return st.integers(0, 2**field.bits - 1)
    return st.integers(-(2 ** (field.bits - 1)), 2 ** (field.bits - 1) - 1)


def partials_of(shape, slices):
    who = st.integers(0, 2 ** len(shape.slots) - 1 if shape.has_bitmap else 2**32 - 1)
    group = st.tuples(*[st.none() | INT32] * shape.keys)
    states = st.tuples(*[st.tuples(*map(number, layout)) for layout in shape.layouts])
    whole = st.builds(Partial, slices, who, st.integers(0, 2**32 - 1), group, states)
    return whole | st.builds(Partial, slices, who, st.integers(0, 2**32 - 1))


@st.composite
def told(draw, most=12):
    shape = draw(shapes)
    first = draw(st.integers(0, 2**48 - 1000))
    return shape, draw(st.lists(partials_of(shape, st.integers(first, first + 999)), min_size=1, max_size=most))


def order(partial):
    return partial.slice, partial.bare, repr(partial)


@pytest.mark.promise("frames")
@given(told())
def test_partials_survive_encoding_in_fewest_frames(case):
    """No two neighbouring frames would fit into one."""
    shape, partials = case
    payloads = encode_partials(shape, partials)
    found = [decode_partials(payload, shape, 3) for payload in payloads]
    assert sorted((p for one in found for p in one), key=order) == sorted(partials, key=order)
    assert [first_slice(payload) for payload in payloads] == [min(p.slice for p in one) for one in found]
    assert all(len(payload) <= MAX_PAYLOAD for payload in payloads if payload[7] + payload[8] > 1)
    for one, next_ in pairwise(found):
        both = [*one, min(next_, key=lambda p: p.slice)]
        bare = sum(partial.bare for partial in both)
        span = max(p.slice for p in both) - min(p.slice for p in both)
        assert size_of(shape, len(both) - bare, bare) > MAX_PAYLOAD or span >= MAX_SPAN


def of_columns(found):
    """The partials of columns, one by one."""
    for at in range(len(found.slice)):
        bits = [int(bit) for bit in found.contributors[at]]
        who = sum(bit << slot for slot, bit in enumerate(bits)) if found.shape.has_bitmap else bits[0]
        partial = (int(found.slice[at]), who, int(found.readings[at]))
        if at >= found.whole:
            yield int(found.sender[at]), Partial(*partial)
            continue
        key, null = found.key[at].tolist(), found.null[at].tolist()
        group = tuple(None if n else k for k, n in zip(key, null, strict=True))
        states = tuple(tuple(int(field[at]) for field in fields) for fields in found.fields)
        yield int(found.sender[at]), Partial(*partial, group, states)


@pytest.mark.promise("frames")
@given(told(), st.data())
def test_many_frames_decode_as_one_by_one(case, data):
    """Some of the frames are damaged."""
    shape, partials = case
    payloads = encode_partials(shape, partials)
    payloads += [
        bytes([shape.aggregation]) + data.draw(st.binary(max_size=60)) for _ in range(data.draw(st.integers(0, 3)))
    ]
    frames = [Frame(FrameKind.PARTIAL, mote, 1, 0, payload) for mote, payload in enumerate(payloads, start=1)]
    expected, wrong = [], []
    for frame in frames:
        try:
            expected += [(frame.mote, partial) for partial in decode_partials(frame.payload, shape, frame.mote)]
        except PayloadError as error:
            wrong.append((error.mote, error.code))
    found, errors = receive_partials(frames, {shape.aggregation: shape})
    pairs = [pair for columns in found for pair in of_columns(columns)]
    assert sorted(pairs, key=lambda p: (p[0], *order(p[1]))) == sorted(expected, key=lambda p: (p[0], *order(p[1])))
    assert sorted((error.mote, error.code) for error in errors) == sorted(wrong)


SHAPE = PartialShape(4, (3, 4), 0, ("SUM", "VARIANCE", "MIN"), SlicePattern(10, 0, 0))


@pytest.mark.promise("frames")
def test_decoded_columns_become_aggregate_states():
    large = (2**31 - 1) ** 2 * 3
    rows = [((2, -7), (3, 9, large), (1, -5)), ((0, 0), (0, 0, 0), (0, 0))]
    partials = [Partial(7, 1, 2, (), row) for row in rows]
    [payload] = encode_partials(SHAPE, partials, room=200)
    [found], _ = decode_partial_frames([Frame(FrameKind.PARTIAL, 3, 1, 0, payload)], {4: SHAPE})
    for kind, state, at in zip(SHAPE.kinds, found.states(), range(3), strict=True):
        assert extract_fields(kind, state) == [row[at] for row in rows]


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (b"", "short"),
        (b"\x04" + bytes(7), "short"),
        (b"\x04" + bytes(8), "size"),
        (b"\x05" + bytes(8), "aggregation"),
        (encode_partials(SHAPE, [Partial(7, 1, 2)])[0] + b"\0", "size"),
    ],
)
def test_malformed_partial_is_reported(payload, code):
    good = Frame(FrameKind.PARTIAL, 3, 1, 1, encode_partials(SHAPE, [Partial(7, 1, 2)])[0])
    [found], errors = receive_partials([Frame(FrameKind.PARTIAL, 9, 1, 0, payload), good], {4: SHAPE})
    assert [(error.mote, error.code) for error in errors] == [(9, code)]
    assert (found.slice.tolist(), found.contributors.tolist(), found.readings.tolist()) == ([7], [[True, False]], [2])
    with pytest.raises(PayloadError) as caught:
        decode_partials(payload, SHAPE, 9)
    assert caught.value.code == code


def test_radio_schedule_survives_encoding():
    sent = Slot(700, 20, Activity.SEND, 4)
    slots = (Slot(0, 5, Activity.SENSE), Slot(100, 40, Activity.RECEIVE, 9), Slot(650, 3, Activity.COMPUTE), sent)
    agenda = Agenda(1, 1000, {3: SiteAgenda(3, 4, slots)}, first=2, rounds=RoundPattern(10, 9, 5))
    orders = MoteAssignment(parent=4, radio_schedule=RadioSchedule.of(agenda, 3))
    assert decode_assignment(encode_assignment(1, orders), 3) == orders
    assert orders.radio_schedule.slots == (slots[1], sent)
    assert (orders.radio_schedule.period_ms, orders.radio_schedule.first, orders.radio_schedule.repeat_ms) == (
        1000,
        2,
        20,
    )
    assert (orders.radio_schedule.rounds, orders.radio_schedule.poll_phase) == (RoundPattern(10, 9, 5), 1)


def agenda(*slots, period=1000, rounds=(1, 0, 0, 0)):
    head = struct.pack("<IIIIIBB", period, 0, 0, *rounds)
    body = head + b"".join(struct.pack("<BIHH", *slot) for slot in slots)
    return bytes.fromhex("02 0200 0400 03") + len(body).to_bytes(2, "little") + body


@pytest.mark.parametrize(
    "content",
    [
        agenda((3, 0, 1, 4)),
        agenda((1, 10, 5, 4), (1, 14, 5, 6)),
        agenda((1, 990, 11, 4)),
        agenda((1, 10, 5, 4), rounds=(0, 0, 0, 0)),
        agenda((1, 10, 5, 4), rounds=(3, 3, 0, 0)),
        agenda((1, 10, 5, 4), rounds=(3, 2, 5, 5)),
        agenda((1, 10, 5, 4), rounds=(3, 2, 0, 1)),
        agenda((1, 10, 5, 4)) + agenda((1, 10, 5, 4))[5:],
        bytes.fromhex("02 0200 0400 03 0100 ff"),
        bytes.fromhex("02 0200 0700"),
        bytes.fromhex("02 0200 0400 02 0200 0500"),
        bytes.fromhex("01 0000"),
        bytes.fromhex("02 0300 0400 00"),
        bytes.fromhex("02 02"),
    ],
)
def test_malformed_assignment_is_refused(content):
    found = decode_assignment(Image(1, agenda((1, 10, 5, 4), (1, 15, 5, 6), rounds=(3, 2, 5, 4))), site=7)
    assert (found.radio_schedule.rounds, found.radio_schedule.poll_phase) == (RoundPattern(3, 2, 5), 4)
    with pytest.raises(PayloadError):
        decode_assignment(Image(1, content), site=7)


@pytest.mark.promise("frames")
@given(st.lists(st.tuples(st.integers(0, 4), st.binary(max_size=13)), max_size=4), st.binary(max_size=3))
def test_fuzzed_image_gives_assignment_or_payload_error(sections, tail):
    """Invariant: an assignment that a mote can follow, or PayloadError."""
    content = b"".join(bytes([kind]) + len(body).to_bytes(2, "little") + body for kind, body in sections) + tail
    if not content:
        return
    try:
        orders = decode_assignment(Image(3, content), site=7)
    except PayloadError:
        return
    assert orders.parent != 7
    assert decode_assignment(encode_assignment(3, orders), site=7) == orders

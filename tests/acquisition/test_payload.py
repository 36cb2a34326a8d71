"""READING, SCHEDULE and TIME round-trip; an invalid payload gives one error and affects no other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.errors import PayloadError, ScheduleError
from acquisition.payload import (
    LAST_TICK,
    MAX_COUNT,
    MAX_SCHEDULE,
    decode_readings,
    decode_schedule,
    decode_time,
    encode_readings,
    encode_schedule,
    encode_time,
    epochs_per_frame,
    filter_report_interval,
)
from acquisition.schedule import Sampling, Schedule, SensorChannel
from acquisition.ticks import EpochGrid
from gateway.frame import MAX_PAYLOAD, Frame, FrameKind
from gateway.image import Image

INT32 = st.integers(-(2**31), 2**31 - 1)
channels = st.lists(st.builds(SensorChannel, st.just(""), st.integers(0, 0xFFFF), st.integers(1, 32)), max_size=8).map(
    tuple
)
epochs = st.builds(EpochGrid, st.integers(0, 2**47), st.integers(1, 2**32 - 1))
samplings = st.builds(Sampling, st.integers(0, 255), st.just(""), epochs, channels)


def small(bits):
    return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


@st.composite
def sent(draw):
    """Draw (sampling, first epoch, readings that fit into a frame): small values, some nulls, or some wide values."""
    sampling = draw(samplings)
    kinds = draw(st.sampled_from(["small", "null", "wide"]))
    value = {
        "small": small,
        "null": lambda bits: st.none() | small(bits),
        "wide": lambda bits: st.none() | INT32,
    }[kinds]
    row = st.tuples(*(value(channel.bits) for channel in sampling.channels))
    if draw(st.booleans()):
        row = st.none() | row  # some are filtered
    rows = draw(st.lists(row, min_size=1, max_size=epochs_per_frame(sampling)))
    last = (LAST_TICK - sampling.epochs.start) // sampling.epochs.interval  # a later tick is invalid
    return sampling, draw(st.integers(0, min(last, 2**32 - 64))), rows


def rows_of(found):
    """Return decoded readings as (site, tick, values or None if filtered), ordered by site and tick."""
    rows = [
        tuple(None if null else value for value, null in zip(values, nulls, strict=True))
        for values, nulls in zip(found.value.tolist(), found.null.tolist(), strict=True)
    ]
    here = zip(found.site.tolist(), found.tick.tolist(), rows, strict=True)
    out = zip(found.filtered_site.tolist(), found.filtered_tick.tolist(), strict=True)
    return sorted([*here, *((site, tick, None) for site, tick in out)], key=lambda one: one[:2])


@pytest.mark.promise("frames")
@given(sent(), st.integers(1, 65534))
def test_readings_round_trip(case, mote):
    sampling, first, rows = case
    payload = encode_readings(sampling, first, rows)
    assert len(payload) <= MAX_PAYLOAD
    [found], errors = decode_readings([Frame(FrameKind.READING, mote, 1, 0, payload)], {sampling.number: sampling})
    assert errors == []
    assert rows_of(found) == [(mote, sampling.epochs.tick(first + at), row) for at, row in enumerate(rows)]


@pytest.mark.promise("frames")
@given(st.lists(sent(), min_size=1, max_size=12), st.data())
def test_many_frames_decode_as_they_do_one_by_one(cases, data):
    """Frames of one sampling with any counts, widths, nulls and filters; some of them damaged."""
    sampling = cases[0][0]
    rows = [[row for row in found if row is None or len(row) == len(sampling.channels)] for _, _, found in cases]
    frames = []
    for mote, found in enumerate(rows, start=1):
        payload = encode_readings(sampling, 10 * mote, found[: epochs_per_frame(sampling)])
        if data.draw(st.integers(0, 3)) == 0:
            payload = payload[:5] + data.draw(st.binary(max_size=MAX_PAYLOAD - 5))
        frames.append(Frame(FrameKind.READING, mote, 1, 0, payload))
    together, errors = decode_readings(frames, {sampling.number: sampling})
    single = [decode_readings([frame], {sampling.number: sampling}) for frame in frames]
    assert sorted((e.mote, e.code) for e in errors) == sorted((e.mote, e.code) for _, found in single for e in found)
    assert [one for found in together for one in rows_of(found)] == [
        one for found, _ in single for readings in found for one in rows_of(readings)
    ]


ONE = Sampling(4, "field", EpochGrid(0, 10), (SensorChannel("temp", 1, 12),))


def test_many_frames_are_decoded_together_in_order():
    frames = [
        Frame(FrameKind.READING, mote, 1, 0, encode_readings(ONE, mote, [(mote,), (-mote,)])) for mote in range(1, 50)
    ]
    [readings], errors = decode_readings(frames, {4: ONE})
    assert errors == []
    assert readings.site.tolist() == [mote for mote in range(1, 50) for _ in range(2)]
    assert readings.value[:, 0].tolist() == [value for mote in range(1, 50) for value in (mote, -mote)]
    assert readings.tick.tolist() == [10 * (mote + at) for mote in range(1, 50) for at in range(2)]


def test_eight_readings_share_one_header():
    assert len(encode_readings(ONE, 0, [(1,)] * 8)) == 7 + 12


def test_ten_filtered_epochs_take_two_bytes():
    assert len(encode_readings(ONE, 0, [None] * 10)) == 7 + 2


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (b"", "short"),
        (bytes(6), "short"),
        (encode_readings(ONE, 0, [(1,)])[:-1], "size"),
        (encode_readings(ONE, 0, [(1,)]) + b"\0", "size"),
        (b"\x05" + encode_readings(ONE, 0, [(1,)])[1:], "sampling"),
        (b"\x04" + bytes(6), "empty"),
        (b"\x04" + bytes(4) + b"\x08\x01" + bytes(2), "range"),
        (encode_readings(ONE, 0, [None] * 8) + b"\0", "size"),
    ],
)
def test_invalid_frame_gives_one_error_and_others_are_decoded(payload, code):
    good = Frame(FrameKind.READING, 1, 1, 1, encode_readings(ONE, 0, [(7,)]))
    readings, errors = decode_readings([Frame(FrameKind.READING, 9, 1, 0, payload), good], {4: ONE})
    assert [(error.code, error.mote) for error in errors] == [(code, 9)]
    assert [r.value.tolist() for r in readings] == [[[7]]]


@pytest.mark.promise("frames")
@given(st.binary(max_size=MAX_PAYLOAD), samplings)
def test_random_readings_decode_or_give_one_error(payload, sampling):
    """The invariant: readings within the widths, or one error; never an exception."""
    numbered = {payload[0]: sampling} if payload else {}
    readings, errors = decode_readings([Frame(FrameKind.READING, 1, 1, 0, payload)], numbered)
    assert len(readings) + len(errors) == 1
    for found in readings:
        assert 1 <= len(found.tick) + len(found.filtered_tick) <= MAX_COUNT
        assert np.all(found.tick >= 0)
        assert np.all(np.abs(found.value.astype(float)) <= 2**31)


schedules = st.builds(Schedule, st.just(3), st.integers(1, 0xFFFF), st.lists(samplings, max_size=3).map(tuple))


@pytest.mark.promise("frames")
@given(schedules)
def test_schedule_round_trips_or_is_refused_for_its_size(schedule):
    try:
        image = encode_schedule(schedule)
    except ScheduleError as error:
        assert "sample fewer columns" in str(error)
        assert sum(12 + 3 * len(sampling.channels) for sampling in schedule.samplings) + 1 > MAX_SCHEDULE
        return
    assert decode_schedule(image, 3) == schedule


@pytest.mark.promise("frames")
@given(st.binary(min_size=1, max_size=MAX_SCHEDULE))
def test_random_schedule_bytes_round_trip_or_are_refused(content):
    """The invariant: the decoded schedule encodes to the same bytes, or the decoder raises PayloadError."""
    image = Image(7, content)
    try:
        schedule = decode_schedule(image, 3)
    except PayloadError:
        return
    assert encode_schedule(schedule) == image


@given(st.integers(0, 2**48 - 1), st.integers(1, 2**32 - 1))
def test_time_round_trips(now_ms, tick_ms):
    assert decode_time(encode_time(now_ms, tick_ms), 3) == (now_ms, tick_ms)


@pytest.mark.parametrize("payload", [b"", bytes(9), bytes(10), bytes(11)])
def test_invalid_time_payload_is_refused(payload):
    with pytest.raises(PayloadError):
        decode_time(payload, 3)


@given(samplings)
def test_filter_report_interval_fits_one_frame(sampling):
    assert 1 <= filter_report_interval(sampling) <= min(10, epochs_per_frame(sampling))
    assert filter_report_interval(sampling) + 1 > min(10, epochs_per_frame(sampling))

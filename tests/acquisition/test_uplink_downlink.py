"""Uplink and downlink: frames become batches, schedules become images."""

import numpy as np
import pytest

from acquisition import downlink, uplink
from acquisition.payload import decode_schedule, decode_time, encode_readings
from acquisition.schedule_builder import NO_SCHEDULES, build_schedules
from gateway.frame import Frame, FrameKind
from tests.acquisition.test_schedule_builder import CATALOG, need


def test_uplink_turns_reading_frames_into_batches():
    scheduled = build_schedules([need("temp", "volt")], CATALOG, NO_SCHEDULES, now=100)
    [sampling] = scheduled.samplings.values()
    frames = [
        Frame(FrameKind.READING, 4, 1, 0, encode_readings(sampling, 0, [(2010, 7), (None, 8)])),
        Frame(FrameKind.READING, 3, 1, 0, encode_readings(sampling, 1, [(-5, 9)])),
        Frame(FrameKind.READING, 3, 1, 1, b"?"),
    ]
    measured = uplink.receive(frames, scheduled.samplings, CATALOG, delivery=112)
    [(extent, batch)] = measured.batches
    assert extent == "field"
    rows = sorted(zip(batch.tick.tolist(), batch.site.tolist(), batch.columns["volt"].tolist(), strict=True))
    assert rows == [(100, 4, 7), (110, 3, 9), (110, 4, 8)]
    assert batch.columns["temp"][batch.valid["temp"]].tolist() == [2010, -5]
    assert np.array_equal(batch.columns["site"], batch.site)
    assert np.array_equal(batch.columns["time"], batch.tick)
    assert set(batch.arrival.tolist()) == {112}
    assert [error.code for error in measured.errors] == ["short"]


def test_readings_of_an_earlier_sampling_are_decoded():
    first = build_schedules([need("temp")], CATALOG, NO_SCHEDULES, now=100)
    second = build_schedules([need("temp", "volt")], CATALOG, first, now=110)
    frames = [
        Frame(FrameKind.READING, 3, 1, 0, encode_readings(first.samplings[0], 0, [(1,)])),
        Frame(FrameKind.READING, 3, 1, 1, encode_readings(second.samplings[1], 0, [(2, 3)])),
    ]
    measured = uplink.receive(frames, second.samplings, CATALOG, delivery=115)
    assert [(b.tick.tolist(), sorted(set(b.columns) - {"site", "time"})) for _, b in measured.batches] == [
        ([100], ["temp"]),
        ([110], ["temp", "volt"]),
    ]
    assert measured.errors == ()


@pytest.mark.promise("placement")
def test_unsent_channel_is_absent_and_failed_sensor_is_null():
    sent = {"field": {"temp": (3,), "volt": (3, 4)}}
    scheduled = build_schedules([need("temp", "volt")], CATALOG, NO_SCHEDULES, 100, senders=sent)
    [sampling] = scheduled.samplings.values()
    frames = [
        Frame(FrameKind.READING, site, 1, 0, encode_readings(sampling, 0, [(None, 7), (temp, 8)]))
        for site, temp in ((4, None), (3, 2010))
    ]
    measured = uplink.receive(frames, scheduled.samplings, CATALOG, delivery=112)
    found = [(batch.site.tolist(), batch.tick.tolist(), batch.columns["volt"].tolist(), batch.columns.get("temp"),
              batch.valid.get("temp")) for _, batch in measured.batches]  # fmt: skip
    assert [each[:3] for each in found] == [([3, 3], [100, 110], [7, 8]), ([4, 4], [100, 110], [7, 8])]
    assert found[0][3].tolist() == [0, 2010] and found[0][4].tolist() == [False, True]
    assert found[1][3:] == (None, None)
    assert [set(batch.columns) for _, batch in measured.batches] == [
        {"site", "time", "temp", "volt"},
        {"site", "time", "volt"},
    ]


def test_downlink_encodes_schedules_and_time():
    scheduled = build_schedules([need("temp")], CATALOG, NO_SCHEDULES, now=0)
    images = downlink.encode_images(scheduled.schedules)
    assert set(images) == {3, 4}
    assert decode_schedule(images[3], 3).samplings[0].epochs == scheduled.samplings[0].epochs
    assert decode_time(downlink.encode_clock(12_345, 1000), 3) == (12_345, 1000)

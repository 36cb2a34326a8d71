"""DOOR DOWN: schedules and the time -> what motes are sent."""

from collections.abc import Mapping

from acquisition.payload import encode_schedule, encode_time
from acquisition.schedule import Schedule
from gateway.image import Image


def encode_images(schedules: Mapping[int, Schedule]) -> dict[int, Image]:
    """The schedule of each site as it is sent. ScheduleError where a mote has no room for it."""
    return {site: encode_schedule(schedule) for site, schedule in schedules.items()}


def encode_clock(now_ms: int, tick_ms: int) -> bytes:
    """What a TIME says that leaves now."""
    return encode_time(now_ms, tick_ms)

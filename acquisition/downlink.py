"""DOOR DOWN: schedules become images, and the time becomes the payload of a TIME frame."""

from collections.abc import Mapping

from acquisition.payload import encode_schedule, encode_time
from acquisition.schedule import Schedule
from gateway.image import Image


def encode_images(schedules: Mapping[int, Schedule]) -> dict[int, Image]:
    """Return the schedule of each site as an image. Raises ScheduleError if one is too large for a mote."""
    return {site: encode_schedule(schedule) for site, schedule in schedules.items()}


def encode_clock(now_ms: int, tick_ms: int) -> bytes:
    """Return the payload of a TIME that is sent at `now_ms` (milliseconds since tick 0)."""
    return encode_time(now_ms, tick_ms)

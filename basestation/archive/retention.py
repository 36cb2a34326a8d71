"""Retention of an archive: which days go, by age, size and free space."""

from collections.abc import Iterable
from itertools import groupby

from basestation.archive.compaction import ArchiveDay
from innet.deployment.archive_table import ArchiveSettings


def find_surplus(days: Iterable[ArchiveDay], settings: ArchiveSettings, today: str, free: int) -> list[ArchiveDay]:
    """The days that go, the oldest first. `today` is a UTC day, `free` the bytes that the disk has left.

    Age counts the days that have readings, so a clock that leaps drops nothing. `today` and the newest day of an extent stay.
    """
    ordered = sorted(days, key=lambda day: (day.extent, day.day))
    surplus: list[tuple[bool, ArchiveDay]] = []
    rest: list[tuple[bool, ArchiveDay]] = []
    for extent, of_extent in groupby(ordered, key=lambda day: day.extent):
        limits = settings.limits(extent.rpartition("/")[2])  # filter reports as their readings
        total = 0
        for age, day in enumerate(reversed(list(of_extent))):
            total += day.bytes
            is_old = limits.days is not None and age >= limits.days
            is_much = limits.bytes is not None and total > limits.bytes
            may_go = age > 0 and day.day < today
            (surplus if may_go and (is_old or is_much) else rest).append((may_go, day))
    found = [day for _, day in surplus]
    if settings.free_bytes is not None:
        needed = settings.free_bytes - free - sum(day.bytes for day in found)
        for may_go, day in sorted(rest, key=lambda each: (each[1].day, each[1].extent)):
            if needed > 0 and may_go:
                found.append(day)
                needed -= day.bytes
    return sorted(found, key=lambda day: (day.day, day.extent))

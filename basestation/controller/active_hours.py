"""Active hours: the hours and days at which a query runs, such as `06:00-18:00 mon-fri Europe/Berlin`.

A query outside its hours is paused, and resumed when they begin. Hours over midnight (`22:00-06:00`) belong to the day on
which they begin. A time zone has its own clock changes: `06:00` is what a clock on the wall there shows.
"""

import difflib
import re
import zoneinfo
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache

from acquisition.ticks import instant_of
from gateway.errors import MoteloomError

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
EXAMPLE = "06:00-18:00 mon-fri Europe/Berlin"
OUTSIDE = "outside its active hours"
"""Why a query is paused that has active hours."""
_HOURS = re.compile(r"([0-9]{1,2}):([0-9]{2})-([0-9]{1,2}):([0-9]{2})")
_LONGEST = 200


class ActiveHoursError(MoteloomError):
    """A text is no active hours; `help` says how they are written."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.help = f"write hours, days and a time zone, such as `{EXAMPLE}`; without days and zone: every day, UTC"


@dataclass(frozen=True, slots=True)
class ActiveHours:
    """From minute `begin` to minute `end` of the `days` (0 is Monday) in a time zone; `end` is the next day's if not later."""

    begin: int
    end: int
    days: tuple[int, ...]
    zone: str

    def is_active(self, at_ms: int) -> bool:
        """Whether a time in ms since 1970 lies in these hours."""
        local = instant_of(at_ms, 1).astimezone(_zone(self.zone))
        minute, today = 60 * local.hour + local.minute, local.weekday()
        yesterday = (local.date() - timedelta(days=1)).weekday()
        if self.begin < self.end:
            return today in self.days and self.begin <= minute < self.end
        return (today in self.days and minute >= self.begin) or (yesterday in self.days and minute < self.end)

    def __str__(self) -> str:
        hours = "-".join(f"{minute // 60:02}:{minute % 60:02}" for minute in (self.begin, self.end))
        return f"{hours} {','.join(DAYS[day] for day in self.days)} {self.zone}"


def parse_active_hours(text: str) -> ActiveHours:
    """Read hours, then days and a time zone if there are any. ActiveHoursError names what is wrong."""
    words = text[:_LONGEST].split()
    if not words or not (found := _HOURS.fullmatch(words[0])):
        raise ActiveHoursError(f"expected hours such as `06:00-18:00`, found `{words[0] if words else ''}`")
    begin, end = _minute(*found.group(1, 2)), _minute(*found.group(3, 4))
    if begin == end or begin == 24 * 60:
        raise ActiveHoursError(f"`{words[0]}` has no hours: begin and end are the same")
    days: tuple[int, ...] = tuple(range(7))
    rest = words[1:]
    if rest and "/" not in rest[0] and (rest[0].split("-")[0].split(",")[0].lower() in DAYS or len(rest) > 1):
        days = _days(rest.pop(0))
    zone = rest.pop(0) if rest else "UTC"
    if rest:
        raise ActiveHoursError(f"`{rest[0]}` is too much behind the time zone")
    return ActiveHours(begin, end, days, _known_zone(zone))


def _minute(hour: str, minute: str) -> int:
    found = 60 * int(hour) + int(minute)
    if found > 24 * 60 or int(minute) > 59:
        raise ActiveHoursError(f"`{hour}:{minute}` is no time of day")
    return found


def _days(text: str) -> tuple[int, ...]:
    found: set[int] = set()
    for part in text.lower().split(","):
        first, _, last = part.partition("-")
        begin, end = _day(first), _day(last or first)
        found.update((begin + step) % 7 for step in range((end - begin) % 7 + 1))
    return tuple(sorted(found))


def _day(name: str) -> int:
    if name not in DAYS:
        raise ActiveHoursError(f"`{name}` is no day; days are {', '.join(DAYS)}")
    return DAYS.index(name)


def _known_zone(name: str) -> str:
    try:
        _zone(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        close = difflib.get_close_matches(name, zoneinfo.available_timezones(), 1)
        raise ActiveHoursError(
            f"there is no time zone `{name}`" + (f"; did you mean `{close[0]}`?" if close else "")
        ) from None
    return name


@lru_cache(maxsize=64)
def _zone(name: str) -> zoneinfo.ZoneInfo:
    return zoneinfo.ZoneInfo(name)

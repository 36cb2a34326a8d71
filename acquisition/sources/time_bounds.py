"""Bounds of a replay: ticks, RFC 3339 times, and offsets from either end of the data."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from acquisition.ticks import UNIX_EPOCH
from acquisition.units import milliseconds_of


@dataclass(frozen=True, slots=True)
class Offset:
    """A time counted from an end of the data: forward from its first tick, or backward from its last."""

    ms: int
    backward: bool


Time: TypeAlias = int | datetime | Offset
"""A tick, a time, or an offset."""


def read_time(text: str) -> Time:
    """A tick, a time, or an offset such as `+2h` from the first tick or `-30min` from the last. Raises ValueError."""
    if re.fullmatch(r"\d{1,18}", text, re.ASCII):
        return int(text)
    if text[:1] in ("+", "-") and (ms := milliseconds_of(text[1:])) is not None:
        return Offset(ms, text[0] == "-")
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"`{text}` is no time: expected a tick, a time such as 2026-11-18T08:00:00Z, or an offset such as +2h from "
            "the first tick or -30min from the last"
        ) from None


def tick_of(time: Time, ends: tuple[int, int], tick_ms: int, zone: str | None) -> int:
    """The tick at or before a time; 0 before 1970. `ends` are the first and last tick of the data.

    A time without a zone is in `zone`. Raises ValueError if there is none either.
    """
    if isinstance(time, int):
        return time
    if isinstance(time, Offset):
        ticks = time.ms // tick_ms
        return max(0, ends[1] - ticks if time.backward else ends[0] + ticks)
    if time.tzinfo is None:
        if zone is None:
            raise ValueError(f"`{time.isoformat()}` has no zone: append Z or an offset, or give --zone")
        from acquisition.sources.times import check_zone

        time = time.replace(tzinfo=check_zone(zone))
    return max(0, (time - UNIX_EPOCH) // timedelta(milliseconds=tick_ms))

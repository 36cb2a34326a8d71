"""Arguments that say how recordings are written, and times of a replay: ticks, RFC 3339, offsets from either end."""

import argparse
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeAlias

from acquisition.ticks import UNIX_EPOCH
from acquisition.units import milliseconds_of

if TYPE_CHECKING:
    from acquisition.sources.input_format import InputFormat

NEAREST = -1
"""The value of `--snap` without a span."""
_EPOCH_UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}


@dataclass(frozen=True, slots=True)
class Offset:
    """A time counted from an end of the data: forward from its first tick, or backward from its last."""

    ms: int
    backward: bool


Time: TypeAlias = int | datetime | Offset
"""A tick, a time, or an offset."""


def add_recording(parser: argparse.ArgumentParser) -> None:
    """The arguments that describe recordings."""
    group = parser.add_argument_group("how recordings are written")
    group.add_argument(
        "--time-column",
        metavar="NAME",
        help="the column with the times of tuples: RFC 3339, or numbers since 1970; default: `_tick` has ticks",
    )
    group.add_argument("--site-column", metavar="NAME", help="the column with the sites of readings; default: `_site`")
    group.add_argument(
        "--zone",
        type=_zone,
        metavar="ZONE",
        help="the zone of times without one, such as Europe/Zurich or +01:00; default: UTC",
    )
    group.add_argument(
        "--time-unit",
        type=_unit,
        metavar="UNIT",
        help="what numbers of the time column count: s, ms, us, or a span such as 30s; default: their size decides",
    )
    group.add_argument("--time-format", metavar="PATTERN", help="how times are written, such as '%%d.%%m.%%Y %%H:%%M'")
    group.add_argument(
        "--snap",
        nargs="?",
        const=NEAREST,
        type=_span,
        metavar="SPAN",
        help="move readings to the nearest tick of their schedule, from a distance of up to SPAN; default: half an interval",
    )
    group.add_argument(
        "--allow-rejected",
        action="store_true",
        help="run even if more than a tenth of the readings do not fit the schedule",
    )


def read_format(args: argparse.Namespace, tick_ms: int) -> "InputFormat":
    """The format of recordings that the arguments describe."""
    from acquisition.sources.input_format import InputFormat, TimeFormat

    snap = 0 if args.snap is None else None if args.snap == NEAREST else args.snap // tick_ms
    return InputFormat(
        args.time_column, args.site_column, TimeFormat(args.zone, args.time_unit, args.time_format), snap=snap
    )


def parse_time(text: str) -> Time:
    """A tick, a time, or an offset such as `+2h` from the first tick or `-30min` from the last."""
    if re.fullmatch(r"\d{1,18}", text, re.ASCII):
        return int(text)
    if text[:1] in ("+", "-") and (ms := milliseconds_of(text[1:])) is not None:
        return Offset(ms, text[0] == "-")
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
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


def _zone(text: str) -> str:
    from acquisition.sources.times import check_zone

    try:
        check_zone(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"there is no zone `{text}`; expected a name such as Europe/Zurich, or an offset such as +01:00"
        ) from None
    return text


def _unit(text: str) -> int:
    us = _EPOCH_UNITS.get(text) or 1_000 * (milliseconds_of(text) or 0)
    if not us:
        raise argparse.ArgumentTypeError(f"`{text}` is no unit of times: expected s, ms, us, or a span such as 30s")
    return us


def _span(text: str) -> int:
    ms = milliseconds_of(text)
    if ms is None:
        raise argparse.ArgumentTypeError(
            f"`{text}` is no span of time: expected one such as 5s or 500ms; without a span, write the option after the query"
        )
    return ms


def parse_tick(text: str) -> int:
    """The milliseconds of a tick, such as `1ms` or `1s`, up to a day."""
    ms = milliseconds_of(text)
    if not ms or ms > 86_400_000:
        raise argparse.ArgumentTypeError(f"`{text}` is no length of a tick: expected a span from 1ms to 1 day")
    return ms

"""Instants: what a tick is in the world's time, and which epoch of a sampling it belongs to.

A tick is an integer; tick 0 is the Unix epoch, live (SEMANTICS 1.1). Nothing here asks what time it is.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class EpochGrid:
    """The epochs of one sampling: epoch k is the tick `start + k * interval`."""

    start: int
    interval: int

    def tick(self, epoch: int) -> int:
        return self.start + epoch * self.interval

    def epoch(self, tick: int) -> int | None:
        """The epoch at a tick; None where no sample is due."""
        epoch, rest = divmod(tick - self.start, self.interval)
        return epoch if rest == 0 and epoch >= 0 else None

    def first_from(self, tick: int) -> int:
        """The first tick, not before this one, at which a sample is due."""
        return self.start + max(0, grid_at_or_after(tick - self.start, self.interval))


def grid_at_or_after(tick: int, interval: int) -> int:
    """The first multiple of the interval that is not before the tick: sensed extents are sampled on this grid (1.3)."""
    return -(-tick // interval) * interval


def tick_of_ms(ms: int, tick_ms: int) -> int:
    """The tick in which a time in milliseconds since tick 0 lies."""
    return ms // tick_ms


def instant_of(tick: int, tick_ms: int) -> datetime:
    """A tick in the world's time, UTC."""
    return UNIX_EPOCH + timedelta(milliseconds=tick * tick_ms)


def rfc3339_of(tick: int, tick_ms: int) -> str:
    """A tick as people and JSON write it: `2026-11-18T08:00:00Z`."""
    instant = instant_of(tick, tick_ms)
    return instant.isoformat(timespec="milliseconds" if instant.microsecond else "seconds").replace("+00:00", "Z")


def tick_of_rfc3339(text: str, tick_ms: int) -> int:
    """The tick of an RFC 3339 time, UTC if it says no zone. ValueError if it is none, or no whole number of ticks."""
    instant = datetime.fromisoformat(text)
    since = (instant if instant.tzinfo else instant.replace(tzinfo=UTC)) - UNIX_EPOCH
    tick, rest = divmod(since, timedelta(milliseconds=tick_ms))
    if rest:
        raise ValueError(f"{text} is no whole number of ticks of {tick_ms} ms")
    return tick


def date_of(tick: int, tick_ms: int) -> date:
    """The day, in UTC always, that a tick belongs to."""
    return instant_of(tick, tick_ms).date()

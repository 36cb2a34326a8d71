"""Ticks: their relation to wall-clock time, and the epochs of a sampling.

A tick is an integer; live, tick 0 is the Unix epoch (semantics 1.1). No function here reads a clock.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # numpy is loaded where there are arrays
    from acquisition.arrays import IntOrArray

UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class EpochGrid:
    """The epochs of one sampling: epoch k is the tick `start + k * interval`."""

    start: int
    interval: int

    def tick(self, epoch: int) -> int:
        """Return the tick of an epoch."""
        return self.start + epoch * self.interval

    def epoch(self, tick: int) -> int | None:
        """Return the epoch at a tick; None if no sample is due at it."""
        epoch, rest = divmod(tick - self.start, self.interval)
        return epoch if rest == 0 and epoch >= 0 else None

    def first_from(self, tick: int) -> int:
        """Return the first tick, not before `tick`, at which a sample is due."""
        return self.start + max(0, grid_at_or_after(tick - self.start, self.interval))


def grid_at_or_after(tick: "IntOrArray", interval: int) -> "IntOrArray":
    """Return the first multiple of the interval not before the tick; sensed extents sample on this grid (1.3)."""
    return -(-tick // interval) * interval


def tick_of_ms(ms: int, tick_ms: int) -> int:
    """Return the tick that contains a time in milliseconds since tick 0."""
    return ms // tick_ms


def instant_of(tick: int, tick_ms: int) -> datetime:
    """Return the UTC time of a tick."""
    return UNIX_EPOCH + timedelta(milliseconds=tick * tick_ms)


@lru_cache(maxsize=1_024)  # the updates of a step have few ticks and are many
def rfc3339_of(tick: int, tick_ms: int) -> str:
    """Return the time of a tick as JSON has it: `2026-11-18T08:00:00Z`."""
    instant = instant_of(tick, tick_ms)
    return instant.isoformat(timespec="milliseconds" if instant.microsecond else "seconds").replace("+00:00", "Z")


def tick_of_rfc3339(text: str, tick_ms: int) -> int:
    """Return the tick of an RFC 3339 time, UTC if it has no zone.

    Raises ValueError if the text is not such a time, or the time is not a whole number of ticks.
    """
    instant = datetime.fromisoformat(text)
    since = (instant if instant.tzinfo else instant.replace(tzinfo=UTC)) - UNIX_EPOCH
    tick, rest = divmod(since, timedelta(milliseconds=tick_ms))
    if rest:
        raise ValueError(f"{text} is not a whole number of ticks of {tick_ms} ms")
    return tick


def date_of(tick: int, tick_ms: int) -> date:
    """Return the UTC date of a tick."""
    return instant_of(tick, tick_ms).date()

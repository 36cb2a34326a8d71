"""How answers show ticks: as times in UTC or in the zone of the machine, or as they are."""

from datetime import UTC
from typing import Any

import numpy as np

from acquisition.arrays import IntArray
from acquisition.sources.arrow_arrays import numbers_to_arrow, strings_to_arrow
from acquisition.ticks import instant_of, rfc3339_of

_YEAR_MS = 365 * 86_400_000


class TickTimes:
    """Texts of the times of ticks. Without `is_local` they are in UTC."""

    def __init__(self, tick_ms: int, is_local: bool = False) -> None:
        self._tick_ms, self._is_local = tick_ms, is_local

    def text(self, tick: int) -> str:
        """Return the RFC 3339 time of a tick; the tick itself where that is beyond the year 9999."""
        try:
            if not self._is_local:
                return rfc3339_of(tick, self._tick_ms)
            return instant_of(tick, self._tick_ms).astimezone(UTC).astimezone().isoformat()
        except (OverflowError, ValueError):
            return str(tick)

    def column(self, ticks: IntArray) -> Any:
        """Return the times of many ticks as an Arrow array."""
        different, inverse = np.unique(ticks, return_inverse=True)
        return strings_to_arrow(list(map(self.text, different.tolist()))).take(numbers_to_arrow(inverse))


def is_dated(begin: int, tick_ms: int) -> bool:
    """Return whether a replay that begins at a tick has ticks since 1970, and not since its own beginning."""
    return begin * tick_ms >= _YEAR_MS

"""The clock of a mote: the time it was set to, plus what its crystal counted since then; and the detection of clock skew."""

from simulator.kernel import MS

MILLION = 1_000_000
SKEW_LIMIT_US, REPORT_PAUSE_US = 500 * MS, 60_000 * MS
"""The skew between two clocks above which a mote reports it, and the least time between two reports."""


class Clock:
    """A clock that counts `ppm` millionths too fast (below 0: too slow). It shows no time before it is set."""

    def __init__(self, ppm: int = 0) -> None:
        self._ppm = ppm
        self._set: tuple[int, int] | None = None  # (the true time, the time it was set to), microseconds

    def set(self, now: int, ms: int) -> None:
        """Set the clock to `ms` milliseconds after tick 0; `now` is the true time in microseconds."""
        self._set = (now, ms * MS)

    def jump(self, now: int, by_ms: int) -> None:
        """Add an error of `by_ms`; the clock never shows a time before tick 0."""
        if self._set:
            self._set = (now, max(0, self.local_time(now) + by_ms * MS))

    def stop(self) -> None:
        """Lose the time, as at a power failure."""
        self._set = None

    @property
    def is_set(self) -> bool:
        return self._set is not None

    def local_time(self, now: int) -> int:
        """The time it shows, in microseconds after tick 0. Raises TypeError before it is set."""
        at, shown = self._reference
        return shown + (now - at) * (MILLION + self._ppm) // MILLION

    def true_time(self, shows: int) -> int:
        """The first true time at which it shows `shows` microseconds, or more."""
        at, shown = self._reference
        return at - (-(shows - shown) * MILLION // (MILLION + self._ppm))

    @property
    def _reference(self) -> tuple[int, int]:
        if self._set is None:
            raise TypeError("the clock is not set")
        return self._set


class SkewDetector:
    """Notices that the clock of a neighbour is ahead, at most once in REPORT_PAUSE_US; a mote has a new one at each start."""

    def __init__(self) -> None:
        self._reported: int | None = None

    def detect_skew(self, clock: Clock, now: int, stamp: int) -> bool:
        """Whether to report that a neighbour handed over data of a time that `clock` does not show yet.

        `stamp` is the time of the data in microseconds after tick 0. Either the neighbour's clock is ahead or ours is behind.
        """
        again = self._reported is None or now >= self._reported + REPORT_PAUSE_US
        if not (again and clock.is_set and stamp > clock.local_time(now) + SKEW_LIMIT_US):
            return False
        self._reported = now
        return True

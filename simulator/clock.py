"""The clock of a mote: what it was told, plus what its crystal made of the time since then; and whether others show another time."""

from simulator.kernel import MS

MILLION = 1_000_000
SKEW_LIMIT_US, REPORT_PAUSE_US = 500 * MS, 60_000 * MS
"""By how much clocks may differ, and after how long it is told again that some do."""


class Clock:
    """Counts `ppm` millionths too fast (or, below 0, too slow). Knows no time before it was told one."""

    def __init__(self, ppm: int = 0) -> None:
        self._ppm = ppm
        self._told: tuple[int, int] | None = None  # (the true time, what it was set to), microseconds

    def set(self, now: int, ms: int) -> None:
        """It is `ms` milliseconds after tick 0, somebody says; `now` is the true time."""
        self._told = (now, ms * MS)

    def jump(self, now: int, by_ms: int) -> None:
        """It goes wrong all at once; it counts from tick 0, and shows nothing before that."""
        if self._told:
            self._told = (now, max(0, self.local_time(now) + by_ms * MS))

    def stop(self) -> None:
        """Lost with the power."""
        self._told = None

    @property
    def is_set(self) -> bool:
        return self._told is not None

    def local_time(self, now: int) -> int:
        """What it shows, in microseconds after tick 0."""
        at, shown = self._told
        return shown + (now - at) * (MILLION + self._ppm) // MILLION

    def true_time(self, shows: int) -> int:
        """The first true time at which it shows that much, or more."""
        at, shown = self._told
        return at - (-(shows - shown) * MILLION // (MILLION + self._ppm))


class SkewDetector:
    """Of one start of a mote: when it was told the last time that clocks differ."""

    def __init__(self) -> None:
        self._told: int | None = None

    def detect_skew(self, clock: Clock, now: int, stamp: int) -> bool:
        """Whether it is to be told that somebody has handed over what begins at a time that our clock does not show yet: his is
        ahead, or ours is behind."""
        again = self._told is None or now >= self._told + REPORT_PAUSE_US
        if not (again and clock.is_set and stamp > clock.local_time(now) + SKEW_LIMIT_US):
            return False
        self._told = now
        return True

"""The event queue of simulated time. Time is in microseconds and moves only from one event to the next."""

import heapq
from collections.abc import Callable
from itertools import count

MS = 1_000
"""The microseconds of a millisecond; frames and scenarios count in milliseconds."""


class Kernel:
    """A discrete-event scheduler. Events at one time run by priority (low first), then in the order of their scheduling."""

    def __init__(self, now: int = 0) -> None:
        self.now = now
        self._queue: list[tuple[int, int, int, Callable[[], None]]] = []
        self._serial = count()

    def at(self, time: int, action: Callable[[], None], priority: int = 0) -> None:
        """Schedule `action` for `time` (microseconds). Raises ValueError for a time in the past."""
        if time < self.now:
            raise ValueError(f"an event at {time} us cannot be scheduled at {self.now} us")
        heapq.heappush(self._queue, (time, priority, next(self._serial), action))

    def after(self, delay: int, action: Callable[[], None], priority: int = 0) -> None:
        self.at(self.now + delay, action, priority)

    def run_until(self, end: int) -> None:
        """Run every event up to and including `end`, also those that are scheduled meanwhile."""
        while self._queue and self._queue[0][0] <= end:
            self.now, _, _, action = heapq.heappop(self._queue)
            action()
        self.now = max(self.now, end)

"""Limits: how much one token may ask of a station, and how much of a request is read."""

import time
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from basestation.rest.access import TokenScope


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Of each token: requests a second in the long run, `burst` of them at once, and so many open at a time, streams among
    them. `body_bytes` is of a request, `upload_bytes` of one that brings data. The bodies of open requests have `token_bytes_open`
    of one token, `all_bytes_open` of all. A body has to come within `body_seconds`, and a second more for each
    `body_bytes_per_second` of it."""

    requests_per_second: float = 200.0
    burst: int = 1_000
    open_requests: int = 256
    body_bytes: int = 1_000_000
    upload_bytes: int = 128 * 1024 * 1024
    token_bytes_open: int = 256 * 1024 * 1024
    all_bytes_open: int = 512 * 1024 * 1024
    body_seconds: float = 30.0
    body_bytes_per_second: int = 10_000

    def largest_body(self, scope: TokenScope) -> int:
        """The bytes that a route may read that needs a scope."""
        return self.upload_bytes if scope is TokenScope.TAG else self.body_bytes


class RateLimiter:
    """A token bucket for each key: it holds up to `burst`, and gains `per_second`."""

    MOST_KEYS = 10_000

    def __init__(self, per_second: float, burst: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._per_second, self._burst, self._monotonic = per_second, burst, monotonic
        self._filled: dict[Hashable, tuple[float, float]] = {}  # by key: (level, time), the one used last at the end

    def take(self, key: Hashable) -> float:
        """Take one; 0.0, or the seconds until there is one."""
        now = self._monotonic()
        level, then = self._filled.pop(key, (float(self._burst), now))
        level = min(self._burst, level + (now - then) * self._per_second)
        wait = 0.0 if level >= 1 else (1 - level) / self._per_second
        self._filled[key] = (level if wait else level - 1, now)
        if len(self._filled) > self.MOST_KEYS:
            del self._filled[next(iter(self._filled))]
        return wait


class BodyBudget:
    """The bytes of the bodies of open requests, of each token and of all."""

    def __init__(self, of_token: int, of_all: int) -> None:
        self._most = of_token, of_all
        self._open: Counter[Hashable] = Counter()
        self._total = 0

    def take(self, key: Hashable, count: int) -> int | None:
        """Take bytes for a request; None, or how many could be taken now where these are too many."""
        left = min(self._most[0] - self._open[key], self._most[1] - self._total)
        if count > left:
            return max(0, left)
        self._open[key] += count
        self._total += count
        return None

    def give_back(self, key: Hashable, count: int) -> None:
        """Give bytes back at the end of a request."""
        self._total -= count
        self._open -= Counter({key: count})

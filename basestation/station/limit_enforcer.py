"""LimitEnforcer: measures the state and time of running queries every minute, and ends those that exceed their limits.

Time is not part of what came in, so the end of a query is an entry of the journal like a command of a user (decision 0193).
"""

from collections.abc import Callable
from contextlib import suppress

from basestation.execution.counters import OperatorShare
from basestation.station.durable import DurableStation
from basestation.station.journal_file import JournalError
from basestation.station.query_limits import sum_by_owner

PERIOD_SECONDS = 60.0
"""Shares of time are means over so long: a burst of late readings ends no query."""


class LimitEnforcer:
    """`monotonic` gives seconds of the machine, however fast the station's clock goes."""

    def __init__(self, durable: DurableStation, monotonic: Callable[[], float]) -> None:
        self._durable, self._monotonic = durable, monotonic
        self._begun, self._times = monotonic(), dict[int, int]()
        self._has_times = False

    def tend(self, now_ms: int) -> None:
        """Where a period is over, let the queries fail that exceeded a limit in it: of the queries of a user, the greatest."""
        limits = self._durable.limits
        if all(each is None for each in (limits.state_bytes, limits.state_bytes_of_user,
                                         limits.cpu_share, limits.cpu_share_of_user)):  # fmt: skip
            return
        seconds = self._monotonic() - self._begun
        if self._has_times and seconds < PERIOD_SECONDS:
            return
        station = self._durable.station
        shares, self._times = station.usage(self._times)
        self._begun += seconds
        if self._has_times:
            for number, reason in self._find_exceeding(shares, seconds).items():
                with suppress(JournalError):  # nothing can be kept now, as health says; the next period tries again
                    self._durable.change("exceed", number, now_ms, reason)
        self._has_times = True

    def _find_exceeding(self, shares: dict[int, OperatorShare], seconds: float) -> dict[int, str]:
        """The queries that exceeded a limit, with the reason."""
        limits, journal = self._durable.limits, self._durable.journal
        found: dict[int, str] = {}
        for number, share in shares.items():
            if (reason := _compare(share, seconds, limits.state_bytes, limits.cpu_share, "")) is not None:
                found[number] = f"it {reason}"
        shares = {number: share for number, share in shares.items() if number not in found}
        for owner, total in sum_by_owner(shares, journal).items():
            reason = _compare(total, seconds, limits.state_bytes_of_user, limits.cpu_share_of_user, "_of_user")
            if reason is not None:
                is_state = "state" in reason
                own = [number for number in shares if journal.owner(number) == owner]
                greatest = max(own, key=lambda n: shares[n].bytes if is_state else shares[n].time)
                found[greatest] = f"the queries of {owner} together {reason}, and this one the most"
        return found


def _compare(
    share: OperatorShare, seconds: float, state_bytes: int | None, cpu_share: float | None, suffix: str
) -> str | None:
    """Why a share exceeds its limits, with figures; None where it does not."""
    if state_bytes is not None and share.bytes > state_bytes:
        return f"held {share.bytes / 1e6:,.1f} MB of state; `limits.state_mb{suffix}` is {state_bytes / 1e6:,g}"
    used = share.time / 1e9 / seconds
    if cpu_share is not None and used > cpu_share:
        return f"took {used:.3f} of a core in {seconds:.0f} s; `limits.cpu_share{suffix}` is {cpu_share:g}"
    return None

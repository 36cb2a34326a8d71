"""Clocks: whose clock shows another time than ours, by what its data is stamped with when it comes.

Under an agenda a clock that is wrong by whole rounds keeps to all of its slots, so the radio does not tell. What is stamped
with a time that has not come yet is from a clock that is ahead. What a mote has stamped last and comes in a later round is from
one that is behind; or it was held up on its way, and the mote is told the time in vain.
"""

from collections.abc import Iterable

import numpy as np

from innet.placement.agenda import Agenda

TimestampColumns = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Sites, and the first and the last moment of what their data is about, in milliseconds."""


class ClockSkewDetector:
    """`off_ms` is by how much clocks may differ."""

    def __init__(self, off_ms: int) -> None:
        self._off_ms = off_ms
        self._newest: dict[int, int] = {}

    def find_skewed_sites(self, stamps: Iterable[TimestampColumns], now_ms: int, agenda: Agenda | None) -> list[int]:
        """The sites whose clocks seem wrong by what has come now. Without an agenda nothing has to be here at any time."""
        found = []
        for site, first, last in _newest(stamps):
            ahead = first > now_ms + self._off_ms
            fresh = last > self._newest.get(site, -1)  # else it comes again, because it was missing
            late = agenda is not None and fresh and now_ms > due_ms(agenda, last) + self._off_ms
            if ahead or late:
                found.append(site)
            self._newest[site] = max(self._newest.get(site, -1), min(last, now_ms))
        return found


def due_ms(agenda: Agenda, last: int) -> int:
    """When the slots of the round are over in which something of that moment is sent."""
    return last // agenda.period_ms * agenda.period_ms + agenda.latest_ms


def _newest(stamps: Iterable[TimestampColumns]) -> list[tuple[int, int, int]]:
    """For each site the newest of its stamps."""
    parts = [part for part in stamps if len(part[0])]  # partials that count their contributors are nobody's
    if not parts:
        return []
    site, first, last = (np.concatenate(of) for of in zip(*parts, strict=True))
    order = np.lexsort((first, last, site))
    site, first, last = site[order], first[order], last[order]
    newest = np.append(site[1:] != site[:-1], True)
    return list(zip(site[newest].tolist(), first[newest].tolist(), last[newest].tolist(), strict=True))

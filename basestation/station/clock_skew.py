"""Clock skew: finds motes whose clocks differ from the station's, by the timestamps of their data.

A clock that is off by whole rounds still meets all slots of the agenda, so the radio does not show the error. Data stamped in
the future comes from a clock that is ahead. A mote's newest data that arrives after its own round comes from a clock that is
behind, or was delayed; then the mote receives the time needlessly.
"""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np

from acquisition.arrays import IntArray
from acquisition.uplink import ReceivedReadings
from innet.payload import PartialColumns
from innet.placement.agenda import Agenda

TimestampColumns: TypeAlias = tuple[IntArray, IntArray, IntArray]
"""Parallel arrays: the site, and the first and the last moment that its data covers, in ms."""


class ClockSkewDetector:
    """`tolerance_ms` is the difference that clocks may have."""

    def __init__(self, tolerance_ms: int) -> None:
        self._tolerance_ms = tolerance_ms
        self._newest: dict[int, int] = {}  # by site, the newest moment of its data, in ms

    def find_skewed_sites(self, stamps: Iterable[TimestampColumns], now_ms: int, agenda: Agenda | None) -> list[int]:
        """The sites whose clocks seem wrong by data that arrived now. Without an agenda, no data is ever late."""
        found = []
        for site, first, last in _newest(stamps):
            is_ahead = first > now_ms + self._tolerance_ms
            is_new = last > self._newest.get(site, -1)  # otherwise it fills a gap
            is_late = agenda is not None and is_new and now_ms > round_end_ms(agenda, last) + self._tolerance_ms
            if is_ahead or is_late:
                found.append(site)
            self._newest[site] = max(self._newest.get(site, -1), min(last, now_ms))
        return found


def round_end_ms(agenda: Agenda, moment_ms: int) -> int:
    """The end (ms) of the last slot of the round that sends the data of a moment."""
    return moment_ms // agenda.period_ms * agenda.period_ms + agenda.latest_ms


def find_timestamps(
    readings: ReceivedReadings, partials: Iterable[PartialColumns], tick_ms: int
) -> Iterator[TimestampColumns]:
    """The timestamps of readings, and of partials whose contributors are known; a partial covers a whole slice."""
    for _, batch in (*readings.batches, *readings.filtered):
        yield batch.site, batch.tick * tick_ms, batch.tick * tick_ms
    for columns in partials:
        at, site = columns.contributions
        number, slices = columns.slice[at], columns.shape.slices
        yield site, slices.begin(number) * tick_ms, (slices.end(number) - 1) * tick_ms


def _newest(stamps: Iterable[TimestampColumns]) -> list[tuple[int, int, int]]:
    """The newest timestamp of each site."""
    parts = [part for part in stamps if len(part[0])]
    if not parts:
        return []
    site, first, last = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort((first, last, site))
    site, first, last = site[order], first[order], last[order]
    newest = np.append(site[1:] != site[:-1], True)
    return list(zip(site[newest].tolist(), first[newest].tolist(), last[newest].tolist(), strict=True))

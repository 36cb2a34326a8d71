"""Coverage: which readings a window should have had, and which it had (SEMANTICS 12.3 and its corners in 14)."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Cover:
    """One occurrence of an extent below a window: the readings due from tick low to high, every interval.

    `intake` is None for a pushed extent. `at` is the window's tick: a `late append` tuple counts from its arrival on.
    `excludes` are masks over the sites: those that a conjunct over `site` alone leaves out.
    """

    extent: str
    intake: object = None
    low: int = 1
    high: int = 0
    interval: int = 1
    at: int | None = None
    excludes: tuple = ()

    @property
    def ticks(self):
        first = max(self.low, self.intake.epochs.begun)
        return range(first + -first % self.interval, self.high + 1, self.interval)

    @property
    def excluded(self):
        mask = np.zeros(len(self.intake.epochs.sites), bool)
        for exclude in self.excludes:
            mask |= exclude
        return mask


def coverage(covers):
    """{extent: (used, due)} over the set of (site, tick) in all ranges, each once; None for a pushed extent."""
    by_extent = {}
    for cover in covers:
        by_extent.setdefault(cover.extent, []).append(cover)
    return {name: _extent(by_extent[name]) for name in sorted(by_extent)}


def _extent(covers):
    intake = covers[0].intake
    if intake is None:
        return None
    at_tick = {}
    for cover in covers:
        for tick in cover.ticks:
            at_tick.setdefault(tick, []).append(cover)
    sites = len(intake.epochs.sites)
    used = sum(_used(intake, tick, holding) for tick, holding in at_tick.items())
    return used, sites * len(at_tick)


def _used(intake, tick, holding):
    """How many sites are used at one tick: known, or excluded by every occurrence whose range holds it."""
    known = np.logical_or.reduce([intake.known_at(tick, at) for at in {c.at for c in holding}])
    excluded = np.logical_and.reduce([c.excluded for c in holding])
    return int((known | excluded).sum())

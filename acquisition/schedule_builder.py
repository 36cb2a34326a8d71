"""Build one schedule per site from the needs of all queries.

Each sensor is sampled once per due tick, however many queries read it. The interval of a sampling is the greatest common
divisor of the needed intervals, its channels are the union of the needed attributes. All functions are pure.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from math import gcd
from types import MappingProxyType

from acquisition.errors import ScheduleError
from acquisition.extent import Catalog, Extent, ExtentKind
from acquisition.schedule import Sampling, Schedule, SensorChannel, channel_of
from acquisition.schema import Type
from acquisition.ticks import EpochGrid, grid_at_or_after

ALL_SITES: Mapping[str, Collection[int]] = MappingProxyType({})
ALL_SENDERS: Mapping[str, Mapping[str, Collection[int]]] = MappingProxyType({})
MAX_SAMPLINGS = 256
"""The number of a sampling is one byte on the air."""
MAX_CHANNELS = 8
MAX_INTERVAL = 0xFFFF_FFFF
"""Schedules and programs have 32 bits for an interval in ticks."""


@dataclass(frozen=True, slots=True)
class SamplingNeed:
    """One query's need of one extent: attributes, every so many ticks."""

    extent: str
    attributes: frozenset[str]
    every: int


@dataclass(frozen=True, slots=True)
class ScheduleSet:
    """The schedules of all sites, and the samplings by number.

    Old samplings stay, because frames made under them may still be on their way. The next new sampling leaves out so many
    numbers as `gap` says: those that a station before a restore may have used.
    """

    samplings: Mapping[int, Sampling]
    schedules: Mapping[int, Schedule]
    gap: int = 0

    @property
    def running(self) -> dict[int, Sampling]:
        """By number, the samplings that some site runs now."""
        return {sampling.number: sampling for schedule in self.schedules.values() for sampling in schedule.samplings}

    def current(self, extent: str) -> Sampling | None:
        """Return the sampling that the sites of an extent run now, or None."""
        return next((sampling for sampling in self.running.values() if sampling.extent == extent), None)


NO_SCHEDULES = ScheduleSet({}, {})


def build_schedules(
    needs: Iterable[SamplingNeed],
    catalog: Catalog,
    before: ScheduleSet,
    now: int,
    renewed: Collection[str] = (),
    required_sites: Mapping[str, Collection[int]] = ALL_SITES,
    senders: Mapping[str, Mapping[str, Collection[int]]] = ALL_SENDERS,
) -> ScheduleSet:
    """Return the schedules that meet all needs from tick `now` on.

    An unchanged sampling keeps its number and start, unless its extent is in `renewed`. `required_sites` has the sites
    of an extent that some query reads (default: all its sites). `senders` has, by extent and attribute, the sites that
    send values (default: all). A sampling whose senders change gets another number. Raises ScheduleError.
    """
    by_extent: dict[str, list[SamplingNeed]] = {}
    for need in needs:
        by_extent.setdefault(need.extent, []).append(need)
    samplings, taken, gap = dict(before.samplings), set(before.running), before.gap
    by_site: dict[int, list[Sampling]] = {site: [] for site in before.schedules}  # a site without a need falls silent
    for name, of_extent in by_extent.items():
        extent = _sensed_extent(catalog, name)
        interval, channels = _merge(extent, of_extent)
        measuring = frozenset(required_sites.get(name, extent.sites or ()))
        channels = tuple(_with_senders(channel, measuring, senders.get(name)) for channel in channels)
        sampling = before.current(name)
        is_changed = sampling is None or (sampling.epochs.interval, sampling.channels) != (interval, channels)
        if sampling is None or is_changed or name in renewed:
            number, gap = _next_free_number(name, samplings, taken, gap), 0
            sampling = Sampling(number, name, EpochGrid(grid_at_or_after(now, interval), interval), channels)
            samplings.pop(number, None)  # a reused number becomes the youngest of the dictionary
            samplings[number] = sampling
            taken.add(number)
        sites = _sites(extent)
        for site in sites:
            if site in required_sites.get(name, sites):
                by_site.setdefault(site, []).append(sampling)
    schedules = {site: _schedule(site, tuple(found), before) for site, found in by_site.items()}
    return ScheduleSet(samplings, schedules, gap)


def _sensed_extent(catalog: Catalog, name: str) -> Extent:
    extent = catalog.find(name)
    if extent is None or extent.kind is not ExtentKind.SENSED:
        raise ScheduleError(name, "expected a sensed extent; only these have a schedule")
    return extent


def _merge(extent: Extent, needs: list[SamplingNeed]) -> tuple[int, tuple[SensorChannel, ...]]:
    """Return the interval (ticks) and the channels that meet all needs of an extent."""
    name, declared = extent.name, extent.interval
    for need in needs:
        if declared is None or need.every % declared:
            raise ScheduleError(name, f"expected a multiple of its interval, {declared} ticks; found {need.every}")
        if need.every > MAX_INTERVAL:
            raise ScheduleError(
                name, f"expected an interval of at most {MAX_INTERVAL:,} ticks, found {need.every:,}", "SN607"
            )
    known = {a.name for a in (extent.site_attribute, extent.time_attribute) if a}
    needed = {attribute for need in needs for attribute in need.attributes} - known
    sampled = [attribute for attribute in extent.schema if attribute.name in needed]
    if unfit := next((a for a in sampled if not a.type.whole and a.scale is None), None):
        remedy = (
            f"needs a scale: `{unfit.name}:float {{scale 2}}`" if unfit.type is Type.FLOAT else f"is a {unfit.type}"
        )
        raise ScheduleError(name, f"motes compute in integers, and `{unfit.name}` {remedy}", "SN602")
    channels = tuple(channel_of(attribute) for attribute in sampled)
    if len(channels) > MAX_CHANNELS:
        message = f"queries read {len(channels)} sensors at once; a mote samples at most {MAX_CHANNELS}"
        raise ScheduleError(name, message, "SN603")
    if len({channel.sensor for channel in channels}) < len(channels):
        raise ScheduleError(
            name, "two of its sensors have the same code on the air; rename one (`sensor '…'`)", "SN604"
        )
    return gcd(*(need.every for need in needs)), channels


def _with_senders(
    channel: SensorChannel, measuring: frozenset[int], senders: Mapping[str, Collection[int]] | None
) -> SensorChannel:
    """Return a channel with the measuring sites that send it."""
    if senders is None:
        return channel
    sites = measuring.intersection(senders.get(channel.attribute, ()))
    return channel if sites == measuring else replace(channel, senders=sites)


def _sites(extent: Extent) -> tuple[int, ...]:
    if extent.sites is None:
        raise ScheduleError(extent.name, "`at sites all` cannot be scheduled yet; list the sites", "SN605")
    return extent.sites


def _next_free_number(extent: str, samplings: dict[int, Sampling], taken: Collection[int], gap: int) -> int:
    """Return the next number behind a gap that no running sampling has.

    Numbers come round after 256 samplings, when no frame of the old one can be on its way.
    """
    if len(taken) == MAX_SAMPLINGS:
        raise ScheduleError(extent, f"{MAX_SAMPLINGS} samplings run or have just ended; no number on the air is free")
    number = ((next(reversed(samplings)) + 1 if samplings else 0) + gap) % MAX_SAMPLINGS
    while number in taken:
        number = (number + 1) % MAX_SAMPLINGS
    return number


def _schedule(site: int, samplings: tuple[Sampling, ...], before: ScheduleSet) -> Schedule:
    """Return a site's schedule: the same object as before if its samplings are the same."""
    old = before.schedules.get(site)
    if old and old.samplings == samplings:
        return old
    return Schedule(site, old.version % 0xFFFF + 1 if old else 1, samplings)  # version 0 means no image
